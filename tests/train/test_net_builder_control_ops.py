"""IfNet and WhileNet of NetBuilder: blocks that become the operators If and While in one net."""

import numpy as np
import pytest

from caffe2.python import core, workspace
from caffe2.python.net_builder import NetBuilder, ops


def _value(blob):
    return np.asarray(workspace.FetchBlob(str(blob))).item()


def _run(builder):
    plan = core.Plan("control_ops")
    plan.AddStep(core.to_execution_step(builder))
    workspace.RunPlan(plan)


@pytest.mark.parametrize(("chosen", "expected"), [(True, 1), (False, 2)])
def test_if_net_and_else_write_a_blob_around_them(chosen, expected):
    with NetBuilder() as builder:
        result = ops.Const(0)
        with ops.IfNet(ops.Const(chosen)):
            ops.Const(1, blob_out=result)
        with ops.Else():
            ops.Const(2, blob_out=result)
    _run(builder)
    assert _value(result) == expected


def test_nested_if_nets_see_local_blobs_and_leave_none_behind():
    with NetBuilder() as builder:
        x0, x1, x2 = (ops.Const(number) for number in range(3))
        y0, y1, y2 = (ops.Const(number) for number in range(3))
        with ops.IfNet(ops.LT([x0, x1])):
            local = ops.Const(900)
            ops.Add([ops.Const(100), local], [y0])
            with ops.IfNet(ops.GT([x1, x2])):
                pass
            with ops.Else():
                ops.Add([y1, local], [local])
                ops.Add([ops.Const(100), y1], [y1])
            with ops.IfNet(ops.EQ([local, ops.Const(901)])):
                ops.Const(7, blob_out=y2)
                ops.Add([y1, y2], [y2])
        with ops.Else():
            pass
    _run(builder)
    assert (_value(y0), _value(y1), _value(y2)) == (1000, 101, 108)
    assert not workspace.HasBlob(str(local))


def test_while_net_runs_its_condition_before_each_turn():
    with NetBuilder() as builder:
        x, y = ops.Const(0), ops.Const(0)
        with ops.WhileNet():
            with ops.Condition():
                ops.Add([x, ops.Const(1)], [x])
                ops.LT([x, ops.Const(7)])
            ops.Add([x, y], [y])
    _run(builder)
    assert (_value(x), _value(y)) == (7, 21)


def test_gradients_go_through_while_net_and_if_net():
    with NetBuilder(_use_control_ops=True) as builder:
        for name, value in (("i", 0), ("one", 1), ("two", 2), ("x", 2.0), ("y", 3.0), ("z", 2.0)):
            ops.Copy(ops.Const(value), name)
        with ops.WhileNet():
            with ops.Condition():
                ops.Add(["i", "one"], "i")
                ops.LE(["i", "two"])
            ops.Scale("x", "x", scale=2.0)
            with ops.IfNet(ops.LT(["i", "two"])):
                ops.Scale("y", "y", scale=3.0)
            with ops.Else():
                ops.Scale("z", "z", scale=4.0)
        ops.Add(["x", "y"], "x_plus_y")
        ops.Add(["x_plus_y", "z"], "s")
    (net,) = builder.get()
    net.AddGradientOperators(["s"])
    workspace.RunNetOnce(net)
    names = ("x", "x_grad", "y", "y_grad", "z", "z_grad")
    assert [_value(name) for name in names] == pytest.approx([8, 4, 9, 3, 8, 4])


@pytest.mark.parametrize(("condition", "grad"), [(True, 6.0), (False, 1.0)])
def test_gradient_where_only_one_branch_writes(condition, grad):
    workspace.FeedBlob("w", np.array([3.0], np.float32))
    with NetBuilder(_use_control_ops=True, initial_scope=["w"]) as builder:
        ops.Copy("w", "y")
        with ops.IfNet(ops.Const(condition)):
            ops.Pow("w", "y", exponent=2.0)
        ops.Copy("y", "loss")
    (net,) = builder.get()
    gradients = net.AddGradientOperators(["loss"])
    workspace.RunNetOnce(net)
    assert _value(gradients["w"]) == pytest.approx(grad)


def test_what_does_not_fit_is_refused():
    with NetBuilder(_use_control_ops=True, name="one"):
        with pytest.raises(AssertionError, match="'one' becomes one net"):
            ops.stop_if(ops.Const(True))
        with pytest.raises(AssertionError, match="'one' takes nets, IfNet and WhileNet"):
            ops.loop(3)
        with pytest.raises(AssertionError, match="first block in a WhileNet"):
            ops.Condition()
        with pytest.raises(AssertionError, match="needs a block ops"), ops.WhileNet():
            ops.Const(1)
