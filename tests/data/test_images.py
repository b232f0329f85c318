"""Batches of pictures out of databases."""

from __future__ import annotations

import io

import numpy as np
import pytest

from caffe2.data.images import Datum
from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, model_helper, workspace

HEIGHT, WIDTH = 6, 8


@pytest.fixture(autouse=True)
def _empty_workspace():
    workspace.ResetWorkspace()
    yield
    workspace.ResetWorkspace()


def picture(number):
    """Blue, green and red, each another slope."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    return np.stack([x * 10 + number, y * 10 + number, x + y], axis=2).astype(np.uint8)


def datum(number):
    return Datum(
        channels=3,
        height=HEIGHT,
        width=WIDTH,
        data=picture(number).transpose(2, 0, 1).tobytes(),
        label=number,
    ).SerializeToString()


def protos(number, content=None):
    record = caffe2_pb2.TensorProtos()
    image = record.protos.add(dims=[HEIGHT, WIDTH, 3], data_type=caffe2_pb2.TensorProto.BYTE)
    if content is None:
        image.byte_data = picture(number).tobytes()
    else:
        image.string_data.append(content)
    label = record.protos.add(dims=[1], data_type=caffe2_pb2.TensorProto.INT32)
    label.int32_data.append(number)
    return record.SerializeToString()


def database(path, records):
    db = workspace.C.create_db("minidb", str(path), workspace.C.Mode.write)
    transaction = db.new_transaction()
    for number, record in enumerate(records):
        transaction.put(f"{number:03}", record)
    transaction.commit()
    del transaction
    db.close()
    return str(path)


def batches(path, runs=1, **kwargs):
    model = model_helper.ModelHelper(name="images")
    reader = model.CreateDB("reader", db=path, db_type="minidb")
    data, label = brew.image_input(model, reader, ["data", "label"], **kwargs)
    workspace.RunNetOnce(model.param_init_net)
    workspace.CreateNet(model.net)
    found = []
    for _ in range(runs):
        workspace.RunNet(model.net)
        found.append(workspace.FetchBlobs([data, label]))
    return found


@pytest.mark.parametrize("use_caffe_datum", [False, True])
def test_pictures_in_order_and_again(tmp_path, use_caffe_datum):
    make = datum if use_caffe_datum else protos
    path = database(tmp_path / "db", [make(n) for n in range(3)])
    settings = {"batch_size": 2, "crop": 4, "is_test": 1, "mean": 10.0, "std": 2.0}
    first, second = batches(path, 2, use_caffe_datum=use_caffe_datum, **settings)
    assert first[1].tolist() == [0, 1] and second[1].tolist() == [2, 0]
    middle = picture(1)[1:5, 2:6].astype(np.float32)
    np.testing.assert_allclose(first[0][1], (middle.transpose(2, 0, 1) - 10) / 2)
    assert first[0].dtype == np.float32 and first[1].dtype == np.int32


def test_numbers_for_each_channel_and_the_other_order(tmp_path):
    path = database(tmp_path / "db", [protos(5)])
    ((data, _),) = batches(
        path,
        batch_size=1,
        crop=6,
        is_test=1,
        order="NHWC",
        mean_per_channel=[1.0, 2.0, 3.0],
        std_per_channel=[1.0, 2.0, 4.0],
    )
    expected = (picture(5)[:, 1:7].astype(np.float32) - [1, 2, 3]) / [1, 2, 4]
    np.testing.assert_allclose(data[0], expected, rtol=1e-6)


def test_training_crops_and_mirrors_at_random(tmp_path):
    path = database(tmp_path / "db", [protos(0)])
    ((data, _),) = batches(path, batch_size=64, crop=4, mirror=1, order="NHWC")
    slopes = np.sign(data[:, 0, 1, 0] - data[:, 0, 0, 0])
    assert {-1, 1} == set(slopes)  # 2^-63 that this fails
    assert len({(row[0, 0, 1], min(row[0, 0, 0], row[0, 3, 0])) for row in data}) > 5


def test_encoded_pictures_are_blue_green_red(tmp_path):
    image = pytest.importorskip("PIL.Image")
    content = io.BytesIO()
    image.fromarray(picture(0)[:, :, ::-1].copy()).save(content, "PNG")
    path = database(tmp_path / "db", [protos(7, content.getvalue())])
    ((data, label),) = batches(path, batch_size=1, crop=6, is_test=1, order="NHWC")
    np.testing.assert_array_equal(data[0], picture(0)[:, 1:7])
    assert label.tolist() == [7]
    ((gray, _),) = batches(path, batch_size=1, crop=6, is_test=1, color=0)
    assert gray.shape == (1, 1, 6, 6)


def test_the_shorter_side_is_scaled(tmp_path):
    pytest.importorskip("PIL.Image")
    path = database(tmp_path / "db", [protos(0)])
    for settings in ({"scale": 12}, {"minsize": 12}):
        ((data, _),) = batches(path, batch_size=1, crop=12, is_test=1, **settings)
        assert data.shape == (1, 3, 12, 12)
    with pytest.raises(RuntimeError, match="a picture of 6 x 8 cannot be cropped to 12"):
        batches(path, batch_size=1, crop=12)


def test_what_is_wrong_is_named(tmp_path):
    model = model_helper.ModelHelper(name="wrong")
    with pytest.raises(ValueError, match="no operator CreateDB of the model makes the reader 'r'"):
        brew.image_input(model, core.BlobReference("r"), ["d", "l"], batch_size=1, crop=1)
    path = database(tmp_path / "db", [b"", protos(0, b"no picture")])
    for settings, text in (
        ({"batch_size": 1}, "crop"),
        ({"batch_size": 0, "crop": 1}, "batch_size is 0"),
        ({"batch_size": 1, "crop": 1, "order": "CHW"}, "order is 'CHW'"),
        ({"batch_size": 1, "crop": 1, "colour": 1}, "image_input takes no colour"),
        ({"batch_size": 1, "crop": 1, "mean_per_channel": [1.0]}, "1 numbers for 3 channels"),
        ({"batch_size": 1, "crop": 1, "scale": 2, "minsize": 2}, "exclude each other"),
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            batches(path, **settings)
    with pytest.raises(RuntimeError, match="record '000': it needs two tensors"):
        batches(path, batch_size=1, crop=1)
    with pytest.raises(RuntimeError, match="record '000'"):
        batches(path, batch_size=1, crop=1, use_caffe_datum=1)
