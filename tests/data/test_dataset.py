"""Records in blobs, and pipes between readers and writers."""

from __future__ import annotations

import numpy as np
import pytest

from caffe2.python import core, schema, workspace
from caffe2.python.cached_reader import CachedReader
from caffe2.python.dataio import (
    CompositeReaderBuilder,
    CountUntil,
    ReaderBuilder,
    ReaderWithLimit,
    ReaderWithTimeLimit,
)
from caffe2.python.dataset import Const, Dataset
from caffe2.python.db_file_reader import DBFileReader
from caffe2.python.net_builder import NetBuilder, ops
from caffe2.python.pipeline import (
    NetProcessor,
    Output,
    normalize_processor_output,
    pipe,
    pipe_and_output,
    processor_name,
)
from caffe2.python.queue_util import Queue
from caffe2.python.record_queue import RecordQueue
from caffe2.python.session import LocalSession
from caffe2.python.task import Task, TaskGroup, WorkspaceType, final_output


@pytest.fixture(autouse=True)
def _empty_workspace():
    workspace.ResetWorkspace()
    yield
    workspace.ResetWorkspace()


def source(values, name="source"):
    init = core.Net(f"{name}_init")
    record = schema.Struct(("id", np.array(values, np.int64)))
    with core.NameScope(name):
        blobs = schema.NewRecord(init, record)
    schema.FeedRecord(blobs, record)
    return Dataset(blobs, name=name)


def sink(name="sink", kind=np.int64):
    init = core.Net(f"{name}_init")
    with core.NameScope(name):
        found = Dataset(schema.Struct(("id", kind)), name=name)
        found.init_empty(init)
    workspace.RunNetOnce(init)
    return found


def values(dataset):
    return workspace.FetchBlob(dataset.get_blobs()[0]).tolist()


def run(runnable):
    LocalSession().run(runnable)


def test_reading_in_batches_and_from_the_start_again():
    dataset, init, net = source(range(5)), core.Net("init"), core.Net("read")
    reader = dataset.reader(init, batch_size=2)
    stop, record = reader.read_record(net)
    workspace.RunNetOnce(init)
    workspace.CreateNet(net)
    seen = []
    for _ in range(4):
        workspace.RunNet(net)
        seen.append((workspace.FetchBlob(record.id()).tolist(), bool(workspace.FetchBlob(stop))))
    assert seen == [([0, 1], False), ([2, 3], False), ([4], False), ([], True)]
    reset = core.Net("reset")
    reader.reset(reset)
    workspace.RunNetOnce(reset)
    workspace.RunNet(net)
    assert workspace.FetchBlob(record.id()).tolist() == [0, 1]


def test_an_order_of_its_own():
    dataset, init, net = source([10, 11, 12, 13]), core.Net("init"), core.Net("read")
    workspace.FeedBlob("order", np.array([3, 0, 2, 1], np.int64))
    reader = dataset.random_reader(init, indices=core.BlobReference("order"), batch_size=3)
    with pytest.raises(ValueError, match="computeoffset not called"):
        reader.read(core.Net("early"))
    reader.computeoffset(init)
    _, fields = reader.read(net)
    workspace.RunNetOnce(init)
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob(fields[0]).tolist() == [13, 10, 12]


def test_a_pipe_with_a_function():
    target = sink()

    def double(record):
        return schema.Struct(("id", ops.Add([record.id(), record.id()])))

    with TaskGroup() as group:
        pipe(source(range(10)).reader(), target.writer(), processor=double)
    run(group)
    assert values(target) == list(range(0, 20, 2))


@pytest.mark.parametrize("threads", [{"num_threads": 3}, {"num_runtime_threads": 3}])
def test_pipes_with_queues_between_them_and_several_threads(threads):
    target = sink()
    with TaskGroup() as group:
        first = pipe(source(range(30)).reader(), capacity=4, **threads)
        second = pipe(first, Queue(3), **threads)
        pipe(second, target.writer(), **threads)
    run(group)
    assert sorted(values(target)) == list(range(30))


def test_blocks_around_the_records_of_each_thread():
    outputs = []

    def count(record):
        with ops.task_init():
            records, threads = ops.CreateCounter([]), ops.CreateCounter([])
        ops.CountUp(records)
        with ops.task_instance_exit():
            ops.CountUp(threads)
        with ops.task_exit():
            outputs.extend(final_output(ops.RetrieveCount(c)) for c in (records, threads))

    with TaskGroup() as group:
        assert pipe(source(range(12)).reader(), processor=count, num_runtime_threads=4) is None
    run(group)
    assert [int(output.fetch()) for output in outputs] == [12, 4]


def test_a_processor_that_stops():
    target = sink()

    def until_three(record):
        ops.stop_if(ops.EQ([record.id(), ops.Const([3], dtype=np.int64)]))
        return record

    with TaskGroup() as group:
        pipe(source(range(10)).reader(), target.writer(), processor=until_three)
    run(group)
    assert values(target)[:3] == [0, 1, 2] and len(values(target)) < 5


def test_a_net_as_processor():
    net = core.Net("negate")
    net.AddExternalInput("x")
    net.set_input_record(schema.Struct(("id", core.BlobReference("x"))))
    net.Negative("x", "y")
    net.set_output_record(schema.Struct(("id", core.BlobReference("y"))))
    target = sink()
    processor = NetProcessor(net)
    with TaskGroup() as group:
        pipe(source([1, 2]).reader(), target.writer(), processor=processor)
    run(group)
    assert values(target) == [-1, -2]
    (names,) = processor.blob_maps()
    assert names["y"].endswith("/y") and names["x"] != "x"


def test_outputs_of_a_pipe():
    init, net = core.Net("init"), core.Net("count")
    counter = init.CreateCounter([], "counter")
    workspace.RunNetOnce(init)

    def count(record):
        net.CountUp(counter)
        return [net]

    with TaskGroup(workspace_type=WorkspaceType.GLOBAL) as group:
        nothing, output = pipe_and_output(
            CountUntil(7), processor=count, final_outputs=core.BlobReference("total")
        )
        with Task():
            ops.Const(0, blob_out="total")
    assert nothing is None
    run(group)
    assert output.fetch() == 0
    workspace.RunOperatorOnce(core.CreateOperator("RetrieveCount", ["counter"], ["n"]))
    assert workspace.FetchBlob("n") == 7


def test_readers_with_limits():
    for reader, expected in (
        (ReaderWithLimit(source(range(9), "a").reader(), num_iter=4), range(4)),
        (ReaderWithTimeLimit(source(range(9), "b").reader(), duration=0), range(9)),
        (ReaderWithTimeLimit(source(range(9), "c").reader(), duration=1e-9), range(0)),
    ):
        target = sink(f"to_{len(expected)}")
        with TaskGroup() as group:
            pipe(reader, target.writer())
        run(group)
        assert values(target) == list(expected)


def test_readers_side_by_side():
    class Builder(ReaderBuilder):
        def __init__(self, dataset):
            self._dataset = dataset

        def schema(self):
            return self._dataset.content().clone_schema()

        def new_reader(self, **kwargs):
            return self._dataset

    builders = [Builder(source([1, 2], "one")), Builder(source([3, 4], "two"))]
    reader = CompositeReaderBuilder(["one", "two"], builders).new_reader()
    init = core.Net("init")
    target = Dataset(reader.schema().clone_schema(), name="both")
    target.init_empty(init)
    workspace.RunNetOnce(init)
    with TaskGroup() as group:
        pipe(reader, target.writer())
    run(group)
    found = [workspace.FetchBlob(blob).tolist() for blob in target.get_blobs()]
    assert target.field_names() == ["one:id", "two:id"] and found == [[1, 2], [3, 4]]


def test_a_queue_of_records():
    dataset, init = source(range(6)), core.Net("init")
    target = sink()
    reader, writer = dataset.reader(init), target.writer(init)
    queue = RecordQueue(dataset.content(), num_threads=2)
    workspace.RunNetOnce(init)

    def negate(net, record):
        return schema.Struct(("id", net.Negative(record.id())))

    queue_reader, fill, close, _ = queue.build(reader, negate)
    # Who reads may be the first to run.
    assert any(name.startswith("queue") for name in workspace.Blobs())
    consume, write = core.Net("consume"), core.Net("write")
    stop, record = queue_reader.read_record(consume)
    writer.write_record(write, record)
    consumer = core.execution_step("consumer", [consume, write], should_stop_blob=stop)
    producer = core.execution_step("producer", [fill, close])
    both = core.execution_step("both", [producer, consumer], concurrent_substeps=True)
    workspace.RunPlan(core.Plan(both))
    assert sorted(values(target)) == [-5, -4, -3, -2, -1, 0]


def test_records_kept_in_a_file(tmp_path):
    path = str(tmp_path / "kept")
    cached = CachedReader(source(range(20)).reader(), path, "minidb", batch_size=6)
    run(cached.build_cache_step())
    again = CachedReader(cached.original_reader, path, "minidb")
    assert not again.build_cache_step().Proto().substep
    for reader in (cached, DBFileReader(path, "minidb", batch_size=7)):
        target = sink(f"target_{type(reader).__name__}")
        with TaskGroup() as group:
            pipe(reader, target.writer())
        run(group)
        assert sorted(values(target)) == list(range(20))
    with pytest.raises(ValueError, match="there is no database"):
        DBFileReader(str(tmp_path / "nothing"), "minidb")


def test_a_task_in_a_step_is_set_up_once(tmp_path):
    """Else its instances would share what tells each of them to stop."""
    step = CachedReader(source(range(3)).reader(), str(tmp_path / "kept")).build_cache_step()
    text = str(Task(step).get_step().Proto())
    assert text.count('network: "source_cursor_thread_init') == 1
    assert text.count('network: "source_cursor_init') == 1


def test_records_that_do_not_fill_a_batch_are_trimmed():
    dataset, net = source(range(7)), core.Net("trim")
    dataset.trim(net, 3)
    workspace.RunNetOnce(net)
    assert values(dataset) == list(range(6))


def test_columns_from_a_data_frame():
    net = core.Net("frame")
    dataset = Dataset(["a", "b"])
    dataset.init_from_dataframe(net, {"a": [1, 2], "b": [0.5, 1.5]})
    workspace.RunNetOnce(net)
    assert [workspace.FetchBlob(b).tolist() for b in dataset.get_blobs()] == [[1, 2], [0.5, 1.5]]
    with pytest.raises(ValueError, match="only flat records"):
        Dataset(["a:lengths", "a:values"]).init_from_dataframe(net, {})


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match="Dataset not initialized"):
        Dataset(["a"]).get_blobs()
    with pytest.raises(ValueError, match="is not set up"):
        source([1]).reader().read(core.Net("read"))
    with pytest.raises(ValueError, match="2 blobs are given for the columns id"):
        source([1], "other").writer(core.Net("init")).write(core.Net("write"), ["a", "b"])
    with pytest.raises(ValueError, match="0 times 1 threads"):
        pipe(source([1], "third").reader(), num_threads=0)


def test_what_processors_give():
    net, record = core.Net("net"), schema.Struct(("a", core.BlobReference("x")))
    nothing = normalize_processor_output(None)
    assert nothing.nets == [] and nothing.record is None and nothing.should_stop is None
    assert normalize_processor_output([net]).nets == [net]
    assert normalize_processor_output(record).record is record
    both = normalize_processor_output((net, core.BlobReference("x"), "stop"))
    assert both.nets == [net] and both.record() == "x" and both.should_stop == "stop"
    output = Output([net])
    assert normalize_processor_output(output) is output
    assert processor_name(lambda record: record) == "function"
    with NetBuilder("block"):
        assert Const(ops, 1, name="one")


def test_a_constant_is_fed_once():
    """A net may count on it from run to run, as in the original."""
    net = core.Net("counts")
    total, step = Const(net, 0, dtype=np.int32, name="total"), Const(net, 5, dtype=np.int32)
    net.Add([total, step], [total])
    assert [op.type for op in net.Proto().op] == ["Add"]
    workspace.CreateNet(net)
    for expected in (5, 10, 15):
        workspace.RunNet(net)
        assert workspace.FetchBlob(total) == expected


def test_no_rows_have_the_shape_of_rows():
    record = schema.from_blob_list(schema.Struct(("x", schema.Scalar((np.float32, 3)))), [[]])
    assert record.x().shape == (0, 3)
