"""What operators cost: multiplications and additions, and bytes, from shapes alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2


def elements(spec: Spec) -> int:
    """The number of values."""
    return int(np.prod(spec.shape, dtype=np.int64))


def spec_bytes(spec: Spec) -> int:
    """The bytes of the values; 0 for strings, whose lengths are not known."""
    return 0 if spec.dtype == object else elements(spec) * spec.dtype.itemsize


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
        taps = elements(specs[op.input[3]]) // max(second.shape[0], 1)
        return 2 * (elements(first) * second.shape[0] + written * taps)
    if kind == "ConvTranspose":
        return 2 * elements(first) * elements(second) // max(second.shape[0], 1)
    if kind in ("FC", "FCTransposed", "MatMul", "BatchMatMul"):
        args = {arg.name: arg.i for arg in op.arg}
        if kind.startswith("FC"):
            inner = int(np.prod(first.shape[args.get("axis", 1) :], dtype=np.int64))
        else:
            inner = first.shape[-2 if args.get("trans_a") and len(first.shape) > 1 else -1]
        return 2 * written * inner
    return written
