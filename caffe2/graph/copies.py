"""Copies of blobs from device to device, put into nets where operators need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from caffe2.graph.blob import BlobReference
from caffe2.graph.device import InferOpBlobDevices, IsGPUDeviceType, device_option_equal
from caffe2.graph.errors import UsageError
from caffe2.graph.operator import CreateOperator
from caffe2.proto import caffe2_pb2

if TYPE_CHECKING:
    from caffe2.graph.net import Net

Device: TypeAlias = caffe2_pb2.DeviceOption


@dataclass(frozen=True)
class RemapEntry:
    """A blob on a device."""

    blob: str
    device: str

    def __init__(self, blob: Any, device: Device) -> None:
        object.__setattr__(self, "blob", str(blob))
        object.__setattr__(self, "device", _suffix(device))


def _suffix(device: Device) -> str:
    if IsGPUDeviceType(device.device_type):
        return f"gpu_{device.device_id}"
    return "cpu" if device.device_type == caffe2_pb2.PROTO_CPU else f"device_{device.device_type}"


def device_equal(src: Device, dst: Device) -> bool:
    """Whether blobs need no copy from one to the other."""
    return device_option_equal(src, dst)


def copy_func_between_devices(src: Device, dst: Device) -> Any:
    """What copies from one device to another: a function (net, inputs, outputs, **arguments) that
    appends the operator; None where none is needed."""
    if device_equal(src, dst):
        return None
    types = {
        (False, True): "CopyCPUToGPU",
        (True, False): "CopyGPUToCPU",
        (True, True): "Copy",
    }
    from_gpu, to_gpu = (IsGPUDeviceType(device.device_type) for device in (src, dst))
    op_type = types.get((from_gpu, to_gpu))
    if op_type is None:
        raise UsageError(f"there is no copy from {_suffix(src)} to {_suffix(dst)}")
    device = src if from_gpu and not to_gpu else dst

    def append(net: Net, inputs: Any, outputs: Any, **kwargs: Any) -> None:
        op = CreateOperator(op_type, inputs, outputs, device_option=device, **kwargs)
        net.extend_ops([op])

    return append


def InferBlobDevices(net: Any) -> dict[str, Device]:
    """The device of every blob that operators of a net write."""
    devices: dict[str, Device] = {}
    for op in net.Proto().op:
        devices.update(zip(op.output, InferOpBlobDevices(op)[1], strict=True))
    return devices


def InferOpDeviceAsBlobDevices(op: caffe2_pb2.OperatorDef) -> tuple[list[Device], list[Device]]:
    """The operator's own device for each input and each output."""
    return [op.device_option] * len(op.input), [op.device_option] * len(op.output)


def update_placeholder_op_output(
    op: caffe2_pb2.OperatorDef, blob_to_device: Mapping[str, Device]
) -> dict[str, str]:
    """Renames outputs of an operator that stands for a transfer, where the blob itself is on
    another device: "<blob>_<device>".  Gives the new names."""
    renamed = {}
    for index, name in enumerate(op.output):
        known = blob_to_device.get(name)
        if known is not None and not device_equal(known, op.device_option):
            renamed[name] = f"{name}_{_suffix(op.device_option)}"
            op.output[index] = renamed[name]
    return renamed


def InjectCrossDeviceCopies(
    net: Net,
    blob_to_device: Mapping[str, Device] | None = None,
    blob_remap: MutableMapping[RemapEntry, str] | None = None,
    placeHolderOps: Sequence[str] | None = None,
) -> tuple[Net, dict[str, Device]]:
    """A copy of a net with an operator that copies a blob wherever one reads it on another device
    than that where it is; and the device of each blob.

    blob_to_device  where blobs are before the net runs; default: on the CPU
    blob_remap      copies there are already, by blob and device; brought up to date
    placeHolderOps  types of operators that no schema is known of

    RuntimeError when a blob changes its device by being overwritten.
    """
    devices = dict(blob_to_device or {})
    copies = {} if blob_remap is None else blob_remap
    new_net = net.Clone(net.Name() + "_", op_id_mask=[])
    new_net.Proto().external_input[:] = net.Proto().external_input
    written: set[str] = set()
    for source in net.Proto().op:
        op = caffe2_pb2.OperatorDef()
        op.CopyFrom(source)
        stands_for_transfer = op.type in (placeHolderOps or ())
        infer = InferOpDeviceAsBlobDevices if stands_for_transfer else InferOpBlobDevices
        inputs, outputs = infer(op)
        for index, (name, device) in enumerate(zip(source.input, inputs, strict=True)):
            op.input[index] = _copied(new_net, name, device, devices, copies)
        if stands_for_transfer:
            for name, new in update_placeholder_op_output(op, devices).items():
                copies[RemapEntry(name, op.device_option)] = new
        for name, device in zip(op.output, outputs, strict=True):
            if name in written and not device_equal(devices[name], device):
                raise RuntimeError(
                    f"In-place blob: {name} is not supported between operators with different "
                    f"device option previous: {_suffix(devices[name])} now: {_suffix(device)}. "
                    f"The operator is {op.type}"
                )
            written.add(name)
            devices[name] = device
            for entry in [entry for entry in copies if entry.blob == name]:
                del copies[entry]
        new_net.extend_ops([op])
    return new_net, devices


def _copied(
    net: Net,
    name: str,
    device: Device,
    devices: MutableMapping[str, Device],
    copies: MutableMapping[RemapEntry, str],
) -> str:
    """The name of a blob on a device; the net copies it there where it is not yet."""
    present = devices.setdefault(name, caffe2_pb2.DeviceOption())
    if device_equal(present, device):
        return name
    entry = RemapEntry(name, device)
    if entry not in copies:
        copies[entry] = f"{name}_{_suffix(device)}"
        copy = copy_func_between_devices(present, device)
        copy(net, BlobReference(name), BlobReference(copies[entry]))
        devices[copies[entry]] = device
    return copies[entry]


def InjectDeviceCopiesAmongNets(
    nets: Iterable[Net], blob_to_device_init: Mapping[str, Device] | None = None
) -> tuple[list[Net], dict[str, Device]]:
    """InjectCrossDeviceCopies for nets that run in order."""
    devices = dict(blob_to_device_init or {})
    copies: dict[RemapEntry, str] = {}
    new_nets = []
    for net in nets:
        new_net, devices = InjectCrossDeviceCopies(net, devices, copies)
        new_nets.append(new_net)
    return new_nets, devices


def InjectDeviceCopiesAmongNetsWithoutB2D(
    nets: Iterable[Net], blob_to_device_init: Mapping[str, Device] | None = None
) -> list[Net]:
    """InjectDeviceCopiesAmongNets that gives the nets alone."""
    return InjectDeviceCopiesAmongNets(nets, blob_to_device_init)[0]
