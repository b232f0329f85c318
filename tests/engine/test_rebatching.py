"""Queues of single examples, blobs that share memory, and the operator that ends with an error."""

import threading

import numpy as np
import pytest

from caffe2.python import core, workspace

F4, I4 = np.float32, np.int32


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def run(type, inputs, outputs=(), **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, list(outputs), **args))
    return [workspace.FetchBlob(name) for name in outputs if name != "queue"]


def create(**args):
    run("CreateRebatchingQueue", [], ["queue"], **args)


def put(*arrays, **args):
    names = [f"in{i}" for i in range(len(arrays))]
    for name, array in zip(names, arrays, strict=True):
        workspace.FeedBlob(name, array)
    run("EnqueueRebatchingQueue", ["queue", *names], **args)


def take(count, blobs=1):
    return run("DequeueRebatchingQueue", ["queue"], [f"out{i}" for i in range(blobs)],
               num_elements=count)  # fmt: skip


def test_batches_are_made_anew():
    create(capacity=10)
    put(F4([1, 2]))
    put(F4([[3, 4], [5, 6]]), enqueue_batch=True)
    assert take(2)[0].tolist() == [[1, 2], [3, 4]]
    assert take(1)[0].tolist() == [[5, 6]]


def test_scalars_and_several_blobs():
    create(capacity=10, num_blobs=2)
    texts = np.array([b"a", b"a longer text, on the heap"], object)
    put(F4([7, 8]), texts, enqueue_batch=True)
    put(np.array(9, F4), np.array(b"c", object))
    numbers, words = take(3, blobs=2)
    assert numbers.tolist() == [7, 8, 9]
    assert words.tolist() == [*texts, b"c"]


def test_a_closed_queue_gives_what_it_has():
    create(capacity=10)
    put(F4([1, 2, 3]), enqueue_batch=True)
    run("CloseRebatchingQueue", ["queue"])
    with pytest.raises(RuntimeError, match="'queue' is closed"):
        put(F4([1]))
    assert take(2)[0].tolist() == [1, 2]
    assert take(2)[0].tolist() == [3]
    with pytest.raises(RuntimeError, match="is closed and empty"):
        take(2)


def test_wrong_examples():
    create(capacity=10, num_blobs=2)
    with pytest.raises(RuntimeError, match=r"has records of 2 blob"):
        put(F4([1]))
    with pytest.raises(RuntimeError, match="2 rows are needed"):
        put(F4([1, 2]), F4([1]), enqueue_batch=True)
    create(capacity=10)
    put(F4([1]))
    put(F4([[1]]))
    with pytest.raises(RuntimeError, match="which make no batch"):
        take(2)
    assert take(1)[0].tolist() == [[1]]


def test_producer_and_consumer():
    create(capacity=2)
    net = core.Net("producer")
    net.EnqueueRebatchingQueue(["queue", "batch"], [], enqueue_batch=True)
    workspace.FeedBlob("batch", np.arange(10, dtype=F4))
    workspace.CreateNet(net)
    thread = threading.Thread(target=workspace.RunNet, args=(net,))
    thread.start()
    found = [take(5)[0].tolist(), take(5)[0].tolist()]
    thread.join()
    assert found == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_coalesced_blobs_share_memory():
    workspace.FeedBlob("a", F4([1, 2]))
    workspace.FeedBlob("b", F4([[3, 4, 5]]))
    workspace.FeedBlob("none", np.zeros((0, 2), F4))
    names = ["a", "none", "b"]
    found = run("UnsafeCoalesce", names, [*names, "all"])
    assert found[3].tolist() == [1, 2, 3, 4, 5]
    assert [found[0].tolist(), found[2].tolist()] == [[1, 2], [[3, 4, 5]]]
    run("Scale", ["all"], ["all"], scale=2.0)
    assert workspace.FetchBlob("b").tolist() == [[6, 8, 10]]
    run("Scale", ["a"], ["a"], scale=2.0)
    assert workspace.FetchBlob("all").tolist() == [4, 8, 6, 8, 10]


def test_coalesced_blobs_have_one_type():
    workspace.FeedBlob("a", F4([1, 2]))
    workspace.FeedBlob("b", I4([1]))
    with pytest.raises(RuntimeError, match="they must be the same"):
        run("UnsafeCoalesce", ["a", "b"], ["a", "b", "all"])
    with pytest.raises(RuntimeError, match="one more is needed"):
        run("UnsafeCoalesce", ["a"], ["a"])


def test_throw_exception():
    with pytest.raises(RuntimeError, match="throws an exception"):
        run("ThrowException", [])
