"""Operators that are layers, as ONNX nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.interop.onnx.export_node import Operator

_SAME, _CAFFE = 2, 3  # of legacy_pad


def _numbers(op: Operator, plural: str, one: str, parts: tuple[str, ...], count: int) -> list[int]:
    """An argument of a window that is given as a list, as one number for all or one by one."""
    several = list(op.arg(plural) or ())
    if several:
        return several
    each = [op.arg(f"{one}_{part}") for part in parts]
    if any(value is not None for value in each):
        return [value if value is not None else op.arg(one) or 0 for value in each]
    return [op.arg(one)] * count


def _window(op: Operator) -> dict[str, Any]:
    op.expect("order", "NCHW")
    count = len(op.shape()) - 2
    sides = ("h", "w")
    kernel = _numbers(op, "kernels", "kernel", sides, count)
    strides = _numbers(op, "strides", "stride", sides, count)
    dilations = _numbers(op, "dilations", "dilation", sides, count)
    pads = _numbers(op, "pads", "pad", ("t", "l", "b", "r"), 2 * count)
    legacy = op.arg("legacy_pad", 0)
    if legacy == _CAFFE:
        pads = _as_caffe(op, kernel, strides, pads)
    elif legacy:
        op.refuse(f"legacy_pad={legacy}")
    found = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    if any(dilation not in (None, 1) for dilation in dilations):
        found["dilations"] = dilations
    return found


def _as_caffe(op: Operator, kernel: list[int], strides: list[int], pads: list[int]) -> list[int]:
    """Pads with which the last window is whole, where sizes are rounded up."""
    count, found = len(kernel), list(pads)
    outputs = op.specs[op.outputs[0]].shape[2:]
    for i, (size, steps) in enumerate(zip(op.shape()[2:], outputs, strict=True)):
        reach = (steps - 1) * strides[i] + kernel[i]
        found[count + i] = max(found[count + i], reach - size - pads[i])
    return found


def conv(op: Operator) -> None:
    op.emit("Conv", **_window(op), group=op.arg("group", 1))


def expand_depthwise(op: Operator) -> None:
    x, expand, expand_bias, filter, bias, *project = op.inputs
    y = op.step("Conv", [x, expand, expand_bias], kernel_shape=[1, 1])
    y = op.step("Clip", [y], min=float(op.arg("min")), max=float(op.arg("max")))
    depthwise: dict[str, Any] = {**_window(op), "group": op.shape(3)[0]}
    if not project:
        op.emit("Conv", [y, filter, bias], **depthwise)
        return
    y = op.step("Conv", [y, filter, bias], **depthwise)
    bounds = {name: float(op.arg(f"filtered_{name}")) for name in ("min", "max")}
    y = op.step("Clip", [y], **bounds)
    op.emit("Conv", [y, *project], kernel_shape=[1, 1])


def conv_transpose(op: Operator) -> None:
    window = _window(op)
    adjust = _numbers(op, "adjs", "adj", ("h", "w"), len(window["kernel_shape"]))
    extra: dict[str, Any] = {"output_padding": adjust} if any(adjust) else {}
    op.emit("ConvTranspose", **window, group=op.arg("group", 1), **extra)


def pool(op: Operator) -> None:
    kind = "MaxPool" if op.type.startswith("Max") else "AveragePool"
    if op.arg("global_pooling"):
        op.expect("order", "NCHW")
        op.emit(f"Global{kind}")
        return
    window = _window(op)
    if "dilations" in window:
        op.refuse("dilation")
    extra: dict[str, Any] = {"count_include_pad": 1} if op.arg("count_include_pad", False) else {}
    op.emit(kind, **window, **extra)


def spatial_bn(op: Operator) -> None:
    op.expect("order", "NCHW")
    op.expect("is_test", True)
    op.emit("BatchNormalization", op.inputs[:5], epsilon=op.arg("epsilon"))


def instance_norm(op: Operator) -> None:
    op.expect("order", "NCHW")
    op.emit("InstanceNormalization", epsilon=op.arg("epsilon"))


def lrn(op: Operator) -> None:
    op.expect("order", "NCHW")
    op.emit("LRN", **{name: op.arg(name) for name in ("size", "alpha", "beta", "bias")})


def fc(op: Operator) -> None:
    x, w, b = op.inputs
    axis, transposed = op.axis(op.arg("axis", 1)), op.type == "FC"
    if len(op.shape(1)) != 2:
        shape = op.shape(1)
        split = op.axis(op.arg("axis_w", 1), 1)
        flat = [int(np.prod(shape[:split])), int(np.prod(shape[split:]))]
        w = op.step("Reshape", [w, op.constant(flat, "shape")])
    if axis == 1:
        if len(op.shape()) != 2:
            x = op.step("Flatten", [x], axis=1)
        op.emit("Gemm", [x, w, b], transB=int(transposed))
        return
    # 0 stands for a dimension as it is.
    x = op.step("Reshape", [x, op.constant([0] * axis + [-1], "shape")])
    if transposed:
        w = op.step("Transpose", [w], perm=[1, 0])
    op.emit("Add", [op.step("MatMul", [x, w]), b])


def mat_mul(op: Operator) -> None:
    names = []
    for index, turned in ((0, op.arg("trans_a", False)), (1, op.arg("trans_b", False))):
        name, rank = op.inputs[index], len(op.shape(index))
        if op.type == "MatMul" and (rank != 2 or op.arg(f"axis_{'ab'[index]}") != 1):
            op.refuse(f"an input of {rank} dimensions")
        if turned:
            order = list(range(rank))
            order[-1], order[-2] = order[-2], order[-1]
            name = op.step("Transpose", [name], perm=order)
        names.append(name)
    op.emit("MatMul", names)


def softmax(op: Operator) -> None:
    op.emit("Softmax", axis=op.axis(op.arg("axis", 1)))


def dropout(op: Operator) -> None:
    op.emit("Dropout", ratio=op.arg("ratio"))


def affine(op: Operator) -> None:
    """ElementwiseLinear: rows times w plus b; AffineChannel: the same with channels."""
    x, scale, bias = op.inputs
    shape = op.shape()
    if op.type == "AffineChannel":
        op.expect("order", "NCHW")
        rest = [1] * (len(shape) - 2)
        scale, bias = (
            op.step("Reshape", [name, op.constant([-1, *rest], "shape")]) for name in (scale, bias)
        )
        op.emit("Add", [op.step("Mul", [x, scale]), bias])
        return
    axis = op.axis(op.arg("axis", 1))
    flat = op.step("Flatten", [x], axis=axis)
    result = op.step("Add", [op.step("Mul", [flat, scale]), bias])
    op.emit("Reshape", [result, op.step("Shape", [x])])


def resize(op: Operator) -> None:
    op.expect("order", "NCHW")
    if len(op.inputs) > 1:
        op.refuse("an input of scales")
    scales = [1.0, 1.0, op.arg("height_scale"), op.arg("width_scale")]
    op.emit("Upsample", [*op.inputs, op.constant(scales, "scales", np.float32)], mode="nearest")


def pad_image(op: Operator) -> None:
    op.expect("order", "NCHW")
    top, left, bottom, right = _numbers(op, "pads", "pad", ("t", "l", "b", "r"), 4)
    pads = [0, 0, top, left, 0, 0, bottom, right]
    op.emit("Pad", mode=op.arg("mode"), pads=pads, value=op.arg("value"))


def channel_shuffle(op: Operator) -> None:
    op.expect("order", "NCHW")
    shape, group = op.shape(), op.arg("group")
    parts = [0, group, shape[1] // group, *shape[2:]]
    split = op.step("Reshape", [*op.inputs, op.constant(parts, "shape")])
    order = [0, 2, 1, *range(3, len(parts))]
    moved = op.step("Transpose", [split], perm=order)
    op.emit("Reshape", [moved, op.step("Shape", op.inputs)])
