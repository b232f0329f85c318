"""Queues that are read as databases."""

import threading
import time

import numpy as np
import pytest

from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace


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
