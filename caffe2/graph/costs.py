"""What operators do and cost, from shapes alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from caffe2.graph.shapes import infer_next
from caffe2.ops import declared
from caffe2.ops.arguments import OperatorError
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2


def elements(spec: Spec) -> int:
    """The number of values."""
    return math.prod(spec.shape)


def spec_bytes(spec: Spec) -> int:
    """The bytes of the values; 0 for strings, whose lengths are not known."""
    return 0 if spec.dtype == object else elements(spec) * spec.dtype.itemsize


class Step(NamedTuple):
    """An operator among the others of its net.

    inputs, outputs  shapes and types of its blobs before and after it, as far as they are known
    flops            multiplications and additions; None when a shape is not known
    refusal          why it does not take its inputs
    """

    op: caffe2_pb2.OperatorDef
    inputs: dict[str, Spec]
    outputs: dict[str, Spec]
    flops: int | None
    refusal: OperatorError | None

    @property
    def unknown(self) -> list[str]:
        """What of its outputs is not known before a run although all inputs are: how much comes
        out depends on values, or it is no tensor."""
        if self.refusal or len(self.inputs) < len(set(self.op.input)) or not declared(self.op.type):
            return []
        return [name for name in self.op.output if name not in self.outputs]


def steps(net: caffe2_pb2.NetDef, known: Mapping[str, Spec]) -> Iterator[Step]:
    """The operators of a net in order, one after the other."""
    specs = dict(known)
    for op in net.op:
        inputs = {name: specs[name] for name in op.input if name in specs}
        refusal = infer_next(op, specs)
        outputs = {name: specs[name] for name in op.output if name in specs}
        yield Step(op, inputs, outputs, operator_flops(op, inputs | outputs), refusal)


def operator_flops(op: caffe2_pb2.OperatorDef, specs: Mapping[str, Spec]) -> int | None:
    """Multiplications plus additions: exact for convolutions and matrix products, one for each
    value written by all others.  None when a shape is not known."""
    blobs = [*op.input[:2], *op.output[:1]]
    if not op.output or any(name not in specs for name in blobs):
        return None
    written = elements(specs[op.output[0]])
    kind = op.type.removeprefix("Int8").removesuffix("Relu")
    if len(op.input) < 2:
        return written
    first, second = specs[op.input[0]], specs[op.input[1]]
    if kind == "Conv":
        return 2 * written * elements(second) // max(second.shape[0], 1)
    if kind == "ExpandDepthwise":
        if op.input[3] not in specs:
            return None
        expanded = max(second.shape[0], 1)
        taps = elements(specs[op.input[3]]) // expanded
        pixels = written // max(specs[op.output[0]].shape[1], 1)
        projected = written if len(op.input) > 5 else 0
        return 2 * expanded * (elements(first) + pixels * taps + projected)
    if kind == "ConvTranspose":
        return 2 * elements(first) * elements(second) // max(second.shape[0], 1)
    if kind in ("FC", "FCTransposed", "MatMul", "BatchMatMul"):
        args = {arg.name: arg.i for arg in op.arg}
        if kind.startswith("FC"):
            inner = math.prod(first.shape[args.get("axis", 1) :])
        else:
            inner = first.shape[-2 if args.get("trans_a") and len(first.shape) > 1 else -1]
        return 2 * written * inner
    return written
