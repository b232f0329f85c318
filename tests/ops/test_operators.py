"""Every operator against its contract: the NumPy bodies, and the engine's kernels."""

import numpy as np
import pytest
from operator_cases import CASES

from caffe2.proto import caffe2_pb2
from caffe2.testing import EngineRunner, NumpyRunner, Operation, RefusedError, check
from caffe2.testing.cases import full_effort

UNAVAILABLE = EngineRunner.unavailable()
needs_engine = pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))


def instruction_sets():
    """The best one, or all that this CPU has with full effort."""
    if UNAVAILABLE or not full_effort():
        return ["auto"]
    from caffe2 import _native

    return _native.instruction_sets()


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_numpy_body(case):
    check(case, NumpyRunner())


@needs_engine
@pytest.mark.parametrize("isa", instruction_sets())
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_engine(case, isa):
    check(case, EngineRunner(isa=isa))


@needs_engine
@pytest.mark.parametrize("case", CASES if full_effort() else CASES[::9], ids=repr)
def test_body_in_the_engine(case):
    check(case, EngineRunner(engine="REFERENCE"))


@needs_engine
def test_mutex():
    """CreateMutex and AtomicIter, which have no NumPy bodies."""
    session = EngineRunner().session()
    session.feed("count", np.array([5], np.int64))
    count = Operation("AtomicIter", ("mutex", "count"), ("count",))
    with pytest.raises(RefusedError, match=r"'mutex'.*AtomicIter"):
        session.run(count)
    session.run(Operation("CreateMutex", (), ("mutex",)))
    for expected in (6, 7, 8):
        session.run(count)
        assert session.fetch("count").tolist() == [expected]
    elsewhere = Operation("AtomicIter", ("mutex", "count"), ("other",))
    with pytest.raises(RefusedError, match="AtomicIter"):
        session.run(elsewhere)
    for value in ([1, 2], [-1], [2**63 - 1]):
        session.feed("count", np.array(value, np.int64))
        with pytest.raises(RefusedError, match="AtomicIter"):
            session.run(count)
        assert session.fetch("count").tolist() == value
    session.feed("mutex", np.zeros(1, np.float32))
    session.feed("count", np.array([5], np.int64))
    with pytest.raises(RefusedError, match=r"AtomicIter.*mutex"):
        session.run(count)
    assert session.fetch("count").tolist() == [5]


@needs_engine
def test_iter_without_input():
    """The counter is the output blob, made when it does not exist."""
    session = EngineRunner().session()
    for expected in (1, 2, 3):
        session.run(Operation("Iter", (), ("count",)))
        assert session.fetch("count").tolist() == [expected]


@needs_engine
@pytest.mark.parametrize("engine", ["", "REFERENCE"])
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (None, np.float32([2.5, 2.5])),
        (1, np.float32([2.5, 2.5])),
        (2, np.int32([7, 7])),
        (4, np.array([b"x", b"x"], dtype=object)),
        (5, np.array([True, True])),
        (10, np.int64([7, 7])),
        (13, np.float64([2.5, 2.5])),
    ],
)
def test_a_constant_of_several_kinds(engine, dtype, expected):
    """Of several in one message the type of the output chooses, as in the original."""
    from caffe2.python import workspace

    fill = caffe2_pb2.OperatorDef(type="ConstantFill", output=["constant"], engine=engine)
    fill.arg.add(name="shape", ints=[2])
    fill.arg.add(name="value", f=2.5, i=7, s=b"x")
    if dtype is not None:
        fill.arg.add(name="dtype", i=dtype)
    workspace.RunOperatorOnce(fill)
    found = workspace.FetchBlob("constant")
    assert found.dtype == expected.dtype and found.tolist() == expected.tolist()


@needs_engine
@pytest.mark.parametrize("engine", ["", "REFERENCE"])
@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"min": np.nan}, [-1, 0, 1, np.nan]),
        ({"min": np.nan, "max": 0.5}, [-1, 0, 0.5, np.nan]),
        ({"min": -0.5, "max": np.nan}, [-0.5, 0, 1, np.nan]),
    ],
)
def test_a_bound_of_clip_that_is_nan_is_none(engine, bounds, expected):
    """As recorded from the original; in a net of one operator and behind a convolution."""
    from caffe2.python import core, workspace

    x = np.float32([-1, 0, 1, np.nan])
    workspace.FeedBlob("x", x)
    workspace.RunOperatorOnce(core.CreateOperator("Clip", ["x"], ["y"], engine=engine, **bounds))
    np.testing.assert_array_equal(workspace.FetchBlob("y"), expected)
    workspace.FeedBlob("image", x.reshape(1, 1, 1, 4))
    workspace.FeedBlob("one", np.ones((1, 1, 1, 1), np.float32))
    net = core.Net("clipped")
    net.Conv(["image", "one"], "y", kernel=1)
    net.Clip("y", "y", engine=engine, **bounds)
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob("y").ravel(), expected)


@needs_engine
@pytest.mark.parametrize("engine", ["", "REFERENCE"])
@pytest.mark.parametrize("type", ["MaxPool", "Conv"])
@pytest.mark.parametrize(
    ("kernel", "problem"), [({}, "is missing"), ({"kernel": 0}, "is 0; it is at least 1")]
)
def test_a_window_without_a_kernel(engine, type, kernel, problem):
    from caffe2.python import core, workspace

    for blob in ("x", "w"):
        workspace.FeedBlob(blob, np.ones((1, 1, 2, 2), np.float32))
    inputs = ["x", "w"][: 1 + (type == "Conv")]
    with pytest.raises(RuntimeError, match=f"argument 'kernel' {problem}"):
        workspace.RunOperatorOnce(core.CreateOperator(type, inputs, ["y"], engine=engine, **kernel))


@needs_engine
@pytest.mark.parametrize("engine", ["", "REFERENCE"])
def test_an_argument_given_twice(engine):
    from caffe2.python import workspace

    workspace.FeedBlob("x", np.float32([1, 2]))
    scale = caffe2_pb2.OperatorDef(type="Scale", input=["x"], output=["scaled"], engine=engine)
    for _ in range(2):
        scale.arg.add(name="scale", f=3.0)
    workspace.RunOperatorOnce(scale)
    assert workspace.FetchBlob("scaled").tolist() == [3, 6]
    scale.arg[1].f = 2.0
    with pytest.raises(
        RuntimeError, match="argument 'scale' is given twice with different contents"
    ):
        workspace.RunOperatorOnce(scale)
