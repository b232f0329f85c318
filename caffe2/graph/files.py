"""Nets as files: binary `.pb` and text `.pbtxt`."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TypeVar

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from caffe2.graph.errors import UsageError
from caffe2.proto import caffe2_pb2

AnyMessage = TypeVar("AnyMessage", bound=Message)

_TEXT_SUFFIXES = (".pbtxt", ".prototxt")


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes a file in one step: a reader sees the old content or all of the new one."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with open(draft, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def save_message(message: Message, path: str | os.PathLike[str]) -> None:
    """Writes a NetDef (or another message); as text when the name ends in .pbtxt or .prototxt."""
    text = Path(path).suffix in _TEXT_SUFFIXES
    content = str(message).encode() if text else message.SerializeToString()
    write_atomically(path, content)


def load_message(kind: type[AnyMessage], path: str | os.PathLike[str]) -> AnyMessage:
    """Reads a message of type `kind`; UsageError names a file that does not hold one."""
    content = Path(path).read_bytes()
    message = kind()
    try:
        if Path(path).suffix in _TEXT_SUFFIXES:
            text_format.Parse(content.decode("utf-8"), message)
        else:
            message.ParseFromString(content)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} holds no {kind.DESCRIPTOR.name}: {error}") from None
    return message


def save_net(net: caffe2_pb2.NetDef, path: str | os.PathLike[str]) -> None:
    """Writes a net; see `save_message`."""
    save_message(net, path)


def load_net(path: str | os.PathLike[str]) -> caffe2_pb2.NetDef:
    """Reads a net; see `load_message`.  UsageError also for a net without operators, as which an
    empty or foreign file reads."""
    net = load_message(caffe2_pb2.NetDef, path)
    if not net.op:
        raise UsageError(f"{path} holds no NetDef with operators: an empty or foreign file?")
    return net
