"""Nets as files: binary `.pb` and text `.pbtxt`; read by content, written by the name."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from google.protobuf.message import Message

from caffe2.graph.reading import AnyMessage, read_message
from caffe2.proto import caffe2_pb2

_TEXT_SUFFIXES = (".pbtxt", ".prototxt")


def write_atomically(path: str | os.PathLike[str], *content: bytes) -> None:
    """Writes a file in one step: a reader sees the old content or all of the new one."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with open(draft, "xb") as file:
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError) and error.errno:
            raise type(error)(error.errno, os.strerror(error.errno), os.fspath(path)) from None
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_text(path: str | os.PathLike[str]) -> bool:
    """Whether a message of this name is written as text: .pbtxt, .prototxt."""
    return Path(path).suffix in _TEXT_SUFFIXES


def save_message(message: Message, path: str | os.PathLike[str]) -> None:
    """Writes a NetDef (or another message); as text when the name ends in .pbtxt or .prototxt."""
    content = str(message).encode() if is_text(path) else message.SerializeToString()
    write_atomically(path, content)


def load_message(kind: type[AnyMessage], path: str | os.PathLike[str]) -> AnyMessage:
    """Reads a message of type `kind`, as text or in binary form whatever the name of the file.

    FileError, a UsageError, names a file that does not hold one and says what it holds instead (see
    `caffe2.graph.reading`).
    """
    return read_message(kind, Path(path).read_bytes(), str(path))


def save_net(net: caffe2_pb2.NetDef, path: str | os.PathLike[str]) -> None:
    """Writes a net; see `save_message`."""
    save_message(net, path)


def load_net(path: str | os.PathLike[str]) -> caffe2_pb2.NetDef:
    """Reads a net; see `load_message`.  FileError also for a net without operators, as which a
    foreign file may read."""
    return load_message(caffe2_pb2.NetDef, path)
