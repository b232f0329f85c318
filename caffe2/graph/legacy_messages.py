"""Messages in files and from Caffe 1, compared and converted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from caffe2.graph.errors import UsageError


def CaffeBlobToNumpyArray(blob: Any) -> npt.NDArray[Any]:
    """The array in a BlobProto of Caffe 1: of four dimensions if it is an old one."""
    old = (blob.num, blob.channels, blob.height, blob.width)
    shape = old if blob.num else tuple(blob.shape.dim)
    return np.asarray(blob.data, dtype=np.float32).reshape(shape)


def TryReadProtoWithClass(cls: type[Message], s: str | bytes) -> Message:
    """A message from text or from bytes.  UsageError when it is neither."""
    message = cls()
    try:
        text = s.decode() if isinstance(s, bytes) else s
        return text_format.Parse(text, message)
    except (text_format.ParseError, UnicodeDecodeError):
        message = cls()
    try:
        message.ParseFromString(s if isinstance(s, bytes) else s.encode())
    except DecodeError as error:
        raise UsageError(f"this is no {cls.__name__}, as text or as bytes: {error}") from None
    return message


def GetContentFromProto(obj: Message, function_map: Mapping[type, Callable[[Any], Any]]) -> Any:
    """What the function for the message's class gives.  UsageError when there is none."""
    for cls, function in function_map.items():
        if type(obj) is cls:
            return function(obj)
    raise UsageError(f"there is no function for a {type(obj).__name__}")


def GetContentFromProtoString(
    s: str | bytes, function_map: Mapping[type[Message], Callable[[Any], Any]]
) -> Any:
    """The same for a message as text or bytes: of the first class that it can be."""
    for cls, function in function_map.items():
        try:
            message = TryReadProtoWithClass(cls, s)
        except UsageError:
            continue
        return function(message)
    raise UsageError(f"this is none of {', '.join(cls.__name__ for cls in function_map)}")


def ConvertProtoToBinary(proto_class: type[Message], filename: str, out_filename: str) -> None:
    """Reads a message from a file of text (or bytes) and writes its bytes to another."""
    with open(filename, "rb") as file:
        message = TryReadProtoWithClass(proto_class, file.read())
    with open(out_filename, "wb") as file:
        file.write(message.SerializeToString())


def OpAlmostEqual(op_a: Message, op_b: Message, ignore_fields: Any = None) -> bool:
    """Whether two messages are equal but for the named fields."""
    ignored = [ignore_fields] if isinstance(ignore_fields, str) else list(ignore_fields or ())
    copies = []
    for op in (op_a, op_b):
        copy = type(op)()
        copy.CopyFrom(op)
        for name in ignored:
            copy.ClearField(name)
        copies.append(copy)
    return bool(copies[0] == copies[1])


def EnumClassKeyVals(cls: type) -> dict[str, Any]:
    """The public attributes of a class that are no functions, by name."""
    found = {name: getattr(cls, name) for name in dir(cls) if not name.startswith("_")}
    return {name: value for name, value in found.items() if not callable(value)}


def raiseIfNotEqual(a: Any, b: Any, msg: str) -> None:
    """UsageError when two values differ."""
    if a != b:
        raise UsageError(f"{msg}. {a} != {b}")
