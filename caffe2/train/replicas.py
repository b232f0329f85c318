"""Replicas of a model in one net: their names, and the operators that keep them alike.

The blobs of the replica on device 1 are called "cpu_1/<name>" or "gpu_1/<name>".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.device import DeviceOption, IsGPUDeviceType
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.scope import CurrentDeviceScope, DeviceScope, NameScope
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2


def device_prefix(device_type: int) -> str:
    """The first part of the names on devices of a type."""
    return "gpu" if IsGPUDeviceType(device_type) else "cpu"


def stripBlobName(param: Any) -> str:
    """The name of a blob (or of the values of a GradientSlice) without its first scope."""
    name = str(param.values if isinstance(param, GradientSlice) else param)
    scope, separator, rest = name.partition("/")
    if not separator:
        raise UsageError(f"'{scope}' is in no scope")
    return rest


class Replicas:
    """The devices that each have a copy of the model, the first of which is the master."""

    def __init__(self, device_type: int, devices: Sequence[int]) -> None:
        self.device_type, self.devices = device_type, list(devices)
        self.prefix = device_prefix(device_type)

    def option(self, device: int) -> caffe2_pb2.DeviceOption:
        return DeviceOption(self.device_type, device)

    def scope(self, device: int) -> str:
        return f"{self.prefix}_{device}/"

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """The device scope and name scope of a replica."""
        with DeviceScope(self.option(device)), NameScope(f"{self.prefix}_{device}"):
            yield

    def group(self, blobs: Iterable[Any]) -> dict[str, dict[int, Any]]:
        """Blobs by their names without scope, and then by device; those that not all replicas have
        are left out."""
        by_scope = {self.scope(device): device for device in self.devices}
        found: dict[str, dict[int, Any]] = {}
        for blob in blobs:
            name = str(blob.values if isinstance(blob, GradientSlice) else blob)
            scope = name[: name.find("/") + 1]
            if scope in by_scope:
                found.setdefault(name[len(scope) :], {})[by_scope[scope]] = blob
        complete = {
            name: {device: blobs[device] for device in self.devices}
            for name, blobs in found.items()
            if len(blobs) == len(self.devices)
        }
        return complete

    def broadcast(self, net: Net, blobs: Mapping[int, Any]) -> None:
        """Appends copies of the master's blob to the other replicas."""
        master, *others = self.devices
        with DeviceScope(self.option(master)):
            for device in others:
                net.Copy(blobs[master], blobs[device])

    def reduce(self, net: Net, blobs: Mapping[int, Any], share: bool = False) -> None:
        """Appends the sum of a gradient over all replicas, which the master gets, and the others
        unless they `share` its parameters.  Rows of sparse ones are put together."""
        if len(self.devices) < 2:
            return
        gradients = [blobs[device] for device in self.devices]
        master = gradients[0]
        with DeviceScope(self.option(self.devices[0])):
            if not isinstance(master, GradientSlice):
                net.Sum(gradients, master)
            else:
                for part in ("indices", "values"):
                    pieces = [BlobReference(getattr(gradient, part)) for gradient in gradients]
                    joined = [f"{pieces[0]}_concat", f"{pieces[0]}_concat_split"]
                    whole = net.Concat(pieces, [BlobReference(name) for name in joined], axis=0)[0]
                    for piece in pieces[:1] if share else pieces:
                        net.Copy(whole, piece)
                return
        if not share:
            self.broadcast(net, blobs)


def ConvertNetForDevice(net: Net, device: caffe2_pb2.DeviceOption | None = None) -> Net:
    """A copy of a net whose blobs are those of a replica ("cpu_1/<name>"), on its device: that
    of the current DeviceScope unless given, else CPU 0."""
    option = device or CurrentDeviceScope() or DeviceOption(caffe2_pb2.PROTO_CPU)
    scope = f"{device_prefix(option.device_type)}_{option.device_id}/"
    proto = net.Proto()
    blobs = {*proto.external_input, *proto.external_output}
    for op in proto.op:
        blobs.update(op.input, op.output)
    copy = net.Clone(net.Name(), blob_remap={name: scope + name for name in blobs})
    for op in copy.Proto().op:
        op.device_option.CopyFrom(option)
    return copy
