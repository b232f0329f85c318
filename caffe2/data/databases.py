"""Databases of (key, value) records: opening, reading and writing them."""

from __future__ import annotations

import enum
import warnings

from caffe2 import _native
from caffe2.runtime.databases import has_lmdb
from caffe2.runtime.engine import default_engine


class Mode(enum.Enum):
    """What a database is opened for: to read; to add records; or new, in the place of another."""

    read = 0
    write = 1
    new = 2


class Transaction:
    """Records on their way into a database.  They are written by `commit`, or at the latest when
    the transaction goes away."""

    def __init__(self, database: _native.Database) -> None:
        self._database, self._changed = database, False

    def put(self, key: str | bytes, value: str | bytes) -> None:
        """Adds a record; text as UTF-8."""
        self._changed = True
        self._database.put(_encoded(key), _encoded(value))

    def commit(self) -> None:
        """Writes the records, all or none.  EngineError when that fails."""
        self._changed = False
        self._database.commit()

    def __del__(self) -> None:
        if self._changed:
            try:
                self.commit()
            except RuntimeError as error:
                warnings.warn(f"a transaction was not written: {error}", stacklevel=2)


class DB:
    """An open database."""

    def __init__(self, kind: str, path: str, mode: Mode) -> None:
        self._database: _native.Database | None = _native.open_database(
            default_engine(), kind, path, mode.name
        )

    def new_cursor(self) -> _native.Cursor:
        """A place in the database, at first on its first record; `valid()` is false behind the
        last one."""
        return self._open().new_cursor()

    def new_transaction(self) -> Transaction:
        return Transaction(self._open())

    def close(self) -> None:
        """Ends the use of the database; cursors and transactions keep it open."""
        self._database = None

    def _open(self) -> _native.Database:
        if self._database is None:
            raise RuntimeError("the database was closed")
        return self._database


def create_db(db_type: str, path: str, mode: Mode) -> DB | None:
    """Opens a database; None for a type that there is not.

    db_type: one of `registered_dbs()`.  EngineError for a file that is missing or no such database.
    """
    if db_type.lower() not in registered_dbs():
        return None
    return DB(db_type, path, mode)


def registered_dbs() -> list[str]:
    """The types of databases: minidb, and lmdb where the package of that name is there."""
    return ["minidb", *(["lmdb"] if has_lmdb() else [])]


def _encoded(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
