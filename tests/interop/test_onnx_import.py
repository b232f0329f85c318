"""ONNX models run here give what ONNX's own evaluator gives."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from caffe2.proto import caffe2_pb2  # noqa: E402
from caffe2.python import _C as C  # noqa: E402
from caffe2.python.onnx import backend  # noqa: E402
from caffe2.python.onnx.error import Unsupported  # noqa: E402

rng = np.random.default_rng(0)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def model_of(nodes, inputs, outputs, opset=9, constants=None):
    """A model of nodes; inputs: arrays by name, outputs: their types by name."""
    given = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    tensors = [numpy_helper.from_array(a, name) for name, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph", given, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


X4 = floats(2, 4, 5, 6)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def i64(*values):
    return np.array(values, np.int64)


# Operator, opset, inputs, constants, attributes.
NODES = [
    *((name, 9, [floats(2, 3)], [], {}) for name in ("Abs", "Neg", "Identity", "Relu", "Sign")),
    ("LeakyRelu", 9, [floats(5)], [], {"alpha": 0.3}),
    ("Selu", 9, [floats(5)], [], {}),
    ("HardSigmoid", 9, [floats(5)], [], {"alpha": 0.3}),
    ("HardSwish", 14, [floats(5)], [], {}),
    ("Gelu", 20, [floats(5)], [], {"approximate": "tanh"}),
    ("PRelu", 9, [X4], [floats(4, 1, 1)], {}),
    ("Clip", 9, [floats(6)], [], {"min": -0.5, "max": 0.25}),
    ("Clip", 11, [floats(6)], [np.float32(-0.5), np.float32(0.25)], {}),
    ("Add", 9, [X4, floats(6)], [], {}),
    ("Mul", 9, [floats(3, 1), floats(4)], [], {}),
    ("Pow", 9, [np.abs(floats(4)), floats(4)], [], {}),
    ("Greater", 9, [floats(4), floats(4)], [], {}),
    ("LessOrEqual", 16, [floats(4), floats(4)], [], {}),
    ("Sum", 9, [floats(2, 3), floats(2, 3), floats(2, 3)], [], {}),
    ("Mean", 9, [floats(2, 3), floats(3)], [], {}),
    ("Max", 9, [floats(3), floats(3)], [], {}),
    ("Where", 9, [np.array([True, False]), floats(2), floats(2)], [], {}),
    ("Cast", 9, [floats(4)], [], {"to": INT64}),
    ("Softmax", 9, [floats(2, 3, 4)], [], {"axis": 1}),
    ("Softmax", 13, [floats(2, 3, 4)], [], {"axis": 1}),
    ("LogSoftmax", 13, [floats(2, 3)], [], {}),
    ("MatMul", 9, [floats(2, 3), floats(3, 4)], [], {}),
    ("MatMul", 9, [floats(5, 2, 3), floats(3, 4)], [], {}),
    ("Gemm", 9, [floats(2, 3)], [floats(4, 3), floats(4)], {"transB": 1, "alpha": 0.5}),
    ("Gemm", 9, [floats(3, 2)], [floats(3, 4), floats(2, 4)], {"transA": 1, "beta": 2.0}),
    ("Gemm", 13, [floats(2, 3)], [floats(3, 4)], {}),
    ("Conv", 9, [X4], [floats(3, 4, 3, 2), floats(3)], {"pads": [1, 0, 0, 1], "strides": [2, 1]}),
    ("Conv", 9, [X4], [floats(4, 2, 3, 3)], {"group": 2, "auto_pad": "SAME_UPPER"}),
    ("Conv", 9, [X4], [floats(4, 4, 3, 3)], {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ("ConvTranspose", 9, [X4], [floats(4, 3, 2, 2)], {"strides": [2, 2]}),
    ("MaxPool", 9, [X4], [], {"kernel_shape": [2, 3], "strides": [2, 2]}),
    ("MaxPool", 10, [X4], [], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
    ("AveragePool", 9, [X4], [], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("GlobalAveragePool", 9, [X4], [], {}),
    ("GlobalMaxPool", 9, [X4], [], {}),
    (
        "BatchNormalization",
        15,
        [X4],
        [floats(4), floats(4), floats(4), np.abs(floats(4))],
        {"epsilon": 1e-3},
    ),
    ("InstanceNormalization", 9, [X4], [floats(4), floats(4)], {}),
    ("LayerNormalization", 17, [floats(2, 3, 4)], [floats(4), floats(4)], {}),
    ("LRN", 9, [X4], [], {"size": 3}),
    ("LpNormalization", 9, [floats(2, 3)], [], {"axis": 1, "p": 2}),
    ("Dropout", 9, [floats(4)], [], {"ratio": 0.7}),
    ("Reshape", 9, [floats(2, 6)], [i64(0, 3, -1)], {}),
    ("Flatten", 9, [X4], [], {"axis": 2}),
    ("Transpose", 9, [floats(2, 3, 4)], [], {"perm": [2, 0, 1]}),
    ("Transpose", 9, [floats(2, 3)], [], {}),
    ("Squeeze", 9, [floats(2, 1, 3)], [], {"axes": [1]}),
    ("Squeeze", 13, [floats(2, 1, 3)], [i64(-2)], {}),
    ("Squeeze", 9, [floats(1, 2, 1)], [], {}),
    ("Unsqueeze", 9, [floats(2, 3)], [], {"axes": [0, 3]}),
    ("Unsqueeze", 13, [floats(2, 3)], [i64(-1)], {}),
    ("Concat", 9, [floats(2, 3), floats(2, 1)], [], {"axis": -1}),
    ("Slice", 9, [floats(4, 5)], [], {"starts": [1, -3], "ends": [-1, 9000], "axes": [0, 1]}),
    ("Slice", 10, [floats(4, 5)], [i64(-2), i64(-1), i64(-1)], {}),
    ("Gather", 9, [floats(4, 3)], [i64(2, 0)], {"axis": 0}),
    ("Gather", 9, [floats(3, 4)], [i64(2, 0)], {"axis": 1}),
    ("Expand", 9, [floats(3, 1)], [i64(2, 3, 4)], {}),
    ("Tile", 9, [floats(2, 3)], [i64(2, 1)], {}),
    ("Pad", 9, [X4], [], {"pads": [0, 0, 1, 0, 0, 0, 2, 1], "mode": "reflect"}),
    ("Pad", 11, [X4], [i64(0, 0, 1, 0, 0, 0, 2, 1), np.float32(3)], {}),
    ("Shape", 9, [X4], [], {}),
    ("Shape", 15, [X4], [], {"start": 1, "end": -1}),
    ("Size", 9, [X4], [], {}),
    ("ReduceMean", 9, [X4], [], {"axes": [-1, 1], "keepdims": 0}),
    ("ReduceSum", 13, [X4], [i64(2)], {}),
    ("ReduceL2", 9, [floats(2, 3)], [], {"axes": [1]}),
    ("ReduceSumSquare", 9, [floats(2, 3)], [], {"axes": [0], "keepdims": 0}),
    ("ReduceLogSum", 9, [np.abs(floats(2, 3))], [], {"axes": [1]}),
    ("ReduceMax", 9, [floats(2, 3)], [], {}),
    ("ArgMax", 9, [floats(3, 4)], [], {"axis": 1, "keepdims": 0}),
    ("ArgMin", 9, [floats(3, 4)], [], {}),
    ("DepthToSpace", 11, [floats(1, 8, 2, 3)], [], {"blocksize": 2, "mode": "CRD"}),
    ("DepthToSpace", 9, [floats(1, 8, 2, 3)], [], {"blocksize": 2}),
    ("SpaceToDepth", 9, [floats(1, 2, 4, 6)], [], {"blocksize": 2}),
    ("Upsample", 9, [X4], [np.array([1, 1, 2, 3], np.float32)], {"mode": "nearest"}),
    ("ConstantOfShape", 9, [], [i64(2, 3)], {}),
]
# What the evaluator of ONNX gets wrong or does not have in these versions, written out.
EXPECTED = {
    ("Softmax", 9): lambda x: _softmax(x.reshape(2, -1)).reshape(x.shape),
    ("Upsample", 9): lambda x, scales: x.repeat(2, axis=2).repeat(3, axis=3),
    ("LRN", 9): lambda x: x / (1 + 1e-4 / 3 * _neighbours(x * x)) ** 0.75,
}


def _softmax(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _neighbours(x):
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    return padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]


def named(op_type, opset, inputs, constants, attributes):
    arrays = [*inputs, *constants]
    names = [f"in{index}" for index in range(len(arrays))]
    node = helper.make_node(op_type, names, ["out"], **attributes)
    by_name = dict(zip(names, arrays, strict=True))
    given = {name: by_name[name] for name in names[: len(inputs)]}
    fixed = {name: np.asarray(by_name[name]) for name in names[len(inputs) :]}
    return node, given, fixed


@pytest.mark.parametrize("case", NODES, ids=[f"{case[0]}-{case[1]}" for case in NODES])
def test_a_node(case):
    op_type, opset, inputs, constants, _ = case
    node, given, fixed = named(*case)
    kind = {"Greater": BOOL, "LessOrEqual": BOOL, "Shape": INT64, "Size": INT64}.get(op_type, FLOAT)
    kind = INT64 if op_type in ("ArgMax", "ArgMin", "Cast") else kind
    model = model_of([node], given, {"out": kind}, opset, fixed)
    (found,) = backend.prepare(model).run(given)
    if (op_type, opset) in EXPECTED:
        expected = EXPECTED[op_type, opset](*inputs, *constants)
    else:
        (expected,) = ReferenceEvaluator(model).run(None, given)
    assert found.shape == np.shape(expected) and found.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def test_several_outputs():
    x = floats(2, 6)
    split = helper.make_node("Split", ["x"], ["a", "b"], axis=1, split=[2, 4])
    top = helper.make_node("TopK", ["b"], ["values", "indices"], k=2)
    model = model_of([split, top], {"x": x}, {"a": FLOAT, "values": FLOAT, "indices": INT64})
    found = backend.run_model(model, [x])
    np.testing.assert_array_equal(found.a, x[:, :2])
    order = np.argsort(-x[:, 2:], axis=1)[:, :2]
    np.testing.assert_array_equal(found["indices"], order)
    np.testing.assert_array_equal(found[1], np.take_along_axis(x[:, 2:], order, 1))


def small_net():
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["hidden"], transB=1),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.float32([2]))),
        helper.make_node("Mul", ["active", "two"], ["y"]),
    ]
    constants = {"w": floats(4, 3), "b": floats(4)}
    return model_of(nodes, {"x": floats(2, 3)}, {"y": FLOAT}, 13, constants), constants


def test_a_model_as_two_nets():
    model, constants = small_net()
    init, predict = backend.Caffe2Backend.onnx_graph_to_caffe2_net(model, device="CPU")
    assert isinstance(init, caffe2_pb2.NetDef)
    assert [op.type for op in predict.op] == ["FC", "Relu", "Mul"]
    assert list(predict.external_input) == ["x", "w", "b", "two"]
    assert list(predict.external_output) == ["y"]
    from caffe2.python import workspace

    x = floats(5, 3)
    (y,) = workspace.Predictor(init, predict).run([x])
    expected = 2 * np.maximum(x @ constants["w"].T + constants["b"], 0)
    np.testing.assert_allclose(y, expected, rtol=1e-5)


def test_inputs_as_an_array_a_list_or_a_dict_of_any_numbers():
    model, _ = small_net()
    rep = backend.prepare(model)
    x = rng.standard_normal((2, 3))  # float64
    for inputs in (x, [x], {"x": x}):
        np.testing.assert_array_equal(rep.run(inputs).y, rep.run(x.astype(np.float32))[0])
    with pytest.raises(ValueError, match=r"missing inputs \['x'\], unknown ones \['z'\]"):
        rep.run({"z": x})
    with pytest.raises(ValueError, match=r"2 inputs are given; it takes \['x'\]"):
        rep.run([x, x])


def test_nodes_alone():
    node = helper.make_node("Add", ["a", "b"], ["c"])
    a, b = floats(2, 3), floats(3)
    np.testing.assert_array_equal(backend.run_node(node, [a, b]).c, a + b)
    # Before version 7 broadcasting went along an axis.
    node = helper.make_node("Add", ["a", "b"], ["c"], broadcast=1, axis=0)
    found = backend.run_node(node, {"a": a, "b": floats(2)[:2] * 0 + 1}, opset_version=6)
    np.testing.assert_allclose(found.c, a + 1, rtol=1e-6)


def test_values_of_all_types_are_filled():
    for dtype in ("float32", "float64", "bool", "int8", "int16", "int32", "int64", "uint8"):
        values = np.array([[1, 0, 3]]).astype(dtype)
        node = helper.make_node("Identity", ["c"], ["y"])
        kind = helper.np_dtype_to_tensor_dtype(values.dtype)
        model = model_of([node], {}, {"y": kind}, 13, {"c": values})
        (found,) = backend.run_model(model, {})
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (helper.make_node("Loop", ["x"], ["y"]), "no counterpart of the ONNX operator Loop 'y'"),
        (helper.make_node("Relu", ["x"], ["y"], domain="a.b"), r"a\.b\.Relu 'y'"),
        (helper.make_node("Relu", ["x"], ["y"], foo=1), "unexpected argument foo"),
        (
            helper.make_node("ArgMax", ["x"], ["y"], select_last_index=1),
            "ArgMax 'y': select_last_index=1 has no counterpart",
        ),
        (helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2]), "the output Indices"),
        (helper.make_node("Pad", ["x"], ["y"], pads=[1, 0, 0, 0] * 2), "only height and width"),
        (helper.make_node("Reshape", ["x"], ["y"], allowzero=1), "allowzero=1"),
    ],
)
def test_what_has_no_counterpart_is_named(node, text):
    with pytest.raises(Unsupported, match=text):
        backend.run_node(node, [floats(1, 1, 4, 4)])


def test_devices():
    model, _ = small_net()
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA:0")
    _, predict = backend.Caffe2Backend.onnx_graph_to_caffe2_net(model, device="CUDA:1")
    assert {op.device_option.device_id for op in predict.op} == {1}
    with pytest.raises(ValueError, match="no device 'TPU'"):
        backend.prepare(model, device="TPU")


def test_names_that_nobody_has():
    names = C.DummyName()
    first = [names.new_dummy_name() for _ in range(3)]
    assert len(set(first)) == 3
    names.reset()
    assert [names.new_dummy_name() for _ in range(3)] == first
    names.reset(first[:2])
    assert names.new_dummy_name() == first[2]
