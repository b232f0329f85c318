"""Answers of the original Caffe2 (torch 1.10.2, CPU) for operators on Int8 tensors, asked once."""

import re
from pathlib import Path

import numpy as np
import pytest

from caffe2.graph.shapes import infer_shapes
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from caffe2.python.workspace import Int8Tensor

F4, U1 = np.float32, np.uint8
TENTH = {"Y_scale": 0.1, "Y_zero_point": 20}
FIFTH = {"Y_scale": 0.2, "Y_zero_point": 50}
LAYER = {"Y_scale": 0.4, "Y_zero_point": 60}
A = Int8Tensor(U1([[172, 47, 117], [192, 67, 251]]), 0.1, 20)
B = Int8Tensor(U1([[37, 235, 140], [72, 255, 137]]), 0.05, 100)
PICTURE = Int8Tensor(
    U1([172, 47, 117, 192, 67, 251, 195, 103, 9, 211, 21, 242, 36, 87, 70, 216, 88, 140, 58, 193,
        230, 39, 87, 174, 88, 81, 165, 25, 77, 72, 9, 148, 115, 208, 243, 197, 254, 79, 175, 192]
       ).reshape(1, 4, 5, 2), 0.1, 20)  # fmt: skip
CORNER = Int8Tensor(PICTURE.data[:, :1, :2], 0.1, 20)
TAPS = Int8Tensor(U1(np.random.RandomState(7).randint(0, 256, (2, 2, 2, 3))), 0.02, 120)
CHANNELS = Int8Tensor(
    U1([[[[172, 47, 117, 192, 67, 251], [195, 103, 9, 211, 21, 242]]]]), 0.1, 20)  # fmt: skip
WEIGHTS = U1(np.random.RandomState(3).randint(0, 256, (3, 2, 2, 2)))
W = Int8Tensor(WEIGHTS, 0.02, 120)
BIAS = Int8Tensor(np.int32([100, -200, 3000]), 0.002, 0)
PAIRS = Int8Tensor(U1(np.random.RandomState(3).randint(0, 256, (2, 3, 3, 1))), 0.02, 120)
FC_X = Int8Tensor(U1(np.random.RandomState(0).randint(0, 256, (2, 6))), 0.1, 20)
FC_W = Int8Tensor(U1(np.random.RandomState(3).randint(0, 256, (3, 6))), 0.02, 120)
NOTHING = Int8Tensor(U1([[7]]), 0.5, 7)
NOTHING_19 = Int8Tensor(np.full((19, 1), 9, U1), 0.5, 9)
LAST = {"order": "NHWC"}
HALF = {"kernel": 2, "stride": 2, "pad": 1, **LAST}

# (type, inputs, arguments, elements of the output)
RECORDED = [
    ("Int8Quantize", [F4([-3, -1, 0, 0.25, 0.75, np.nan, 0.049, 0.051, 100, -100])], TENTH,
     [0, 10, 20, 22, 28, 0, 20, 21, 255, 0]),
    ("Int8Quantize", [F4([0.5, 1.5, 2.5, 3.5, -0.5, -1.5])], {"Y_scale": 1.0, "Y_zero_point": 20},
     [20, 22, 22, 24, 20, 18]),
    ("Int8Quantize", [F4([0.5, 1.5, 2.5, -0.5, -1.5, 3.5])],
     {"Y_scale": 1.0, "Y_zero_point": 21, "engine": "DNNLOWP"}, [22, 22, 24, 20, 20, 24]),
    ("Quantize", [F4([0.5, 1.5, 2.5, -0.5, -1.5, 3.5])],
     {"Y_scale": 1.0, "Y_zero_point": 21, "engine": "DNNLOWP"}, [22, 22, 24, 20, 20, 24]),
    ("Int8Add", [A, B], FIFTH, [110, 97, 109, 129, 112, 175]),
    ("Int8AddRelu", [A, B], FIFTH, [110, 97, 109, 129, 112, 175]),
    ("Int8Sum", [A, B], FIFTH, [110, 97, 109, 129, 112, 175]),
    ("Int8SumRelu", [A, B], FIFTH, [110, 97, 109, 129, 112, 175]),
    ("Int8Relu", [A], TENTH, A.data.ravel()),
    ("Int8LeakyRelu", [A], {**FIFTH, "alpha": 0.3}, [126, 64, 98, 136, 74, 166]),
    ("Int8Sigmoid", [A], {"Y_scale": 1 / 256}, [255, 240, 255, 255, 254, 255]),
    ("Int8Softmax", [A], {"Y_scale": 1 / 256}, [255, 0, 1, 1, 0, 255]),
    ("Int8AveragePool", [PICTURE], {**HALF, **TENTH},
     [58, 27, 56, 121, 61, 89, 73, 80, 70, 140, 97, 108, 17, 52, 100, 111, 117, 78]),
    ("Int8AveragePoolRelu", [PICTURE], {**HALF, **TENTH},
     [58, 27, 56, 121, 61, 89, 73, 80, 70, 140, 97, 108, 20, 52, 100, 111, 117, 78]),
    ("Int8AveragePool", [PICTURE], {"global_pooling": 1, **LAST, **TENTH}, [114, 145]),
    ("Int8MaxPool", [PICTURE], {**HALF, **TENTH},
     [172, 47, 117, 251, 195, 211, 230, 242, 88, 216, 165, 193, 9, 148, 243, 208, 254, 192]),
    ("Int8MaxPoolRelu", [PICTURE], {**HALF, **TENTH},
     [172, 47, 117, 251, 195, 211, 230, 242, 88, 216, 165, 193, 20, 148, 243, 208, 254, 192]),
    ("Int8ChannelShuffle", [CHANNELS], {"group": 2, "kernel": 1, **LAST, **TENTH},
     [172, 192, 47, 67, 117, 251, 195, 211, 103, 21, 9, 242]),
    ("Int8Concat", [A, Int8Tensor(U1([[172, 47], [117, 192]]), 0.1, 20)], {"axis": 1, **TENTH},
     [172, 47, 117, 172, 47, 192, 67, 251, 117, 192]),
    ("Int8Flatten", [PICTURE], TENTH, PICTURE.data.ravel()),
    ("Int8Conv", [PICTURE, W, BIAS], {**HALF, **LAYER},
     [0, 77, 114, 18, 201, 113, 62, 219, 128, 0, 67, 158, 125, 182, 163, 97, 232, 202, 60, 46, 87,
      238, 227, 255, 163, 255, 192]),
    ("Int8ConvRelu", [PICTURE, W, BIAS], {**HALF, **LAYER},
     [60, 77, 114, 60, 201, 113, 62, 219, 128, 60, 67, 158, 125, 182, 163, 97, 232, 202, 60, 60,
      87, 238, 227, 255, 163, 255, 192]),
    ("Int8Conv", [PICTURE, PAIRS, Int8Tensor(np.int32([1000, -100]), 0.002, 0)],
     {"kernel": 3, "pad": 1, "group": 2, **LAST, "Y_scale": 0.2, "Y_zero_point": 60},
     [255, 132, 236, 255, 255, 255, 102, 255, 0, 255, 138, 250, 0, 255, 255, 255, 35, 255, 0, 255,
      255, 255, 255, 255, 255, 255, 0, 255, 0, 255, 255, 151, 255, 255, 255, 255, 255, 255, 193,
      255]),
    ("Int8FC", [FC_X, FC_W, BIAS], LAYER, [234, 46, 255, 154, 0, 255]),
    ("Int8FCRelu", [FC_X, FC_W, BIAS], LAYER, [234, 60, 255, 154, 60, 255]),  # from that of Int8FC
    # Halves, which are rounded away from zero, some of them after rounding to 31 bits.
    ("Int8FC", [NOTHING, NOTHING_19, Int8Tensor(np.int32(np.arange(-9, 10)), 0.25, 0)],
     {"Y_scale": 1.0, "Y_zero_point": 100},
     [98, 98, 98, 98, 99, 99, 99, 99, 100, 100, 101, 101, 101, 101, 102, 102, 102, 102, 103]),
    ("Int8FC", [NOTHING, NOTHING_19, Int8Tensor(np.int32(np.arange(-9, 10)), 0.25, 0)],
     {"Y_scale": 1.0, "Y_zero_point": 100, "engine": "DNNLOWP"},
     [98, 98, 98, 98, 99, 99, 99, 100, 100, 100, 100, 100, 101, 101, 101, 102, 102, 102, 102]),
    ("Int8Add", [Int8Tensor(U1([34, 17, 0, 34, 85]), 0.3, 20),
                 Int8Tensor(U1([255, 238, 221, 187, 170]), 0.1, 100)],
     {"Y_scale": 0.2, "Y_zero_point": 90}, [189, 155, 121, 155, 223]),
    ("Int8ConvTranspose", [CORNER, TAPS, BIAS], {"kernel": 2, "stride": 2, **LAST, **LAYER},
     [96, 113, 1, 146, 32, 146, 46, 69, 20, 55, 118, 133, 90, 61, 47, 117, 77, 3, 116, 145, 17, 140,
      76, 41]),
    ("Int8ConvTranspose", [CORNER, TAPS, BIAS], {"kernel": 2, **LAST, **LAYER},
     [96, 113, 1, 131, 42, 92, 55, 118, 133, 90, 61, 47, 173, 163, 0, 140, 76, 41]),
    ("Int8Reshape", [PICTURE], {"shape": [0, -1], **TENTH}, PICTURE.data.ravel()),
    ("Int8Transpose", [PICTURE], {"axes": [0, 3, 1, 2], **TENTH},
     PICTURE.data.transpose(0, 3, 1, 2).ravel()),
    ("Int8Slice", [PICTURE], {"starts": [0, 1, 0, 0], "ends": [-1, 3, -1, -1], **TENTH},
     PICTURE.data[:, 1:3].ravel()),
    ("Int8Slice", [PICTURE], {"dim": 2, "start_idx": 1, "end_idx": -2, **TENTH},
     PICTURE.data[:, :, 1:4].ravel()),
    ("Int8GivenTensorFill", [], {"shape": [2, 2], "values": b"\x00\x01\xfe\xff", **TENTH},
     [0, 1, 254, 255]),
    ("Int8GivenIntTensorFill", [], {"shape": [2], "values": [1, -5], **TENTH}, [1, -5]),
]  # fmt: skip


OUTPUTS = {"Int8Reshape": ["y", "old"]}


def run(type, inputs, args):
    names = [f"x{i}" for i in range(len(inputs))]
    for name, value in zip(names, inputs, strict=True):
        if isinstance(value, Int8Tensor):
            workspace.FeedInt8Blob(name, value)
        else:
            workspace.FeedBlob(name, value)
    op = core.CreateOperator(type, names, OUTPUTS.get(type, ["y"]), **args)
    workspace.RunOperatorOnce(op)
    y = workspace.FetchInt8Blob("y")
    arrays = [value.data if isinstance(value, Int8Tensor) else value for value in inputs]
    known = {n: Spec(a.shape, a.dtype) for n, a in zip(names, arrays, strict=True)}
    specs, refused = infer_shapes(caffe2_pb2.NetDef(op=[op]), known)
    assert not refused and specs["y"] == Spec(y.data.shape, y.data.dtype)
    return y


@pytest.mark.parametrize(("type", "inputs", "args", "expected"), RECORDED)
def test_recorded(type, inputs, args, expected):
    y = run(type, inputs, args)
    assert (y.scale, y.zero_point) == (F4(args["Y_scale"]), args.get("Y_zero_point", 0))
    assert y.data.dtype == (np.int32 if type == "Int8GivenIntTensorFill" else U1)
    np.testing.assert_array_equal(y.data.ravel(), expected)


@pytest.mark.parametrize(
    ("type", "shapes", "args", "problem"),
    [
        ("Int8Relu", [F4([1])], {}, "'x0'.* is FLOAT; an Int8 tensor is needed"),
        ("Int8Add", [A.data, A.data[:1]], {}, r"'x1'.* has shape \(1, 3\); A has \(2, 3\)"),
        ("Int8Conv", [PICTURE.data, W.data], {"kernel": 2}, "argument 'order'.* must be NHWC"),
        ("Int8Conv", [PICTURE.data, TAPS.data], {"kernel": 2, **LAST}, "'x1'.* has shape"),
        ("Int8FC", [FC_X.data, PAIRS.data], {}, "'x1'.* 9 features"),
        ("Int8Reshape", [FC_X.data], {"shape": [5, -1]}, "argument 'shape'"),
    ],
)
def test_shapes_that_do_not_fit_are_known_before_a_run(type, shapes, args, problem):
    names = [f"x{i}" for i in range(len(shapes))]
    op = core.CreateOperator(type, names, OUTPUTS.get(type, ["y"]), **args)
    known = {n: Spec(a.shape, a.dtype) for n, a in zip(names, shapes, strict=True)}
    [(_, error)] = infer_shapes(caffe2_pb2.NetDef(op=[op]), known)[1]
    assert re.search(problem, str(error))


def test_the_axis_of_concat_depends_on_the_order():
    known = {"x": Spec((1, 4, 5, 2), np.dtype(U1))}
    for args, shape in (
        ({}, (2, 4, 5, 2)), (LAST, (1, 4, 5, 4)), ({**LAST, "axis": 0}, (2, 4, 5, 2))
    ):  # fmt: skip
        op = core.CreateOperator("Int8Concat", ["x", "x"], ["y", "dims"], **args)
        found = infer_shapes(caffe2_pb2.NetDef(op=[op]), known)[0]
        assert found["y"].shape == shape and found["dims"] == Spec((2,), np.dtype(np.int32))


@pytest.mark.parametrize("type", ["Quantize", "Int8Quantize"])
@pytest.mark.parametrize(
    ("values", "scale", "zero_point", "expected"),
    [
        ([-3, -1, 0, 0.25, 0.75, 1.5], 0.01764705963432789, 170, [0, 113, 170, 184, 212, 255]),
        ([1, 2, 4], 0.01568627543747425, 0, [64, 127, 255]),
        ([-5, -1], 0.019607843831181526, 255, [0, 204]),
        ([-1e-7, 3e-8], 6.0999998822808266e-05, 196, [196, 196]),
        ([0, 0], 0.1, 0, [0, 0]),
        ([], 0.1, 0, []),
    ],
)
def test_scales_that_are_those_of_the_values(type, values, scale, zero_point, expected):
    y = run(type, [F4(values)], {"engine": "DNNLOWP"})
    assert (y.scale, y.zero_point) == (F4(scale), zero_point)
    np.testing.assert_array_equal(y.data, U1(expected))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_scale_for_values_that_are_not_finite(value):
    with pytest.raises(RuntimeError, match="finite"):
        run("Quantize", [F4([value, 1])], {})


def test_the_largest_values_have_a_scale():
    y = run("Quantize", [F4([3e38, -3e38])], {})
    assert y.data.tolist() == [255, 0]


def test_weights_and_bias_are_quantized():
    workspace.FeedBlob("w", F4([[0.5, -1, 2, 0.25], [1, 0.75, -0.5, -2], [0.1, 0.2, 0.3, 3]]))
    workspace.FeedBlob("b", F4([1, -2, 0.5]))
    args = {"in_scale": float(F4(0.05)), "engine": "DNNLOWP"}
    workspace.RunOperatorOnce(
        core.CreateOperator("Int8FCPackWeight", ["w", "b"], ["wq", "bq"], **args)
    )
    bias = workspace.FetchInt8Blob("bq")
    check_same(bias, Int8Tensor(np.int32([1020, -2040, 510]), 0.0009803922148421407, 0))
    x = Int8Tensor(U1([[10, 200, 33, 255], [0, 90, 140, 60]]), 0.05, 33)
    workspace.FeedInt8Blob("x", x)
    args = {"Y_scale": 0.1, "Y_zero_point": 100, "engine": "DNNLOWP"}
    for name in ("bq", "b"):
        workspace.RunOperatorOnce(core.CreateOperator("Int8FC", ["x", "wq", name], ["y"], **args))
        y = workspace.FetchInt8Blob("y")
        np.testing.assert_array_equal(y.data, [[49, 0, 255], [184, 30, 165]])


@pytest.mark.parametrize(
    ("inputs", "outputs", "args", "problem"),
    [
        (["w"], ["wq"], {"quantize_channelwise": 1}, "quantize_channelwise"),
        (["w", "b"], ["wq", "bq"], {}, "in_scale"),
        (["w"], ["wq", "bq"], {}, "B_q"),
        (["w", "w"], ["wq"], {"in_scale": 0.1}, r"\(2,\) is needed"),
        (["b"], ["wq"], {}, "a row for each output"),
    ],
)
def test_weights_that_cannot_be_quantized(inputs, outputs, args, problem):
    workspace.FeedBlob("w", F4([[1, 2], [3, 4]]))
    workspace.FeedBlob("b", F4([1, 2]))
    with pytest.raises(RuntimeError, match=problem):
        workspace.RunOperatorOnce(core.CreateOperator("Int8FCPackWeight", inputs, outputs, **args))


def test_packed_weights_follow_their_blob():
    """Filters are packed once: others of the same shape, or with another zero point, are seen."""
    net = core.Net("follow")
    net.Int8FC(["x", "w", "b"], "y", **LAYER)
    workspace.FeedInt8Blob("x", FC_X)
    workspace.FeedInt8Blob("b", BIAS)
    workspace.FeedInt8Blob("w", FC_W)
    workspace.CreateNet(net)
    answers = []
    for weights in (
        FC_W,
        FC_W,
        Int8Tensor(FC_W.data, 0.02, 60),
        Int8Tensor(255 - FC_W.data, 0.02, 60),
    ):
        workspace.FeedInt8Blob("w", weights)
        workspace.RunNet(net)
        found = workspace.FetchInt8Blob("y").data
        np.testing.assert_array_equal(found, run("Int8FC", [FC_X, weights, BIAS], LAYER).data)
        answers.append(found.tolist())
    assert answers[0] == answers[1]
    assert len({str(answer) for answer in answers}) == 3


@pytest.mark.parametrize("type", ["Int8Dequantize", "Dequantize"])
def test_dequantize(type):
    workspace.FeedInt8Blob("x", Int8Tensor(U1([[0, 10, 20], [30, 200, 255]]), 0.1, 20))
    workspace.RunOperatorOnce(core.CreateOperator(type, ["x"], ["y"]))
    expected = F4([[-2, -1, 0], [1, 18, 23.5]])
    np.testing.assert_allclose(workspace.FetchBlob("y"), expected, rtol=1e-6)
    np.testing.assert_allclose(workspace.FetchInt8BlobRealVal("x"), expected, rtol=1e-6)


def test_resize():
    y = run("Int8ResizeNearest", [PICTURE], {"width_scale": 2.0, "height_scale": 1.5, **TENTH})
    rows, columns = [0, 0, 1, 2, 2, 3], np.arange(10) // 2
    np.testing.assert_array_equal(y.data, PICTURE.data[:, rows][:, :, columns])


def test_regions():
    rois = F4([[0, 0, 0, 3, 3], [0, 1, 1, 2.5, 3.5]])
    args = {"pooled_h": 2, "pooled_w": 2, "spatial_scale": 0.5, "Y_scale": 0.2, "Y_zero_point": 50}
    y = run("Int8RoIAlign", [PICTURE, rois], {**args, **LAST})
    assert y.data.shape == (2, 2, 2, 2)
    recorded = [93, 106, 82, 122, 63, 126, 63, 95, 65, 106, 68, 108, 76, 106, 72, 107]
    # One quantum: the original's shares of the elements around a sample have few bits.
    assert np.abs(y.data.ravel().astype(int) - recorded).max() <= 1


def test_the_shape_of_a_reshape_may_be_an_input():
    workspace.FeedInt8Blob("x", PICTURE)
    workspace.FeedBlob("shape", np.int32([2, 20]))
    workspace.RunOperatorOnce(core.CreateOperator("Int8Reshape", ["x", "shape"], ["x", "old"]))
    assert workspace.FetchInt8Blob("x").data.shape == (2, 20)
    np.testing.assert_array_equal(workspace.FetchBlob("old"), np.int32([1, 4, 5, 2]))


# Blobs as the original saves them.
SAVED = {
    "q": (Int8Tensor(U1([[1, 2], [200, 255]]), 0.1, 20),
          "0a0171120d496e743854656e736f724350552a2708020802100819000000a09999b93f2100000000000034402800"
          "32060102c801ff013a01714006"),
    "b": (BIAS,
          "0a0162120d496e743854656e736f724350552a2c0803100819000000e04d62603f210000000000000000280032"
          "0d64b8feffffffffffffff01b8173a01624002"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAVED)
def test_saved_and_loaded(name, tmp_path):
    tensor, saved = SAVED[name][0], bytes.fromhex(SAVED[name][1])
    workspace.FeedInt8Blob(name, tensor)
    assert workspace.SerializeBlob(name) == saved
    workspace.ResetWorkspace()
    workspace.DeserializeBlob(name, saved)
    check_same(workspace.FetchInt8Blob(name), tensor)
    args = {"db": str(tmp_path / "db"), "db_type": "minidb", "absolute_path": True}
    workspace.RunOperatorOnce(core.CreateOperator("Save", [name], [], **args))
    workspace.ResetWorkspace()
    workspace.RunOperatorOnce(core.CreateOperator("Load", [], [name], **args))
    check_same(workspace.FetchInt8Blob(name), tensor)


def check_same(found, wanted):
    assert (found.scale, found.zero_point) == (F4(wanted.scale), wanted.zero_point)
    assert found.data.dtype == wanted.data.dtype
    np.testing.assert_array_equal(found.data, wanted.data)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"data": [1, 2, 3]}, r"shape \(2, 2\) holds 3"),
        ({"data": [1, 2, 3, 256]}, "holds 256"),
        ({"dims": [2, -2]}, "-2"),
        ({"scale": 0.0}, "scale 0"),
        ({"scale": float("nan")}, "scale nan"),
        ({"bias": 0.5}, "zero point 0.5"),
        ({"data_type": 1}, "type float"),
    ],
)
def test_a_broken_saved_tensor_is_refused(change, problem):
    proto = caffe2_pb2.BlobProto.FromString(bytes.fromhex(SAVED["q"][1]))
    for field, value in change.items():
        if isinstance(value, list):
            getattr(proto.qtensor, field)[:] = value
        else:
            setattr(proto.qtensor, field, value)
    with pytest.raises(RuntimeError, match=problem):
        workspace.DeserializeBlob("q", proto.SerializeToString())


REFUSED = [
    ("Int8Reshape", [A], {"shape": [4, -1]}, "shape"),
    ("Int8Reshape", [A], {"shape": [6], **FIFTH}, "scale"),
    ("Int8Transpose", [A], {"axes": [0, 0]}, "axes"),
    ("Int8Slice", [A], {}, "starts"),
    ("Int8Slice", [A], {"dim": 2}, "shape"),
    ("Int8ConvTranspose", [CORNER, TAPS, BIAS], {"kernel": 2, **LAYER}, "NHWC"),
    ("Int8ConvTranspose", [CORNER, W, BIAS], {"kernel": 2, **LAST, **LAYER}, "channels"),
    (
        "Int8RoIAlign",
        [PICTURE, F4([[1, 0, 0, 3, 3]])],
        {"pooled_h": 2, "pooled_w": 2, **LAST, **TENTH},
        "picture 1",
    ),
    ("Int8RoIAlign", [PICTURE, F4([[0, 0, 0, 3, 3]])], {**TENTH}, "NHWC"),
    ("Int8Sum", [A, FC_X], FIFTH, "shape"),
    ("Int8Sum", [A, BIAS], FIFTH, "type"),
    ("Int8Sum", [A, F4([1])], FIFTH, "holds a tensor"),
    ("Int8Relu", [A], FIFTH, "scale"),
    ("Int8Conv", [PICTURE, W, BIAS], {"kernel": 3, **LAST, **LAYER}, "do not fit"),
    ("Int8Conv", [PICTURE, W, BIAS], {"kernel": 2, **LAYER}, "NHWC"),
    ("Int8Conv", [PICTURE, PAIRS, BIAS], {"kernel": 3, "group": 2, **LAST, **LAYER}, "shape"),
    ("Int8FC", [FC_X, W, BIAS], LAYER, "8"),
    ("Int8Concat", [A, B], {"axis": 0}, "scale"),
    ("Int8ChannelShuffle", [CHANNELS], {"group": 4, **LAST}, "groups"),
    ("Int8GivenTensorFill", [], {"shape": [2, 2], "values": b"\x00\x01\xfe"}, "3"),
    ("Int8Quantize", [F4([1])], {"Y_scale": 0.0}, "Y_scale"),
    ("Int8Quantize", [F4([1])], {"Y_zero_point": 300}, "Y_zero_point"),
]


@pytest.mark.parametrize(("type", "inputs", "args", "problem"), REFUSED)
def test_refused(type, inputs, args, problem):
    with pytest.raises(RuntimeError, match=problem):
        run(type, inputs, args)


MODELS = Path(__file__).parents[2] / "../shared/models"


@pytest.mark.skipif(not MODELS.exists(), reason="the folder of nets is not there")
def test_a_real_net():
    folder = MODELS / "mobilenet_v2_int8"
    init, predict = caffe2_pb2.NetDef(), caffe2_pb2.NetDef()
    init.ParseFromString((folder / "init_net.generated.pb").read_bytes())
    predict.ParseFromString((folder / "predict_net.pb").read_bytes())
    workspace.RunNetOnce(init)
    with np.load(folder / "expected.npz") as known:
        for key in known.files:
            if key.startswith("in:"):
                workspace.FeedBlob(key[3:].replace("%2F", "/"), known[key])
        workspace.RunNetOnce(predict)
        for key in known.files:
            if key.startswith("out:"):
                found = workspace.FetchBlob(key[4:].replace("%2F", "/"))
                np.testing.assert_array_equal(found, known[key])
