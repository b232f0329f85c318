"""Gradients through If, While and Do, compared with differences and with what they must be."""

import numpy as np
import pytest

from caffe2.graph.errors import GradientError, UsageError
from caffe2.python import brew, control_ops_util, core, workspace
from caffe2.python.model_helper import ModelHelper


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def feed(**values):
    for name, value in values.items():
        array = np.asarray(value)
        workspace.FeedBlob(name, array if array.dtype == bool else array.astype(np.float32))


def gradients_of(net, names, y="z"):
    """The gradients of the sum of `y`, in the order of the names."""
    found = net.AddGradientOperators([y])
    workspace.RunNetOnce(net)
    return [workspace.FetchBlob(found[core.BlobReference(name)]).tolist() for name in names]


def branches():
    """then: y = sigmoid(x) * w; else: y = x * x."""
    then = core.Net("then")
    then.Sigmoid("x", "s")
    then.Mul(["s", "w"], "y")
    other = core.Net("else")
    other.Mul(["x", "x"], "y")
    return then, other


@pytest.mark.parametrize("condition", [True, False])
def test_the_gradient_goes_through_the_chosen_branch(condition):
    net = core.Net("net")
    net.AddExternalInput("condition", "x", "w")
    control_ops_util.add_if_op(net, "condition", ["condition", "x", "w", "y"], *branches())
    net.Scale("y", "z", scale=3.0)
    feed(condition=[condition], x=[0.5, -2], w=[2, 3])
    dx, dw = gradients_of(net, "xw")
    s = 1 / (1 + np.exp(-np.array([0.5, -2])))
    expected = (3 * s * (1 - s) * [2, 3], 3 * s) if condition else ([3, -12], [0, 0])
    np.testing.assert_allclose(dx, expected[0], rtol=1e-5)
    np.testing.assert_allclose(dw, expected[1], rtol=1e-5)


@pytest.mark.parametrize("condition", [True, False])
def test_what_no_branch_wrote_hands_its_gradient_on(condition):
    """Without an else, y stays what it was; x is also used behind the If."""
    then, _ = branches()
    net = core.Net("net")
    net.AddExternalInput("condition", "x", "w")
    net.Scale("x", "y", scale=5.0)
    control_ops_util.add_if_op(net, "condition", ["condition", "x", "w", "y"], then)
    net.Mul(["y", "x"], "z")
    feed(condition=[condition], x=[0.5, -2], w=[2, 3])
    dx, _ = gradients_of(net, "xw")
    x, w = np.array([0.5, -2]), np.array([2, 3])
    s = 1 / (1 + np.exp(-x))
    expected = s * w + x * s * (1 - s) * w if condition else 10 * x
    np.testing.assert_allclose(dx, expected, rtol=1e-5)


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_a_loop_sums_the_gradients_of_its_turns(turns):
    """y = y0 + turns * x * w."""
    body = core.Net("body")
    body.Mul(["x", "w"], "product")
    body.Sum(["y", "product"], "y")
    body.Add(["i", "one"], "i")
    condition = core.Net("condition")
    condition.LT(["i", "n"], "goes_on")
    net = core.Net("net")
    net.AddExternalInput("goes_on", "x", "w", "i", "n", "one", "y0")
    net.Copy("y0", "y")
    scope = ["goes_on", "x", "w", "i", "n", "one", "y"]
    control_ops_util.add_while_op(net, "goes_on", scope, body, condition)
    net.Scale("y", "z", scale=2.0)
    feed(goes_on=[True], x=[3, 4], w=[5, 6], i=[0], n=[turns], one=[1], y0=[1, 1])
    dx, dw, dy0 = gradients_of(net, ["x", "w", "y0"])
    np.testing.assert_allclose(workspace.FetchBlob("y"), 1 + turns * np.array([15, 24]))
    assert dx == [2 * turns * 5, 2 * turns * 6]
    assert dw == [2 * turns * 3, 2 * turns * 4]
    assert dy0 == [2, 2]


def test_a_turn_needs_what_the_turn_before_has_left():
    """y = sigmoid(y + w), three times: each turn's gradient needs its own y."""
    body = core.Net("body")
    body.Sum(["y", "w"], "sum")
    body.Sigmoid("sum", "y")
    body.Add(["i", "one"], "i")
    condition = core.Net("condition")
    condition.LT(["i", "n"], "goes_on")
    net = core.Net("net")
    net.AddExternalInput("goes_on", "w", "i", "n", "one", "y0")
    net.Copy("y0", "y")
    scope = ["goes_on", "w", "i", "n", "one", "y"]
    control_ops_util.add_while_op(net, "goes_on", scope, body, condition)
    net.Scale("y", "z", scale=1.0)
    feed(goes_on=[True], w=[0.3, -1], i=[0], n=[3], one=[1], y0=[0.2, 2])
    dy0, dw = gradients_of(net, ["y0", "w"])
    y, g_y, g_w = np.array([0.2, 2]), np.ones(2), np.zeros(2)
    w = np.array([0.3, -1])
    for _ in range(3):
        y = 1 / (1 + np.exp(-(y + w)))
        g_w = y * (1 - y) * (g_w + 1)
        g_y = g_y * y * (1 - y)
    np.testing.assert_allclose(dy0, g_y, rtol=1e-5)
    np.testing.assert_allclose(dw, g_w, rtol=1e-5)


@pytest.mark.parametrize("reuse", [False, True])
def test_do_runs_its_gradient_where_it_ran(reuse):
    """The inner blob `s` is in no workspace but that of the Do."""
    inner = core.Net("inner")
    inner.Sigmoid("a", "s")
    inner.Mul(["s", "b"], "c")
    net = core.Net("net")
    net.AddExternalInput("x", "w")
    scope = net.CreateScope([], "scope")
    net.Do(
        ["x", "w", scope],
        ["y", scope],
        net=inner,
        inner_blobs=["a", "b", "c"],
        outer_blobs_idx=[0, 1, 2],
        reuse_workspace=reuse,
    )
    net.Scale("y", "z", scale=1.0)
    feed(x=[0.5, -2], w=[2, 3])
    dx, dw = gradients_of(net, "xw")
    s = 1 / (1 + np.exp(-np.array([0.5, -2])))
    np.testing.assert_allclose(dx, s * (1 - s) * [2, 3], rtol=1e-5)
    np.testing.assert_allclose(dw, s, rtol=1e-5)
    workspace.RunOperatorOnce(core.CreateOperator("HasScope", ["scope"], ["has"]))
    assert workspace.FetchBlob("has").tolist() == [reuse]
    assert not workspace.HasBlob("s")


def test_a_gradient_of_do_without_a_workspace_is_an_error():
    op = core.CreateOperator(
        "Do", ["x", "scope"], ["scope"], net=core.Net("nothing"), inner_blobs=[], outer_blobs_idx=[]
    )
    op.is_gradient_op = True
    feed(x=[1])
    workspace.RunOperatorOnce(core.CreateOperator("CreateScope", [], ["scope"]))
    with pytest.raises(RuntimeError, match="'scope' holds no workspace of the operator"):
        workspace.RunOperatorOnce(op)


def test_a_loop_that_is_no_do_has_no_gradient():
    body = core.Net("body")
    body.Scale("y", "y", scale=2.0)
    net = core.Net("net")
    net.AddExternalInput("goes_on", "y")
    net.While(["goes_on", "y"], ["y"], loop_net=body)
    with pytest.raises(GradientError, match="only a While whose loop_net is one Do"):
        net.AddGradientOperators(["y"])


def test_branches_of_models():
    """brew.cond and brew.loop are the same for models."""
    model, then, other = (ModelHelper(name=name) for name in ("model", "then", "other"))
    then.net.Scale("x", "y", scale=2.0)
    other.net.Scale("x", "y", scale=-1.0)
    model.net.AddExternalInput("condition", "x")
    brew.cond(model, "condition", ["condition", "x", "y"], then, other)
    for condition, expected in ((True, 6), (False, -3)):
        feed(condition=[condition], x=[3])
        workspace.RunNetOnce(model.net)
        assert workspace.FetchBlob("y").tolist() == [expected]


def test_blobs_that_nobody_has_are_named():
    body = core.Net("body")
    body.Mul(["x", "unknown"], "y")
    net = core.Net("net")
    message = "reads unknown, which neither it nor the net around it has"
    with pytest.raises(UsageError, match=message):
        control_ops_util.add_if_op(net, "condition", ["condition", "x"], body)
