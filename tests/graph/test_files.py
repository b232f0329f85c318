"""Nets as files, and tensors as messages."""

from __future__ import annotations

import os

import numpy as np
import pytest

from caffe2.graph import files
from caffe2.graph.errors import UsageError
from caffe2.proto import caffe2_pb2
from caffe2.python import core, utils


@pytest.fixture
def net():
    made = core.Net("stored")
    made.Relu("x", "y")
    return made.Proto()


@pytest.mark.parametrize("name", ["net.pb", "net.pbtxt", "net.prototxt", "net"])
def test_row_B12_nets_are_written_and_read(net, tmp_path, name):
    path = tmp_path / name
    files.save_net(net, path)
    assert files.load_net(path) == net
    assert path.read_bytes().isascii() and (b'type: "Relu"' in path.read_bytes()) == ("txt" in name)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["model.pb", "model.pbtxt"])
def test_row_B2_models_group_nets_and_carry_metadata(net, tmp_path, name):
    net.metadata["version"] = "1.0.3"
    model = caffe2_pb2.ModelDef(name="m", net=[net, caffe2_pb2.NetDef(name="init")])
    model.metadata["trained_with"] = "data"
    files.save_message(model, tmp_path / name)
    loaded = files.load_message(caffe2_pb2.ModelDef, tmp_path / name)
    assert loaded == model
    assert core.Net(loaded.net[0]).Proto().metadata["version"] == "1.0.3"


def test_a_file_that_cannot_be_written_leaves_the_old_one(net, tmp_path, monkeypatch):
    path = tmp_path / "net.pb"
    files.save_net(net, path)
    before = path.read_bytes()
    net.name = "other"

    def fail(*_):
        raise OSError("disk full")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, fail)
            with pytest.raises(OSError, match="disk full"):
                files.save_net(net, path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["net.pb"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("net.pb", b"\x0a\xff"), ("net.pbtxt", b"op {"), ("net.pbtxt", b"\xff")],
)
def test_files_that_hold_no_net_are_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} holds no NetDef"):
        files.load_net(tmp_path / name)


TENSORS = [
    (np.array([[1.5, -2]], np.float32), "float_data"),
    (np.array([1.5]), "double_data"),
    (np.array([1, -(2**62)]), "int64_data"),
    (np.array([[1], [-2]], np.int32), "int32_data"),
    (np.array([1, 255], np.uint8), "int32_data"),
    (np.array([-3], np.int8), "int32_data"),
    (np.array([-300], np.int16), "int32_data"),
    (np.array([65535], np.uint16), "int32_data"),
    (np.array([True, False]), "int32_data"),
    (np.array([0.5, -np.inf], np.float16), "int32_data"),
    (np.array([b"a", b"bc"], object), "string_data"),
    (np.array(3, np.float32), "float_data"),
    (np.zeros((0, 2), np.float32), "float_data"),
]


@pytest.mark.parametrize(("array", "field"), TENSORS)
def test_arrays_as_tensors_and_back(array, field):
    tensor = utils.NumpyArrayToCaffe2Tensor(array, "nm")
    assert (tensor.name, list(tensor.dims)) == ("nm", list(array.shape))
    assert len(getattr(tensor, field)) == array.size
    back = utils.Caffe2TensorToNumpyArray(tensor)
    assert back.dtype == array.dtype and back.shape == array.shape
    np.testing.assert_array_equal(back, array)
    assert back.flags.writeable


def test_bytes_are_tensors_too():
    raw = caffe2_pb2.TensorProto(dims=[2], data_type=1, raw_data=np.float32([1, 2]).tobytes())
    np.testing.assert_array_equal(utils.Caffe2TensorToNumpyArray(raw), np.float32([1, 2]))
    images = caffe2_pb2.TensorProto(dims=[2], data_type=6, byte_data=b"\x01\xff")
    np.testing.assert_array_equal(utils.Caffe2TensorToNumpyArray(images), np.uint8([1, 255]))


def test_text_is_kept_as_utf_8():
    tensor = utils.NumpyArrayToCaffe2Tensor(np.array(["a", "é"]))
    assert list(tensor.string_data) == [b"a", "é".encode()]


def test_tensors_that_are_wrong():
    with pytest.raises(ValueError, match=r"tensor 't' holds 1 values; its shape \(2, 2\) needs 4"):
        utils.Caffe2TensorToNumpyArray(
            caffe2_pb2.TensorProto(name="t", dims=[2, 2], data_type=1, float_data=[1])
        )
    with pytest.raises(ValueError, match="0 is no data type"):
        utils.Caffe2TensorToNumpyArray(caffe2_pb2.TensorProto(dims=[0], data_type=0))
    with pytest.raises(ValueError, match="complex"):
        utils.NumpyArrayToCaffe2Tensor(np.array([1j]))


def test_arguments_as_a_dict():
    op = core.CreateOperator("Conv", "x", "y", i=1, f=0.5, s="t", ints=[1, 2], none=[])
    assert utils.ArgsToDict(op.arg) == {"i": 1, "f": 0.5, "s": b"t", "ints": [1, 2], "none": []}


def test_channels_are_moved():
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert utils.NCHW2NHWC(x).shape == (2, 4, 5, 3)
    np.testing.assert_array_equal(utils.NHWC2NCHW(utils.NCHW2NHWC(x)), x)
    assert utils.NCHW2NHWC(x)[1, 2, 3, 0] == x[1, 0, 2, 3]
    with pytest.raises(ValueError, match="at least one spatial axis"):
        utils.NCHW2NHWC(np.zeros((2, 3)))


@pytest.mark.parametrize("name", ["net.pb", "net.pbtxt"])
@pytest.mark.parametrize("content", [b"\n\x04name", b'name: "name"'])
def test_a_file_without_operators_is_no_net(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UsageError, match=rf"{name} holds no NetDef with operators: an empty or"):
        files.load_net(path)
