"""Making OperatorDef messages from Python values."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import Message

from caffe2 import ops
from caffe2.graph import scope, wire
from caffe2.graph.blob import blob_references
from caffe2.ops.arguments import find_argument
from caffe2.ops.declaration import OpView
from caffe2.proto import caffe2_pb2

logger = logging.getLogger(__name__)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INT64 = range(-(2**63), 2**63)


class Site(NamedTuple):
    """Where the user's program made an operator: "file:line" and the function, "" if not known."""

    line: str = ""
    function: str = ""


def user_site() -> Site:
    """The innermost frame outside of this package."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_PACKAGE):
            return Site(f"{path}:{frame.f_lineno}", frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return Site()


def MakeArgument(key: str, value: Any) -> caffe2_pb2.Argument:
    """The Argument message that holds `value`.

    bool and int become `i`, float `f`, str and bytes `s`, a NetDef `n`, another message its bytes
    in `s`; lists, tuples, sets and arrays (flattened) of one of these kinds become the repeated
    field.  Objects with `Proto()` stand for their message.  ValueError names what does not fit.
    """
    argument = caffe2_pb2.Argument(name=key)
    _put(argument, key, value)
    return argument


def _put(argument: caffe2_pb2.Argument, key: str, value: Any) -> None:
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f":  # weights: too many to look at one by one
            with np.errstate(over="ignore"):
                content = value.astype("<f4", copy=False).tobytes()
            argument.MergeFromString(wire.text(caffe2_pb2.Argument.FLOATS_FIELD_NUMBER, content))
            return
        value = value.reshape(-1).tolist()
    value = _plain(value)
    if isinstance(value, (str, bytes, int, float, Message)):
        field, value = _field(key, value)
        if field == "n":
            argument.n.CopyFrom(value)
        else:
            setattr(argument, field, value)
        return
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise ValueError(
            f"Unknown argument type: key={key} value={value!r}, value type={type(value)}"
        )
    elements = [_plain(element) for element in value]
    kinds = {type(element) for element in elements} - {bool}
    fields = {_field(key, element)[0] for element in elements if _is_element(element)}
    if len(fields) > 1 or not all(map(_is_element, elements)):
        raise ValueError(
            f"Unknown iterable argument type: key={key} value={elements!r}: one kind of elements "
            f"is needed, got {', '.join(sorted(kind.__name__ for kind in kinds))}"
        )
    if fields:
        repeated = {"i": "ints", "f": "floats", "s": "strings", "n": "nets"}[fields.pop()]
        getattr(argument, repeated).extend(_field(key, element)[1] for element in elements)


def _plain(value: Any) -> Any:
    """Python's own kind of scalar for NumPy scalars, the message for nets."""
    if isinstance(value, np.generic):
        return value.item()
    return value.Proto() if hasattr(value, "Proto") else value


def _is_element(value: Any) -> bool:
    return isinstance(value, (str, bytes, int, float, Message))


def _field(key: str, value: Any) -> tuple[str, Any]:
    """The field of Argument for one value, and the value as that field takes it."""
    if isinstance(value, int):
        value = int(value)  # an enum, too, which `range` would look for one by one
        if value not in _INT64:
            raise ValueError(f"argument '{key}' is {value}; allowed are integers of 64 bits")
        return "i", value
    if isinstance(value, float):
        return "f", value
    if isinstance(value, caffe2_pb2.NetDef):
        return "n", value
    if isinstance(value, Message):
        return "s", value.SerializeToString()
    return "s", value.encode("utf-8") if isinstance(value, str) else value


def CreateOperator(
    operator_type: str,
    inputs: Any,
    outputs: Any,
    name: str = "",
    control_input: Any = None,
    device_option: caffe2_pb2.DeviceOption | None = None,
    arg: Sequence[caffe2_pb2.Argument] | None = None,
    engine: str | None = None,
    debug_info: str | None = None,
    **kwargs: Any,
) -> caffe2_pb2.OperatorDef:
    """An OperatorDef.

    inputs, outputs  a name or a list of them: strings are put in the current NameScope,
                     BlobReferences stand for themselves
    device_option    by default that of the current DeviceScope
    arg              ready Argument messages
    kwargs           arguments by name; one that is None is left out

    The operator may be half done or unknown: it is checked when it runs, is differentiated or is
    given to `verify`.
    """
    operator = caffe2_pb2.OperatorDef()
    operator.type = operator_type
    operator.name = name
    operator.input.extend(str(blob) for blob in blob_references(inputs))
    operator.output.extend(str(blob) for blob in blob_references(outputs))
    if control_input is not None:
        operator.control_input.extend(str(blob) for blob in blob_references(control_input))
    device = scope.CurrentDeviceScope() if device_option is None else device_option
    if device is not None:
        operator.device_option.CopyFrom(device)
    if engine is not None:
        operator.engine = engine
    if debug_info is not None:
        operator.debug_info = debug_info
    operator.arg.extend(arg or ())
    for key, value in kwargs.items():
        if value is not None:
            _put(operator.arg.add(name=key), key, value)
            if isinstance(value, (int, float)):
                _warn_of_lone_number(operator_type, key, value)
    return operator


def _warn_of_lone_number(operator_type: str, key: str, value: float) -> None:
    """One number in the place of a list is an empty list in the original, and in nets that were
    saved: no error, but hardly what is meant."""
    declared = (
        find_argument(ops.find(operator_type).args, key) if IsOperator(operator_type) else None
    )
    if declared is None or not declared.repeated or declared.field not in ("ints", "floats"):
        return
    file, _, line = user_site().line.rpartition(":")
    text = f"{operator_type}: {key}={value} is no list and counts as an empty one; {key}=[{value}]?"
    warnings.warn_explicit(text, UserWarning, file or "<unknown>", int(line or 0))


def check_operator(operator: caffe2_pb2.OperatorDef) -> OpView | None:
    """The operator as its declaration sees it, or None when nobody declared it.
    OperatorError for what the declaration refuses; undeclared arguments are a note in the log."""
    if not IsOperator(operator.type):
        return None
    view = ops.find(operator.type).view_of(operator)
    if view.undeclared:
        logger.debug("%s: undeclared arguments %s", operator.type, ", ".join(view.undeclared))
    return view


def IsOperator(op_type: str) -> bool:
    """Whether an operator of this type is declared."""
    try:
        ops.find(op_type)
    except ops.UnknownOperatorError:
        return False
    return True


def IsOperatorWithEngine(op_type: str, engine: str) -> bool:
    """Whether the operator is declared and the engine is one that all operators have: DEFAULT (or
    ""), and REFERENCE, the NumPy body."""
    return engine in ("", "DEFAULT", "REFERENCE") and IsOperator(op_type)
