"""The count of training steps, which learning rates depend on."""

from __future__ import annotations

from typing import Any

from caffe2.graph.blob import BlobReference, ScopedBlobReference
from caffe2.graph.datatype import DataType
from caffe2.graph.device import DeviceOption
from caffe2.graph.net import Net
from caffe2.graph.scope import DeviceScope
from caffe2.proto import caffe2_pb2

OPTIMIZER_ITERATION_NAME = "optimizer_iteration"
ITERATION_MUTEX_NAME = "iteration_mutex"


def BuildUniqueMutexIter(
    init_net: Net,
    net: Net,
    iter: Any = None,
    iter_mutex: Any = None,
    iter_val: int = 0,
) -> BlobReference:
    """The blob that counts the runs of `net`: int64, shape (1,), from `iter_val` on.

    The first call makes it: `init_net` fills it and its mutex, `net` adds 1 each time it runs.
    Later calls for the same blob only give it back.
    """
    counter = _reference(iter, OPTIMIZER_ITERATION_NAME)
    mutex = _reference(iter_mutex, ITERATION_MUTEX_NAME)
    if not init_net.BlobIsDefined(counter):
        # Whatever device the net is on, it counts on the CPU.
        cpu = DeviceOption(caffe2_pb2.PROTO_CPU, extra_info=["device_type_override:cpu"])
        with DeviceScope(cpu):
            init_net.ConstantFill([], counter, shape=[1], value=iter_val, dtype=DataType.INT64)
            if not init_net.BlobIsDefined(mutex):
                init_net.CreateMutex([], mutex)
            net.AtomicIter([mutex, counter], counter)
    return counter


def _reference(blob: Any, default: str) -> BlobReference:
    return blob if isinstance(blob, BlobReference) else ScopedBlobReference(blob or default)
