"""Nets whose blobs change between runs: shapes that alternate, other types, blobs that go."""

import numpy as np
import pytest

from caffe2 import _native
from caffe2.python import core
from caffe2.runtime.engine import new_workspace
from caffe2.runtime.predictor import Predictor

KINDS = ["simple", "dag", "async_dag", "async_simple", "async_scheduling"]


def layers(kind="simple"):
    """Convolutions, of which the first is written with its Relu, and a fully connected layer."""
    net = core.Net("layers")
    net.Proto().type = kind
    net.Conv(["x", "w1", "b1"], "c1", kernel=3, pad=1)
    net.Relu("c1", "c1")
    net.Conv(["c1", "w2", "b2"], "c2", kernel=3, pad=1)
    net.Relu("c2", "r2")
    net.AveragePool("r2", "p", global_pooling=True)
    net.FC(["p", "w3", "b3"], "y")
    net.Softmax("y", "z")
    return net


def create(space, net):
    space.create_net(net.Proto().SerializeToString())
    return net.Name()


def parameters():
    rng = np.random.default_rng(0)
    shapes = {"w1": (16, 3, 3, 3), "b1": (16,), "w2": (16, 16, 3, 3), "b2": (16,), "w3": (5, 16),
              "b3": (5,)}  # fmt: skip
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def images(batch, size):
    rng = np.random.default_rng(batch * 100 + size)
    return rng.standard_normal((batch, 3, size, size)).astype(np.float32)


BLOBS = ["c1", "c2", "r2", "p", "y", "z"]


def alone(x, blobs=BLOBS):
    """What the operators give one by one, each in a net of its own."""
    space = new_workspace(_native.Engine(threads=1))
    for name, value in {**parameters(), "x": x}.items():
        space.feed(name, value)
    for op in layers().Proto().op:
        space.run_operator(op.SerializeToString())
    return {name: space.fetch(name) for name in blobs}


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_that_alternate_take_no_memory_anew(kind):
    """Where a run would allocate, be it for weights that are packed again, it would fail.

    The sizes ask for three algorithms, whose filters are packed in different ways."""
    engine = _native.Engine(threads=2)
    space = new_workspace(engine)
    for name, value in parameters().items():
        space.feed(name, value)
    space.create_blob("x")
    convolutions = layers(kind)
    del convolutions.Proto().op[4:]  # the others read in plain order, which takes a copy
    net = create(space, convolutions)
    for turn in range(4):
        for shape in [(4, 12), (1, 7), (2, 3)]:
            x = images(*shape)
            space.feed("x", x)
            if turn == 2:
                engine.fail_at_allocation(1)
            space.run_net(net)
            engine.fail_at_allocation(0)
            if turn < 3:
                continue  # a blob that is fetched is brought into plain order, in less memory
            for name, value in alone(x, ["c1", "c2", "r2"]).items():
                np.testing.assert_allclose(
                    space.fetch(name), value, rtol=1e-4, atol=1e-4, err_msg=name
                )


@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_types_that_alternate(kind):
    space = new_workspace(_native.Engine(threads=2))
    net = core.Net("types")
    net.Proto().type = kind
    net.Add(["x", "x"], "twice")
    net.Mul(["twice", "x"], "product")
    net.Transpose("product", "turned")
    net.Negative("turned", "turned")
    net.ReduceSum("turned", "sum", axes=[0], keepdims=0)
    space.create_blob("x")
    name = create(space, net)
    for turn in range(3):
        for dtype in (np.float32, np.float64, np.int32, np.int64):
            x = np.arange(6).reshape(2, 3).astype(dtype) + turn
            space.feed("x", x)
            space.run_net(name)
            turned = -2 * (x * x).T
            for blob, value in {"turned": turned, "sum": turned.sum(axis=0)}.items():
                found = space.fetch(blob)
                assert found.dtype == dtype
                np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_blobs_between_two_operators_go_and_are_made_again(kind):
    space = new_workspace(_native.Engine(threads=2))
    for name, value in parameters().items():
        space.feed(name, value)
    x = images(2, 8)
    space.feed("x", x)
    net = create(space, layers(kind))
    expected = alone(x)
    told = []
    for name in BLOBS:
        space.run_net(net)
        space.delete_blob(name)
        space.observe_net(net, (lambda op, done: told.append(op)) if name == "r2" else None)
        space.run_net(net)
        for other, value in expected.items():
            np.testing.assert_allclose(
                space.fetch(other), value, rtol=1e-4, atol=1e-4, err_msg=f"{other} without {name}"
            )
    # Watched by two runs: the second of "r2" and the first of "p".
    assert sorted(told) == sorted(4 * list(range(7)))


@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_memory_that_runs_out_in_a_net_leaves_each_blob_old_or_new(kind):
    """At whatever call it does: then the net goes on, and in the end nothing is left."""
    engine = _native.Engine(threads=2)
    old, new = images(1, 5), images(3, 8)
    before, after = alone(old), alone(new)
    failures = 0
    while True:
        space = new_workspace(engine)
        for name, value in parameters().items():
            space.feed(name, value)
        space.feed("x", old)
        net = create(space, layers(kind))
        space.run_net(net)
        space.feed("x", new)
        engine.fail_at_allocation(failures + 1)
        try:
            space.run_net(net)
        except _native.EngineError as error:
            assert error.code == "out of memory" and error.net == net
        else:
            break
        finally:
            engine.fail_at_allocation(0)
        failures += 1
        assert failures < 200
        for name in BLOBS:
            found = space.fetch(name)
            # In place, c1 is a finished convolution before it is a finished Relu.
            of_old = found.shape == before[name].shape
            value = (before if of_old else after)[name]
            if name == "c1":
                found = np.maximum(found, 0)
            np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-4, err_msg=name)
        space.run_net(net)
        for name, value in after.items():
            np.testing.assert_allclose(space.fetch(name), value, rtol=1e-4, atol=1e-4)
        space.reset()
        assert engine.memory_used == 0
    assert failures > 3


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "simple"])
def test_an_error_in_a_parallel_net_leaves_each_blob_old_or_new(kind):
    """Operators beside the failing one have run or not, each as a whole; none after it has."""
    space = new_workspace(_native.Engine(threads=4))
    net = core.Net("wide")
    net.Proto().type = kind
    for i in range(8):
        net.Scale("x", f"left{i}", scale=float(i))
        net.Scale(f"left{i}", f"left{i}", scale=2.0)
    net.Sum(["x", "wrong"], "sum")
    net.Relu("sum", "last")
    for i in range(8, 16):
        net.Scale("x", f"left{i}", scale=float(i))
        net.Scale(f"left{i}", f"left{i}", scale=2.0)
    space.feed("x", np.ones(2000, np.float32))
    space.feed("wrong", np.ones(3, np.float32))
    for name in ["sum", "last", *(f"left{i}" for i in range(16))]:
        space.feed(name, np.full(2000, -1, np.float32))
    wide = create(space, net)
    for _ in range(20):
        with pytest.raises(_native.EngineError, match=r"Sum.*'wrong'") as caught:
            space.run_net(wide)
        assert (caught.value.operator, caught.value.index) == ("Sum", 16)
        for i in range(16):
            values = set(space.fetch(f"left{i}").tolist())
            assert len(values) == 1 and values <= {-1, i, 2 * i}
        for name in ("sum", "last"):
            np.testing.assert_array_equal(space.fetch(name), np.full(2000, -1))
    space.feed("wrong", np.ones(2000, np.float32))
    space.run_net(wide)
    assert [space.fetch(f"left{i}")[0] for i in range(16)] == [2 * i for i in range(16)]


def test_a_predictor_keeps_the_filter_for_sizes_to_come():
    """Small images are convolved directly, larger ones by Winograd's method, which needs a filter
    transformed in a way that loses bits. The originals are dropped once they are packed."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((16, 16, 3, 3)).astype(np.float32)
    init, predict = core.Net("init"), core.Net("predict")
    init.GivenTensorFill([], "w", shape=w.shape, values=w.ravel())
    predict.Conv(["x", "w"], "y", kernel=3, pad=1)
    predict.AddExternalOutput("y")
    predictor = Predictor(init.Proto(), predict.Proto())
    for size in (3, 8, 3, 40, 8, 3):
        x = rng.standard_normal((1, 16, size, size)).astype(np.float32)
        space = new_workspace(_native.Engine(threads=1))
        space.feed("x", x)
        space.feed("w", w)
        conv = predict.Proto().op[0].SerializeToString()
        space.run_operator(conv)
        np.testing.assert_allclose(
            predictor.run([x])[0], space.fetch("y"), rtol=1e-4, atol=1e-4, err_msg=str(size)
        )
