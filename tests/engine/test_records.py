"""Records with nested lists and their cursors, growing tensors, statistics and timers.  Values were
recorded from the original Caffe2."""

import numpy as np
import pytest

from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace

F4, I4, I8 = np.float32, np.int32, np.int64
FIELDS = ["a:lengths", "a:values:keys", "a:values:v:lengths", "a:values:v:values", "b"]
BLOBS = ["al", "ak", "vl", "vv", "b"]
OUT = [f"out{i}" for i in range(5)]
DATA = {
    "al": I4([2, 0, 1]),
    "ak": I4([11, 12, 13]),
    "vl": I4([1, 2, 0]),
    "vv": I8([7, 8, 9]),
    "b": F4([[1, 2], [3, 4], [5, 6]]),
}


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()
    for name, value in DATA.items():
        workspace.FeedBlob(name, value)


def run(type, inputs, outputs=(), **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, list(outputs), **args))
    return [workspace.FetchBlob(name) for name in outputs if name not in ("cursor", "mutex")]


def lists(arrays):
    return [array.tolist() for array in arrays]


def create():
    workspace.RunOperatorOnce(core.CreateOperator("CreateTreeCursor", [], "cursor", fields=FIELDS))


def offsets():
    (found,) = run("GetCursorOffset", ["cursor"], ["offsets"])
    assert found.dtype == I4
    return found.tolist()


def read(**args):
    return lists(run("ReadNextBatch", ["cursor", *BLOBS], OUT, **args))


def test_read_next_batch():
    create()
    assert offsets() == []
    assert read(batch_size=2) == [[2, 0], [11, 12], [1, 2], [7, 8, 9], [[1, 2], [3, 4]]]
    assert offsets() == [2, 2, 3]
    assert read(batch_size=2) == [[1], [13], [0], [], [[5, 6]]]
    assert offsets() == [3, 3, 3]
    assert read(batch_size=2) == [[], [], [], [], []]
    assert workspace.FetchBlob("out4").shape == (0, 2)
    run("ResetCursor", ["cursor"])
    assert offsets() == []
    assert read()[4] == [[1, 2]]


def test_whole_batches_alone():
    create()
    assert read(batch_size=2, enforce_batch_size=1)[0] == [2, 0]
    assert read(batch_size=2, enforce_batch_size=1)[0] == []
    assert offsets() == [3, 3, 3]


def test_fields_of_strings():
    texts = np.array([b"a", b"a longer text, on the heap", b""], object)
    workspace.FeedBlob("s", texts)
    run("CreateTreeCursor", [], ["cursor"], fields=["s"])
    (found,) = run("ReadNextBatch", ["cursor", "s"], ["out0"], batch_size=2)
    assert found.tolist() == texts[:2].tolist()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, [[1, 2], [0], []]),
        ({"loop_over": 1}, [[1, 2], [0], [1, 2]]),
        ({"enforce_batch_size": 1}, [[1, 2], [], []]),
        ({"loop_over": 1, "enforce_batch_size": 1}, [[1, 2], [1, 2], [1, 2]]),
    ],
)
def test_read_random_batch(args, expected):
    create()
    workspace.FeedBlob("idx", I8([2, 0, 1]))
    (table,) = run("ComputeOffset", ["cursor", *BLOBS], ["table"])
    assert table.dtype == I8
    assert table.tolist() == [[0, 0, 0], [1, 2, 3], [2, 2, 3], [3, 3, 3]]
    found = [
        lists(run("ReadRandomBatch", ["cursor", "idx", "table", *BLOBS], OUT, batch_size=2, **args))
        for _ in range(3)
    ]
    assert [batch[0] for batch in found] == expected
    assert found[0] == [[1, 2], [13, 11, 12], [0, 1, 2], [7, 8, 9], [[5, 6], [1, 2]]]


@pytest.mark.parametrize(
    ("n", "field", "batch", "chunk", "expected"),
    [
        (3, 0, 1, 2, [0, 1, 2]),
        (3, -1, 1, 2, [2, 1, 0]),
        (10, 0, 2, 2, [4, 5, 7, 6, 1, 0, 3, 2, 8, 9]),
        (10, 0, 3, 1, [1, 3, 2, 7, 9, 8, 4, 6, 5, 0]),
        (10, -1, 4, 10, [5, 0, 4, 3, 2, 7, 1, 6, 8, 9]),
    ],
)
def test_sort_and_shuffle(n, field, batch, chunk, expected):
    """Orders of the original with GNU's C++ library."""
    workspace.FeedBlob("k", np.arange(n, dtype=I4)[::-1].copy())
    run("CreateTreeCursor", [], ["cursor"], fields=["k"])
    args = {"sort_by_field_idx": field, "batch_size": batch, "shuffle_size": chunk}
    (found,) = run("SortAndShuffle", ["cursor", "k"], ["order"], **args)
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("al", I4([2, 0, 2]), "counts 4 elements, but there are 3"),
        ("al", I4([2, 0, 0]), "its lengths sum to 2"),
        ("al", I4([4, -1, 0]), "holds -1 at position 1"),
        ("al", I8([2, 0, 1]), "field 'a:lengths' is int32"),
        ("b", F4([[1, 2]]), "has 3 rows; another of the same list has 1"),
        ("b", F4(1), "is a scalar"),
    ],
)
def test_inconsistent_records(name, value, problem):
    run("CheckDatasetConsistency", BLOBS, fields=FIELDS)
    workspace.FeedBlob(name, value)
    with pytest.raises(RuntimeError, match=problem):
        run("CheckDatasetConsistency", BLOBS, fields=FIELDS)


@pytest.mark.parametrize(
    ("table", "numbers", "problem"),
    [
        ([[0, 0, 0], [1, 2, 3]], [1], "holds 1; there are 1 records"),
        ([[0, 0, 0], [1, 2, 3]], [-1], "holds -1"),
        ([[0, 0, 0], [4, 2, 3]], [0], "has rows 0 to 4; there are 3"),
        ([[1, 0, 0], [0, 2, 3]], [0], "has rows 1 to 0"),
        ([[0, 0], [1, 2]], [0], "rows of 3 are needed"),
    ],
)
def test_wrong_offsets(table, numbers, problem):
    create()
    workspace.FeedBlob("table", I8(table))
    workspace.FeedBlob("idx", I8(numbers))
    with pytest.raises(RuntimeError, match=problem):
        run("ReadRandomBatch", ["cursor", "idx", "table", *BLOBS], OUT)


def test_trim_dataset():
    found = run("TrimDataset", BLOBS, BLOBS, fields=FIELDS, multiple_of=2)
    assert lists(found) == [[2, 0], [11, 12], [1, 2], [7, 8, 9], [[1, 2], [3, 4]]]
    found = run("TrimDataset", BLOBS, BLOBS, fields=FIELDS, multiple_of=5)
    assert lists(found) == [[], [], [], [], []]


def test_packed_records_go_through_a_queue():
    net = core.Net("pack")
    packed = net.PackRecords(BLOBS, "packed", fields=FIELDS)
    net.CreateBlobsQueue([], "queue", num_blobs=1)
    net.EnqueueBlobs(["queue", packed], [packed])
    net.DequeueBlobs("queue", "taken")
    net.UnPackRecords("taken", OUT, fields=FIELDS)
    workspace.RunNetOnce(net)
    for name, source in zip(OUT, BLOBS, strict=True):
        np.testing.assert_array_equal(workspace.FetchBlob(name), DATA[source])


def test_atomic_append():
    workspace.FeedBlob("A1", np.zeros((0, 2), F4))
    workspace.FeedBlob("A2", np.zeros(0, I4))
    workspace.FeedBlob("B1", F4([[1, 2]]))
    workspace.FeedBlob("B2", I4([4, 5]))
    run("CreateMutex", [], ["mutex"])
    inputs = ["mutex", "A1", "A2", "B1", "B2"]
    for count in range(1, 20):
        first, second = run("AtomicAppend", inputs, ["A1", "A2"])
        assert first.tolist() == [[1, 2]] * count
        assert second.tolist() == [4, 5] * count
    kept = workspace.FetchBlob("A1")
    workspace.FeedBlob("B2", F4([1]))
    with pytest.raises(RuntimeError, match=r"has type int32 but .* has float"):
        run("AtomicAppend", inputs, ["A1", "A2"])
    np.testing.assert_array_equal(workspace.FetchBlob("A1"), kept)


def test_append_leaves_copies_alone():
    workspace.FeedBlob("A", F4([1]))
    workspace.FeedBlob("B", F4([2]))
    net = core.Net("append")
    net.Append(["A", "B"], ["A"])
    net.Copy("A", "then")
    net.Append(["A", "B"], ["A"])
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob("then").tolist() == [1, 2]
    assert workspace.FetchBlob("A").tolist() == [1, 2, 2]


def test_collected_tensors():
    net = core.Net("collect")
    net.Add(["value", "one"], ["value"])
    net.CollectTensor(["first", "second", "value", "value"], ["first", "second"], num_to_collect=50)
    workspace.FeedBlob("value", F4([[0]]))
    workspace.FeedBlob("one", F4([[1]]))
    for name in ("first", "second"):
        workspace.RunOperatorOnce(core.CreateOperator("CreateTensorVector", [], name))
        with pytest.raises(RuntimeError, match="holds no tensor yet"):
            run("ConcatTensorVector", [name], ["joined"])
    workspace.CreateNet(net)
    workspace.RunNet(net, num_iter=2000)
    assert run("TensorVectorSize", ["first"], ["size"])[0] == 50
    (first,) = run("ConcatTensorVector", ["first"], ["joined"])
    (second,) = run("ConcatTensorVector", ["second"], ["joined"])
    np.testing.assert_array_equal(first, second)
    assert first.shape == (50, 1)
    assert len(set(first[:, 0].tolist())) == 50
    assert 700 < first.mean() < 1300  # five standard deviations around 1000


@pytest.mark.parametrize(
    ("sizes", "expected", "cursors"),
    [
        ([3, 3], [[0, 1, 2], [4, 5, 2, 3]], [3, 2]),
        ([6], [[2, 3, 4, 5]], [0]),
        ([2, 7], [[0, 1], [5, 6, 7, 8]], [2, 0]),
        ([0, 2], [[], [0, 1]], [0, 2]),
    ],
)
@pytest.mark.parametrize("counted", [False, True])
def test_last_n_window(sizes, expected, cursors, counted):
    workspace.CreateBlob("ring")
    workspace.FeedBlob("next", np.array(0, I4))
    run("CreateMutex", [], ["mutex"])
    workspace.FeedBlob("visited", I8([0]))
    inputs = ["ring", "next", "data", *(["mutex", "visited"] if counted else [])]
    outputs = ["ring", "next", *(["visited"] if counted else [])]
    seen = 0
    for size, ring, cursor in zip(sizes, expected, cursors, strict=True):
        workspace.FeedBlob("data", np.arange(seen, seen + size, dtype=F4).reshape(-1, 1))
        found = run("LastNWindowCollector", inputs, outputs, num_to_collect=4)
        seen += size
        assert found[0][:, 0].tolist() == ring
        assert found[1] == cursor
        if counted:
            assert found[2] == seen


def test_the_shape_of_the_window_follows_from_the_rows_alone():
    """Neither an empty ring nor a mutex has a shape."""
    workspace.CreateBlob("ring")
    net = core.Net("net")
    net.CreateMutex([], "mutex")
    net.LastNWindowCollector(
        ["ring", "next", "data", "mutex", "visited"], ["ring", "next", "visited"], num_to_collect=7
    )
    shapes, types = workspace.InferShapesAndTypes([net], {"data": [3, 2, 4]})
    assert shapes["ring"] == [7, 2, 4] and types["ring"] == 1
    assert "mutex" not in shapes


def test_last_n_window_refuses_a_cursor_behind_the_ring():
    workspace.FeedBlob("ring", np.ones((4, 1), F4))
    workspace.FeedBlob("data", np.ones((2, 1), F4))
    args = {"num_to_collect": 4}
    for cursor in (4, -1):
        workspace.FeedBlob("next", np.array(cursor, I4))
        with pytest.raises(RuntimeError, match=f"'next' is {cursor}"):
            run("LastNWindowCollector", ["ring", "next", "data"], ["ring", "next"], **args)


def export(*registry, **args):
    keys, values, times = run("StatRegistryExport", list(registry), ["k", "v", "t"], **args)
    assert values.dtype == times.dtype == I8
    return {key.decode(): value for key, value in zip(keys, values.tolist(), strict=True)}


def test_atomic_iterations_are_counted_in_the_statistics():
    workspace.RunOperatorOnce(core.CreateOperator("CreateMutex", [], ["mutex"]))
    workspace.FeedBlob("counted", I8([5]))
    for _ in range(3):
        run("AtomicIter", ["mutex", "counted"], ["counted"])
    assert export(reset=1)["atomic_iter/stats/counted/num_iter"] == 3


def test_registry_of_statistics():
    workspace.RunOperatorOnce(core.CreateOperator("StatRegistryCreate", [], "registry"))
    workspace.FeedBlob("keys", np.array([b"a", b"b"], object))
    workspace.FeedBlob("values", I8([1, 2]))
    for _ in range(2):
        run("StatRegistryUpdate", ["keys", "values", "registry"])
    assert export("registry", reset=0) == {"a": 2, "b": 4}
    assert export("registry") == {"a": 2, "b": 4}
    assert export("registry") == {"a": 0, "b": 0}
    workspace.FeedBlob("values", I8([1]))
    with pytest.raises(RuntimeError, match="must hold equally many"):
        run("StatRegistryUpdate", ["keys", "values", "registry"])


def test_numbers_put_into_statistics():
    for value in (1.5, -2.5, 7.0):
        workspace.FeedBlob("x", F4([value]))
        for type in ("IncrementPut", "AveragePut", "StdDevPut"):
            run(type, ["x"], stat_name=f"put_{type}", magnitude_expand=10)
    found = export()
    assert found["put_IncrementPut/stat_value"] == 60
    assert found["put_AveragePut/stat_value/sum"] == 60
    assert found["put_AveragePut/stat_value/count"] == 3
    assert found["put_StdDevPut/stat_value/sum"] == 60
    assert found["put_StdDevPut/stat_value/sumoffset"] == 0  # each run was a first one


def test_deviations_count_from_the_first_number():
    net = core.Net("deviation")
    net.StdDevPut("x", [], stat_name="deviation")
    workspace.FeedBlob("x", F4([10]))
    workspace.CreateNet(net)
    for value in (10, 13, 8):
        workspace.FeedBlob("x", F4([value]))
        workspace.RunNet(net)
    found = export()
    assert found["deviation/stat_value/sumoffset"] == 3 - 2
    assert found["deviation/stat_value/sumsqoffset"] == 9 + 4


def test_numbers_that_cannot_be_put():
    for value, problem in (
        (F4([np.nan]), "not a number"),
        (F4([1e30]), "does not fit in 64 bits"),
        (F4([]), "'default_value' is not given"),
    ):
        workspace.FeedBlob("x", value)
        with pytest.raises(RuntimeError, match=problem):
            run("AveragePut", ["x"], stat_name="refused")
    run("AveragePut", ["x"], stat_name="empty", default_value=2.0)
    workspace.FeedBlob("x", F4([1e30]))
    run("AveragePut", ["x"], stat_name="bound", bound=1)
    found = export()
    assert found["empty/stat_value/sum"] == 2
    assert found["bound/stat_value/sum"] == 2**63 - 1
    assert "refused/stat_value/sum" not in found


def test_timers():
    (before,) = run("WallClockTime", [], ["time"])
    workspace.RunOperatorOnce(core.CreateOperator("TimerBegin", [], "t", counter_name="timed"))
    (first,) = run("TimerGet", ["t"], ["nanos"])
    (second,) = run("TimerGetAndEnd", ["t"], ["nanos"])
    (after,) = run("WallClockTime", [], ["time"])
    assert first.shape == before.shape == ()
    assert second.shape == (1,)
    assert 0 <= first <= second[0]
    assert before <= after
    for type, outputs in (("TimerGet", ["nanos"]), ("TimerEnd", [])):
        with pytest.raises(RuntimeError, match="has been stopped"):
            run(type, ["t"], outputs)
    workspace.RunOperatorOnce(core.CreateOperator("TimerBegin", [], "named_by_blob"))
    run("TimerEnd", ["named_by_blob"])
    found = export()
    assert found["timed/time_ns/count"] == 1
    assert found["timed/time_ns/sum"] == second[0]
    assert found["named_by_blob/time_ns/count"] == 1


def test_nothing_else_is_a_cursor():
    workspace.FeedBlob("cursor", F4([1]))
    for type, inputs, outputs in (
        ("ReadNextBatch", ["cursor", "b"], ["out0"]),
        ("ResetCursor", ["cursor"], []),
        ("TimerEnd", ["cursor"], []),
        ("CollectTensor", ["cursor", "b"], ["cursor"]),
    ):
        args = {"num_to_collect": 1} if type == "CollectTensor" else {}
        with pytest.raises(RuntimeError, match="which this operator does not take"):
            run(type, inputs, outputs, **args)
    with pytest.raises(RuntimeError, match="there are 1 inputs for 5 fields"):
        run("PackRecords", ["b"], ["packed"], fields=FIELDS)


def test_cursors_are_saved_as_by_the_original():
    op = core.CreateOperator("CreateTreeCursor", [], "new", fields=["a:lengths", "a:b", "c"])
    workspace.RunOperatorOnce(op)
    proto = caffe2_pb2.BlobProto.FromString(workspace.SerializeBlob("new"))
    assert (proto.type, proto.content) == ("std::unique_ptr<TreeCursor>", b"a:lengths a:b c ")
    assert not proto.HasField("tensor")
    proto.tensor.dims.append(2)
    proto.tensor.data_type = 10
    proto.tensor.int64_data.extend([2, 3])
    proto.name = "loaded"
    workspace.DeserializeBlob("loaded", proto.SerializeToString())
    assert run("GetCursorOffset", ["loaded"], ["at"])[0].tolist() == [2, 3]
    assert workspace.SerializeBlob("loaded") == proto.SerializeToString()
    for bad in (-1, 2**63 - 1):
        proto.tensor.int64_data[0] = bad
        with pytest.raises(RuntimeError, match=f"stands at row {bad}"):
            workspace.DeserializeBlob("loaded", proto.SerializeToString())


@pytest.mark.parametrize("type", ["ReadNextBatch", "ReadRandomBatch"])
def test_batches_that_no_cursor_could_count(type):
    """Places of a cursor are sums of batch sizes, which must not wrap around."""
    create()
    inputs = ["cursor", "idx", "table"] if type == "ReadRandomBatch" else ["cursor"]
    workspace.FeedBlob("idx", I8([0]))
    workspace.FeedBlob("table", I8([[0, 0, 0], [1, 2, 3]]))
    with pytest.raises(RuntimeError, match="batch_size"):
        run(type, [*inputs, *BLOBS], OUT, batch_size=2**31)
