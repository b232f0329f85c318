"""Readers and writers: objects that append to nets what reads or writes the next record.

A reader's nets run one after the other; then its "should stop" blob says whether there was nothing
left, and its fields hold the record.  Both work on records (`caffe2.data.records`) when they have a
schema, else on lists of blobs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from caffe2.data.records import from_blob_list
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Field, Struct
from caffe2.ops.datatypes import DataType
from caffe2.plans.step import ExecutionStep, execution_step


class Reader:
    """Reads records, one or a batch at a time.

    Subclasses have `read`, which appends to one net, or `read_ex`, which gives nets of their own.
    """

    def __init__(self, schema: Field | None = None) -> None:
        if schema is not None and not isinstance(schema, Field):
            raise UsageError(f"a schema is a Field, not {type(schema).__name__}")
        self._schema = schema

    def schema(self) -> Any:
        """The schema of its records.  UsageError when there is none."""
        if self._schema is None:
            raise UsageError(f"{type(self).__name__} has no schema")
        return self._schema

    def _set_schema(self, schema: Field | None) -> None:
        self._schema = schema

    def setup_ex(self, init_net: Any, finish_net: Any) -> None:
        """What runs once, before the first and after the last record."""

    def read_ex(self, local_init_net: Any, local_finish_net: Any) -> tuple[list[Any], Any, Any]:
        """Nets that read a record, the blob that says to stop, and the fields (or record).

        `local_init_net` and `local_finish_net` run once in each thread that reads.
        """
        read_net = Net("reader_body")
        stop, fields = self.read(read_net)
        return [read_net], stop, fields

    def read_record_ex(
        self, local_init_net: Any, local_finish_net: Any
    ) -> tuple[list[Any], Any, Any]:
        """`read_ex` with a record in the place of the fields, when there is a schema."""
        nets, stop, fields = self.read_ex(local_init_net, local_finish_net)
        return nets, stop, self._record(fields)

    def read(self, read_net: Any) -> tuple[Any, Any]:
        """Appends the reading to a net; the blob that says to stop, and the fields."""
        raise NotImplementedError(f"{type(self).__name__} does not read into one net")

    def reset(self, net: Any) -> None:
        """Appends the return to the first record."""
        raise NotImplementedError(f"{type(self).__name__} cannot return to its first record")

    def read_record(self, read_net: Any) -> tuple[Any, Any]:
        """`read` with a record in the place of the fields, when there is a schema."""
        stop, fields = self.read(read_net)
        return stop, self._record(fields)

    def _record(self, fields: Any) -> Any:
        if self._schema is None or isinstance(fields, Field):
            return fields
        return from_blob_list(self._schema, fields)

    def execution_step(
        self, reader_net_name: str | None = None, external_should_stop: Any = None
    ) -> tuple[ExecutionStep, Any]:
        """A step that reads until there is nothing left, or until another blob says so, and the
        fields.  Substeps of it use them."""
        name = reader_net_name or "reader"
        net = Net(name)
        stop, fields = self.read_record(net)
        if external_should_stop is not None:
            stop = net.Or([external_should_stop, stop])
        return execution_step(f"{name}_step", net, should_stop_blob=stop), fields


class Writer:
    """Writes records, one or a batch at a time; see Reader."""

    _schema: Field | None = None

    def schema(self) -> Any:
        """The schema of its records; None when any will do."""
        return self._schema

    def setup_ex(self, init_net: Any, finish_net: Any) -> None:
        """What runs once, before the first and after the last record."""

    def write(self, writer_net: Any, fields: Sequence[Any]) -> None:
        """Appends the writing of blobs to a net."""
        raise NotImplementedError(f"{type(self).__name__} does not write in one net")

    def write_record(self, writer_net: Any, fields: Any) -> None:
        """`write` of a record or of blobs."""
        self.write(writer_net, self._blobs(fields))

    def write_ex(
        self, fields: Sequence[Any], local_init_net: Any, local_finish_net: Any, stop_blob: Any
    ) -> list[Any]:
        """Nets that write blobs; they set `stop_blob` when no more can be written."""
        write_net = Net("write_net")
        self.write(write_net, fields)
        return [write_net]

    def write_record_ex(
        self, fields: Any, local_init_net: Any, local_finish_net: Any, stop_blob: Any = None
    ) -> tuple[list[Any], Any]:
        """`write_ex` of a record or of blobs, and the stop blob, a new one by default."""
        if stop_blob is None:
            stop_blob = local_init_net.NextName("dequeue_status")
        blobs = self._blobs(fields)
        return self.write_ex(blobs, local_init_net, local_finish_net, stop_blob), stop_blob

    def _blobs(self, fields: Any) -> Sequence[Any]:
        if not isinstance(fields, Field):
            return fields  # type: ignore[no-any-return]
        self._schema = self._schema or fields.clone_schema()
        return fields.field_blobs()

    def commit(self, finish_net: Any) -> None:
        """Appends the end of all writing."""


def _reader_of(source: Any) -> Any:
    """A reader itself, or that of a pipe or dataset."""
    return source if isinstance(source, Reader) else source.reader()


class ReaderBuilder:
    """Makes readers of one source, one for each thread."""

    def schema(self) -> Any:
        raise NotImplementedError

    def setup(self, **kwargs: Any) -> Any:
        """What runs once, before any reader."""

    def new_reader(self, **kwargs: Any) -> Reader:
        raise NotImplementedError


class PipedReaderBuilder(ReaderBuilder):
    """The readers of another builder, each behind `piper(reader, **kwargs)`."""

    def __init__(self, builder: ReaderBuilder, piper: Any) -> None:
        self._builder, self._piper = builder, piper

    def schema(self) -> Any:
        return self._builder.schema()

    def setup(self, **kwargs: Any) -> Any:
        return self._builder.setup(**kwargs)

    def new_reader(self, **kwargs: Any) -> Any:
        return _reader_of(self._piper(reader=self._builder.new_reader(**kwargs), **kwargs))


class Pipe:
    """Something that is written at one end and read at the other.

    obj_key: the attribute under which nets remember it (see `Task` and `TaskGroup`), so that its
    setup becomes a part of what they run in
    """

    def __init__(self, schema: Field | None = None, obj_key: Any = None) -> None:
        self._schema, self._key = schema, obj_key
        self._readers = self._writers = 0

    def schema(self) -> Any:
        return self._schema

    def setup(self, global_init_net: Any) -> None:
        """What runs once, before anything else."""

    def reader(self) -> Reader:
        raise NotImplementedError

    def writer(self) -> Writer:
        raise NotImplementedError

    def num_readers(self) -> int:
        return self._readers

    def num_writers(self) -> int:
        return self._writers

    def _new_reader(self, reader_init_net: Any) -> None:
        self._readers += 1
        if self._key is not None:
            reader_init_net.add_attribute(self._key, self)

    def _new_writer(self, writer_schema: Field | None, writer_init_net: Any) -> None:
        self._schema = self._schema or writer_schema
        self._writers += 1
        if self._key is not None:
            writer_init_net.add_attribute(self._key, self)


def _truth(net: Any, value: bool = False) -> Any:
    return net.ConstantFill([], shape=[], value=value, dtype=int(DataType.BOOL))


class CounterReader(Reader):
    """Counts: record n is the number n, from 0 on; it never ends by itself."""

    def __init__(self) -> None:
        super().__init__(Struct(("iter", (int, ()))))
        self.counter: Any = None
        self.should_stop: Any = None

    def setup_ex(self, global_init_net: Any, global_finish_net: Any) -> None:
        if self.counter is None:
            self.counter = global_init_net.CreateCounter([], init_count=0)
            self.should_stop = _truth(global_init_net)

    def read_ex(self, local_init_net: Any, local_finish_net: Any) -> tuple[list[Any], Any, Any]:
        net = Net("limited_reader_counter")
        value = net.CountUp([self.counter], 1)
        return [net], self.should_stop, [value]


class ReaderWithLimitBase(Reader):
    """Another reader that ends early; subclasses say when.

    `data_finished()` is the blob that tells whether the other reader has come to its end.
    """

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader._schema)
        self.reader = reader
        self.net = Net("reader_with_limit")
        self._data_finished = self.net.AddExternalInput(self.net.NextName("data_finished"))
        self.should_stop: Any = None

    def setup_ex(self, global_init_net: Any, global_finish_net: Any) -> None:
        global_init_net.ConstantFill(
            [], [self._data_finished], shape=[], value=False, dtype=int(DataType.BOOL)
        )
        self.reader.setup_ex(global_init_net, global_finish_net)
        self.setup_limiter(global_init_net, global_finish_net)

    def read_ex(self, local_init_net: Any, local_finish_net: Any) -> tuple[list[Any], Any, Any]:
        before = Net("limited_reader_condition")
        stop = self.check_limiter_condition(before)
        nets, finished, fields = self.reader.read_ex(local_init_net, local_finish_net)
        self._set_schema(self.reader._schema)
        after = Net("limited_reader_post")
        after.Or([stop, finished], [stop])
        after.Copy([finished], [self._data_finished])
        return [before, *nets, after], stop, fields

    def setup_limiter(self, global_init_net: Any, global_finish_net: Any) -> None:
        """What the limit needs before the first record."""
        raise NotImplementedError

    def check_limiter_condition(self, stop_condition_net: Any) -> Any:
        """Appends the question; the blob that is true when the limit is reached."""
        raise NotImplementedError

    def data_finished(self) -> Any:
        return self._data_finished


class ReaderWithLimit(ReaderWithLimitBase):
    """The first `num_iter` records of another reader; all of them for None."""

    def __init__(self, reader: Reader, num_iter: int | None = 1) -> None:
        super().__init__(reader)
        self.num_iter, self.counter = num_iter, None

    def setup_limiter(self, global_init_net: Any, global_finish_net: Any) -> None:
        if self.counter is None and self.num_iter is not None:
            self.counter = global_init_net.CreateCounter([], init_count=int(self.num_iter))

    def check_limiter_condition(self, stop_condition_net: Any) -> Any:
        if self.num_iter is None:
            return _truth(stop_condition_net)
        return stop_condition_net.CountDown([self.counter], 1)


class ReaderWithTimeLimit(ReaderWithLimitBase):
    """The records that another reader gives within `duration` seconds; all of them for 0.

    The time is looked at before each record.
    """

    def __init__(self, reader: Reader, duration: float = 0) -> None:
        super().__init__(reader)
        self.duration = duration
        self._end: float | None = None

    def setup_limiter(self, global_init_net: Any, global_finish_net: Any) -> None:
        if self.duration:

            def start(inputs: Any, outputs: Any) -> None:
                self._end = time.monotonic() + self.duration

            global_init_net.Python(start)([], [])

    def check_limiter_condition(self, stop_condition_net: Any) -> Any:
        if not self.duration:
            return _truth(stop_condition_net)

        def check(inputs: Any, outputs: Any) -> None:
            over = self._end is not None and time.monotonic() >= self._end
            outputs[0].feed(np.array(over))

        return stop_condition_net.Python(check)([], 1)


def CountUntil(num_iter: int) -> ReaderWithLimit:
    """Counts from 0 to num_iter - 1."""
    return ReaderWithLimit(CounterReader(), num_iter)


class ReaderWithDelay(Reader):
    """Another reader that waits `delay` seconds before each record: for tests."""

    def __init__(self, reader: Reader, delay: float) -> None:
        super().__init__(reader._schema)
        self.reader, self.delay = reader, delay

    def setup_ex(self, global_init_net: Any, global_finish_net: Any) -> None:
        self.reader.setup_ex(global_init_net, global_finish_net)

    def read_ex(self, local_init_net: Any, local_finish_net: Any) -> tuple[list[Any], Any, Any]:
        def sleep_op(inputs: Any, outputs: Any) -> None:
            time.sleep(self.delay)

        wait = Net("reader_delay")
        wait.Python(sleep_op)([], [])
        nets, stop, fields = self.reader.read_ex(local_init_net, local_finish_net)
        return [wait, *nets], stop, fields


class CompositeReader(Reader):
    """Records of several readers side by side, as a Struct; ends when the first of them ends."""

    def __init__(self, names: Sequence[str], readers: Sequence[Reader]) -> None:
        if len(names) != len(readers):
            raise UsageError(f"{len(names)} names for {len(readers)} readers")
        schemas = [reader.schema() for reader in readers]
        super().__init__(Struct(*zip(names, schemas, strict=True)))
        self._names, self._readers = list(names), list(readers)

    def setup_ex(self, init_net: Any, finish_net: Any) -> None:
        for reader in self._readers:
            reader.setup_ex(init_net, finish_net)

    def read_ex(self, local_init_net: Any, local_finish_net: Any) -> tuple[list[Any], Any, Any]:
        nets, records, stop = [], [], _truth(local_init_net)
        for reader in self._readers:
            own, finished, record = reader.read_record_ex(local_init_net, local_finish_net)
            either = Net("composite_reader_stop")
            either.Or([stop, finished], [stop])
            nets += [*own, either]
            records.append(record)
        return nets, stop, Struct(*zip(self._names, records, strict=True))

    def reset(self, net: Any) -> None:
        for reader in self._readers:
            reader.reset(net)


class CompositeReaderBuilder(ReaderBuilder):
    """Makes CompositeReaders of the readers of other builders."""

    def __init__(self, names: Sequence[str], reader_builders: Sequence[ReaderBuilder]) -> None:
        self._names, self._builders = list(names), list(reader_builders)

    def schema(self) -> Any:
        return Struct(*((n, b.schema()) for n, b in zip(self._names, self._builders, strict=True)))

    def setup(self, **kwargs: Any) -> Mapping[str, Any]:
        made: dict[str, Any] = {}
        for builder in self._builders:
            made.update(builder.setup(**kwargs) or {})
        return made

    def new_reader(self, **kwargs: Any) -> CompositeReader:
        readers = [_reader_of(builder.new_reader(**kwargs)) for builder in self._builders]
        return CompositeReader(self._names, readers)
