"""Which ONNX nodes each operator becomes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx

from caffe2.interop.onnx import export_layers as layers
from caffe2.interop.onnx.export_node import Operator
from caffe2.ops.datatypes import dtype_of

_LARGEST = 2**31 - 1

_SAME = """
    Abs Acos Asin Atan Ceil Cos Cosh Erf Exp Floor Log Mean Not Reciprocal Relu Sigmoid Sign Sin
    Sinh Softplus Softsign Sqrt Sum Tan Tanh Where
"""
_RENAMED = {
    "Alias": "Identity",
    "Copy": "Identity",
    "EnsureCPUOutput": "Identity",
    "Negative": "Neg",
    "Shape": "Shape",
    "Size": "Size",
    "StopGradient": "Identity",
    "Max": "Max",
    "Min": "Min",
}
_WITH_ARGUMENTS = {
    "Elu": ("Elu", {"alpha": "alpha"}),
    "HardSigmoid": ("HardSigmoid", {"alpha": "alpha", "beta": "beta"}),
    "LeakyRelu": ("LeakyRelu", {"alpha": "alpha"}),
    "Selu": ("Selu", {"alpha": "alpha", "scale": "gamma"}),
    "ThresholdedRelu": ("ThresholdedRelu", {"alpha": "alpha"}),
    "Clip": ("Clip", {"min": "min", "max": "max"}),
}
_BINARY = {
    "Add": "Add",
    "And": "And",
    "Div": "Div",
    "EQ": "Equal",
    "GT": "Greater",
    "LT": "Less",
    "Mul": "Mul",
    "Or": "Or",
    "Pow": "Pow",
    "Sub": "Sub",
    "Xor": "Xor",
}


def _plain(node_type: str, op: Operator) -> None:
    op.emit(node_type)


def _arguments(op: Operator) -> None:
    node_type, names = _WITH_ARGUMENTS[op.type]
    given: dict[str, Any] = {theirs: float(op.arg(ours)) for ours, theirs in names.items()}
    op.emit(node_type, **given)


def _binary(op: Operator) -> None:
    node_type = _BINARY[op.type]
    if len(op.inputs) == 1:  # Pow with a number
        op.emit(node_type, [*op.inputs, op.constant(op.arg("exponent"), "exponent", np.float32)])
        return
    a, b = op.inputs
    if op.arg("broadcast", False):
        # Of old: b fits to dimensions of a from an axis on, by default to the last ones.
        left, right = op.shape(0), op.shape(1)
        axis = op.arg("axis", -1)
        axis = len(left) - len(right) if axis == -1 else axis
        behind = len(left) - axis - len(right)
        if behind > 0 and right:
            shape = op.constant([*right, *[1] * behind], "shape")
            b = op.step("Reshape", [b, shape])
    op.emit(node_type, [a, b])


def _scale(op: Operator) -> None:
    op.emit("Mul", [*op.inputs, op.constant(op.arg("scale"), "scale", np.float32)])


def _swish(op: Operator) -> None:
    op.emit("Mul", [op.inputs[0], op.step("Sigmoid", op.inputs)])


def _sqr(op: Operator) -> None:
    op.emit("Mul", [op.inputs[0], op.inputs[0]])


def _prelu(op: Operator) -> None:
    op.expect("order", "NCHW")
    x, slope = op.inputs
    if op.shape(1) != (1,):
        behind = [1] * (len(op.shape()) - 2)
        slope = op.step("Reshape", [slope, op.constant([-1, *behind], "shape")])
    op.emit("PRelu", [x, slope])


def _cast(op: Operator) -> None:
    to = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype_of(int(op.arg("to")))))
    op.emit("Cast", to=to)


def _concat(op: Operator) -> None:
    axis = op.arg("axis")
    if axis is None:
        op.expect("order", "NCHW")
        axis = 1
    rank = len(op.shape()) + bool(op.arg("add_axis"))
    axis = axis if axis >= 0 else axis + rank
    inputs = op.inputs
    if op.arg("add_axis"):
        inputs = [op.step("Unsqueeze", [name], axes=[axis]) for name in inputs]
        sizes = [1] * len(inputs)
    else:
        sizes = [op.shape(index)[axis] for index in range(len(inputs))]
    op.emit("Concat", inputs, axis=axis)
    if len(op.outputs) > 1:
        info = op.constant(sizes, "split_info", np.int32)
        op.emit("Identity", [info], op.outputs[1])


def _split(op: Operator) -> None:
    if len(op.inputs) > 1 or op.arg("add_axis"):
        op.refuse("an input of sizes, or add_axis,")
    axis = op.arg("axis")
    if axis is None:
        op.expect("order", "NCHW")
        axis = 1
    axis = op.axis(axis)
    split = list(op.arg("split") or ()) or [op.specs[name].shape[axis] for name in op.outputs]
    op.emit("Split", None, op.outputs, axis=axis, split=split)


def _slice(op: Operator) -> None:
    if len(op.inputs) > 1:
        op.refuse("inputs of starts and ends")
    starts, ends = list(op.arg("starts")), list(op.arg("ends"))
    # Here -1 is the place behind the last value, there the last value.
    starts = [_LARGEST if start == -1 else start + (start < 0) for start in starts]
    ends = [_LARGEST if end == -1 else end + (end < 0) for end in ends]
    op.emit("Slice", axes=list(range(len(starts))), starts=starts, ends=ends)


def _reshape(op: Operator) -> None:
    shape = op.arg("shape")
    new_shape = op.inputs[1] if len(op.inputs) > 1 else op.constant(list(shape), "shape")
    if len(op.outputs) > 1:
        op.emit("Shape", op.inputs[:1], op.outputs[1])
    op.emit("Reshape", [op.inputs[0], new_shape])


def _to_shape(shape: list[int], op: Operator) -> None:
    op.emit("Reshape", [op.inputs[0], op.constant(shape, "shape")])


def _merge_dim(op: Operator) -> None:
    rest = [0] * (len(op.shape()) - 2)
    # Zeros mean the dimension at the same place, which these are not at.
    _to_shape([-1, *op.shape()[2:]] if rest else [-1], op)


def _flatten(op: Operator) -> None:
    op.emit("Flatten", axis=op.axis(op.arg("axis", 1)))


def _transpose(op: Operator) -> None:
    op.emit("Transpose", perm=list(op.arg("axes")) or None)


def _reorder(first: bool, op: Operator) -> None:
    rank = len(op.shape())
    last = [0, *range(2, rank), 1]
    op.emit("Transpose", perm=[0, rank - 1, *range(1, rank - 1)] if first else last)


def _squeeze(op: Operator) -> None:
    op.emit("Squeeze", axes=list(op.arg("dims")))


def _expand_dims(op: Operator) -> None:
    op.emit("Unsqueeze", axes=list(op.arg("dims")))


def _reduce(node_type: str, op: Operator) -> None:
    axes = [op.axis(axis) for axis in op.arg("axes")]
    op.emit(node_type, axes=axes or None, keepdims=int(op.arg("keepdims")))


def _reduce_side(node_type: str, front: bool, op: Operator) -> None:
    if len(op.inputs) > 1:
        op.refuse("an input of lengths")
    rank, count = len(op.shape()), op.arg("num_reduce_dim", 1)
    axes = list(range(count)) if front else list(range(rank - count, rank))
    op.emit(node_type, axes=axes, keepdims=0)


def _extreme(op: Operator) -> None:
    op.emit(op.type, axis=op.axis(op.arg("axis")), keepdims=int(op.arg("keepdims")))


def _top_k(op: Operator) -> None:
    if len(op.inputs) > 1 or len(op.outputs) > 2:
        op.refuse("an input k, or an output of flat indices,")
    outputs = [*op.outputs, *[op.new("indices")] * (2 - len(op.outputs))]
    op.emit("TopK", None, outputs, k=op.arg("k"), axis=op.axis(op.arg("axis")))


def _gather(op: Operator) -> None:
    axis = 1 if op.type == "BatchGather" else op.arg("axis") or 0
    op.emit("Gather", axis=axis)


def _tile(op: Operator) -> None:
    if len(op.inputs) > 1:
        op.refuse("an input of tiles")
    repeats = [1] * len(op.shape())
    repeats[op.axis(op.arg("axis") or 0)] = op.arg("tiles")
    op.emit("Tile", [*op.inputs, op.constant(repeats, "repeats")])


EXPORTERS: dict[str, Callable[[Operator], None]] = {
    **{name: partial(_plain, name) for name in _SAME.split()},
    **{name: partial(_plain, theirs) for name, theirs in _RENAMED.items()},
    **dict.fromkeys(_WITH_ARGUMENTS, _arguments),
    **dict.fromkeys(_BINARY, _binary),
    "ExpandDepthwise": layers.expand_depthwise,
    **dict.fromkeys(("Conv", "Conv1D", "Conv2D", "Conv3D"), layers.conv),
    **dict.fromkeys(("MaxPool", "AveragePool", "MaxPool2D", "AveragePool2D"), layers.pool),
    **dict.fromkeys(("FC", "FCTransposed"), layers.fc),
    **dict.fromkeys(("MatMul", "BatchMatMul"), layers.mat_mul),
    **dict.fromkeys(("ElementwiseLinear", "AffineChannel"), layers.affine),
    **{
        f"Reduce{side}{kind}": partial(_reduce_side, f"Reduce{kind}", side == "Front")
        for side in ("Front", "Back")
        for kind in ("Sum", "Mean", "Max")
    },
    **{
        name: partial(_reduce, name)
        for name in ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")
    },
    "ArgMax": _extreme,
    "ArgMin": _extreme,
    "BatchGather": _gather,
    "Cast": _cast,
    "ChannelShuffle": layers.channel_shuffle,
    "Concat": _concat,
    "ConvTranspose": layers.conv_transpose,
    "Dropout": layers.dropout,
    "ExpandDims": _expand_dims,
    "Flatten": _flatten,
    "FlattenToVec": partial(_to_shape, [-1]),
    "Gather": _gather,
    "InstanceNorm": layers.instance_norm,
    "LRN": layers.lrn,
    "MergeDim": _merge_dim,
    "NCHW2NHWC": partial(_reorder, False),
    "NHWC2NCHW": partial(_reorder, True),
    "PRelu": _prelu,
    "PadImage": layers.pad_image,
    "Reshape": _reshape,
    "ResizeNearest": layers.resize,
    "Scale": _scale,
    "Slice": _slice,
    "Softmax": layers.softmax,
    "SpatialBN": layers.spatial_bn,
    "Split": _split,
    "Sqr": _sqr,
    "Squeeze": _squeeze,
    "Swish": _swish,
    "Tile": _tile,
    "TopK": _top_k,
    "Transpose": _transpose,
}
