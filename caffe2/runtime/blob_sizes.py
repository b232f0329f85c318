"""How much memory blobs of the workspace take, and what it is good for that they share it."""

from __future__ import annotations

from typing import Any, NamedTuple

from caffe2.graph.lifetimes import Assignments
from caffe2.proto import caffe2_pb2
from caffe2.runtime.workspace import GetBlobSizeBytes, HasBlob


class Statistics(NamedTuple):
    """Bytes of blobs that each have memory of their own, and of those that share it."""

    baseline_nbytes: int
    optimized_nbytes: int


def blob_nbytes(blob: Any) -> int:
    """The bytes of the tensor in a blob of the workspace; 0 where there is none."""
    return GetBlobSizeBytes(blob) if HasBlob(blob) else 0


def collect_blob_sizes(net: caffe2_pb2.NetDef) -> dict[str, int]:
    """The bytes that each blob of a net takes in the workspace, after a run."""
    return {name: blob_nbytes(name) for op in net.op for name in (*op.input, *op.output)}


def compute_statistics(assignments: Assignments) -> Statistics:
    """What sharing saves, by the blobs that are in the workspace after a run of the net before."""
    sizes = [[blob_nbytes(name) for name, _ in shared] for shared in assignments]
    return Statistics(sum(map(sum, sizes)), sum(max(shared, default=0) for shared in sizes))
