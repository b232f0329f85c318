"""What the old API tells of the machine and of created nets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe2.ops.datatypes import dtype_of
from caffe2.proto import caffe2_pb2
from caffe2.runtime.names import StringifyNetName
from caffe2.runtime.workspace import FeedBlob
from caffe2.runtime.workspaces import current, resolve


def NumGpuDevices() -> int:
    """The number of GPUs that kernels run on: none."""
    return 0


def GetCUDAVersion() -> int:
    """0: there is no CUDA."""
    return 0


def GetCuDNNVersion() -> int:
    """0: there is no cuDNN."""
    return 0


def GetGpuPeerAccessPattern() -> npt.NDArray[Any]:
    """Which GPU reads the memory of which, a row and a column for each."""
    return np.zeros((0, 0))


def GetDeviceProperties(device: int) -> None:
    """What is known of a GPU: None, there is none."""


def GetGPUMemoryInfo() -> None:
    """Memory of the GPUs: None, there is none."""


def IsNUMAEnabled() -> bool:
    """Whether blobs are kept on NUMA nodes: no."""
    return False


def GetNumNUMANodes() -> int:
    """-1: NUMA nodes are not looked at."""
    return -1


def GetBlobNUMANode(name: Any) -> int:
    """-1: not known."""
    return -1


def GetStats() -> dict[str, int]:
    """Counters by name: bytes that tensors take now and at most, since the engine began."""
    from caffe2.runtime.engine import default_engine

    engine = default_engine()
    return {"memory/used": engine.memory_used, "memory/peak": engine.memory_peak}


def CreateOfflineTensor(name: Any, dims: Sequence[int], data_type: int) -> bool:
    """Makes a tensor of zeros, whose shape and type matter and whose values do not."""
    return FeedBlob(name, np.zeros(tuple(dims), dtype_of(data_type)))


_RANDOM_TYPES = {"float": np.float32, "int": np.int32, "long": np.int64}


def FillRandomNetworkInputs(
    net: Any, input_dims: Sequence[Sequence[Sequence[int]]], input_types: Sequence[Sequence[str]]
) -> None:
    """Feeds random values to the external inputs of a net.

    input_dims   for each operator that reads external inputs the shape of each of its inputs
    input_types  their element types: "float" (uniform in [0, 1)), "int" or "long" (0 or 1)

    RuntimeError when there are shapes or types of more or fewer operators or inputs, and for other
    types.
    """
    proto = net.Proto() if hasattr(net, "Proto") else net
    random = np.random.default_rng()
    external = set(proto.external_input)
    readers = [op for op in proto.op if external.intersection(op.input)]
    if not len(readers) == len(input_dims) == len(input_types):
        raise RuntimeError(
            f"{len(readers)} operators read inputs of the net, but there are shapes of "
            f"{len(input_dims)} and types of {len(input_types)}"
        )
    values = {}
    for op, dims, types in zip(readers, input_dims, input_types, strict=True):
        if not len(op.input) == len(dims) == len(types):
            raise RuntimeError(
                f"{op.type} has {len(op.input)} inputs, but there are {len(dims)} shapes and "
                f"{len(types)} types"
            )
        for name, shape, kind in zip(op.input, dims, types, strict=True):
            if kind not in _RANDOM_TYPES:
                known = ", ".join(_RANDOM_TYPES)
                raise RuntimeError(f"'{name}' cannot be of type {kind!r}; allowed are {known}")
            if name in external:
                scale = 1 if kind == "float" else 2
                numbers = random.random(tuple(shape), np.float32) * scale
                values[name] = numbers.astype(_RANDOM_TYPES[kind])
    for name, array in values.items():
        FeedBlob(name, array)


def BenchmarkNet(
    name: Any, warmup_runs: int, main_runs: int, run_individual: bool, *, ws: Any = None
) -> list[float]:
    """Milliseconds per run of a created net; then those of each operator: 0 unless
    `run_individual`, and for one whose work another one does on the way.

    ValueError for less than one main run.
    """
    if warmup_runs < 0 or main_runs < 1:
        raise ValueError(
            f"{warmup_runs} warm-up and {main_runs} main runs; allowed are 0 and 1 or more"
        )
    workspace, net = resolve(ws), StringifyNetName(name)
    for _ in range(warmup_runs):
        workspace.run_net(net)
    start = time.perf_counter()
    for _ in range(main_runs):
        workspace.run_net(net)
    found = [(time.perf_counter() - start) * 1000 / main_runs]
    if run_individual:
        return found + workspace.time_operators(net, main_runs)
    return found + [0.0] * len(caffe2_pb2.NetDef.FromString(workspace.net_def(net)).op)


def BenchmarkNetOnce(name: Any) -> float:
    """Milliseconds of one run of a created net."""
    start = time.perf_counter()
    current().run_net(StringifyNetName(name))
    return (time.perf_counter() - start) * 1000


__all__ = [
    "BenchmarkNet",
    "BenchmarkNetOnce",
    "CreateOfflineTensor",
    "FillRandomNetworkInputs",
    "GetBlobNUMANode",
    "GetCUDAVersion",
    "GetCuDNNVersion",
    "GetDeviceProperties",
    "GetGPUMemoryInfo",
    "GetGpuPeerAccessPattern",
    "GetNumNUMANodes",
    "GetStats",
    "IsNUMAEnabled",
    "NumGpuDevices",
]
