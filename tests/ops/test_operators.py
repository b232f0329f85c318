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
def test_a_constant_of_two_kinds(engine):
    """Of a float and an integer in one message the float counts, as in the original."""
    from caffe2.python import workspace

    fill = caffe2_pb2.OperatorDef(type="ConstantFill", output=["constant"], engine=engine)
    fill.arg.add(name="shape", ints=[2])
    fill.arg.add(name="value", f=2.5, i=7)
    workspace.RunOperatorOnce(fill)
    found = workspace.FetchBlob("constant")
    assert found.dtype == np.float32 and found.tolist() == [2.5, 2.5]


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
