"""A sample of all rows that came along."""

import numpy as np
import pytest

from caffe2.python import core, workspace

F4, I4, I8 = np.float32, np.int32, np.int64
BLOBS = ["rows", "seen", "data", "mutex", "ids", "places", "owners"]


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()
    run("CreateMutex", [], ["mutex"])
    start()


def run(type, inputs, outputs, **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, outputs, **args))


def start():
    for name in ("rows", "data", "ids"):
        workspace.CreateBlob(name)
    workspace.FeedBlob("rows", np.zeros((0, 1), F4))
    workspace.FeedBlob("seen", I8([0]))
    workspace.FeedBlob("owners", I8([]))
    run("CreateMap", [], ["places"], key_dtype=10, value_dtype=2)


def sample(rows, n, ids=None):
    workspace.FeedBlob("data", F4(rows).reshape(len(rows), 1))
    if ids is None:
        run("ReservoirSampling", BLOBS[:4], BLOBS[:2], num_to_collect=n)
    else:
        workspace.FeedBlob("ids", I8(ids))
        outputs = ["rows", "seen", "places", "owners"]
        run("ReservoirSampling", BLOBS, outputs, num_to_collect=n)
    return workspace.FetchBlob("rows").ravel().tolist(), workspace.FetchBlob("seen").tolist()


def objects():
    run("MapToKeyValue", ["places"], ["keys", "values"])
    keys, values, owners = workspace.FetchBlobs(["keys", "values", "owners"])
    return dict(zip(keys.tolist(), values.tolist(), strict=True)), owners.tolist()


def test_first_rows_are_kept():
    workspace.ResetWorkspace()
    run("CreateMutex", [], ["mutex"])
    workspace.CreateBlob("rows")
    workspace.FeedBlob("seen", I8([0]))
    assert sample([1, 2], 3) == ([1, 2], [2])
    assert sample([], 3) == ([1, 2], [2])
    rows, seen = sample([3, 4], 3)
    assert (len(rows), seen) == (3, [4])
    assert set(rows) < {1, 2, 3, 4}


def test_rows_are_drawn_evenly():
    net = core.Net("sample")
    net.ReservoirSampling(BLOBS[:4], BLOBS[:2], num_to_collect=5)
    workspace.FeedBlob("data", F4(range(20)).reshape(20, 1))
    workspace.CreateNet(net)
    counts = np.zeros(20)
    for _ in range(200):
        workspace.FeedBlob("rows", np.zeros((0, 1), F4))
        workspace.FeedBlob("seen", I8([0]))
        workspace.RunNet(net)
        rows = workspace.FetchBlob("rows").ravel()
        assert len(set(rows)) == 5
        counts += np.bincount(I8(rows), minlength=20)
    # 50 each; chi-square with 19 degrees of freedom, above 43.8 once in 1000 times.
    assert ((counts - 50) ** 2 / 50).sum() < 43.8


def test_each_object_is_kept_once():
    """The first two steps are those of the original."""
    assert sample([1, 2, 3], 3, [7, 8, 7]) == ([1, 2], [2])
    assert objects() == ({7: 0, 8: 1}, [7, 8])
    assert sample([4], 3, [10]) == ([1, 2, 4], [3])
    for i in range(30):
        rows, seen = sample([100 + i, 5], 3, [100 + i, 100 + i])
        places, owners = objects()
        assert places == {owner: place for place, owner in enumerate(owners)}
        assert seen[0] >= 4 + i
        known = {7: 1, 8: 2, 10: 4}
        assert [known.get(owner, owner) for owner in owners] == rows or 5 in rows


@pytest.mark.parametrize(
    ("feed", "text"),
    [
        ({"seen": I8([1])}, "seen' is 1, of which .* has 2 rows"),
        ({"seen": I8([-1])}, "is -1"),
        ({"seen": I8([1, 2])}, "one int64|one element"),
        ({"rows": F4([[1, 2], [3, 4]])}, r"rows' has type float and shape \(2, 2\)"),
        ({"rows": I4([[1], [2]])}, "rows' has type int32"),
        ({"owners": I8([1])}, "owners' does not have the objects of 2 rows"),
        ({"places": I8([1])}, "places' is no map"),
    ],
)
def test_states_that_cannot_be(feed, text):
    sample([1, 2], 3, [1, 2])
    for name, values in feed.items():
        workspace.FeedBlob(name, values)
    with pytest.raises(RuntimeError, match=rf"ReservoirSampling.*({text})"):
        sample([1], 3, [3])


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="ids' has shape"):
        sample([1, 2], 3, [1])
    workspace.FeedBlob("data", F4(1))
    with pytest.raises(RuntimeError, match=r"data' has shape \(\)"):
        run("ReservoirSampling", BLOBS[:4], BLOBS[:2], num_to_collect=3)
