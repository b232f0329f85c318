"""What an operator costs: its floating-point operations and the bytes it moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from caffe2 import ops
from caffe2.ops import geometry
from caffe2.ops.declaration import OpView, Spec
from caffe2.proto import caffe2_pb2
from caffe2.runtime.workspace import current

_ELEMENT_WISE = ("Add", "Sub", "Mul", "Div", "Sum", "Pow", "Sqr", "Negative", "Scale")
_MOVING = ("Relu", "Concat", "Copy", "Transpose", "Reshape", "Flatten", "Gather", "Split", "Slice")


def _matrix_product(op: OpView, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> int:
    """Each value of the output is a sum over the last (or, transposed, last but one) dimension."""
    shape = inputs[0].shape
    inner = shape[-2] if op.args.trans_a and len(shape) > 1 else shape[-1]
    return 2 * prod(outputs[0].shape) * inner


def _fully_connected(op: OpView, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> int:
    size = prod(outputs[0].shape)
    inner = prod(inputs[1].shape) // max(inputs[2].shape[0], 1)
    return size * (2 * inner + 1)


def _conv(op: OpView, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> int:
    filters = inputs[1].shape
    return 2 * prod(outputs[0].shape) * (prod(filters[1:]) if filters[0] else 0)


def _conv_output(op: OpView, inputs: Sequence[Spec]) -> Spec:
    """Floats, as many as there are windows and filters: an estimate for inputs that Conv would
    refuse, too."""
    window = geometry.resolve_window(op.args, geometry.spatial_shape(op.args, inputs[0]))
    shape = geometry.with_channels(op.args, inputs[0].shape[0], inputs[1].shape[0], window.output)
    return Spec(shape, np.dtype(np.float32))


def _size(op: OpView, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> int:
    return prod(outputs[0].shape)


def _none(op: OpView, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> int:
    return 0


_FLOPS: dict[str, Callable[[OpView, Sequence[Spec], Sequence[Spec]], int]] = {
    "BatchMatMul": _matrix_product,
    "MatMul": _matrix_product,
    "FC": _fully_connected,
    **dict.fromkeys(("Conv", "Conv1D", "Conv2D", "Conv3D"), _conv),
    **dict.fromkeys(_ELEMENT_WISE, _size),
    **dict.fromkeys(_MOVING, _none),
}


def GetOperatorCost(operator: Any, blobs: Sequence[Any]) -> tuple[int, int, int]:
    """(floating-point operations, bytes written, bytes read) of an operator.

    operator  an OperatorDef or its bytes
    blobs     its inputs in the current workspace, whose shapes and types count

    A multiplication and an addition are two operations.  Bytes are those of the types of the
    inputs; Conv writes floats.  An output whose shape depends on values
    counts as the workspace has it, if the operator ran.  RuntimeError for an operator of which the
    operations are not known, and for blobs that are missing or hold no tensor.
    """
    if isinstance(operator, bytes):
        operator = caffe2_pb2.OperatorDef.FromString(operator)
    if operator.type not in _FLOPS:
        raise RuntimeError(
            f"the operations of {operator.type} are not known; those of these operators are: "
            f"{', '.join(sorted(_FLOPS))}"
        )
    inputs = [_spec(str(blob)) for blob in blobs]
    declaration = ops.find(operator.type)
    op = declaration.view_of(operator)
    is_conv = _FLOPS[operator.type] is _conv
    outputs = [_conv_output(op, inputs)] if is_conv else list(declaration.infer(op, inputs))
    for index, name in enumerate(operator.output):
        if outputs[index] is None and current().has_blob(name):
            outputs[index] = _spec(name)
    known = [spec for spec in outputs if spec is not None]
    flops = _FLOPS[operator.type](op, inputs, known)
    return flops, sum(map(_bytes, known)), sum(map(_bytes, inputs))


def _bytes(spec: Spec) -> int:
    return prod(spec.shape) * spec.dtype.itemsize


def _spec(name: str) -> Spec:
    found = current().tensor_spec(name)
    if found is None:
        raise RuntimeError(f"blob '{name}' holds no tensor")
    return Spec(tuple(found[0]), np.dtype(found[1]))
