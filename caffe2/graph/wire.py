"""Pieces of protobuf's wire format, for messages with many values: Python takes long for each."""

from __future__ import annotations


def tag(field: int) -> bytes:
    """Before a field that says its length: a text, a message, packed numbers."""
    return varint(field << 3 | 2)


def text(field: int, content: bytes) -> bytes:
    return tag(field) + varint(len(content)) + content


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
