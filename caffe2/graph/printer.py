"""Nets as readable text, one line for each operator."""

from __future__ import annotations

from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.proto import caffe2_pb2

_LONGEST_LIST = 8


def operator_line(op: Any) -> str:
    """`y = Conv(x, w, b, kernel=5, order="NCHW") engine=CUDNN`: outputs, type, inputs and
    arguments; then what else is set."""
    outputs = f"{', '.join(op.output)} = " if op.output else ""
    arguments = [f"{arg.name}={_value(arg)}" for arg in op.arg]
    line = f"{outputs}{op.type}({', '.join([*op.input, *arguments])})"
    if op.name:
        line += f" name={op.name}"
    if op.engine:
        line += f" engine={op.engine}"
    if op.control_input:
        line += f" after={','.join(op.control_input)}"
    if op.HasField("device_option") and op.device_option.ByteSize():
        line += f" device={{{' '.join(str(op.device_option).split())}}}"
    return line


def net_text(net: Any) -> str:
    """A Net or NetDef: its name, inputs and outputs, then its operators."""
    proto = net.Proto() if hasattr(net, "Proto") else net
    lines = [
        f"net {proto.name}" + (f" type={proto.type}" if proto.type else ""),
        f"inputs: {', '.join(proto.external_input)}".rstrip(),
        f"outputs: {', '.join(proto.external_output)}".rstrip(),
        *map(operator_line, proto.op),
    ]
    return "\n".join(lines) + "\n"


def _value(arg: Any) -> str:
    for field in ("f", "i", "s"):
        if arg.HasField(field):
            return _text(getattr(arg, field))
    if arg.HasField("n"):
        return f"<net {arg.n.name} of {len(arg.n.op)}>"
    if arg.HasField("t"):
        return f"<tensor {list(arg.t.dims)}>"
    if arg.nets or arg.tensors:
        return f"<{len(arg.nets) or len(arg.tensors)} {'nets' if arg.nets else 'tensors'}>"
    values = [*arg.floats, *arg.ints, *arg.strings]
    shown = [_text(value) for value in values[:_LONGEST_LIST]]
    if len(values) > _LONGEST_LIST:
        shown.append(f"... {len(values)} in all")
    return f"[{', '.join(shown)}]"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, bytes):
        return '"' + value.decode("utf-8", "backslashreplace") + '"'
    return str(value)


def to_string(obj: Any, **kwargs: Any) -> str:
    """A Net, NetDef, Plan, ExecutionStep or their messages as text; plans with their nets first."""
    proto = obj.Proto() if hasattr(obj, "Proto") else obj
    if isinstance(proto, caffe2_pb2.NetDef):
        return net_text(proto)
    if isinstance(proto, caffe2_pb2.OperatorDef):
        return operator_line(proto) + "\n"
    if isinstance(proto, caffe2_pb2.PlanDef):
        nets = "\n".join(net_text(net) for net in proto.network)
        steps = "".join(_step_text(step, 0) for step in proto.execution_step)
        return f"{nets}\nplan {proto.name}\n{steps}"
    if isinstance(proto, caffe2_pb2.ExecutionStep):
        return _step_text(proto, 0)
    raise UsageError(f"a net, operator, plan or step is needed, got {obj!r:.200}")


def _step_text(step: Any, depth: int) -> str:
    options = [
        f"{field.name}={value}"
        for field, value in step.ListFields()
        if field.name not in ("name", "substep", "network")
    ]
    pad = "  " * depth
    lines = f"{pad}step {' '.join([step.name, *options])}\n"
    lines += "".join(f"{pad}  run {name}\n" for name in step.network)
    return lines + "".join(_step_text(substep, depth + 1) for substep in step.substep)
