"""OperatorDef and Argument messages from Python values."""

from __future__ import annotations

import warnings
from inspect import currentframe

import numpy as np
import pytest

from caffe2.graph.printer import operator_line
from caffe2.proto import caffe2_pb2
from caffe2.python import core, utils


def fields(argument):
    return {field.name: value for field, value in argument.ListFields() if field.name != "name"}


@pytest.mark.parametrize(
    ("value", "field", "expected"),
    [
        (1, "i", 1),
        (-(2**63), "i", -(2**63)),
        (True, "i", 1),
        (np.bool_(False), "i", 0),
        (np.int32(3), "i", 3),
        (core.DataType.INT64, "i", 10),
        (1.5, "f", 1.5),
        (np.float32(0.5), "f", 0.5),
        (1e300, "f", float("inf")),
        ("s", "s", b"s"),
        (b"\xff", "s", b"\xff"),
        ("é", "s", b"\xc3\xa9"),
        ("", "s", b""),
        ([1, 2], "ints", [1, 2]),
        ((True, 2), "ints", [1, 2]),
        (range(3), "ints", [0, 1, 2]),
        ([np.int32(1), np.int64(2)], "ints", [1, 2]),
        (np.array([[1, 2], [3, 4]]), "ints", [1, 2, 3, 4]),
        (np.array(3), "ints", [3]),
        (np.array([True, False]), "ints", [1, 0]),
        ([1.0, 2.0], "floats", [1.0, 2.0]),
        (np.array([1.5, 2.5]), "floats", [1.5, 2.5]),
        (np.array([[1.5, 2.5], [3.5, -0.0]], "<f4").T, "floats", [1.5, 3.5, 2.5, -0.0]),
        (np.array([1.5, 2.5], ">f4"), "floats", [1.5, 2.5]),
        (np.array([1.5, 1e300, -np.inf]), "floats", [1.5, np.inf, -np.inf]),
        (np.arange(200, dtype=np.float16), "floats", [*map(float, range(200))]),
        (["a", b"b"], "strings", [b"a", b"b"]),
        (np.array(["a", "b"]), "strings", [b"a", b"b"]),
    ],
)
def test_python_values_as_arguments(value, field, expected):
    argument = utils.MakeArgument("k", value)
    assert argument.name == "k"
    found = getattr(argument, field)
    assert (list(found) if isinstance(expected, list) else found) == expected
    assert argument.HasField(field) if not isinstance(expected, list) else True
    assert len(fields(argument)) == 1


@pytest.mark.parametrize("nothing", [[], (), np.array([], np.int32), np.zeros((0, 2))])
def test_an_empty_list_is_an_argument_without_value(nothing):
    assert fields(utils.MakeArgument("k", nothing)) == {}


def test_nets_and_messages_as_arguments():
    inner = core.Net("inner")
    assert utils.MakeArgument("k", inner).n.name == inner.Name()
    assert utils.MakeArgument("k", caffe2_pb2.NetDef(name="z")).n.name == "z"
    nets = utils.MakeArgument("k", [inner, caffe2_pb2.NetDef(name="z")]).nets
    assert [net.name for net in nets] == [inner.Name(), "z"]
    tensor = caffe2_pb2.TensorProto(dims=[1])
    assert utils.MakeArgument("k", tensor).s == tensor.SerializeToString()


@pytest.mark.parametrize(
    "wrong", [None, object(), 1j, np.float32, {"a": 1}, core.BlobReference("q")]
)
def test_other_values_are_refused(wrong):
    with pytest.raises(ValueError, match="Unknown argument type: key=k"):
        utils.MakeArgument("k", wrong)


@pytest.mark.parametrize("wrong", [[1, 2.0], ["a", 1], [None], [[1, 2]]])
def test_lists_have_one_kind_of_elements(wrong):
    with pytest.raises(ValueError, match="Unknown iterable argument type: key=k"):
        utils.MakeArgument("k", wrong)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, [2**64]])
def test_integers_have_64_bits(value):
    with pytest.raises(ValueError, match=r"argument 'k' is .*64 bits"):
        utils.MakeArgument("k", value)


def test_create_operator_sets_every_field():
    op = core.CreateOperator(
        "Conv",
        ["x", core.BlobReference("w")],
        ("y",),
        name="nm",
        control_input="c",
        device_option=core.DeviceOption(caffe2_pb2.CUDA, 1),
        arg=[utils.MakeArgument("z", 1)],
        engine="CUDNN",
        debug_info="dbg",
        stride=1,
        pad=None,
        kernel=5,
    )
    assert operator_line(op) == (
        "y = Conv(x, w, z=1, stride=1, kernel=5) name=nm engine=CUDNN after=c "
        "device={device_type: 1 device_id: 1}"
    )
    assert op.debug_info == "dbg"


def test_strings_are_scoped_and_references_are_not():
    with core.NameScope("s"), core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, 2)):
        op = core.CreateOperator("Sum", ["a", core.BlobReference("b")], "c", control_input=["d"])
    assert operator_line(op) == "s/c = Sum(s/a, b) after=s/d device={device_type: 1 device_id: 2}"


def test_operators_that_nobody_declared_pass():
    assert operator_line(core.CreateOperator("Whatever", [], [], x="y")) == 'Whatever(x="y")'


@pytest.mark.parametrize("wrong", [3, None, {"a"}, np.array(["a"])])
def test_blobs_are_names(wrong):
    with pytest.raises(TypeError, match="Unknown input/output type"):
        core.CreateOperator("Relu", wrong, "y")
    with pytest.raises(TypeError, match="I/O blob #1"):
        core.CreateOperator("Relu", ["x", wrong], "y")


def test_registered_operators():
    assert [core.IsOperator(name) for name in ("Relu", "ReluGradient", "relu", "Nope")] == [
        True, True, False, False,
    ]  # fmt: skip
    engines = ("", "DEFAULT", "REFERENCE", "CUDNN")
    assert [core.IsOperatorWithEngine("Conv", name) for name in engines] == [True] * 3 + [False]
    assert not core.IsOperatorWithEngine("Nope", "DEFAULT")


def test_data_types_have_the_numbers_of_the_wire():
    assert dict(caffe2_pb2.TensorProto.DataType.items()) == {
        kind.name: kind.value for kind in core.DataType
    }


def test_devices_of_the_blobs_of_an_operator():
    gpu = core.DeviceOption(caffe2_pb2.CUDA, 2)
    op = core.CreateOperator("FC", ["x", "w", "b"], "y", device_option=gpu)
    assert core.InferOpBlobDevicesAsDict(op) == ({"x": gpu, "w": gpu, "b": gpu}, {"y": gpu})
    op = core.CreateOperator("LearningRate", "iter", "lr", device_option=gpu)
    cpu = caffe2_pb2.DeviceOption()
    assert core.InferOpBlobDevices(op) == ([cpu], [gpu])


def test_one_number_for_a_list_is_warned_of_with_the_line():
    """It counts as an empty list, as in the original: saved nets have such arguments."""
    line = currentframe().f_lineno + 2
    with pytest.warns(UserWarning, match=r"ReduceSum: axes=1 is no list.*axes=\[1\]\?") as caught:
        op = core.CreateOperator("ReduceSum", "x", "y", axes=1)
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]
    assert op.arg[0].i == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        core.CreateOperator("ReduceSum", "x", "y", axes=[1], keepdims=0)
        core.CreateOperator("NoSuchType", "x", "y", axes=1)
