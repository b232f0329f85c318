"""Operators that run nets: If, AsyncIf, While, ONNXWhile, Do, and their scopes."""

import numpy as np
import pytest

from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from caffe2.runtime import workspace as runtime


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def net_of(*ops, name="inner", kind="simple"):
    return caffe2_pb2.NetDef(name=name, op=list(ops), type=kind)


def op(type, inputs, outputs, **args):
    return core.CreateOperator(type, inputs, outputs, **args)


def scale(source, target, factor):
    return op("Scale", [source], [target], scale=float(factor))


@pytest.mark.parametrize("type", ["If", "AsyncIf"])
def test_only_the_chosen_branch_runs(type):
    workspace.FeedBlob("x", np.float32([3]))
    branches = {
        "then_net": net_of(scale("x", "y", 2), scale("x", "only_then", 1)),
        "else_net": net_of(scale("x", "y", -1), scale("x", "only_else", 1)),
    }
    outer = core.Net("outer")
    outer.Proto().op.extend([op(type, ["condition", "x"], ["y"], **branches)])
    for condition, expected in ((True, 6), (False, -3), (True, 6)):
        workspace.FeedBlob("condition", np.array([condition]))
        if condition:
            workspace.RunNetOnce(outer)
        else:
            workspace.CreateNet(outer, overwrite=True)
            workspace.RunNet(outer)
        np.testing.assert_array_equal(workspace.FetchBlob("y"), [expected])
    workspace.ResetWorkspace()
    workspace.FeedBlob("x", np.float32([3]))
    workspace.FeedBlob("condition", np.array([True]))
    workspace.RunNetOnce(outer)
    assert workspace.HasBlob("only_then") and not workspace.HasBlob("only_else")


def test_a_missing_branch_does_nothing():
    workspace.FeedBlob("condition", np.array([False]))
    workspace.RunOperatorOnce(op("If", ["condition"], [], then_net=net_of(scale("no", "no2", 1))))


@pytest.mark.parametrize("value", [np.float32([1]), np.array([True, False]), "text"])
def test_a_condition_is_one_bool(value):
    workspace.FeedBlob("condition", value)
    with pytest.raises(RuntimeError, match=r"\((If|While)\).*condition"):
        workspace.RunOperatorOnce(op("If", ["condition"], [], then_net=net_of()))
    with pytest.raises(RuntimeError, match=r"\((If|While)\).*condition"):
        workspace.RunOperatorOnce(op("While", ["condition"], [], loop_net=net_of()))


def counting_loop(limit):
    """A condition net and a loop net that double x until the counter n has come to `limit`."""
    condition = net_of(
        op(
            "LearningRate",
            ["n"],
            ["rate"],
            policy="gate",
            base_lr=1.0,
            num_iter=limit,
            multiplier_1=1.0,
            multiplier_2=0.0,
        ),
        op("Cast", ["rate"], ["condition"], to=int(caffe2_pb2.TensorProto.BOOL)),
        name="condition",
    )
    body = net_of(scale("x", "x", 2), op("Iter", ["n"], ["n"]), name="body")
    return {"cond_net": condition, "loop_net": body}


def test_while_looks_at_the_condition_before_each_turn():
    for limit, expected in ((0, 1), (1, 2), (10, 1024)):
        workspace.FeedBlob("x", np.float32([1]))
        workspace.FeedBlob("n", np.int64([0]))
        workspace.FeedBlob("condition", np.array([True]))
        workspace.RunOperatorOnce(op("While", ["condition"], ["x"], **counting_loop(limit)))
        np.testing.assert_array_equal(workspace.FetchBlob("x"), [expected])
        assert workspace.FetchBlob("n") == limit


def test_an_endless_loop_ends_by_an_interrupt():
    import os
    import signal
    import threading

    workspace.FeedBlob("condition", np.array([True]))
    workspace.FeedBlob("x", np.float32([1]))
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        workspace.RunOperatorOnce(
            op("While", ["condition"], ["x"], loop_net=net_of(scale("x", "x", 1)))
        )
    workspace.FetchBlob("x")


def do(inner, mapping, inputs, outputs, **args):
    """A Do operator; mapping: inner name -> number of the outer blob."""
    return op(
        "Do",
        [*inputs, "scope"],
        [*outputs, "scope"],
        net=inner,
        inner_blobs=list(mapping),
        outer_blobs_idx=list(mapping.values()),
        **args,
    )


def test_do_has_names_of_its_own():
    workspace.FeedBlob("x", np.float32([3]))
    workspace.FeedBlob("local", np.float32([7]))
    inner = net_of(scale("in", "local", 10), scale("local", "out", 1))
    outer = core.Net("outer")
    outer.Proto().op.extend(
        [op("CreateScope", [], ["scope"]), do(inner, {"in": 0, "out": 1}, ["x"], ["y"])]
    )
    workspace.RunNetOnce(outer)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), [30])
    np.testing.assert_array_equal(workspace.FetchBlob("local"), [7])
    assert not workspace.HasBlob("in") and not workspace.HasBlob("out")
    workspace.RunOperatorOnce(op("HasScope", ["scope"], ["has"]))
    assert workspace.FetchBlob("has").tolist() == [True]
    workspace.RunOperatorOnce(op("CreateScope", [], ["scope"]))
    workspace.RunOperatorOnce(op("HasScope", ["scope"], ["has"]))
    assert workspace.FetchBlob("has").tolist() == [False]


@pytest.mark.parametrize(("reuse", "runs"), [(1, 3), (0, 1)])
def test_do_writes_through_and_reuses_its_workspace_when_told_to(reuse, runs):
    workspace.FeedBlob("x", np.float32([1]))
    workspace.FeedBlob("n", np.int64([0]))
    inner = net_of(scale("a", "a", 2), op("Iter", [], ["runs"]), op("Copy", ["runs"], ["count"]))
    outer = core.Net("outer")
    outer.Proto().op.append(do(inner, {"a": 0, "count": 1}, ["x"], ["n"], reuse_workspace=reuse))
    workspace.RunOperatorOnce(op("CreateScope", [], ["scope"]))
    workspace.CreateNet(outer)
    workspace.RunNet(outer, 3)
    np.testing.assert_array_equal(workspace.FetchBlob("x"), [8])
    assert workspace.FetchBlob("n") == runs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outer_blobs_idx": [5]}, "outer_blobs_idx holds 5; allowed are 0 to 1"),
        ({"outer_blobs_idx": [0, 1]}, "come in pairs"),
    ],
)
def test_do_refuses_names_that_do_not_fit(change, message):
    workspace.FeedBlob("x", np.float32([3]))
    workspace.RunOperatorOnce(op("CreateScope", [], ["scope"]))
    args = {"net": net_of(), "inner_blobs": ["in"], "outer_blobs_idx": [0], **change}
    with pytest.raises(RuntimeError, match=message):
        workspace.RunOperatorOnce(op("Do", ["x", "scope"], ["y", "scope"], **args))


def test_errors_name_the_innermost_operator():
    workspace.FeedBlob("x", np.float32([3]))
    workspace.FeedBlob("z", np.float32([3, 4]))
    workspace.FeedBlob("condition", np.array([True]))
    inner = net_of(scale("x", "y", 1), op("Sum", ["y", "z"], ["s"]))
    with pytest.raises(RuntimeError) as caught:
        workspace.RunOperatorOnce(op("If", ["condition"], [], then_net=inner))
    assert (caught.value.operator, caught.value.index) == ("Sum", 1)
    with pytest.raises(RuntimeError, match=r"unknown operator types: 'Sclae'\. Did you mean Scale"):
        bad = op("If", ["condition"], [], then_net=net_of(scale("x", "y", 1)))
        bad.arg[0].n.op[0].type = "Sclae"
        workspace.RunOperatorOnce(bad)


def wrapped(net):
    """The bytes of a net whose If operator runs `net`: deeper than Python messages can be."""

    def field(number, data):
        size, header = len(data), bytes([number << 3 | 2])
        while size >= 0x80:
            header += bytes([size & 0x7F | 0x80])
            size >>= 7
        return header + bytes([size]) + data

    argument = field(1, b"then_net") + field(8, net)
    operator = field(1, b"condition") + field(4, b"If") + field(5, argument)
    return field(2, operator)


def test_depth_is_limited():
    workspace.FeedBlob("condition", np.array([True]))
    workspace.FeedBlob("x", np.float32([1]))
    net = net_of(scale("x", "x", 2)).SerializeToString()
    for depth in range(1, 200):
        net = wrapped(net)
        if depth == 20:
            runtime.current().run_net_once(net)
            np.testing.assert_array_equal(workspace.FetchBlob("x"), [2])
    with pytest.raises(RuntimeError, match="deep"):
        runtime.current().run_net_once(net)
    np.testing.assert_array_equal(workspace.FetchBlob("x"), [2])
    for depth in (65, 500):
        quoted = "op { type: 'Scale' input: 'x' output: 'x' }"
        for _ in range(depth):
            quoted = f"op {{ type: 'If' arg {{ name: 'then_net' n {{ {quoted} }} }} }}"
        with pytest.raises(RuntimeError, match=r"If.*nested.* deep"):
            workspace.RunOperatorOnce(op("If", ["condition"], [], then_net=quoted))


@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_nets_of_parallel_types_inside(kind):
    workspace.FeedBlob("x", np.float32([1]))
    workspace.FeedBlob("condition", np.array([True]))
    inner = net_of(*(scale("x", f"y{i}", i) for i in range(20)), kind=kind)
    outer = net_of(op("If", ["condition", "x"], [], then_net=inner), name="outer", kind=kind)
    workspace.CreateNet(outer)
    for _ in range(20):
        workspace.RunNet("outer")
    for i in range(20):
        np.testing.assert_array_equal(workspace.FetchBlob(f"y{i}"), [i])


def fibonacci(**args):
    """Turns of first, second = second, first + second, which end at 20; the sums are collected.
    Values recorded from the original."""
    body = net_of(
        op("Add", ["first", "second"], ["third"]),
        op("ConstantFill", [], ["limit"], shape=[1], value=20.0),
        op("LT", ["third", "limit"], ["goes_on"]),
    )
    body.external_input.extend(["turn", "condition", "first", "second"])
    body.external_output.extend(["goes_on", "second", "third", "third", "turn"])
    inputs, outputs = ["count", "on", "one", "one"], ["a", "b", "sums", "turns"]
    workspace.FeedBlob("one", np.float32([1]))
    workspace.RunOperatorOnce(op("ONNXWhile", inputs, outputs, body=body, **args))
    return [workspace.FetchBlob(name).tolist() for name in outputs]


@pytest.mark.parametrize("hidden", [False, True])
def test_a_loop_of_onnx_carries_values_and_collects_others(hidden):
    workspace.FeedBlob("count", np.array(3))
    workspace.FeedBlob("on", np.array([True]))
    both = {"has_trip_count": True, "has_cond": True, "disable_scopes": not hidden}
    assert fibonacci(**both) == [[3], [5], [2, 3, 5], [0, 1, 2]]
    assert workspace.HasBlob("third") != hidden
    workspace.FeedBlob("count", np.array([100]))
    assert fibonacci(**both) == [[13], [21], [2, 3, 5, 8, 13, 21], [0, 1, 2, 3, 4, 5]]
    assert fibonacci(has_cond=True, save_scopes=True)[1] == [21]
    workspace.FeedBlob("count", np.array(7))
    assert fibonacci(has_trip_count=True)[2] == [2, 3, 5, 8, 13, 21, 34]
    workspace.FeedBlob("on", np.array(False))
    assert fibonacci(**both) == [[1], [1], [], []]
    assert workspace.FetchBlob("sums").dtype == np.int32


def test_a_loop_of_onnx_says_what_does_not_fit():
    def refused(text, inputs=("count", "on", "x"), outputs=("y",), takes=3, gives=("on2", "x2")):
        body = net_of(scale("x1", "x2", 2), op("Copy", ["on1"], ["on2"]))
        body.external_input.extend(["turn", "on1", "x1"][:takes])
        body.external_output.extend(gives)
        args = {"body": body, "has_trip_count": True, "has_cond": True}
        with pytest.raises(RuntimeError, match=rf"ONNXWhile.*{text}"):
            workspace.RunOperatorOnce(op("ONNXWhile", inputs, outputs, **args))

    workspace.FeedBlob("count", np.array(2))
    workspace.FeedBlob("on", np.array(True))
    workspace.FeedBlob("x", np.float32([1, 2]))
    refused("2 external_inputs for the turn, the condition and 1", takes=2)
    refused("2 external_outputs for the condition and 2 outputs", outputs=("y", "z"))
    refused("'lost'", gives=("on2", "lost"))
    refused("count.*one int64 is needed", inputs=("on", "on", "x"))
    refused("one bool is needed", inputs=("count", "count", "x"))
