"""Records kept in database files, and other readers whose records are kept in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from caffe2.data.databases import Mode, create_db
from caffe2.data.dataset import Dataset
from caffe2.data.io import Reader
from caffe2.data.pipeline import pipe
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import from_column_list
from caffe2.graph.scope import NameScope
from caffe2.plans.step import ExecutionStep, execution_step
from caffe2.plans.task import Cluster, TaskGroup


class DBFileReader(Reader):
    """Reads records that `CachedReader` or `Save` put into a database: a tensor for each column.

    db_path      the database; its columns are read when a reader is made, unless `field_names` says
                 them
    db_type      "minidb", "lmdb", ...
    name         first part of the names of blobs; default: that of the file
    batch_size   records at a time
    loop_over    it never ends
    field_names  names of the columns, in order; default: those in the database
    """

    default_name_suffix = "db_file_reader"

    def __init__(
        self,
        db_path: str,
        db_type: str,
        name: str | None = None,
        batch_size: int = 100,
        loop_over: bool = False,
        field_names: Any = None,
    ) -> None:
        self.db_path, self.db_type = str(db_path), db_type
        self.name = name or f"{Path(db_path).name}_{self.default_name_suffix}"
        self.batch_size, self.loop_over = batch_size, loop_over
        super().__init__(from_column_list(list(field_names or self._stored())))
        self.ds: Any = None
        self.ds_reader: Any = None

    def _stored(self) -> list[str]:
        if not Path(self.db_path).exists():
            raise UsageError(f"there is no database '{self.db_path}'")
        database = create_db(self.db_type, self.db_path, Mode.read)
        if database is None:
            raise UsageError(f"the database '{self.db_path}' cannot be opened")
        cursor = database.new_cursor()
        names: dict[str, None] = {}
        while cursor.valid():
            names[cursor.key().decode().partition("#%")[0]] = None  # large ones come in chunks
            cursor.next()
        if not names:
            raise UsageError(f"the database '{self.db_path}' is empty")
        return list(names)

    def setup_ex(self, init_net: Any, finish_net: Any) -> None:
        if self.ds_reader is not None:
            return
        with NameScope(self.name):
            self.ds = Dataset(self._schema, name=self.name)
            names = self.ds.field_names()
            blobs = [init_net.NextScopedBlob(name) for name in names]
            init_net.Load(
                [],
                blobs,
                db=self.db_path,
                db_type=self.db_type,
                absolute_path=True,
                source_blob_names=names,
            )
            self.ds.field_blobs = blobs
            if self.loop_over:
                self.ds_reader = self.ds.random_reader(
                    init_net, batch_size=self.batch_size, loop_over=True
                )
                self.ds_reader.sort_and_shuffle(init_net)
                self.ds_reader.computeoffset(init_net)
            else:
                self.ds_reader = self.ds.reader(init_net, batch_size=self.batch_size)

    def read(self, read_net: Any) -> tuple[Any, Any]:
        if self.ds_reader is None:
            raise UsageError("setup_ex must be called first")
        return self.ds_reader.read(read_net)  # type: ignore[no-any-return]


class CachedReader(DBFileReader):
    """The records of another reader out of a database, which `build_cache_step` makes of them."""

    default_name_suffix = "cached_reader"

    def __init__(
        self,
        original_reader: Reader,
        db_path: str,
        db_type: str = "minidb",
        name: str | None = None,
        batch_size: int = 100,
        loop_over: bool = False,
    ) -> None:
        self.original_reader = original_reader
        names = None if Path(db_path).exists() else original_reader.schema().field_names()
        super().__init__(db_path, db_type, name, batch_size, loop_over, names)

    def build_cache_step(self, overwrite: bool = False) -> ExecutionStep:
        """A step that writes the records to the database; one that does nothing where there is one,
        unless it is to be overwritten."""
        if Path(self.db_path).exists() and not overwrite:
            return execution_step("build_step", [])
        init = Net("init")
        with NameScope(f"{self.name}_cache"):
            kept = Dataset(self.original_reader.schema().clone_schema(), name=self.name)
            kept.init_empty(init)
        with Cluster(), TaskGroup() as group:
            pipe(self.original_reader, kept.writer(), num_threads=16)
        save = Net("save")
        save.Save(
            kept.get_blobs(),
            [],
            db=self.db_path,
            db_type=self.db_type,
            absolute_path=True,
            blob_name_overrides=kept.field_names(),
        )
        return execution_step(
            "build_cache",
            [
                execution_step("init", init),
                group.to_task().get_step(),
                execution_step("save", save),
            ],
        )
