"""Records kept in blobs of a workspace, one tensor for each column, with readers and a writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe2.data.io import Reader, Writer
from caffe2.data.records import InitEmptyRecord, from_blob_list
from caffe2.graph.blob import BlobReference, ScopedBlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Field, from_column_list
from caffe2.graph.scope import NameScope
from caffe2.plans.step import ExecutionStep, execution_step
from caffe2.runtime import workspace


class _DatasetReader(Reader):
    """Reads batches in order; several readers of one cursor share the records."""

    _how = "ReadNextBatch"

    def __init__(
        self, dataset: Dataset, name: str | None, batch_size: int, enforce_batch_size: bool
    ) -> None:
        super().__init__(dataset.content())
        self.dataset = dataset
        self.name = name or f"{dataset.name}_cursor"
        self.batch_size, self.enforce_batch_size = batch_size, enforce_batch_size
        self.cursor: Any = None

    def setup_ex(self, init_net: Any, exit_net: Any) -> None:
        if self.cursor is None:
            names = self.dataset.content().field_names()
            self.cursor = init_net.CreateTreeCursor(
                [], init_net.NextScopedBlob(self.name), fields=names
            )

    def read(self, read_net: Any) -> tuple[Any, list[BlobReference]]:
        if self.cursor is None:
            raise UsageError(f"the reader '{self.name}' is not set up: setup_ex makes its cursor")
        content = self.dataset.content()
        with NameScope(read_net.NextName(self.name)):
            names = [ScopedBlobReference(name) for name in content.field_names()]
            fields = getattr(read_net, self._how)(
                [self.cursor, *self._places(), *content.field_blobs()],
                names,
                batch_size=self.batch_size,
                enforce_batch_size=self.enforce_batch_size,
                **self._options(),
            )
            fields = list(fields) if isinstance(fields, tuple) else [fields]
            return read_net.IsEmpty([fields[0]]), fields

    def _places(self) -> list[Any]:
        return []

    def _options(self) -> dict[str, Any]:
        return {}

    def reset(self, net: Any) -> None:
        net.ResetCursor([self.cursor], [])


class _DatasetRandomReader(_DatasetReader):
    """Reads batches in an order of its own: that of `indices`, or of `sort_and_shuffle`."""

    _how = "ReadRandomBatch"

    def __init__(
        self,
        dataset: Dataset,
        name: str | None,
        indices: Any,
        batch_size: int,
        loop_over: bool,
        enforce_batch_size: bool,
    ) -> None:
        super().__init__(dataset, name, batch_size, enforce_batch_size)
        self.indices, self.loop_over = indices, loop_over
        self.offsets: Any = None

    def sort_and_shuffle(
        self,
        net: Any,
        sort_by_field: str | None = None,
        shuffle_size: int = 1,
        batch_size: int = 1,
    ) -> None:
        """Appends the choice of an order: by a column, then groups of `shuffle_size` batches of
        `batch_size` records shuffled."""
        names = self.dataset.content().field_names()
        field = -1 if sort_by_field is None else names.index(sort_by_field)
        self.reset(net)
        self.indices = net.SortAndShuffle(
            [self.cursor, *self.dataset.content().field_blobs()],
            net.NextScopedBlob("indices"),
            sort_by_field_idx=field,
            shuffle_size=shuffle_size,
            batch_size=batch_size,
        )

    def computeoffset(self, net: Any) -> None:
        """Appends the places where records begin, which have to be known before reading."""
        self.reset(net)
        self.offsets = net.ComputeOffset(
            [self.cursor, *self.dataset.content().field_blobs()], net.NextScopedBlob("offsets")
        )

    def _places(self) -> list[Any]:
        if self.indices is None or self.offsets is None:
            missing = "sort_and_shuffle" if self.indices is None else "computeoffset"
            raise UsageError(f"{missing} not called")
        return [self.indices, self.offsets]

    def _options(self) -> dict[str, Any]:
        return {"loop_over": self.loop_over}


class _DatasetWriter(Writer):
    """Appends records; several threads may."""

    def __init__(self, content: Field) -> None:
        self._content = content
        self.mutex: Any = None

    def setup_ex(self, init_net: Any, exit_net: Any) -> None:
        if self.mutex is None:
            self.mutex = init_net.CreateMutex([])

    def write(self, writer_net: Any, fields: Sequence[Any]) -> None:
        if self.mutex is None:
            raise UsageError("the writer is not set up: setup_ex makes its lock")
        names, blobs = self._content.field_names(), self._content.field_blobs()
        if len(fields) != len(names):
            raise UsageError(f"{len(fields)} blobs are given for the columns {', '.join(names)}")
        writer_net.CheckDatasetConsistency(list(fields), [], fields=names)
        writer_net.AtomicAppend([self.mutex, *blobs, *fields], blobs)


class Dataset:
    """Records in blobs.

    fields  a record with blobs, a schema (whose blobs `init_empty` makes), or names of columns
    name    the first part of the names of cursors
    """

    def __init__(self, fields: Any, name: str | None = None) -> None:
        if isinstance(fields, (list, tuple)):
            fields = from_column_list(fields)
        if not isinstance(fields, Field):
            raise UsageError(f"a record, schema or names of columns are needed, got {fields!r}")
        self.schema, self.fields = fields, fields.field_names()
        self.field_types = fields.field_types()
        self.name = name or "dataset"
        self.field_blobs = fields.field_blobs() if fields.has_blobs() else None

    def init_empty(self, init_net: Any) -> None:
        """Appends the making of empty columns."""
        record = InitEmptyRecord(init_net, self.schema.clone_schema())
        self.field_blobs = record.field_blobs()

    def init_from_dataframe(self, net: Any, dataframe: Any) -> None:
        """Appends the making of columns out of a pandas.DataFrame, for a flat schema."""
        if any(":" in name for name in self.fields):
            raise UsageError("only flat records are made from a data frame")
        self.field_blobs = [
            net.Const(np.asarray(dataframe[name]), blob_out=net.NextScopedBlob(name))
            for name in self.fields
        ]

    def get_blobs(self) -> list[BlobReference]:
        """The blobs of the columns.  UsageError before there are some."""
        if self.field_blobs is None:
            raise UsageError("Dataset not initialized.")
        return list(self.field_blobs)

    def content(self) -> Any:
        """The record of the columns."""
        return from_blob_list(self.schema, self.get_blobs())

    def field_names(self) -> list[str]:
        return list(self.fields)

    def trim(self, net: Any, multiple_of: int) -> None:
        """Appends the removal of records so that their number is a multiple of a number."""
        blobs = self.get_blobs()
        net.TrimDataset(blobs, blobs, fields=self.fields, multiple_of=multiple_of)

    def reader(
        self,
        init_net: Any = None,
        cursor_name: str | None = None,
        batch_size: int = 1,
        enforce_batch_size: bool = False,
    ) -> _DatasetReader:
        """A reader of batches, in order.

        init_net            where its cursor is made; None: whoever uses it calls `setup_ex`
        enforce_batch_size  batches that are smaller, at the end, are left out
        """
        reader = _DatasetReader(self, cursor_name, batch_size, enforce_batch_size)
        if init_net is not None:
            reader.setup_ex(init_net, None)
        return reader

    def random_reader(
        self,
        init_net: Any = None,
        indices: Any = None,
        cursor_name: str | None = None,
        batch_size: int = 1,
        loop_over: bool = False,
        enforce_batch_size: bool = False,
    ) -> _DatasetRandomReader:
        """A reader of batches in the order of `indices` (int64), or one that `sort_and_shuffle`
        chooses; `computeoffset` has to be called as well.  `loop_over`: it never ends."""
        reader = _DatasetRandomReader(
            self, cursor_name, indices, batch_size, loop_over, enforce_batch_size
        )
        if init_net is not None:
            reader.setup_ex(init_net, None)
        return reader

    def writer(self, init_net: Any = None) -> _DatasetWriter:
        """A writer that appends records."""
        writer = _DatasetWriter(self.content())
        if init_net is not None:
            writer.setup_ex(init_net, None)
        return writer


def Const(net: Any, value: Any, dtype: Any = None, name: str | None = None) -> BlobReference:
    """A value that is fed now and read by the net, which may also change it: no operator of the net
    writes it anew at each run.  The blob is one of the net's external inputs."""
    blob = net.AddExternalInput(net.NextName(prefix=name))
    workspace.FeedBlob(blob, np.asarray(value, dtype=dtype))
    return blob  # type: ignore[no-any-return]


def execution_step_with_progress(
    name: str, init_net: Net, substeps: Sequence[Any], rows_read: Any
) -> ExecutionStep:
    """Steps side by side, which count what they read in a counter; it is printed every 5 s."""
    report = Net("report_net")
    report.Print([report.RetrieveCount([rows_read])], [])
    work = execution_step(
        name, list(substeps), concurrent_substeps=True, report_net=report, report_interval=5
    )
    return execution_step(f"{name}_with_init", [execution_step(f"{name}_init", init_net), work])
