"""Databases for the engine that it does not know itself: LMDB, through the package of that name."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import Any

_MAP_SIZE = 1 << 40  # the most that a database may grow to, in bytes; it takes what it needs


class Lmdb:
    """A database of LMDB: a folder, or a file without one.

    mode: "read"; "write", which adds to what is there; "new", where nothing may be there.
    """

    def __init__(self, path: str, mode: str) -> None:
        import lmdb

        self._error: type[Exception] = lmdb.Error
        self._path = path
        self._pending: list[tuple[bytes, bytes]] = []
        if mode == "new" and os.path.exists(path):
            raise FileExistsError(f"there is a database '{path}' already; remove it first")
        if mode == "read" and not os.path.exists(path):
            raise FileNotFoundError(f"there is no database '{path}'")
        options: dict[str, Any] = {"subdir": mode == "new" or not os.path.isfile(path)}
        if mode == "read":
            options |= {"readonly": True, "lock": False}
        try:
            self._environment = lmdb.open(path, map_size=_MAP_SIZE, **options)
        except lmdb.Error as error:
            raise RuntimeError(f"database '{path}' cannot be opened: {error}") from None

    def records(self) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in the order of the keys."""
        with self._environment.begin() as transaction:
            yield from transaction.cursor()

    def put(self, key: bytes, value: bytes) -> None:
        """Adds a record to the next commit; the last of equal keys stays."""
        self._pending.append((key, value))

    def commit(self) -> None:
        """Writes all that was put, or nothing."""
        pending, self._pending = self._pending, []
        try:
            with self._environment.begin(write=True) as transaction:
                for key, value in pending:
                    transaction.put(key, value)
        except self._error as error:
            raise RuntimeError(f"database '{self._path}' cannot be written: {error}") from None


def open_database(kind: str, path: str, mode: str) -> Lmdb | None:
    """What the engine calls for a type of database that it does not know; None when that is so
    here, too."""
    if kind.lower() != "lmdb" or not has_lmdb():
        return None
    return Lmdb(path, mode)


def has_lmdb() -> bool:
    """Whether the package lmdb is there."""
    return importlib.util.find_spec("lmdb") is not None
