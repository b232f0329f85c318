"""Operators as functions, what they cost, rewrites of nets by name."""

import numpy as np
import pytest

from caffe2.graph.errors import UsageError
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from caffe2.python.functional import Functional


def zeros(*shape):
    return np.zeros(shape, np.float32)


def test_operators_as_functions():
    found = Functional.Concat(np.ones((1, 2), np.float32), zeros(1, 1), axis=1)
    np.testing.assert_array_equal(found.output_0, [[1, 1, 0]])
    np.testing.assert_array_equal(found["output_1"], [2, 1])
    assert found[1] is found.output_1 and len(found) == 2
    left, right = Functional.Split(np.array([1, 2, 3, 4], np.float32), num_output=2, axis=0)
    np.testing.assert_array_equal([left, right], [[1, 2], [3, 4]])
    before = workspace.Blobs()
    Functional.Relu(zeros(2))
    assert workspace.Blobs() == before


def test_operators_that_cannot_be_functions():
    with pytest.raises(UsageError, match="Split may have any number of outputs"):
        Functional.Split(zeros(4))
    with pytest.raises(AttributeError, match="no operator is called 'Reluu'; did you mean Relu"):
        Functional.Reluu(zeros(4))
    with pytest.raises(RuntimeError, match=r"it has 2 input\(s\); allowed: 1"):
        Functional.Relu(zeros(4), zeros(4))


# Recorded from the original: operations, bytes written, bytes read.
COSTS = {
    "FC": ([(2, 3), (4, 3), (4,)], {}, (56, 32, 88)),
    "Conv": ([(1, 3, 8, 8), (5, 3, 3, 3), (5,)], {"kernel": 3}, (9720, 720, 1328)),
    "Relu": ([(2, 3)], {}, (0, 24, 24)),
    "Add": ([(2, 3), (2, 3)], {}, (6, 24, 48)),
    "Sum": ([(2, 3), (2, 3)], {}, (6, 24, 48)),
    "Mul": ([(2, 3), (2, 3)], {}, (6, 24, 48)),
    "Concat": ([(2, 3), (2, 3)], {"axis": 1}, (0, 56, 48)),
    "BatchMatMul": ([(1, 3, 8, 8), (1, 3, 8, 8)], {}, (3072, 768, 1536)),
}


@pytest.mark.parametrize("op_type", COSTS)
def test_costs(op_type):
    shapes, arguments, expected = COSTS[op_type]
    names = [f"in{index}" for index in range(len(shapes))]
    for name, shape in zip(names, shapes, strict=True):
        workspace.FeedBlob(name, zeros(*shape))
    outputs = ["out", "sizes"] if op_type == "Concat" else ["out"]
    op = core.CreateOperator(op_type, names, outputs, **arguments)
    assert workspace.GetOperatorCost(op, names) == expected
    assert workspace.GetOperatorCost(op.SerializeToString(), names) == expected


def test_the_cost_of_a_convolution_counts_bytes_by_type():
    """Values recorded from the original, which does not ask whether the filters fit."""
    workspace.FeedBlob("x", np.zeros((1, 8, 8, 8)))
    workspace.FeedBlob("w", np.zeros((1, 1, 3, 3)))
    op = core.CreateOperator("Conv2D", ["x", "w"], ["y"], kernel=3, pad=1)
    assert workspace.GetOperatorCost(op, ["x", "w"]) == (1152, 256, 4168)
    workspace.FeedBlob("x", zeros(2, 4, 6, 6))
    workspace.FeedBlob("w", zeros(6, 2, 3, 3))
    op = core.CreateOperator("Conv", ["x", "w"], ["y"], kernel=3, group=2, stride=2)
    assert workspace.GetOperatorCost(op, ["x", "w"]) == (1728, 192, 1584)


def test_costs_that_are_not_known():
    workspace.FeedBlob("x", zeros(2))
    with pytest.raises(RuntimeError, match="the operations of Sigmoid are not known"):
        workspace.GetOperatorCost(core.CreateOperator("Sigmoid", "x", "y"), ["x"])
    with pytest.raises(RuntimeError, match="no blob 'nothing'"):
        workspace.GetOperatorCost(core.CreateOperator("Relu", "nothing", "y"), ["nothing"])


@pytest.fixture
def net():
    """y = relu(x), and a blob that nobody wants."""
    net = core.Net("net")
    net.Relu("x", "y")
    net.Relu("y", "unused")
    net.AddExternalOutput("y")
    return net


def test_rewrites_by_name(net):
    assert workspace.C.transform_exists("drop_dead_code")
    rewritten = workspace.ApplyTransform("drop_dead_code", net.Proto())
    assert [op.output[0] for op in rewritten.op] == ["y"]
    assert len(net.Proto().op) == 2
    assert not workspace.C.transform_exists("no_such_pass")
    with pytest.raises(RuntimeError, match="Transform not found in registry: no_such_pass"):
        workspace.ApplyTransform("no_such_pass", net)


def test_the_rewrite_of_the_original_gives_a_hint():
    net = core.Net("convolutions")
    for engine in ("", "CUDNN", "IM2COL"):
        net.Conv(["x", "w"], f"y_{engine}", kernel=3, engine=engine)
    rewritten = workspace.ApplyTransform("ConvToNNPack", net)
    assert [op.engine for op in rewritten.op] == ["NNPACK", "NNPACK", "IM2COL"]
    assert [op.engine for op in net.Proto().op] == ["", "CUDNN", "IM2COL"]


def test_rewrites_that_must_be_faster(net):
    init = core.Net("init")
    init.ConstantFill([], "x", shape=[4], value=1.0)
    kept = workspace.ApplyTransformIfFaster(
        "drop_dead_code", net, init, warmup_runs=1, main_runs=2, improvement_threshold=1e9
    )
    assert kept == net.Proto()
    rewritten = workspace.ApplyTransformIfFaster(
        "drop_dead_code", net, init, warmup_runs=1, main_runs=2, improvement_threshold=0
    )
    assert isinstance(rewritten, caffe2_pb2.NetDef) and len(rewritten.op) == 1


def test_the_cost_of_outputs_whose_shapes_depend_on_values():
    workspace.ResetWorkspace()
    workspace.FeedBlob("x", np.ones((3, 2), np.float32))
    workspace.FeedBlob("sizes", np.array([1, 2], np.int32))
    op = core.CreateOperator("Split", ["x", "sizes"], ["a", "b"], axis=0)
    assert workspace.GetOperatorCost(op, ["x", "sizes"]) == (0, 0, 32)
    workspace.RunOperatorOnce(op)
    assert workspace.GetOperatorCost(op, ["x", "sizes"]) == (0, 24, 32)
