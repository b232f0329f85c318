"""Messages from the content of files: binary or text, and what a file holds that is neither.

Nothing here depends on the name of a file.  Old nets come from downloads, repositories and mails,
and what arrives is not always what was sent.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from caffe2.graph.checksum import KEY, check_seal
from caffe2.graph.errors import FileError
from caffe2.proto import caffe2_pb2, metanet_pb2

AnyMessage = TypeVar("AnyMessage", bound=Message)

# Fields of text that have another name today; the number, and so the bytes, stayed.
OLD_FIELDS = {"cuda_gpu_id": "device_id", "hip_gpu_id": "device_id"}

DEEPEST = 100  # messages inside messages: what readers of protobuf take, and the engine's, too
_TOO_DEEP = f"messages are nested deeper than {DEEPEST}"

_STRING_OR_WORD = re.compile(r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*|[A-Za-z_]\w*""")
_BRACES = re.compile(_STRING_OR_WORD.pattern + r"|[{}<>]")
_LFS = re.compile(rb"version https://git-lfs.github.com/spec/v1\r?\n.*?size (\d+)", re.DOTALL)

# How files begin that are often taken for nets, and what to do about them.
_SIGNATURES: list[tuple[bytes, str]] = [
    (b"PK\x03\x04", "a zip archive (NumPy .npz, PyTorch .pt, or nets packed together): unpack it"),
    (b"\x1f\x8b", "gzip data: unpack it (gunzip)"),
    (b"BZh", "bzip2 data: unpack it (bunzip2)"),
    (b"\xfd7zXZ\x00", "xz data: unpack it (unxz)"),
    (b"%PDF", "a PDF document"),
    (b"{", "JSON, or another text in braces"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
]

# By number from protocol 2 on; before that the first object is a dictionary, a list, or a class.
_PICKLE = re.compile(
    rb"\x80[\x02-\x05]|\(?[dl]p\d+\r?\n|\(?[}\]]q\x00|c[A-Za-z_][\w.]*\r?\n[A-Za-z_]\w*\r?\n"
)


def read_message(kind: type[AnyMessage], content: bytes, source: str) -> AnyMessage:
    """The message of type `kind` that `content` holds, as text or in binary form.

    source  what errors call the content: a path, or "init_net"

    Old names of fields are taken for the new ones.  FileError says what the content is instead:
    nothing, a web page, a Git LFS pointer, an archive, another message, or where it breaks off; and
    of a ModelDef whether its checksum is wrong.
    """
    wanted = f"holds no {kind.DESCRIPTOR.name}:"
    foreign = _foreign(content)
    if foreign:
        raise FileError(source, f"{wanted} it is {foreign}")
    text = _as_text(content)
    try:
        message = kind.FromString(content) if text is None else parse_text(kind, text)
    except (DecodeError, text_format.ParseError) as error:
        other = _other_kind(kind, content, text)
        if other:
            reason = f"it holds {other}"
        else:
            reason = _breaks_off(kind, content) if text is None else _text_error(str(error))
        raise FileError(source, f"{wanted} {reason}") from None
    if isinstance(message, caffe2_pb2.ModelDef):
        check_seal(content, source)
        message.metadata.pop(KEY, None)  # of the bytes, not of what becomes of the message
    if not _PLAUSIBLE.get(kind.DESCRIPTOR.name, _has_content)(message):
        other = _other_kind(kind, content, text)
        if other:
            raise FileError(source, f"{wanted} it holds {other}")
        if isinstance(message, caffe2_pb2.NetDef):
            types = [bool(op.type) for op in message.op]
            if not all(types):
                raise FileError(source, f"{wanted} operator {types.index(False)} has no type")
            raise FileError(source, "holds no NetDef with operators: an empty or foreign file?")
    damaged = _damaged_text(message)
    if damaged is not None:
        raise FileError(source, f"{wanted} the name {damaged!r} in it is no UTF-8 text")
    return message


def _damaged_text(message: Message) -> bytes | None:
    """The first text in a message that is none: protobuf gives it as bytes."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        for item in [value] if isinstance(value, (str, bytes, Message)) else value:
            if isinstance(item, bytes):
                return item
            if isinstance(item, Message):
                found = _damaged_text(item)
                if found is not None:
                    return found
    return None


def rename_old_fields(text: str) -> str:
    """Text with today's names of fields; strings and comments stay as they are."""
    return _STRING_OR_WORD.sub(lambda found: OLD_FIELDS.get(found[0], found[0]), text)


def parse_text(kind: type[AnyMessage], text: str, allow_unknown_field: bool = False) -> AnyMessage:
    """A message from text, with old names of fields; ParseError for what is none."""
    depth = 0
    for found in _BRACES.finditer(text):
        depth += {"{": 1, "<": 1, "}": -1, ">": -1}.get(found[0], 0)
        if depth > DEEPEST:  # the parser would run out of Python's stack
            line = text.count("\n", 0, found.start()) + 1
            column = found.start() - text.rfind("\n", 0, found.start())
            raise text_format.ParseError(_TOO_DEEP, line, column)
    return text_format.Parse(
        rename_old_fields(text), kind(), allow_unknown_field=allow_unknown_field
    )


def _foreign(content: bytes) -> str:
    if not content:
        return "empty (0 bytes)"
    start = content[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        return (
            "an HTML page, such as the page about the file or an error in place of the download: "
            "download the raw file"
        )
    pointer = _LFS.match(content[:1024])
    if pointer:
        return (
            f"a Git LFS pointer to a file of {int(pointer[1])} bytes: fetch that with 'git lfs "
            "pull', or download the file itself"
        )
    if not content.strip(b"\x00"):
        return f"{len(content)} zero bytes, as an interrupted download leaves them"
    if b"!!META_NET_DEF" in content[:4096] or b"!!PREDICTOR_DBREADER" in content[:4096]:
        return (
            "a predictor's database: "
            "caffe2.python.predictor.predictor_exporter.prepare_prediction_net reads it"
        )
    if _is_minidb(content):
        return "a database (minidb): CreateDB opens it, for Load or TensorProtosDBInput"
    if content[257:262] == b"ustar":
        return "a tar archive: unpack it (tar -xf)"
    if _PICKLE.match(content):
        return "a Python pickle, such as Detectron's weights"
    return next((what for sign, what in _SIGNATURES if content.startswith(sign)), "")


def _is_minidb(content: bytes) -> bool:
    """Whether it begins with a record: the sizes of key and value, then both."""
    if len(content) < 9:
        return False
    key, value = struct.unpack("<ii", content[:8])
    whole = 0 < key <= 1024 and value > 0 and 8 + key + value <= len(content)
    return whole and content[8 : 8 + key].isascii()


def _as_text(content: bytes) -> str | None:
    """The content as text; None when it is binary, which has control characters or no UTF-8."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    else:
        encoding = "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if re.search(r"[\x00-\x08\x0b\x0e-\x1f]", text) else text


def _text_error(error: str) -> str:
    found = re.match(r"(\d+):(\d+) : (.*)", error, re.DOTALL)
    return f"line {found[1]}, column {found[2]}: {found[3]}" if found else error


# ------------------------------------------------------------------- what else it may be


def _has_content(message: Message) -> bool:
    return message.ByteSize() > 0


def _printable(text: str | bytes) -> bool:
    return isinstance(text, str) and text.isprintable()


def _is_net(net: Message) -> bool:
    assert isinstance(net, caffe2_pb2.NetDef)
    return bool(net.op) and all(op.type and _printable(op.type) for op in net.op)


_PLAUSIBLE: dict[str, Callable[[Message], bool]] = {"NetDef": _is_net}

# Asked in this order, as a ModelDef is a PlanDef, too, for who does not look at its nets.
_KINDS: list[tuple[type[Message], str]] = [
    (caffe2_pb2.NetDef, "a NetDef: one net"),
    (metanet_pb2.MetaNetDef, "a MetaNetDef, as predictor_exporter writes them"),
    (caffe2_pb2.ModelDef, "a ModelDef with the nets {nets}"),
    (caffe2_pb2.PlanDef, "a PlanDef: a plan with the nets {nets}"),
    (caffe2_pb2.OperatorDef, "an OperatorDef: one operator"),
    (caffe2_pb2.TensorProtos, "TensorProtos: values, no net"),
    (caffe2_pb2.TensorProto, "a TensorProto: values, no net"),
    (caffe2_pb2.BlobProto, "a BlobProto: a saved blob, no net"),
]


def _other_kind(kind: type[Message], content: bytes, text: str | None) -> str:
    """Which other message the content is, whole and without unknown fields; "" for none."""
    for other, description in _KINDS:
        if other is kind:
            continue
        try:
            message = other.FromString(content) if text is None else parse_text(other, text)
        except (DecodeError, text_format.ParseError):
            continue
        if _is_whole(message):
            names = ", ".join(net.name or "(unnamed)" for net in _nets_of(message))
            return description.format(nets=names)
    if text is None:
        return _other_program(content)
    if re.search(r"^\s*(layers?|force_backward)\s*[:{]", text, re.MULTILINE):
        return "a net of Caffe 1 (layers, not operators): it has to be converted first"
    return ""


def _other_program(content: bytes) -> str:
    """Whose model binary content is, by its fields: number and wire type, as tags have them."""
    fields: dict[int, bytes] = {}
    at = 0
    while at < len(content):
        tag, start = _varint(content, at)
        size = {1: 8, 5: 4}.get(tag & 7, 0)
        if tag & 7 == 2:
            size, start = _varint(content, start)
        elif tag & 7 == 0:
            _, start = _varint(content, start)
        elif not size:
            return ""
        at = start + size
        fields.setdefault(tag, content[start : start + 1])
    if at > len(content):
        return ""
    if fields.keys() >= {1 << 3, 7 << 3 | 2}:  # ir_version, graph
        return "an ONNX model: caffe2.python.onnx.backend.prepare(onnx.load(path)) runs it"
    if 100 << 3 | 2 in fields:  # layer
        return "a net of Caffe 1 with its weights (layers, not operators): it has to be converted"
    if fields.get(1 << 3 | 2) == b"\n" and 4 << 3 | 2 in fields:  # nodes with names, versions
        return "a graph of TensorFlow (GraphDef), no net of Caffe2"
    return ""


def _nets_of(message: Message) -> Sequence[caffe2_pb2.NetDef]:
    if isinstance(message, caffe2_pb2.ModelDef):
        return message.net
    return message.network if isinstance(message, caffe2_pb2.PlanDef) else ()


def _is_whole(message: Message) -> bool:
    if not message.IsInitialized() or _damaged_text(message) is not None:
        return False
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    if not message.ByteSize() or known.ByteSize() != message.ByteSize():
        return False
    if isinstance(message, caffe2_pb2.NetDef):
        return _is_net(message)
    if isinstance(message, (caffe2_pb2.ModelDef, caffe2_pb2.PlanDef)):
        nets = _nets_of(message)
        return bool(nets) and all(_is_net(net) for net in nets if net.op)
    if isinstance(message, caffe2_pb2.OperatorDef):
        return message.type.isidentifier()
    if isinstance(message, caffe2_pb2.TensorProtos):
        return bool(message.protos) and all(_is_whole(tensor) for tensor in message.protos)
    if isinstance(message, caffe2_pb2.TensorProto):
        return message.HasField("data_type")
    if isinstance(message, caffe2_pb2.BlobProto):
        return bool(message.type) and message.type.isprintable()
    return True


_MANY_FIELDS = 1_000_000  # more are not looked through for the one that does not fit


def _breaks_off(kind: type[Message], content: bytes) -> str:
    """Why binary content is no message of a kind: the innermost field that does not fit."""
    found = _misfit(kind.DESCRIPTOR, content, 0, len(content), 0, itertools.count())
    return found or f"a message within it is damaged ({len(content)} bytes)"


def _misfit(
    descriptor: Any, content: bytes, at: int, end: int, depth: int, fields: Iterator[int]
) -> str:
    if depth > DEEPEST:
        return _TOO_DEEP
    while at < end and next(fields) < _MANY_FIELDS:
        start = at
        tag, at = _varint(content, at)
        size = {0: 0, 1: 8, 5: 4}.get(tag & 7)
        if tag & 7 == 2:
            size, at = _varint(content, at)
        elif tag & 7 == 0:
            _, at = _varint(content, at)
        if size is None or tag >> 3 == 0:
            return f"byte {start} begins no field: a damaged or foreign file"
        if at > end or at + size > end:
            needs = f"field {tag >> 3} at byte {start} needs {size} bytes"
            if depth:
                return f"it is damaged: {needs}, the {descriptor.name} around it ends at byte {end}"
            return f"it is truncated: {needs}, the file of {end} bytes ends before"
        field = descriptor.fields_by_number.get(tag >> 3)
        if field is not None and field.message_type is not None and tag & 7 == 2:
            found = _misfit(field.message_type, content, at, at + size, depth + 1, fields)
            if found:
                return found
        at += size
    return ""


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends; behind the content where it does not end."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(content):
            return value, len(content) + 1
        value |= (content[at] & 0x7F) << shift
        at += 1
        if content[at - 1] < 0x80:
            break
    return value, at
