"""Nodes that are layers of nets."""

from __future__ import annotations

import math
from typing import Any

from caffe2.interop.onnx.node import Converter, Node


def _window(node: Node) -> dict[str, Any]:
    """The arguments of a window: of a pooling, or of a filter."""
    kernel = node.take("kernel_shape")
    if kernel is None:
        filters = node.shape(1)
        if filters is None or None in filters:
            node.refuse("without kernel_shape the shape of its filter has to be known")
        kernel = filters[2:]
    sizes = len(kernel)
    found: dict[str, Any] = {"kernels": kernel, "strides": node.take("strides") or [1] * sizes}
    dilations = node.take("dilations") or [1] * sizes
    if any(dilation != 1 for dilation in dilations):
        found["dilations"] = dilations
    pads = list(node.take("pads") or [0] * 2 * sizes)
    automatic = node.take("auto_pad", "NOTSET")
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        pads = _same(node, found, dilations, automatic == "SAME_LOWER")
    if node.take("ceil_mode", 0):
        pads = _rounded_up(node, found, dilations, pads)
    found["pads"] = pads
    return found


def _known_sizes(node: Node, count: int, why: str) -> list[int]:
    shape = node.shape()
    sizes = [] if shape is None else [size for size in shape[2:] if size is not None]
    if len(sizes) != count:
        node.refuse(f"{why}: the sizes of its input have to be known")
    return sizes


def _same(node: Node, window: dict[str, Any], dilations: list[int], lower: bool) -> list[int]:
    before, after = [], []
    sizes = _known_sizes(node, len(dilations), "auto_pad")
    for size, kernel, stride, dilation in zip(
        sizes, window["kernels"], window["strides"], dilations, strict=True
    ):
        reach = (kernel - 1) * dilation + 1
        total = max(0, (math.ceil(size / stride) - 1) * stride + reach - size)
        before.append(total - total // 2 if lower else total // 2)
        after.append(total - before[-1])
    return before + after


def _rounded_up(
    node: Node, window: dict[str, Any], dilations: list[int], pads: list[int]
) -> list[int]:
    """Pads with which the last window, which would be cut off, is whole."""
    count, found = len(dilations), list(pads)
    sizes = _known_sizes(node, count, "ceil_mode")
    for i, (size, kernel, stride, dilation) in enumerate(
        zip(sizes, window["kernels"], window["strides"], dilations, strict=True)
    ):
        reach = (kernel - 1) * dilation + 1
        padded = size + pads[i] + pads[count + i]
        steps = math.ceil((padded - reach) / stride)
        if steps * stride >= size + pads[i]:  # no window begins behind the values
            steps -= 1
        found[count + i] += max(0, steps * stride + reach - padded)
    if found != pads and node.type == "AveragePool" and node.attributes.get("count_include_pad"):
        node.refuse("ceil_mode with count_include_pad has no counterpart")
    return found


def _conv(node: Node) -> None:
    node.emit("Conv", **_window(node), group=node.take("group", 1))


def _conv_transpose(node: Node) -> None:
    if node.take("output_shape"):
        node.refuse("output_shape has no counterpart; pads have")
    window = _window(node)
    if "dilations" in window:
        node.refuse("dilations have no counterpart")
    adjust = node.take("output_padding")
    node.emit("ConvTranspose", **window, group=node.take("group", 1), adjs=adjust)


def _pool(node: Node) -> None:
    if len([name for name in node.outputs if name]) > 1:
        node.refuse("the output Indices has no counterpart")
    node.expect("storage_order", [0])
    window = _window(node)
    include = node.take("count_include_pad", 0)
    extra: dict[str, Any] = {"count_include_pad": 1} if include else {}
    node.emit(node.type, node.inputs[:1], **window, **extra)


def _global_pool(node: Node) -> None:
    # Over all sizes at once; the operator of pooling itself does two dimensions.
    node.emit(node.type.removeprefix("Global"), global_pooling=1)


def _batch_normalization(node: Node) -> None:
    node.expect("spatial", [1])
    node.expect("training_mode", [0])
    node.ignore("is_test", "momentum", "consumed_inputs")
    node.emit("SpatialBN", epsilon=node.take("epsilon", 1e-5), is_test=1)


def _instance_normalization(node: Node) -> None:
    node.ignore("consumed_inputs")
    node.emit("InstanceNorm", epsilon=node.take("epsilon", 1e-5))


def _layer_normalization(node: Node) -> None:
    node.expect("stash_type", [1])
    axis = node.axis(node.take("axis", -1))
    outputs = [node.outputs[0], node.new("mean"), node.new("std")]
    epsilon = node.take("epsilon", 1e-5)
    if not node.has_input(2):
        node.refuse("the input B has to be given")
    node.emit("LayerNorm", None, outputs, axis=axis, epsilon=epsilon, elementwise_affine=1)


def _lrn(node: Node) -> None:
    node.emit(
        "LRN",
        size=node.take("size"),
        alpha=node.take("alpha", 1e-4),
        beta=node.take("beta", 0.75),
        bias=node.take("bias", 1.0),
    )


def _lp_normalization(node: Node) -> None:
    node.expect("p", [2])
    node.emit("Normalize", axis=node.axis(node.take("axis", -1)))


def _dropout(node: Node) -> None:
    node.ignore("is_test", "consumed_inputs", "seed", "ratio")
    node.emit("Copy", node.inputs[:1])
    if len(node.outputs) > 1 and node.outputs[1]:
        node.refuse("the output mask has no counterpart")


def _softmax(node: Node) -> None:
    logarithm = node.type == "LogSoftmax"
    axis = node.take("axis", 1 if node.opset < 13 else -1)
    target = node.new("softmax") if logarithm else node.outputs[0]
    last = axis == -1 or (node.shape() is not None and node.axis(axis) == node.rank() - 1)
    if node.opset < 13 or last:
        # Over all dimensions from the axis on, which is what it meant in older versions.
        node.emit("Softmax", None, target, axis=axis if node.opset < 13 else -1)
    else:
        axis, rank = node.axis(axis), node.rank()
        order = list(range(rank))
        order[axis], order[-1] = order[-1], order[axis]
        behind = node.step("Transpose", node.inputs, axes=order)
        result = node.emit("Softmax", [behind], node.new("behind_softmax"), axis=rank - 1)
        node.emit("Transpose", [result], target, axes=order)
    if logarithm:
        node.emit("Log", [target])


def _mat_mul(node: Node) -> None:
    if all((shape := node.shape(index)) is not None and len(shape) == 2 for index in (0, 1)):
        node.emit("MatMul")
    else:
        node.emit("BatchMatMul", broadcast=1)


def _gemm(node: Node) -> None:
    alpha, beta = node.take("alpha", 1.0), node.take("beta", 1.0)
    trans_a, trans_b = node.take("transA", 0), node.take("transB", 0)
    legacy = node.take("broadcast", 0) if node.opset < 7 else 1
    a, b = node.inputs[:2]
    if alpha != 1:
        a = node.step("Scale", [a], scale=alpha)
    if not node.has_input(2):
        node.emit("MatMul", [a, b], trans_a=trans_a, trans_b=trans_b)
        return
    c, shape, columns = node.inputs[2], node.shape(2), node.shape(1)
    width = columns[0 if trans_b else 1] if columns is not None else None
    if beta != 1:
        c = node.step("Scale", [c], scale=beta)
    one = shape is not None and len(shape) == 1 and legacy
    if one and not trans_a and (shape[0] != 1 or width == 1):  # type: ignore[index]
        node.emit("FC" if trans_b else "FCTransposed", [a, b, c])
        return
    product = node.step("MatMul", [a, b], trans_a=trans_a, trans_b=trans_b)
    node.emit("Add", [product, c], broadcast=1 if node.opset < 7 and legacy else None)


def _resize(node: Node) -> None:
    mode = node.take("mode", "nearest")
    place = node.take("coordinate_transformation_mode", "half_pixel")
    node.ignore("nearest_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value")
    node.ignore("antialias", "axes", "keep_aspect_ratio_policy")
    scales = node.take("scales")
    if scales is None and "height_scale" in node.attributes:
        scales = [1, 1, node.take("height_scale"), node.take("width_scale")]
    if scales is None:
        position = 1 if node.type == "Upsample" or node.opset < 11 else 2
        given = node.constant_input(position)
        scales = None if given is None or given.size == 0 else given.tolist()
    if scales is None:
        sizes, shape = node.constant_input(3), node.shape()
        if sizes is None or shape is None or None in shape:
            node.refuse("scales, or sizes and the shape of its input, have to be known")
        scales = [new / old for new, old in zip(sizes.tolist(), shape, strict=True) if old]
    if len(scales) != 4 or scales[0] != 1 or scales[1] != 1:
        node.refuse(f"scales {scales} have no counterpart: only height and width are resized")
    height, width = float(scales[2]), float(scales[3])
    if mode == "nearest" and height.is_integer() and width.is_integer():
        node.emit("ResizeNearest", node.inputs[:1], height_scale=height, width_scale=width)
    elif mode == "linear" and place == "align_corners":
        node.emit("UpsampleBilinear", node.inputs[:1], height_scale=height, width_scale=width)
    else:
        node.refuse(f"mode {mode} with scales {scales[2:]} and {place} has no counterpart")


CONVERTERS: dict[str, Converter] = {
    "AveragePool": _pool,
    "BatchNormalization": _batch_normalization,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Dropout": _dropout,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_pool,
    "GlobalMaxPool": _global_pool,
    "InstanceNormalization": _instance_normalization,
    "LRN": _lrn,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _softmax,
    "LpNormalization": _lp_normalization,
    "MatMul": _mat_mul,
    "MaxPool": _pool,
    "Resize": _resize,
    "Softmax": _softmax,
    "Upsample": _resize,
}
