"""Counters, atomic flags and additions under a mutex."""

import threading

import numpy as np
import pytest

from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace

I4, I8, BOOL = np.int32, np.int64, np.bool_
SMALLEST, LARGEST = -(2**63), 2**63 - 1


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def run(type, inputs, outputs, **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, outputs, **args))


def call(type, *inputs, **args):
    """The output of an operator."""
    run(type, list(inputs), ["output"], **args)
    return workspace.FetchBlob("output")


def refused(text, *call, **args):
    with pytest.raises(RuntimeError, match=text) as caught:
        run(*call, **args)
    assert caught.value.operator == call[0]


def check(found, value, dtype, shape=()):
    assert (found.dtype, found.shape, found.tolist()) == (dtype, shape, value)


# Counters


def create(**args):
    run("CreateCounter", [], ["c"], **args)


def count():
    return int(call("RetrieveCount", "c"))


def test_counting_up():
    create()
    for k in range(3):
        check(call("CountUp", "c"), k, I8)
    check(call("RetrieveCount", "c"), 3, I8)
    create(init_count=2**40)
    check(call("CountUp", "c"), 2**40, I8)


def test_counting_down_to_the_end_and_further():
    create(init_count=2)
    for before, done in ((2, False), (1, False), (0, True), (-1, True)):
        check(call("CheckCounterDone", "c"), done, BOOL)
        check(call("CountDown", "c"), done, BOOL)
        assert count() == before - 1


def test_resetting():
    create(init_count=5)
    run("ResetCounter", ["c"], [], init_count=7)
    assert count() == 7
    check(call("ResetCounter", "c"), 7, I8)
    assert count() == 0
    refused("init_count", "ResetCounter", ["c"], ["x"], init_count=-3)
    refused("init_count", "CreateCounter", [], ["c"], init_count=-1)
    assert count() == 0


def test_counts_have_ends():
    create(init_count=LARGEST)
    text = rf"input 0 \(counter\) 'c' stands at {LARGEST} and cannot count on"
    refused(text, "CountUp", ["c"], ["x"])
    assert count() == LARGEST
    message = caffe2_pb2.BlobProto.FromString(workspace.SerializeBlob("c"))
    message.tensor.int64_data[:] = [SMALLEST]
    workspace.DeserializeBlob("c", message.SerializeToString())
    refused("cannot count on", "CountDown", ["c"], ["x"])
    assert count() == SMALLEST


@pytest.mark.parametrize(
    "type", ["CountUp", "CountDown", "CheckCounterDone", "RetrieveCount", "ResetCounter"]
)
def test_only_counters_count(type):
    workspace.FeedBlob("c", I8([1]))
    refused(r"input 0 \(counter\) 'c' holds a tensor", type, ["c"], ["x"])


def test_counters_and_mutexes_are_saved():
    create(init_count=12)
    saved = workspace.SerializeBlob("c")
    # As the original writes it, but for the name of the tensor.
    message = caffe2_pb2.BlobProto.FromString(
        b"\n\x01c\x12!std::unique_ptr<Counter<int64_t>>\x1a\n\x08\x01\x10\n:\x01cR\x01\x0c"
    )
    message.tensor.ClearField("name")
    assert caffe2_pb2.BlobProto.FromString(saved) == message
    create(init_count=99)
    workspace.DeserializeBlob("c", saved)
    check(call("CountUp", "c"), 12, I8)
    message.tensor.dims[:] = [0]
    message.tensor.int64_data[:] = []
    with pytest.raises(RuntimeError, match="a saved counter holds 0 values"):
        workspace.DeserializeBlob("c", message.SerializeToString())
    assert count() == 13
    run("CreateMutex", [], ["m"])
    saved = workspace.SerializeBlob("m")
    assert saved == b'\n\x01m\x12\x1bstd::unique_ptr<std::mutex>"\x00'
    workspace.DeserializeBlob("other", saved)
    workspace.FeedBlob("one", np.array(1, I4))
    run("AtomicFetchAdd", ["other", "one", "one"], ["sum", "fetched"])
    check(workspace.FetchBlob("sum"), 2, I4)


# Additions under a mutex


@pytest.fixture(params=[("AtomicFetchAdd", I4, I8), ("AtomicFetchAdd64", I8, I4)])
def add(request):
    """The operator, its type and another one, and how to run it."""
    type, dtype, other = request.param
    run("CreateMutex", [], ["m"])

    class Add:
        name, right, wrong = type, dtype, other

        def __call__(self, value, increment, target="v"):
            workspace.FeedBlob("v", np.asarray(value))
            workspace.FeedBlob("i", np.asarray(increment))
            run(type, ["m", "v", "i"], [target, "f"])
            return workspace.FetchBlob(target), workspace.FetchBlob("f")

    return Add()


def test_adding_gives_the_number_before(add):
    for shape in ((), (1,), (1, 1)):
        total, before = add(np.full(shape, 5, add.right), add.right([3]))
        check(total, 8, add.right)
        check(before, 5, add.right)
    total, before = add(add.right([8]), np.array(-9, add.right), target="w")
    check(total, -1, add.right)
    check(before, 8, add.right)
    check(workspace.FetchBlob("v"), [8], add.right, (1,))


def test_sums_wrap_around(add):
    limits = np.iinfo(add.right)
    assert add(add.right([limits.max]), add.right([1]))[0] == limits.min
    assert add(add.right([limits.min]), add.right([-1]))[0] == limits.max


def test_what_cannot_be_added(add):
    one = add.right([1])
    for value, increment, text in (
        (add.right([1, 2]), one, r"input 1 \(mut_value\) 'v' has shape \(2,\); one element"),
        (add.right([]), one, "one element"),
        (one, add.right([1, 2]), r"input 2 \(increment\) 'i' has shape \(2,\); one element"),
        (add.wrong([1]), one, "input 1 .*'v' has type"),
        (one, add.wrong([1]), "input 2 .*'i' has type"),
    ):
        with pytest.raises(RuntimeError, match=text):
            add(value, increment)
        assert workspace.FetchBlob("v").tolist() == value.tolist()
    refused(r"input 0 \(mutex_ptr\) 'v' holds a tensor", add.name, ["v", "v", "v"], ["x", "f"])


def test_outputs_that_overwrite_other_inputs(add):
    add(add.right([1]), add.right([1]))
    for outputs in (["v", "i"], ["i", "f"], ["v", "v"]):
        refused("same blob|both input", add.name, ["m", "v", "i"], outputs)


# Flags


def test_a_flag_is_set_once_and_stays_so():
    run("CreateAtomicBool", [], ["flag"])
    value = call("CheckAtomicBool", "flag")
    check(value, [False], BOOL, (1,))
    for condition, expected in (([False], False), (True, True), ([[False]], True)):
        workspace.FeedBlob("condition", np.array(condition))
        run("ConditionalSetAtomicBool", ["flag", "condition"], [])
        check(call("CheckAtomicBool", "flag"), [expected], BOOL, (1,))
    run("CreateAtomicBool", [], ["flag"])
    check(call("CheckAtomicBool", "flag"), [False], BOOL, (1,))


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (np.array([True, False]), r"\(condition\) 'x' has shape \(2,\); one element is needed"),
        (np.array([], BOOL), r"has shape \(0,\); one element is needed"),
        (I4([1]), r"\(condition\) 'x' has type int"),
    ],
)
def test_a_condition_is_one_bool(condition, text):
    run("CreateAtomicBool", [], ["flag"])
    workspace.FeedBlob("x", condition)
    refused(text, "ConditionalSetAtomicBool", ["flag", "x"], [])
    check(call("CheckAtomicBool", "flag"), [False], BOOL, (1,))


def test_only_flags_are_set():
    workspace.FeedBlob("x", np.array([True]))
    refused("'x' holds a tensor", "ConditionalSetAtomicBool", ["x", "x"], [])
    refused("'x' holds a tensor", "CheckAtomicBool", ["x"], ["y"])


# Many threads


def test_threads_count_together():
    create()
    run("CreateMutex", [], ["m"])
    workspace.FeedBlob("sum", I8([0]))
    workspace.FeedBlob("two", I8([2]))
    threads = []
    for name in range(4):
        net = core.Net("count")
        net.CountUp("c", f"n{name}")
        net.AtomicFetchAdd64(["m", "sum", "two"], ["sum", f"f{name}"])
        workspace.CreateNet(net)
        threads.append(threading.Thread(target=workspace.RunNet, args=(net, 100)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count() == 400
    assert workspace.FetchBlob("sum") == 800
