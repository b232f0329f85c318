"""Saved models by name."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from caffe2.python.models import download


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CAFFE2_MODELS", str(tmp_path / "models"))
    folder = tmp_path / "models" / "double"
    folder.mkdir(parents=True)
    init, predict = core.Net("init"), core.Net("predict")
    init.GivenTensorFill([], "two", shape=[1], values=[2.0])
    predict.Mul(["data", "two"], "out")
    predict.AddExternalOutput("out")
    (folder / "init_net.pb").write_bytes(init.Proto().SerializeToString())
    (folder / "predict_net.pb").write_bytes(predict.Proto().SerializeToString())
    yield tmp_path
    sys.modules.pop("caffe2.python.models.double", None)


def test_a_model_is_a_module(kept):
    from caffe2.python.models import double

    predictor = workspace.Predictor(double.init_net, double.predict_net)
    (out,) = predictor.run([np.float32([1, 2])])
    np.testing.assert_array_equal(out, [2, 4])
    assert importlib.import_module("caffe2.python.models.double") is double
    with pytest.raises(ModuleNotFoundError, match="triple"):
        importlib.import_module("caffe2.python.models.triple")


def test_a_model_by_name(kept):
    (kept / "models" / "double" / "value_info.json").write_text('{"data": [1, [2]]}')
    init, predict, info = download.ModelDownloader().get_c2_model("double")
    assert isinstance(init, caffe2_pb2.NetDef) and predict.op[0].type == "Mul"
    assert info == {"data": [1, [2]]}


def test_files_are_written_whole_or_not_at_all(kept):
    source, target = kept / "source", kept / "to" / "target"
    source.write_bytes(b"abc")
    download.downloadFromURLToFile(source.as_uri(), str(target))
    assert target.read_bytes() == b"abc"
    with pytest.raises(RuntimeError, match="Could not download"):
        download.downloadFromURLToFile((kept / "nothing").as_uri(), str(kept / "to" / "other"))
    assert [path.name for path in (kept / "to").iterdir()] == ["target"]
    download.deleteDirectory(str(kept / "to"))
    assert not (kept / "to").exists()
    url = download.getURLFromName("squeezenet", "init_net.pb")
    assert url == download.DOWNLOAD_BASE_URL + "squeezenet/init_net.pb"
