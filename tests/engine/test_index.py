"""Indexes: numbers for keys."""

import numpy as np
import pytest

from caffe2.python import core, workspace

I4, I8 = np.int32, np.int64
KEYS = {
    "IntIndexCreate": I4([10, 20, 10, 0, 30]),
    "LongIndexCreate": I8([10, 20, 10, 0, 2**40]),
    "StringIndexCreate": np.array([b"a", b"b", b"a", b"", b"a long key, on the heap"], object),
}
EVERY = pytest.mark.parametrize(("create", "keys"), KEYS.items())


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def run(type, inputs, outputs, **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, outputs, **args))


def get(keys):
    workspace.FeedBlob("keys", keys)
    run("IndexGet", ["index", "keys"], ["numbers"])
    return workspace.FetchBlob("numbers")


def load(items, **args):
    workspace.FeedBlob("items", items)
    run("IndexLoad", ["index", "items"], ["index"], **args)


def stored():
    run("IndexStore", ["index"], ["stored"])
    return workspace.FetchBlob("stored")


def size():
    run("IndexSize", ["index"], ["size"])
    return workspace.FetchBlob("size")


@EVERY
def test_keys_are_numbered_as_they_come(create, keys):
    run(create, [], ["index"])
    numbers = get(keys.reshape(1, 5))
    assert (numbers.dtype, numbers.tolist()) == (I8, [[1, 2, 1, 3, 4]])
    assert get(keys[::-1]).tolist() == [4, 3, 1, 2, 1]
    assert (stored().dtype, stored().tolist()) == (keys.dtype, keys[[0, 1, 3, 4]].tolist())
    assert (size().dtype, size().shape, size().tolist()) == (I8, (), 5)


@EVERY
def test_a_full_index_takes_no_key(create, keys):
    run(create, [], ["index"], max_elements=4)
    with pytest.raises(RuntimeError, match=r"IndexGet.*max_elements = 4"):
        get(keys)
    assert size() == 1
    assert get(keys[:4]).tolist() == [1, 2, 1, 3]


@EVERY
def test_loading_and_freezing(create, keys):
    run(create, [], ["index"])
    get(keys[4:])
    load(keys[[3, 1, 0]], skip_first_entry=1)
    assert stored().tolist() == keys[:2][::-1].tolist()
    with pytest.raises(RuntimeError, match=r"IndexLoad.*twice"):
        load(keys)
    assert get(keys[[0, 1]]).tolist() == [2, 1]
    run("IndexFreeze", ["index"], ["index"])
    assert get(keys).tolist() == [2, 1, 2, 0, 0]
    assert size() == 3
    with pytest.raises(RuntimeError, match=r"IndexLoad.*frozen"):
        load(keys[:2])


def test_what_is_refused():
    run("IntIndexCreate", [], ["index"])
    with pytest.raises(RuntimeError, match="is int64; the keys of"):
        get(I8([1]))
    with pytest.raises(RuntimeError, match="one dimension"):
        load(I4([[1]]))
    workspace.FeedBlob("index", I4([1]))
    with pytest.raises(RuntimeError, match=r"IndexSize.*tensor"):
        size()
