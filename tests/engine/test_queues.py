"""Queues of blobs: CreateBlobsQueue, EnqueueBlobs, DequeueBlobs and their relatives."""

import signal
import threading

import numpy as np
import pytest

from caffe2 import _native, ops
from caffe2.ops.arguments import OperatorError
from caffe2.python import core, workspace
from caffe2.runtime.engine import new_workspace

F4, I4, I8 = np.float32, np.int32, np.int64


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def run(type, inputs, outputs, **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, outputs, **args))


def refused(text, *call, **args):
    with pytest.raises(RuntimeError, match=text) as caught:
        run(*call, **args)
    assert caught.value.operator == call[0]


def create(name="q", **args):
    run("CreateBlobsQueue", [], [name], **args)


def put(*values, queue="q"):
    names = [f"in{place}" for place in range(len(values))]
    for name, value in zip(names, values, strict=True):
        workspace.FeedBlob(name, value)
    run("EnqueueBlobs", [queue, *names], names)


def take(count=1, queue="q"):
    names = [f"out{place}" for place in range(count)]
    run("DequeueBlobs", [queue], names)
    return workspace.FetchBlobs(names)


def status(name="status"):
    """A status, which is one bool of shape ()."""
    value = workspace.FetchBlob(name)
    assert value.dtype == np.bool_ and value.shape == ()
    return bool(value)


def is_empty(name):
    with pytest.raises(RuntimeError, match="holds nothing"):
        workspace.FetchBlob(name)
    return True


def start(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


def finish(*threads):
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


# One thread


def test_first_in_first_out():
    create(capacity=3, num_blobs=2)
    for k in range(3):
        put(F4([k, k]), I8([[k]]))
    for k in range(3):
        first, second = take(2)
        assert first.dtype == F4 and first.tolist() == [k, k]
        assert second.dtype == I8 and second.tolist() == [[k]]


def test_values_move_and_are_nobody_elses():
    create()
    workspace.FeedBlob("x", F4([1, 2]))
    run("EnqueueBlobs", ["q", "x"], ["x"])
    assert is_empty("x")
    refused("'x' is empty", "EnqueueBlobs", ["q", "x"], ["x"])
    workspace.FeedBlob("x", F4([9, 9]))
    run("DequeueBlobs", ["q"], ["y"])
    workspace.FeedBlob("x", F4([7, 7]))
    assert workspace.FetchBlob("y").tolist() == [1, 2]


def test_anything_can_be_a_record():
    create(num_blobs=4)
    put("text", np.array(["a", "bc"]), F4(1), np.zeros((0, 3), I4))
    text, strings, scalar, none = take(4)
    assert text == b"text" and strings.tolist() == [b"a", b"bc"]
    assert scalar.shape == () and scalar == 1 and none.shape == (0, 3)


def test_a_closed_queue_gives_what_it_has():
    create(capacity=2)
    put(F4([1]))
    put(F4([2]))
    run("CloseBlobsQueue", ["q"], [])
    run("CloseBlobsQueue", ["q"], [])
    workspace.FeedBlob("x", F4([3]))
    refused(r"\(queue\) 'q' is closed", "EnqueueBlobs", ["q", "x"], ["x"])
    assert workspace.FetchBlob("x").tolist() == [3]
    run("SafeEnqueueBlobs", ["q", "x"], ["x", "status"])
    assert status() is True and workspace.FetchBlob("x").tolist() == [3]
    assert take()[0].tolist() == [1]
    refused(r"\(queue\) 'q' is closed", "EnqueueBlobs", ["q", "x"], ["x"])  # there is room now
    run("SafeDequeueBlobs", ["q"], ["y", "status"])
    assert status() is False and workspace.FetchBlob("y").tolist() == [2]
    run("SafeDequeueBlobs", ["q"], ["y", "status"])
    assert status() is True and workspace.FetchBlob("y").tolist() == [2]
    refused(r"\(queue\) 'q' is closed and empty", "DequeueBlobs", ["q"], ["y"])
    assert workspace.FetchBlob("y").tolist() == [2]


def test_the_safe_forms_say_that_all_is_well():
    create()
    workspace.FeedBlob("x", F4([3]))
    run("SafeEnqueueBlobs", ["q", "x"], ["x", "status"])
    assert status() is False and is_empty("x")
    run("SafeDequeueBlobs", ["q"], ["x", "status"])
    assert status() is False and workspace.FetchBlob("x").tolist() == [3]


def test_a_timeout_is_an_error():
    create()
    workspace.FeedBlob("y", F4([5]))
    text = r"no record came from input 0 \(queue\) 'q' within 0.01 seconds"
    refused(text, "DequeueBlobs", ["q"], ["y"], timeout_secs=0.01)
    assert workspace.FetchBlob("y").tolist() == [5]
    put(F4([1]))
    run("DequeueBlobs", ["q"], ["y"], timeout_secs=1e30)
    assert workspace.FetchBlob("y").tolist() == [1]


def test_making_a_queue_again():
    create(enforce_unique_name=1)
    put(F4([1]))
    refused("'q' holds a queue already", "CreateBlobsQueue", [], ["q"], enforce_unique_name=1)
    assert take()[0].tolist() == [1]
    put(F4([1]))
    create()  # another one, empty
    refused("no record came", "DequeueBlobs", ["q"], ["y"], timeout_secs=0.01)
    workspace.FeedBlob("x", F4([1]))
    create("x", enforce_unique_name=1)  # what is there is no queue
    create("r", num_blobs=2, field_names=["data", "label"])


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"capacity": 0}, "argument 'capacity'"),
        ({"capacity": 2**31}, "argument 'capacity'"),
        ({"num_blobs": 0}, "argument 'num_blobs'"),
        ({"num_blobs": 2, "field_names": ["a"]}, r"1 field_names for num_blobs = 2"),
        ({"field_names": ["a", "b"]}, r"2 field_names for num_blobs = 1"),
    ],
)
def test_queues_that_cannot_be(args, text):
    refused(text, "CreateBlobsQueue", [], ["q"], **args)
    assert not workspace.HasBlob("q") or is_empty("q")


def test_what_does_not_fit_is_refused():
    create(num_blobs=2)
    for name in "xyz":
        workspace.FeedBlob(name, F4([1]))
    three = ["q", "x", "y", "z"]
    refused(r"'q' has records of 2 blob\(s\), but the operator names 1", "EnqueueBlobs",
            ["q", "x"], ["x"])  # fmt: skip
    refused("names 3", "EnqueueBlobs", three, three[1:])
    refused("names 3", "SafeEnqueueBlobs", three, [*three[1:], "status"])
    refused("names 1", "DequeueBlobs", ["q"], ["x"])
    refused("names 1", "SafeDequeueBlobs", ["q"], ["x", "status"])
    refused("names 3", "WeightedSampleDequeueBlobs", ["q"], [*three[1:], "status"])
    for name in "xyz":
        assert workspace.FetchBlob(name).tolist() == [1]
    for type, inputs, outputs in (
        ("EnqueueBlobs", ["x", "y"], ["y"]),
        ("SafeEnqueueBlobs", ["x", "y"], ["y", "status"]),
        ("DequeueBlobs", ["x"], ["y"]),
        ("SafeDequeueBlobs", ["x"], ["y", "status"]),
        ("WeightedSampleDequeueBlobs", ["x"], ["y", "status"]),
        ("CloseBlobsQueue", ["x"], []),
    ):
        refused(r"input 0 \(queue\) 'x' holds a tensor", type, inputs, outputs)


@pytest.mark.parametrize(
    ("type", "inputs", "outputs", "text"),
    [
        ("EnqueueBlobs", ["q", "x", "y"], ["y", "x"], "output 0 must be the blob of input 1"),
        ("EnqueueBlobs", ["q", "x", "y"], ["x", "z"], "output 1 must be the blob of input 2"),
        ("EnqueueBlobs", ["q", "x", "y"], ["x"], r"1 output\(s\) for 2 blob\(s\)"),
        ("EnqueueBlobs", ["q", "x"], ["x", "y"], r"2 output\(s\) for 1 blob\(s\)"),
        ("EnqueueBlobs", ["q", "x", "x"], ["x", "x"], "both input 2 and output 0"),
        ("EnqueueBlobs", ["q", "q"], ["q"], "both input 0 and output 0"),
        ("EnqueueBlobs", ["q"], [], "1 input"),
        ("SafeEnqueueBlobs", ["q", "x"], ["x"], r"1 output\(s\) for 1 blob\(s\) and the status"),
        ("SafeEnqueueBlobs", ["q", "x"], ["y", "status"], "output 0 must be the blob of input 1"),
        ("DequeueBlobs", ["q"], ["q"], "both input 0 and output 0"),
        ("DequeueBlobs", ["q", "q"], ["x"], "2 input"),
        ("SafeDequeueBlobs", ["q"], ["x"], "1 output"),
    ],
)
def test_operators_that_cannot_be(type, inputs, outputs, text):
    create(capacity=5)
    for name in "xyz":
        workspace.FeedBlob(name, F4([1]))
    refused(text, type, inputs, outputs)
    assert workspace.FetchBlob("x").tolist() == [1]


# Several records at once


def several(count, fields=2):
    run(
        "SafeDequeueBlobs",
        ["q"],
        [*(f"out{place}" for place in range(fields)), "status"],
        num_records=count,
    )
    return [workspace.FetchBlob(f"out{place}").tolist() for place in range(fields)]


def test_records_are_concatenated():
    create(capacity=10, num_blobs=2)
    for k in range(3):
        put(F4([[k, k], [k + 0.5, k]]), I8([k]))
    put(np.zeros((0, 2), F4), I8([]))
    put(F4([[9, 8]]), I8([3]))
    assert several(3) == [[[0, 0], [0.5, 0], [1, 1], [1.5, 1], [2, 2], [2.5, 2]], [0, 1, 2]]
    assert status() is False
    run("CloseBlobsQueue", ["q"], [])
    assert several(3) == [[[9, 8]], [3]]  # as many as there are
    assert status() is False
    assert several(3) == [[[9, 8]], [3]]
    assert status() is True


def test_strings_are_concatenated():
    create(capacity=2)
    put(np.array(["a", "b"]))
    put(np.array(["c" * 100]))
    assert several(2, 1) == [[b"a", b"b", b"c" * 100]]


def test_more_records_than_the_queue_holds():
    create(capacity=1)
    producer = start(lambda: [put(F4([k])) for k in range(5)])
    assert several(5, 1) == [[0, 1, 2, 3, 4]]
    finish(producer)


@pytest.mark.parametrize(
    ("second", "text"),
    [
        (F4([[1, 2]]), r"blob 1 \(label\) has type float and shape \(1, 2\) in one record and "
         r"float, \(2,\) in another"),
        (np.float64([1, 2]), "has type double"),
        (F4(1), r"blob 1 \(label\) holds a tensor of shape \(\); records are concatenated"),
        ("text", "holds std::string"),
    ],
)  # fmt: skip
def test_records_that_cannot_be_concatenated_stay(second, text):
    create(capacity=3, num_blobs=2, field_names=["data", "label"])
    put(I8([1]), F4([1, 2]))
    put(I8([2]), second)
    put(I8([3]), F4([5, 6]))
    refused(text, "SafeDequeueBlobs", ["q"], ["x", "y", "status"], num_records=3)
    assert [take(2)[0].tolist() for _ in range(3)] == [[1], [2], [3]]


def test_the_number_of_records_is_at_least_one():
    create()
    for count in (0, -1):
        refused("num_records", "SafeDequeueBlobs", ["q"], ["x", "status"], num_records=count)


# One of several queues


def weighted_net(seed=1, **args):
    net = core.Net("weighted")
    option = core.DeviceOption(0, random_seed=seed)
    op = core.CreateOperator(
        "WeightedSampleDequeueBlobs", ["q0", "q1", "q2"], ["x", "table", "status"],
        device_option=option, **args,
    )  # fmt: skip
    net.Proto().op.extend([op])
    workspace.CreateNet(net, overwrite=True)
    return net


def draws(count, **args):
    for queue in range(3):
        create(f"q{queue}", capacity=count, num_blobs=2)
        for k in range(count):
            put(I8([queue, k]), F4([99]), queue=f"q{queue}")
    net = weighted_net(**args)
    tables = []
    for _ in range(count):
        workspace.RunNet(net)
        (table,) = workspace.FetchBlob("table")
        queue, k = workspace.FetchBlob("x")
        assert queue == table and k == tables.count(table) and status() is False
        tables.append(table)
    assert workspace.FetchBlob("table").dtype == I4
    return tables


def test_queues_are_drawn_by_weight():
    tables = draws(400, weights=[1.0, 0.0, 3.0], table_idx_blob=1)
    counts = np.bincount(tables, minlength=3)
    assert counts[1] == 0
    assert abs(counts[2] - 300) < 4 * np.sqrt(
        400 * 0.25 * 0.75
    )  # 4 standard deviations, fixed seed
    again = draws(20, weights=[1.0, 0.0, 3.0], table_idx_blob=1)
    assert again == tables[:20]
    assert draws(20, weights=[1.0, 0.0, 3.0], table_idx_blob=1, seed=2) != again


def test_without_weights_all_are_equal():
    counts = np.bincount(draws(300, table_idx_blob=1), minlength=3)
    assert abs(counts - 100).max() < 4 * np.sqrt(300 * 2 / 9)


def test_without_index_the_record_is_whole():
    create("q0", num_blobs=2)
    put(I8([5]), F4([6]), queue="q0")
    run("WeightedSampleDequeueBlobs", ["q0"], ["x", "y", "status"])
    assert workspace.FetchBlob("x").tolist() == [5] and workspace.FetchBlob("y").tolist() == [6]
    put(I8([5]), F4([6]), queue="q0")
    run("WeightedSampleDequeueBlobs", ["q0"], ["x", "y", "status"], table_idx_blob=0)
    assert workspace.FetchBlob("x").tolist() == [0] and workspace.FetchBlob("y").tolist() == [6]


def test_a_drawn_queue_that_is_closed_and_empty():
    for queue in range(3):
        create(f"q{queue}", num_blobs=2)
    put(I8([7]), F4([8]), queue="q2")
    run("CloseBlobsQueue", ["q2"], [])
    net = weighted_net(weights=[0.0, 0.0, 1.0], table_idx_blob=1)
    workspace.RunNet(net)
    assert status() is False and workspace.FetchBlob("x").tolist() == [7]
    workspace.FeedBlob("table", F4([1, 2, 3]))
    workspace.RunNet(net)
    assert status() is True and workspace.FetchBlob("x").tolist() == [7]
    assert workspace.FetchBlob("table").tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"weights": [1.0, 2.0]}, "2 weights for 3 queue"),
        ({"weights": [1.0, -1.0, 1.0]}, "argument 'weights'"),
        ({"weights": [1.0, float("nan"), 1.0]}, "argument 'weights'"),
        ({"weights": [0.0, 0.0, 0.0]}, "the weights have the sum 0"),
        ({"weights": [1.0, float("inf"), 1.0]}, "the weights have the sum inf"),
        ({"table_idx_blob": 2}, "table_idx_blob = 2 is not below 2"),
    ],
)
def test_draws_that_cannot_be(args, text):
    for queue in range(3):
        create(f"q{queue}", num_blobs=2)
    inputs, outputs = ["q0", "q1", "q2"], ["x", "table", "status"]
    refused(text, "WeightedSampleDequeueBlobs", inputs, outputs, **args)


# Many threads


def test_two_nets_in_two_threads():
    create(capacity=2)
    make = core.Net("make")
    make.CountUp("counter", "n")
    make.EnqueueBlobs(["q", "n"], ["n"])
    use = core.Net("use")
    use.DequeueBlobs("q", ["m"])
    use.Sum(["sum", "m"], "sum")
    run("CreateCounter", [], ["counter"])
    workspace.FeedBlob("sum", np.array(0, I8))
    for net in (make, use):
        workspace.CreateNet(net)
    finish(
        start(lambda: workspace.RunNet(use, num_iter=200)),
        start(lambda: workspace.RunNet(make, num_iter=200)),
    )
    assert workspace.FetchBlob("sum") == sum(range(200))


def test_producers_and_consumers_in_one_parallel_net():
    space = new_workspace(_native.Engine(threads=1))
    net = core.Net("parallel")
    net.Proto().type = "dag"
    net.CreateBlobsQueue([], "q", capacity=1)
    for k in range(8):
        net.DequeueBlobs("q", [f"y{k}"])
        net.ConstantFill([], f"x{k}", shape=[2], value=float(k))
        net.EnqueueBlobs(["q", f"x{k}"], [f"x{k}"])
    space.create_net(net.Proto().SerializeToString())
    for _ in range(3):
        space.run_net(net.Name())
        assert sorted(space.fetch(f"y{k}")[1] for k in range(8)) == list(range(8))


def test_consumers_stop_when_the_queue_is_closed():
    create(capacity=3)
    seen = []

    def consume(name):
        while True:
            run("SafeDequeueBlobs", ["q"], [f"y{name}", f"status{name}"])
            if status(f"status{name}"):
                return
            seen.append(int(workspace.FetchBlob(f"y{name}")[0]))

    consumers = [start(consume, name) for name in range(3)]
    for k in range(50):
        put(I8([k]))
    run("CloseBlobsQueue", ["q"], [])
    finish(*consumers)
    assert sorted(seen) == list(range(50))


def test_an_interrupt_ends_a_wait():
    create()
    main = threading.main_thread().ident
    sender = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        sender.start()
        run("DequeueBlobs", ["q"], ["x"])
    finish(sender)
    put(F4([1]))
    assert take()[0].tolist() == [1]


def test_a_reset_ends_waits_and_gives_all_memory_back():
    engine = _native.Engine(threads=1)
    space = new_workspace(engine)
    before = engine.memory_used

    def op(type, inputs, outputs, **args):
        return core.CreateOperator(type, inputs, outputs, **args).SerializeToString()

    space.run_operator(op("CreateBlobsQueue", [], ["q"], capacity=3))
    for k in range(3):
        space.feed("x", np.full(1000, k, F4))
        space.run_operator(op("EnqueueBlobs", ["q", "x"], ["x"]))
    space.feed("x", np.zeros(1000, F4))
    errors = []

    def wait():
        try:
            space.run_operator(op("EnqueueBlobs", ["q", "x"], ["x"]))
        except RuntimeError as error:
            errors.append(error)

    waiting = start(wait)
    assert engine.memory_used >= before + 16000
    space.reset()
    finish(waiting)
    assert len(errors) == 1
    assert engine.memory_used == before


# Declarations


@pytest.mark.parametrize(
    ("type", "inputs", "outputs", "args", "text"),
    [
        ("CreateBlobsQueue", 0, 1, {"field_names": ["a", "b"]}, "has 2 names; num_blobs is 1"),
        ("WeightedSampleDequeueBlobs", 2, 2, {"weights": [1.0]}, "has 1 numbers for 2 queues"),
        ("WeightedSampleDequeueBlobs", 2, 2, {"weights": [0.0, 0.0]}, "has the sum 0"),
        ("WeightedSampleDequeueBlobs", 2, 2, {"table_idx_blob": 1}, "is 1; the last blob is"),
    ],
)
def test_shape_rules_refuse(type, inputs, outputs, args, text):
    declaration = ops.find(type)
    names = [f"i{place}" for place in range(inputs)]
    op = declaration.view(names, [f"o{place}" for place in range(outputs)], args)
    with pytest.raises(OperatorError, match=text):
        declaration.shape(*[None] * inputs, op=op)


def test_shape_rules():
    def shapes(type, inputs, outputs, **args):
        declaration = ops.find(type)
        op = declaration.view(inputs, outputs, args)
        return declaration.shape(*[None] * len(inputs), op=op)

    bool_scalar = ((), np.dtype(np.bool_))
    assert shapes("EnqueueBlobs", ["q", "x", "y"], ["x", "y"]) == (None, None)
    assert shapes("SafeEnqueueBlobs", ["q", "x"], ["x", "s"]) == (None, bool_scalar)
    assert shapes("DequeueBlobs", ["q"], ["x", "y"]) == (None, None)
    assert shapes("SafeDequeueBlobs", ["q"], ["x", "s"]) == (None, bool_scalar)
    drawn = shapes("WeightedSampleDequeueBlobs", ["q"], ["x", "t", "s"], table_idx_blob=1)
    assert drawn == (None, ((1,), np.dtype(np.int32)), bool_scalar)
    for type, inputs, outputs in (
        ("EnqueueBlobs", ["q", "x", "y"], ["x"]),
        ("SafeEnqueueBlobs", ["q", "x"], ["x"]),
    ):
        with pytest.raises(OperatorError, match="has 1 outputs for"):
            shapes(type, inputs, outputs)


@pytest.mark.parametrize("kind", ["simple", "async_scheduling"])
def test_a_net_that_waits_is_cancelled_from_another_thread(kind):
    create()
    net = core.Net("waits")
    net.Proto().type = kind
    net.SafeDequeueBlobs(["q"], ["x", "status"])
    created = workspace.Workspace.current.create_net(net)
    created.cancel()  # nothing runs yet
    again = threading.Event()

    def cancel():
        while not again.wait(0.01):
            created.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(RuntimeError, match="the run was cancelled"):
        created.run()
    again.set()
    thread.join()
