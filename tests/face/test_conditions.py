"""Loops and branches of plans (`control`), and `context`."""

import threading

import pytest

from caffe2.graph.errors import UsageError
from caffe2.python import context, control, core, workspace


@pytest.fixture(autouse=True)
def empty():
    workspace.ResetWorkspace()
    workspace.FeedBlob("count", [0.0])
    workspace.FeedBlob("one", [1.0])


def body(blob="count"):
    net = core.Net("body")
    net.Add([blob, "one"], blob)
    return net


def below(limit, blob="count"):
    net = core.Net("below")
    bound = net.ConstantFill([], "bound", shape=[1], value=float(limit))
    net.AddExternalOutput(net.LT([blob, bound]))
    return net


def count(step):
    workspace.FeedBlob("count", [0.0])
    workspace.RunPlan(step)
    return workspace.FetchBlob("count").item()


@pytest.mark.parametrize(("limit", "loop", "at_least_once"), [(3, 3, 3), (0, 0, 1)])
def test_loops(limit, loop, at_least_once):
    assert count(control.While("w", below(limit), body())) == loop
    assert count(control.DoWhile("dw", below(limit), body())) == at_least_once
    until = control.Until("u", control.MergeConditionNets("m", [below(limit)], "And"), body())
    # "below" holds at once unless the limit is 0, where it never does: no loop at all or endless.
    if limit:
        assert count(until) == 0
        assert count(control.DoUntil("du", below(limit), body())) == 1


def test_for_and_sequences():
    assert count(control.For("f", [body(), body()], 5)) == 10
    assert count(control.Do("d", body(), control.Do("inner", body()))) == 2


@pytest.mark.parametrize("holds", [True, False])
def test_branches(holds):
    condition = control.BoolNet(("condition", holds))
    twice = control.Do("twice", body(), body())
    assert count(control.If("if", condition, body())) == (1 if holds else 0)
    assert count(control.If("if", condition, body(), twice)) == (1 if holds else 2)
    assert count(control.IfNot("ifnot", condition, body(), body())) == 1
    assert count(control.IfNot("ifnot", condition, body())) == (0 if holds else 1)
    workspace.RunNetOnce(condition)
    assert count(control.If("blob", "condition", body())) == (1 if holds else 0)


def test_a_body_that_changes_its_condition():
    change = control.BoolNet(("condition", False))
    step = control.If("if", control.BoolNet(("condition", True)), [body(), change], body())
    assert count(step) == 1


def test_switches():
    yes, no = control.BoolNet(("yes", True)), control.BoolNet(("no", False))
    assert count(control.Switch("s", (yes, body()), (no, body()), (yes, body()))) == 2
    assert count(control.SwitchNot("s", (yes, body()), (no, body()))) == 1


def test_conditions_are_nets_with_outputs():
    with pytest.raises(UsageError, match="must have at least one external output"):
        control.GetConditionBlobFromNet(body())
    with pytest.raises(UsageError, match="joined by And or Or, not by 'Xor'"):
        control.CombineConditions("c", [control.BoolNet(("a", True))], "Xor")


def test_contexts_nest_and_are_of_their_thread():
    class Base(context.Managed):
        pass

    class Child(Base):
        pass

    class Default(context.DefaultManaged):
        pass

    with pytest.raises(UsageError, match="No Base is in force here"):
        Base.current()
    assert Base.current(required=False) is None
    with Base() as outer:
        with Child() as inner:
            assert Base.current() is Child.current() is inner
        assert Base.current() is outer
        found = []
        thread = threading.Thread(target=lambda: found.append(Base.current(required=False)))
        thread.start()
        thread.join()
        assert found == [None]
        assert Base.current(inner) is inner
    assert Default.current() is Default.current()
    decorated = Base()(Base.current)
    assert isinstance(decorated(), Base)
