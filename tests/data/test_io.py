"""Readers, writers and queues as pipes between them (`dataio`, `queue_util`)."""

import numpy as np
import pytest

from caffe2.data.records import Struct
from caffe2.graph.errors import UsageError
from caffe2.plans.step import execution_step
from caffe2.python import core, workspace
from caffe2.python.dataio import (
    CompositeReader,
    CounterReader,
    CountUntil,
    Reader,
    ReaderWithDelay,
    ReaderWithLimit,
    Writer,
)
from caffe2.python.queue_util import Queue, close_queue, dequeue, enqueue


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def read_all(reader):
    """What a reader gives, one row per record, and its init net's blobs stay."""
    init, finish = core.Net("init"), core.Net("finish")
    reader.setup_ex(init, finish)
    nets, stop, record = reader.read_record_ex(init, finish)
    rows = []

    def take(inputs, outputs):
        rows.append([blob.data.item() for blob in inputs])

    collect = core.Net("collect")
    collect.Python(take)(record.field_blobs(), [])
    read = execution_step("read", [*nets, collect], should_stop_blob=stop)
    workspace.RunPlan(execution_step("all", [execution_step("init", init), read]))
    return rows


def test_counting_with_a_limit():
    assert read_all(CountUntil(4)) == [[0], [1], [2], [3]]
    assert read_all(CountUntil(0)) == []
    inner = ReaderWithLimit(CounterReader(), 2)
    outer = ReaderWithLimit(inner, 5)
    assert read_all(outer) == [[0], [1]]
    assert workspace.FetchBlob(outer.data_finished())
    assert read_all(ReaderWithLimit(ReaderWithLimit(CounterReader(), 3), None)) == [[0], [1], [2]]


def test_readers_side_by_side():
    reader = CompositeReader(["a", "b"], [CountUntil(5), ReaderWithDelay(CountUntil(3), 0.001)])
    assert reader.schema().field_names() == ["a:iter", "b:iter"]
    assert read_all(reader) == [[0, 0], [1, 1], [2, 2]]
    with pytest.raises(UsageError, match="1 names for 2 readers"):
        CompositeReader(["a"], [CounterReader(), CounterReader()])


def test_what_a_reader_or_writer_lacks():
    with pytest.raises(UsageError, match="Reader has no schema"):
        Reader().schema()
    with pytest.raises(UsageError, match="a schema is a Field, not str"):
        Reader("schema")
    with pytest.raises(NotImplementedError, match="CounterReader cannot return to its first"):
        CounterReader().reset(core.Net("n"))
    with pytest.raises(NotImplementedError, match="Writer does not write in one net"):
        Writer().write(core.Net("n"), [])


def test_a_queue_as_a_pipe():
    schema = Struct(("x", np.int64), ("y", np.float32))
    queue = Queue(capacity=10, schema=schema, name="pipe")
    init, exit_ = core.Net("init"), core.Net("exit")
    queue.setup(init)
    queue.setup(init)  # once is enough
    assert len(init.Proto().op) == 1
    source = CountUntil(3)
    source.setup_ex(init, exit_)
    nets, stop, record = source.read_record_ex(init, exit_)
    number = record.iter()
    half = core.Net("half")
    fraction = half.Cast([number], to=core.DataType.FLOAT)
    writer, reader = queue.writer(), queue.reader()
    write, _ = writer.write_record_ex(
        Struct(("x", number), ("y", fraction)), init, exit_, stop_blob=stop
    )
    writer.setup_ex(init, exit_)
    produce = execution_step("produce", [*nets, half, *write], should_stop_blob=stop)
    workspace.RunPlan(
        execution_step("all", [execution_step(n.Name(), n) for n in (init,)] + [produce])
    )
    workspace.RunNetOnce(exit_)
    read, ended, found = reader.read_record_ex(core.Net("a"), core.Net("b"))
    workspace.CreateNet(read[0])
    for wanted in range(3):
        workspace.RunNet(read[0])
        assert not workspace.FetchBlob(ended)
        assert [workspace.FetchBlob(blob) for blob in found.field_blobs()] == [wanted, wanted]
    workspace.RunNet(read[0])
    assert workspace.FetchBlob(ended)
    assert (queue.num_readers(), queue.num_writers()) == (1, 1)


def test_queues_without_records():
    net = core.Net("net")
    workspace.RunOperatorOnce(
        core.CreateOperator("CreateBlobsQueue", [], ["queue"], num_blobs=1, capacity=3)
    )
    workspace.FeedBlob("x", np.array([7]))
    for name in ("x", "queue"):
        net.AddExternalInput(name)
    enqueue(net, "queue", ["x"])
    enqueue(net, "queue", ["x"])
    (found,), stop = dequeue(net, "queue", 1, num_records=2)
    workspace.RunPlan(close_queue(execution_step("run", net), "queue"))
    assert workspace.FetchBlob(found).tolist() == [7, 7] and not workspace.FetchBlob(stop)
    assert workspace.FetchBlob("x") == 7
    after = core.Net("after")
    after.AddExternalInput("queue")
    _, stop = dequeue(after, "queue", 1)
    workspace.RunNetOnce(after)
    assert workspace.FetchBlob(stop)
