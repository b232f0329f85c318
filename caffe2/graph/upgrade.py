"""Old nets brought up to date."""

from __future__ import annotations

from caffe2.graph.device import IsGPUDeviceType
from caffe2.graph.nesting import DEEPEST, read_quoted
from caffe2.proto import caffe2_pb2

# Wishes to libraries that run nothing here; other engines name kernels or change the meaning.
HINTS = {"CUDNN", "EIGEN", "MIOPEN", "MKLDNN", "NNPACK"}
HINT_ARGUMENTS = {
    "cudnn_exhaustive_search",
    "exhaustive_search",
    "shared_buffer",
    "use_cudnn",
    "use_nnpack",
    "ws_nbytes_limit",
}
_BROADCASTING = {"Add", "Sub", "Mul", "Div", "EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or", "Xor"}
_INT8_NAMES = {"scale": "Y_scale", "zero_point": "Y_zero_point"}
_INT8_FILL = "Int8GivenTensorFill"


def upgrade_net(net: caffe2_pb2.NetDef) -> tuple[caffe2_pb2.NetDef, list[str]]:
    """A net that means the same, said as today, and a line for each change.

    - devices that are GPUs, engines that name a library, and arguments for it are left out
    - `broadcast=1` without an axis goes, as arithmetic and comparisons broadcast by themselves
    - nets in text or bytes inside of operators become nets
    - Int8 operators: `scale` and `zero_point` are called `Y_scale` and `Y_zero_point`, and values
      given as a list become bytes

    Text with old names of fields (`cuda_gpu_id`) is up to date once it is read.
    """
    result = caffe2_pb2.NetDef()
    result.CopyFrom(net)
    notes: list[str] = []
    _upgrade(result, "", notes, 0)
    return result, notes


def _upgrade(net: caffe2_pb2.NetDef, where: str, notes: list[str], depth: int) -> None:
    if IsGPUDeviceType(net.device_option.device_type):
        net.ClearField("device_option")
        notes.append(f"{where.strip() or 'net'}: GPU left out")
    for index, op in enumerate(net.op):
        place = f"{where}#{index} {op.type}"
        notes.extend(f"{place}: {note}" for note in _upgrade_operator(op))
        for arg in op.arg:
            if arg.s and arg.name.endswith("net"):
                quoted = read_quoted(arg.s)
                if quoted is not None:
                    arg.ClearField("s")
                    arg.n.CopyFrom(quoted)
                    notes.append(f"{place}: {arg.name} was text and is a net")
            inner = [arg.n] if arg.HasField("n") else list(arg.nets)
            if depth < DEEPEST:
                for nested in inner:
                    _upgrade(nested, f"{place}, {arg.name} ", notes, depth + 1)


def _upgrade_operator(op: caffe2_pb2.OperatorDef) -> list[str]:
    notes = []
    if IsGPUDeviceType(op.device_option.device_type):
        op.ClearField("device_option")
        notes.append("GPU left out")
    if op.engine in HINTS:
        notes.append(f"engine {op.engine} left out")
        op.ClearField("engine")
    names = [arg.name for arg in op.arg]
    dropped = [name for name in names if name in HINT_ARGUMENTS]
    if op.type.removesuffix("Gradient") in _BROADCASTING and not {"axis", "axis_str"} & set(names):
        dropped += [name for name in names if name == "broadcast"]
    if dropped:
        kept = [arg for arg in op.arg if arg.name not in dropped]
        del op.arg[:]
        op.arg.extend(kept)
        notes.append(f"{', '.join(dict.fromkeys(dropped))} left out")
    if op.type.startswith("Int8"):
        for arg in op.arg:
            new = _INT8_NAMES.get(arg.name)
            if new and new not in names:
                notes.append(f"{arg.name} is called {new}")
                arg.name = new
            if op.type == _INT8_FILL and arg.name == "values" and arg.ints:
                arg.s = bytes(value & 0xFF for value in arg.ints)
                del arg.ints[:]
                notes.append("values were a list and are bytes")
    return notes
