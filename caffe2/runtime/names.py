"""Names of blobs and nets, and messages, out of what callers of the old API pass."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from caffe2.graph.operator import user_site
from caffe2.proto import caffe2_pb2


def StringifyBlobName(name: Any) -> str:
    """The name of a blob given as str, bytes or BlobReference."""
    return _name(name, "blob")


def StringifyNetName(name: Any) -> str:
    """The name of a net given as str, bytes or Net."""
    return _name(name, "net")


def workspace_name(name: Any) -> str:
    """The name of a workspace given as str or bytes."""
    return _name(name, "workspace")


def _name(value: Any, what: str) -> str:
    if type(value).__name__ in ("BlobReference", "ScopedBlobReference", "Net"):
        value = str(value)
    if isinstance(value, str) and value.isascii():
        return value
    if not isinstance(value, (str, bytes)):
        raise TypeError(
            f"a {what} is named by a str, not by {type(value).__name__}: {value!r:.200}"
        )
    try:
        return value.decode() if isinstance(value, bytes) else value.encode().decode()
    except UnicodeError:
        raise ValueError(
            f"the name of a {what} is UTF-8 text, which {value[:80]!a} is not"
        ) from None


def StringifyProto(obj: Any) -> bytes:
    """The bytes of a message, of an object with `Proto()`, or bytes as they are."""
    if isinstance(obj, Message):
        return obj.SerializeToString()
    if isinstance(obj, bytes):
        return obj
    if hasattr(obj, "Proto"):
        return StringifyProto(obj.Proto())
    raise TypeError(f"a protobuf message or an object with Proto() is needed, not {obj!r}")


def GetNetName(net: Any) -> str:
    """The name of a Net or NetDef."""
    if isinstance(net, caffe2_pb2.NetDef):
        return str(net.name)
    return str(net.Name())


def sites_of(net: Any) -> list[str]:
    """Where the operators of a net were made, "file:line" each: what a Net knows, or what a NetDef
    was saved with."""
    if isinstance(net, caffe2_pb2.NetDef):
        return [op.debug_info for op in net.op]
    return [str(site) for site in getattr(net, "op_sites", ())]


def site_of(op: Any) -> str:
    """What an OperatorDef was saved with, or else the line of the program that runs it."""
    return getattr(op, "debug_info", "") or user_site().line
