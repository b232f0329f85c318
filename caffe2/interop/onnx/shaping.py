"""Nodes that move, choose and reduce values."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.interop.onnx.node import Converter, Node
from caffe2.ops.datatypes import data_type_of

_LARGEST = 2**31 - 1


def _constant(node: Node) -> None:
    value = node.take("value")
    for name, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        given = node.take(name)
        value = np.asarray(given, dtype) if given is not None else value
    if value is None:
        node.refuse("it has no value that is a tensor or numbers")
    node.graph.constant(node.outputs[0], value)


def _constant_of_shape(node: Node) -> None:
    value = node.take("value", np.zeros(1, np.float32))
    number = value.reshape(-1)[0].item()
    dtype = int(data_type_of(value.dtype))
    if node.inputs[0] in node.graph.constants:
        shape = node.constant_input(0).tolist()
        node.emit("ConstantFill", [], shape=shape, value=number, dtype=dtype)
    else:
        node.emit("ConstantFill", value=number, dtype=dtype, input_as_shape=1)


def _reshape(node: Node) -> None:
    node.expect("allowzero", [0])
    node.ignore("consumed_inputs")
    outputs = [node.outputs[0], node.new("old_shape")]
    shape = node.take("shape")
    if shape is None and node.inputs[1] in node.graph.constants:
        shape = node.constant_input(1).tolist()
    node.emit("Reshape", node.inputs[:1] if shape is not None else None, outputs, shape=shape)


def _squeeze(node: Node) -> None:
    axes = node.attribute_or_input("axes", 1)
    if axes is None:
        shape = node.shape()
        if shape is None or None in shape:
            node.refuse("without axes the shape of its input has to be known")
        axes = [index for index, size in enumerate(shape) if size == 1]
    dims = sorted(node.axis(axis) for axis in axes)
    node.emit("Squeeze", node.inputs[:1], dims=dims)


def _unsqueeze(node: Node) -> None:
    axes = node.attribute_or_input("axes", 1)
    dims = sorted(node.axis(axis, more=len(axes)) for axis in axes)
    node.emit("ExpandDims", node.inputs[:1], dims=dims)


def _concat(node: Node) -> None:
    outputs = [node.outputs[0], node.new("split_info")]
    node.emit("Concat", None, outputs, axis=node.axis(node.take("axis", 1)))


def _split(node: Node) -> None:
    axis = node.axis(node.take("axis", 0))
    node.ignore("num_outputs")
    split = node.attribute_or_input("split", 1)
    node.emit("Split", node.inputs[:1], node.outputs, axis=axis, split=split)


def _slice(node: Node) -> None:
    starts, ends, axes, steps = (
        node.take(name) if node.opset < 10 else _listed(node, index)
        for index, name in enumerate(("starts", "ends", "axes", "steps"), 1)
    )
    if steps is not None and any(step != 1 for step in steps):
        node.refuse(f"steps {steps} have no counterpart")
    axes = range(len(starts)) if axes is None else [node.axis(axis) for axis in axes]
    first, last = [0] * (max(axes) + 1), [-1] * (max(axes) + 1)
    for axis, start, end in zip(axes, starts, ends, strict=True):
        # Here -1 is the place behind the last value, there the last value.
        first[axis] = max(start, -_LARGEST) - (start < 0)
        last[axis] = min(max(end, -_LARGEST), _LARGEST) - (end < 0)
    node.emit("Slice", node.inputs[:1], starts=first, ends=last)


def _listed(node: Node, index: int) -> Any:
    value = node.constant_input(index)
    return None if value is None else value.reshape(-1).tolist()


def _gather(node: Node) -> None:
    node.emit("Gather", axis=node.axis(node.take("axis", 0)))


def _expand(node: Node) -> None:
    node.emit("Expand")


def _tile(node: Node) -> None:
    repeats = node.step("Cast", node.inputs[1:2], to=int(data_type_of(np.dtype(np.int32))))
    node.emit("NumpyTile", [node.inputs[0], repeats])


def _pad(node: Node) -> None:
    mode = node.take("mode", "constant")
    pads = node.attribute_or_input("pads", 1) if node.opset < 11 else _listed(node, 1)
    value = node.take("value", 0.0)
    if node.opset >= 11 and node.has_input(2):
        value = float(np.asarray(node.constant_input(2)).reshape(()))
    half = len(pads) // 2
    outer = [*pads[:2], *pads[half : half + 2]]
    if half != 4 or any(outer) or node.has_input(3):
        node.refuse(f"pads {pads} have no counterpart: only height and width are padded")
    sizes = [pads[2], pads[3], pads[6], pads[7]]
    node.emit("PadImage", node.inputs[:1], pads=sizes, mode=mode, value=value)


def _transpose(node: Node) -> None:
    node.emit("Transpose", axes=node.take("perm"))


def _flatten(node: Node) -> None:
    node.emit("Flatten", axis=node.take("axis", 1))


def _shape(node: Node) -> None:
    start, end = node.take("start", 0), node.take("end")
    if start == 0 and end is None:
        node.emit("Shape")
        return
    axes = list(range(node.rank()))[start:end]
    if not axes:
        node.refuse("a shape of no dimensions has no counterpart")
    node.emit("Shape", axes=axes)


def _size(node: Node) -> None:
    node.emit("Size")


def _reduced(op_type: str, before: str = "", after: str = "") -> Converter:
    """A reduction, with an operator on its input or its output."""

    def convert(node: Node) -> None:
        axes = node.attribute_or_input("axes", 1)
        if not axes and node.take("noop_with_empty_axes", 0):
            node.refuse("noop_with_empty_axes has no counterpart")
        node.ignore("noop_with_empty_axes")
        arguments: dict[str, Any] = {"keepdims": node.take("keepdims", 1)}
        if axes:
            arguments["axes"] = sorted(node.axis(axis) for axis in axes)
        values = node.inputs[:1]
        if before:
            values = [node.step(before, values)]
        if after:
            node.emit(after, [node.step(op_type, values, **arguments)])
        else:
            node.emit(op_type, values, **arguments)

    return convert


def _extreme(node: Node) -> None:
    node.expect("select_last_index", [0])
    axis = node.axis(node.take("axis", 0))
    node.emit(node.type, axis=axis, keepdims=node.take("keepdims", 1))


def _top_k(node: Node) -> None:
    node.expect("largest", [1])
    node.ignore("sorted")
    k = node.take("k")
    if k is None:
        k = int(np.asarray(node.constant_input(1)).reshape(()))
    node.emit("TopK", node.inputs[:1], node.outputs, k=k, axis=node.axis(node.take("axis", -1)))


def _depth_to_space(node: Node) -> None:
    block, mode = node.take("blocksize"), node.take("mode", "DCR")
    channels, height, width = _known(node)
    rest = channels // block**2
    parts = [0, block, block, rest] if mode == "DCR" else [0, rest, block, block]
    order = [0, 3, 4, 1, 5, 2] if mode == "DCR" else [0, 1, 4, 2, 5, 3]
    _shuffle(node, [*parts, height, width], order, [0, rest, height * block, width * block])


def _space_to_depth(node: Node) -> None:
    block = node.take("blocksize")
    channels, height, width = _known(node)
    rows, columns = height // block, width // block
    parts = [0, channels, rows, block, columns, block]
    _shuffle(node, parts, [0, 3, 5, 1, 2, 4], [0, channels * block**2, rows, columns])


def _known(node: Node) -> list[int]:
    shape = node.shape()
    sizes = [] if shape is None else [size for size in shape[1:] if size is not None]
    if len(sizes) != 3:
        node.refuse("channels, height and width of its input have to be known")
    return sizes


def _shuffle(node: Node, parts: list[int], order: list[int], shape: list[int]) -> None:
    split = node.emit("Reshape", None, [node.new("parts"), node.new("whole_shape")], shape=parts)
    moved = node.step("Transpose", [split], axes=order)
    node.emit("Reshape", [moved], [node.outputs[0], node.new("moved_shape")], shape=shape)


CONVERTERS: dict[str, Converter] = {
    "ArgMax": _extreme,
    "ArgMin": _extreme,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Pad": _pad,
    "ReduceL1": _reduced("ReduceL1"),
    "ReduceL2": _reduced("ReduceL2"),
    "ReduceLogSum": _reduced("ReduceSum", after="Log"),
    "ReduceMax": _reduced("ReduceMax"),
    "ReduceMean": _reduced("ReduceMean"),
    "ReduceMin": _reduced("ReduceMin"),
    "ReduceSum": _reduced("ReduceSum"),
    "ReduceSumSquare": _reduced("ReduceSum", before="Sqr"),
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "TopK": _top_k,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
