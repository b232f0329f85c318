"""Records as elements of tensors."""

import numpy as np
import pytest

from caffe2.python import core, workspace

FIELDS = ["list:lengths", "list:values:key", "list:values:v:lengths", "list:values:v:values", "x"]
COLUMNS = {
    "l": np.int32([2, 0, 1]),
    "k": np.int32([11, 12, 31]),
    "vl": np.int32([2, 4, 3]),
    "vv": np.int64(range(9)),
    "x": np.float32([[0, 1], [2, 3], [4, 5]]),
}
OUT = [f"new_{name}" for name in COLUMNS]
# The columns of each record.
ROWS = [
    [[2], [11, 12], [2, 4], [0, 1, 2, 3, 4, 5], [[0, 1]]],
    [[0], [], [], [], [[2, 3]]],
    [[1], [31], [3], [6, 7, 8], [[4, 5]]],
]


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()
    for name, values in COLUMNS.items():
        workspace.FeedBlob(name, values)


def run(type, inputs, outputs, **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, outputs, **args))
    return [value.tolist() for value in workspace.FetchBlobs(outputs)]


def rows(*numbers):
    """The columns of some records, one after the other."""
    return [[x for i in numbers for x in ROWS[i][field]] for field in range(5)]


@pytest.mark.parametrize("single", [0, 1])
def test_packed_records_become_columns_again(single):
    run("PackRecords", [*COLUMNS], ["packed"], fields=FIELDS, pack_to_single_shared_ptr=single)
    assert workspace.FetchBlob("packed").shape == (1 if single else 3,)
    assert run("UnPackRecords", ["packed"], OUT, fields=FIELDS) == rows(0, 1, 2)
    assert [workspace.FetchBlob(n).dtype for n in OUT] == [v.dtype for v in COLUMNS.values()]


def test_packed_records_can_be_gathered_and_queued():
    run("PackRecords", [*COLUMNS], ["packed"], fields=FIELDS)
    workspace.FeedBlob("order", np.int32([2, 0, 1]))
    net = core.Net("queue")
    net.CreateRebatchingQueue([], "queue", num_blobs=1, capacity=3)
    net.Gather(["packed", "order"], "ordered")
    net.EnqueueRebatchingQueue(["queue", "ordered"], [], enqueue_batch=1)
    net.DequeueRebatchingQueue("queue", "some", num_elements=2)
    workspace.RunNetOnce(net)
    assert run("UnPackRecords", ["some"], OUT, fields=FIELDS) == rows(2, 0)


def test_no_records():
    run("PackRecords", [*COLUMNS], ["packed"], fields=FIELDS)
    workspace.FeedBlob("order", np.int32([]))
    run("Gather", ["packed", "order"], ["none"])
    with pytest.raises(RuntimeError, match="no element, and there are no prototypes"):
        run("UnPackRecords", ["none"], OUT, fields=FIELDS)
    assert run("UnPackRecords", ["none", *COLUMNS], OUT, fields=FIELDS) == [[]] * 5
    assert workspace.FetchBlob("new_x").shape == (0, 2)
    for name in COLUMNS:
        workspace.FeedBlob(name, COLUMNS[name][:0])
    run("PackRecords", [*COLUMNS], ["packed"], fields=FIELDS)
    assert workspace.FetchBlob("packed").shape == (0,)


def test_strings_are_packed():
    workspace.FeedBlob("s", np.array([b"", b"\xff", b"abc"], object))
    run("PackRecords", ["s"], ["packed"], fields=["s"])
    assert run("UnPackRecords", ["packed"], ["s2"], fields=["s"]) == [[b"", b"\xff", b"abc"]]


def test_what_is_no_packed_record():
    run("PackRecords", ["l", "x"], ["packed"], fields=["a", "b"])
    good = workspace.FetchBlob("packed")[0]
    run("PackRecords", ["x", "l"], ["packed"], fields=["a", "b"])
    other = workspace.FetchBlob("packed")[0]
    for bad in (b"abc", b"", good[:-1], other):
        workspace.FeedBlob("packed", np.array([good, bad], object))
        with pytest.raises(RuntimeError, match=r"UnPackRecords.*element 1 is no packed record"):
            run("UnPackRecords", ["packed"], ["a", "b"], fields=["a", "b"])


def test_columns_that_are_no_records():
    workspace.FeedBlob("l", np.int32([2, 0, 2]))
    with pytest.raises(RuntimeError, match=r"PackRecords.*counts 4 elements, but there are 3"):
        run("PackRecords", [*COLUMNS], ["packed"], fields=FIELDS)
    with pytest.raises(RuntimeError, match="1 outputs for 2 fields"):
        run("UnPackRecords", ["packed"], ["a"], fields=["a", "b"])
