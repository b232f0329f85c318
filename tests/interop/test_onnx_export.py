"""Nets as ONNX models: ONNX's own evaluator, and this engine again, give what the nets give."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from caffe2.proto import caffe2_pb2  # noqa: E402
from caffe2.python import brew, core, model_helper, workspace  # noqa: E402
from caffe2.python.onnx import backend, frontend  # noqa: E402
from caffe2.python.onnx import helper as nets  # noqa: E402
from caffe2.python.onnx.error import Unsupported  # noqa: E402
from caffe2.python.predictor import mobile_exporter  # noqa: E402

rng = np.random.default_rng(0)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def info(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype), array.shape


def net_of(op_type, inputs, outputs=("out",), **arguments):
    names = [f"in{index}" for index in range(len(inputs))]
    op = core.CreateOperator(op_type, names, list(outputs), **arguments)
    net = caffe2_pb2.NetDef(name="net", op=[op], external_input=names)
    net.external_output.extend(outputs)
    return net, dict(zip(names, inputs, strict=True))


X4 = floats(2, 4, 5, 7)

EXPAND_DEPTHWISE = [floats(6, 4, 1, 1), floats(6), floats(6, 1, 3, 3), floats(6)]
OPERATORS = [
    *((name, [floats(2, 3)], {}) for name in ("Negative", "Copy", "StopGradient", "Sqr", "Swish")),
    ("LeakyRelu", [floats(5)], {"alpha": 0.25}),
    ("Clip", [floats(5)], {"min": -0.5, "max": 0.5}),
    ("Scale", [floats(5)], {"scale": 3.0}),
    ("PRelu", [X4, floats(4)], {}),
    ("Pow", [np.abs(floats(4))], {"exponent": 1.5}),
    ("Add", [X4, floats(4)], {"broadcast": 1, "axis": 1}),
    ("Mul", [X4, floats(5, 7)], {"broadcast": 1}),
    ("Sub", [X4, floats(7)], {}),
    ("GT", [floats(4), floats(4)], {}),
    ("Sum", [floats(3), floats(3)], {}),
    ("Cast", [floats(4)], {"to": core.DataType.INT32}),
    ("Softmax", [floats(2, 3)], {}),
    ("FC", [floats(2, 3), floats(4, 3), floats(4)], {}),
    ("FC", [floats(2, 3, 1), floats(4, 3), floats(4)], {}),
    ("FC", [floats(2, 3, 2, 2), floats(4, 2, 2), floats(4)], {"axis": 2}),
    ("FCTransposed", [floats(2, 3), floats(3, 4), floats(4)], {}),
    ("MatMul", [floats(3, 2), floats(3, 4)], {"trans_a": 1}),
    ("BatchMatMul", [floats(5, 2, 3), floats(5, 4, 3)], {"trans_b": 1}),
    ("Conv", [X4, floats(3, 4, 3, 3), floats(3)], {"kernel": 3, "pad": 1, "stride": 2}),
    ("Conv", [X4, floats(4, 2, 2, 3)], {"kernel_h": 2, "kernel_w": 3, "group": 2}),
    (
        "ExpandDepthwise",
        [X4, *EXPAND_DEPTHWISE],
        {"kernel": 3, "pad": 1, "stride": 2, "min": 0.0, "max": 1.0},
    ),
    (
        "ExpandDepthwise",
        [X4, *EXPAND_DEPTHWISE, floats(2, 6, 1, 1), floats(2)],
        {"kernel": 3, "max": 1.0, "filtered_min": -0.5, "filtered_max": 0.5},
    ),
    ("ConvTranspose", [X4, floats(4, 3, 2, 2)], {"kernel": 2, "stride": 2, "adj": 1}),
    ("MaxPool", [X4], {"kernels": [2, 2], "strides": [2, 1], "pads": [0, 1, 1, 0]}),
    ("MaxPool", [X4], {"kernel": 2, "stride": 2, "legacy_pad": 3}),
    ("AveragePool", [X4], {"kernel": 3, "stride": 2, "pad": 1}),
    ("AveragePool", [X4], {"global_pooling": 1}),
    ("SpatialBN", [X4, floats(4), floats(4), floats(4), np.abs(floats(4))], {"is_test": 1}),
    ("AffineChannel", [X4, floats(4), floats(4)], {}),
    ("ElementwiseLinear", [floats(4, 2, 5, 3), floats(15), floats(15)], {"axis": 2}),
    ("Transpose", [floats(2, 3, 4)], {"axes": [1, 2, 0]}),
    ("NCHW2NHWC", [X4], {}),
    ("NHWC2NCHW", [X4], {}),
    ("Flatten", [X4], {"axis": 2}),
    ("FlattenToVec", [X4], {}),
    ("MergeDim", [floats(2, 3, 1, 5)], {}),
    ("Squeeze", [floats(2, 1, 3)], {"dims": [1]}),
    ("ExpandDims", [floats(2, 3)], {"dims": [0, 2]}),
    ("Slice", [floats(4, 5)], {"starts": [0, 1], "ends": [-1, -2]}),
    ("Gather", [floats(4, 3), np.array([2, 0], np.int32)], {}),
    ("BatchGather", [floats(4, 3), np.array([2, 0], np.int32)], {}),
    ("Tile", [floats(2, 3)], {"tiles": 2, "axis": 1}),
    ("PadImage", [X4], {"pads": [1, 0, 0, 2], "mode": "reflect"}),
    ("ChannelShuffle", [X4], {"group": 2}),
    ("ReduceFrontMean", [X4], {"num_reduce_dim": 2}),
    ("ReduceBackSum", [X4], {"num_reduce_dim": 1}),
    ("ReduceMean", [X4], {"axes": [1, -1], "keepdims": 0}),
    ("ArgMax", [floats(3, 4)], {"axis": 1, "keepdims": 0}),
]


@pytest.mark.parametrize(
    ("op_type", "inputs", "arguments"), OPERATORS, ids=[op[0] for op in OPERATORS]
)
def test_an_operator(op_type, inputs, arguments):
    net, given = net_of(op_type, inputs, **arguments)
    _, expected = nets.c2_native_run_net(None, net, inputs)
    model = frontend.caffe2_net_to_onnx_model(net, None, {n: info(a) for n, a in given.items()})
    if op_type != "SpatialBN":  # which the evaluator gets wrong in this version
        (found,) = ReferenceEvaluator(model).run(None, given)
        assert found.shape == expected[0].shape and found.dtype == expected[0].dtype
        np.testing.assert_allclose(found, expected[0], rtol=2e-5, atol=1e-6)
    (again,) = backend.run_model(model, given)
    np.testing.assert_allclose(again, expected[0], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("add_axis", [0, 1])
def test_several_outputs(add_axis):
    inputs = [floats(2, 3), floats(2, 3)]
    net, given = net_of("Concat", inputs, ["y", "sizes"], axis=1, add_axis=add_axis)
    _, expected = nets.c2_native_run_net(None, net, inputs)
    model = frontend.caffe2_net_to_onnx_model(net, None, {n: info(a) for n, a in given.items()})
    for found, right in zip(ReferenceEvaluator(model).run(None, given), expected, strict=True):
        np.testing.assert_array_equal(found, right)
    net, given = net_of("Split", inputs[:1], ["a", "b"], axis=1, split=[1, 2])
    model = frontend.caffe2_net_to_onnx_model(net, None, {n: info(a) for n, a in given.items()})
    a, b = ReferenceEvaluator(model).run(None, given)
    np.testing.assert_array_equal(np.concatenate([a, b], 1), inputs[0])


def test_resizing():
    net, given = net_of("ResizeNearest", [X4], height_scale=2.0, width_scale=3.0)
    model = frontend.caffe2_net_to_onnx_model(net, None, {n: info(a) for n, a in given.items()})
    (node,) = model.graph.node
    assert node.op_type == "Upsample" and model.opset_import[0].version == 9
    found = backend.run_model(model, given)[0]
    np.testing.assert_array_equal(found, X4.repeat(2, axis=2).repeat(3, axis=3))


def lenet():
    model = model_helper.ModelHelper(name="lenet")
    x = brew.conv(model, "data", "conv", dim_in=1, dim_out=4, kernel=3)
    x = brew.relu(model, brew.max_pool(model, x, "pool", kernel=2, stride=2), "pool")
    brew.softmax(model, brew.fc(model, x, "fc", dim_in=4 * 3 * 3, dim_out=3), "prob")
    model.net.AddExternalOutput("prob")
    return model


def test_a_net_with_parameters_and_what_works_in_place():
    model = lenet()
    exported = frontend.caffe2_net_to_onnx_model(
        model.net, model.param_init_net, {"data": (TensorProto.FLOAT, (1, 1, 8, 8))}
    )
    onnx.checker.check_model(exported)
    graph = exported.graph
    assert [node.op_type for node in graph.node] == [
        *("Conv", "MaxPool", "Relu", "Flatten", "Gemm", "Softmax")
    ]
    assert [value.name for value in graph.input] == ["data"]
    assert [value.name for value in graph.output] == ["prob"]
    assert {t.name for t in graph.initializer} == {"conv_w", "conv_b", "fc_w", "fc_b"}
    workspace.ResetWorkspace()
    for tensor in graph.initializer:
        workspace.FeedBlob(tensor.name, onnx.numpy_helper.to_array(tensor))
    x = floats(1, 1, 8, 8)
    workspace.FeedBlob("data", x)
    workspace.RunNetOnce(model.net)
    (found,) = ReferenceEvaluator(exported).run(None, {"data": x})
    np.testing.assert_allclose(found, workspace.FetchBlob("prob"), rtol=1e-5)


def test_outputs_keep_their_names_and_blobs_written_again_get_new_ones():
    net = core.Net("again")
    net.Relu("x", "y")
    net.Scale("y", "y", scale=2.0)
    net.Copy("y", "z")
    net.Scale("y", "y", scale=3.0)
    net.AddExternalOutput("y", "z")
    proto = caffe2_pb2.NetDef()
    proto.CopyFrom(net.Proto())
    frontend.ssa_rewrite(proto, None, {})
    assert [op.output[0] for op in proto.op] == ["y_1", "y_2", "z", "y_3"]
    assert [op.input[0] for op in proto.op] == ["x", "y_1", "y_2", "y_2"]
    assert list(proto.external_output) == ["y_3", "z"]
    model = frontend.caffe2_net_to_onnx_model(net, None, {"x": (TensorProto.FLOAT, (2,))})
    y, z = ReferenceEvaluator(model).run(["y", "z"], {"x": np.float32([1, -1])})
    np.testing.assert_array_equal([y, z], [[6, 0], [2, 0]])


def test_the_nodes_of_one_operator():
    op = core.CreateOperator("Scale", ["x"], ["y"], scale=2.0)
    nodes, constants = frontend.Caffe2Frontend.caffe2_op_to_onnx_node(op, {"x": [3]})
    assert [node.op_type for node in nodes] == ["Mul"]
    assert onnx.numpy_helper.to_array(constants[0]) == np.float32(2)


def test_constants_within_a_net():
    net = core.Net("constant")
    two = net.GivenTensorFill([], "two", shape=[1], values=[2.0])
    net.Mul(["x", two], "y")
    net.AddExternalOutput("y")
    model = frontend.caffe2_net_to_onnx_model(net, None, {"x": (TensorProto.FLOAT, (3,))})
    (y,) = ReferenceEvaluator(model).run(None, {"x": np.float32([1, 2, 3])})
    np.testing.assert_array_equal(y, [2, 4, 6])


@pytest.mark.parametrize(
    ("op_type", "inputs", "arguments", "text"),
    [
        ("LengthsSum", [floats(3), np.array([1, 2], np.int32)], {}, "LengthsSum 'out'"),
        ("MaxPool", [X4], {"kernel": 2, "order": "NHWC"}, "MaxPool 'out': order=NHWC has no ONNX"),
        (
            "Conv",
            [X4, floats(4, 4, 3, 3)],
            {"kernel": 3, "legacy_pad": 2},
            "legacy_pad=2",
        ),
    ],
)
def test_what_has_no_counterpart_is_named(op_type, inputs, arguments, text):
    net, given = net_of(op_type, inputs, **arguments)
    with pytest.raises(Unsupported, match=text):
        frontend.caffe2_net_to_onnx_model(net, None, {n: info(a) for n, a in given.items()})


def test_an_input_that_the_init_net_fills_with_a_value_that_stands_for_it():
    net, values = net_of("FC", [floats(2, 3), floats(4, 3), floats(4)])
    for name, value in values.items():
        workspace.FeedBlob(name, value)
    init, predict = mobile_exporter.Export(workspace, net, ["in1", "in2"])
    model = frontend.caffe2_net_to_onnx_model(predict, init, {"in0": info(values["in0"])})
    assert [i.name for i in model.graph.input] == ["in0"]
    assert {i.name for i in model.graph.initializer} >= {"in2"} and len(
        model.graph.initializer
    ) == 2
    [found] = ReferenceEvaluator(model).run(None, {"in0": values["in0"]})
    expected = values["in0"] @ values["in1"].T + values["in2"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="value_info has to describe the inputs in0"):
        frontend.caffe2_net_to_onnx_model(predict, init)


def test_an_input_that_nobody_describes():
    with pytest.raises(ValueError, match="value_info has to describe the inputs data"):
        frontend.caffe2_net_to_onnx_model(lenet().net, lenet().param_init_net)


def test_files_and_runs_of_nets(tmp_path):
    net, given = net_of("Relu", [floats(3)])
    path = str(tmp_path / "net.pb")
    nets.save_caffe2_net(net, path, output_txt=True)
    assert nets.load_caffe2_net(path) == net and nets.load_caffe2_net(path + "txt") == net
    ws, (y,) = nets.c2_native_run_op(net.op[0], given)
    np.testing.assert_array_equal(y, np.maximum(given["in0"], 0))
    np.testing.assert_array_equal(ws.FetchBlob("out"), y)
    init = caffe2_pb2.NetDef(name="init")
    init.op.append(core.CreateOperator("ConstantFill", [], ["in0"], shape=[3]))
    assert nets.benchmark_caffe2_model(init, net, main_iters=2) > 0
