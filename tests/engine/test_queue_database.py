"""Queues that are read as databases."""

import logging
import threading
import time

import numpy as np
import pytest

from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from caffe2.runtime.engine import report_stalls


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()
    run("CreateBlobsQueue", [], ["queue"], capacity=10, num_blobs=2)


def run(type, inputs, outputs, **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, outputs, **args))


def record(number):
    message = caffe2_pb2.TensorProtos()
    message.protos.add(data_type=2, dims=[], int32_data=[number])
    return message.SerializeToString()


def enqueue(value, key=b"key"):
    workspace.FeedBlob("key", key)
    workspace.FeedBlob("value", value)
    run("EnqueueBlobs", ["queue", "key", "value"], ["key", "value"])


def open_queue(**args):
    args = {"key_blob_index": 0, "value_blob_index": 1, **args}
    run("CreateBlobsQueueDB", ["queue"], ["reader"], **args)


def read(batch=0):
    run("TensorProtosDBInput", ["reader"], ["x"], batch_size=batch)
    return workspace.FetchBlob("x").tolist()


def test_records_are_taken():
    open_queue(timeout_secs=5.0)
    enqueue(record(1))
    enqueue(np.array([record(2)], object))
    enqueue(record(3))
    assert read(2) == [1, 2]
    assert read() == 3
    enqueue(record(4))
    run("CloseBlobsQueue", ["queue"], [])
    assert read() == 4
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"TensorProtosDBInput.*'queue' has no record"):
            read()


def test_nothing_comes():
    open_queue(timeout_secs=0.05)
    with pytest.raises(RuntimeError, match=r"TensorProtosDBInput.*within 0.05 seconds"):
        read()
    enqueue(record(1))
    assert read() == 1


def test_a_reader_waits():
    open_queue()
    thread = threading.Thread(target=read)
    thread.start()
    time.sleep(0.05)
    assert thread.is_alive()
    enqueue(record(7))
    thread.join(5)
    assert workspace.FetchBlob("x") == 7


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32([1]), "blob 1 of a record holds a tensor"),
        (np.array([b"a", b"b"], object), "blob 1 of a record holds a tensor"),
        (b"\xff", r"record \"key\"|record 'key'"),
    ],
)
def test_records_that_cannot_be_read(value, text):
    open_queue(timeout_secs=0.05)
    enqueue(value)
    with pytest.raises(RuntimeError, match=rf"TensorProtosDBInput.*({text})"):
        read()


def test_what_is_refused():
    with pytest.raises(RuntimeError, match=r"CreateBlobsQueueDB.*records of 2"):
        open_queue(value_blob_index=2)
    workspace.FeedBlob("queue", np.float32([1]))
    with pytest.raises(RuntimeError, match=r"CreateBlobsQueueDB.*a tensor"):
        open_queue()


def test_readers_that_wait_are_cancelled_and_told_of():
    """One waits for a record, the other one for its turn."""
    open_queue()
    nets = [core.Net(name) for name in ("first", "second")]
    created, errors, reports, told = [], [], [], threading.Condition()

    class Keep(logging.Handler):
        def emit(self, entry):
            with told:
                reports.append(entry.getMessage())
                told.notify_all()

    def run_and_keep(net):
        try:
            net.run()
        except RuntimeError as error:
            errors.append(str(error))

    for net in nets:
        net.TensorProtosDBInput(["reader"], ["x"], batch_size=0)
        created.append(workspace.Workspace.current.create_net(net))
    handler = Keep()
    logging.getLogger("caffe2").addHandler(handler)
    report_stalls(0.02)
    threads = []
    try:
        for number, net in enumerate(created, 1):
            threads.append(threading.Thread(target=run_and_keep, args=(net,)))
            threads[-1].start()
            with told:
                assert told.wait_for(lambda count=number: len(reports) == count, 60)
        created[1].cancel()  # while the first one goes on to wait
        threads[1].join(60)
        assert threads[0].is_alive() and not threads[1].is_alive()
    finally:
        report_stalls(0)
        logging.getLogger("caffe2").removeHandler(handler)
        created[0].cancel()
        for thread in threads:
            thread.join(60)
    after = "; it has waited for a while"
    assert reports == [
        f"a reader waits for a record of queue 'queue' (0 of 10 records){after}",
        f"a reader waits for its turn at database 'queue'{after}",
    ]
    assert len(errors) == 2 and all("the run was cancelled" in text for text in errors)


def test_a_reader_of_a_queue_that_is_gone_ends():
    open_queue()
    enqueue(record(1))
    workspace.RemoveBlob("queue")
    assert read() == 1
    with pytest.raises(RuntimeError, match="queue 'queue' was removed or replaced"):
        read()
    run("CreateBlobsQueue", [], ["queue"], capacity=10, num_blobs=2)
    open_queue()
    errors = []

    def wait():
        try:
            read()
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    workspace.ResetWorkspace()
    thread.join(60)
    assert not thread.is_alive() and len(errors) == 1
