"""Device options: where an operator runs."""

from __future__ import annotations

import operator
from collections.abc import Iterable

from caffe2.graph.errors import UsageError
from caffe2.proto import caffe2_pb2

GPU_DEVICE_TYPES = (caffe2_pb2.PROTO_CUDA, caffe2_pb2.PROTO_HIP)


def DeviceOption(
    device_type: int,
    device_id: int = 0,
    random_seed: int | None = None,
    node_name: str | None = None,
    numa_node_id: int | None = None,
    extra_info: Iterable[str] | None = None,
) -> caffe2_pb2.DeviceOption:
    """A device: its type (`caffe2_pb2.CPU`, `CUDA`, ...) and number; NUMA nodes are for CPUs.

    TypeError for a type that is no number.
    """
    try:
        device_type = operator.index(device_type)
    except TypeError:
        known = ", ".join(
            f"{name.removeprefix('PROTO_')} = {number}"
            for name, number in caffe2_pb2.DeviceTypeProto.items()
            if number != caffe2_pb2.PROTO_COMPILE_TIME_MAX_DEVICE_TYPES
        )
        raise TypeError(
            f"device_type is {device_type!r:.200}; the number of a device type is needed, as in "
            f"DeviceOption(caffe2_pb2.CUDA, 0): {known}"
        ) from None
    if numa_node_id is not None and device_type != caffe2_pb2.PROTO_CPU:
        raise UsageError(f"numa_node_id={numa_node_id} is for CPU devices, not type {device_type}")
    option = caffe2_pb2.DeviceOption(device_type=device_type, device_id=device_id)
    if random_seed is not None:
        option.random_seed = random_seed
    if node_name is not None:
        option.node_name = node_name
    if numa_node_id is not None:
        option.numa_node_id = numa_node_id
    if extra_info is not None:
        option.extra_info.extend(extra_info)
    return option


def device_option_equal(
    opt1: caffe2_pb2.DeviceOption | None,
    opt2: caffe2_pb2.DeviceOption | None,
    ignore_node_name: bool = True,
    ignore_random_seed: bool = True,
) -> bool:
    """Whether both mean the same device; None only equals None."""
    if opt1 is None or opt2 is None:
        return opt1 is opt2
    return (
        opt1.device_type == opt2.device_type
        and (opt1.device_type == caffe2_pb2.PROTO_CPU or opt1.device_id == opt2.device_id)
        and (ignore_node_name or opt1.node_name == opt2.node_name)
        and (ignore_random_seed or opt1.random_seed == opt2.random_seed)
    )


def IsGPUDeviceType(device_type: int) -> bool:
    """Whether the type is CUDA or HIP."""
    return device_type in GPU_DEVICE_TYPES


# Operators some of whose blobs are on the CPU whatever the operator's own device.
_CPU_INPUTS = {
    "Adam": (5,),
    "CopyCPUToGPU": (0,),
    "CopyFromCPUInput": (0,),
    "LearningRate": (0,),
    "Split": (1,),
    "SplitByLengths": (1,),
}
_CPU_OUTPUTS = {"Concat": (1,), "CopyGPUToCPU": (0,), "EnsureCPUOutput": (0,)}


def InferOpBlobDevices(
    op: caffe2_pb2.OperatorDef,
) -> tuple[list[caffe2_pb2.DeviceOption], list[caffe2_pb2.DeviceOption]]:
    """The device of each input and each output of an operator."""
    cpu = caffe2_pb2.DeviceOption()
    inputs, outputs = _CPU_INPUTS.get(op.type, ()), _CPU_OUTPUTS.get(op.type, ())
    return (
        [cpu if index in inputs else op.device_option for index in range(len(op.input))],
        [cpu if index in outputs else op.device_option for index in range(len(op.output))],
    )


def InferOpBlobDevicesAsDict(
    op: caffe2_pb2.OperatorDef,
) -> tuple[dict[str, caffe2_pb2.DeviceOption], dict[str, caffe2_pb2.DeviceOption]]:
    """The same by name: the devices of the inputs and of the outputs."""
    inputs, outputs = InferOpBlobDevices(op)
    return dict(zip(op.input, inputs, strict=True)), dict(zip(op.output, outputs, strict=True))


def run_on_device(
    net: caffe2_pb2.NetDef, device: caffe2_pb2.DeviceOption, engine: str = ""
) -> None:
    """Puts a net, and the step nets of its recurrent operators, on a device; `engine` asks for
    kernels by name."""
    net.device_option.CopyFrom(device)
    for op in net.op:
        if engine:
            op.engine = engine
        if op.type.startswith("RecurrentNetwork"):
            for arg in op.arg:
                if arg.HasField("n") and arg.name.endswith("step_net"):
                    run_on_device(arg.n, device, engine)
