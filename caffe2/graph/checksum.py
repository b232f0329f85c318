"""Checksums of model files: whether the bytes are those that were written.

The last field of a ModelDef is `metadata["crc32"]`, the CRC-32 (ISO 3309, as zlib computes it) of
all bytes before it.  A file without it, from another writer, is not checked.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

from caffe2.graph.errors import DamagedError

KEY = "crc32"

# Field metadata (3), with a key (1) and a value (2) of eight digits.
_BEFORE = b"\x1a\x11\x0a\x05crc32\x12\x08"
_SEAL = re.compile(re.escape(_BEFORE) + rb"([0-9a-f]{8})\Z")
_SIZE = len(_BEFORE) + 8


def seal(pieces: Iterable[bytes]) -> bytes:
    """The field that comes after the pieces of a message."""
    checksum = 0
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
    return _BEFORE + b"%08x" % checksum


def check_seal(content: bytes, source: str) -> None:
    """DamagedError where content ends with a checksum that is not its own."""
    found = _SEAL.search(content, max(len(content) - _SIZE, 0))
    if found is None:
        return
    checksum = zlib.crc32(memoryview(content)[:-_SIZE])
    if checksum != int(found[1], 16):
        problem = f"its CRC-32 is {checksum:08x}, and {found[1].decode()} when it was written"
        raise DamagedError(source, f"is damaged: {problem}")
