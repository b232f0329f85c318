"""The engine as WebAssembly: a model answers in Node.js as it does here (make wasm)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from caffe2.graph.model_file import save_model
from caffe2.graph.predictor import add_tensor
from caffe2.proto import caffe2_pb2
from caffe2.python import brew, model_helper, workspace

ROOT = Path(__file__).resolve().parents[2]
SHAPE = (2, 3, 9, 9)


@pytest.fixture(scope="module")
def library():
    folder = os.environ.get("CAFFE2_WASM_BUILD")
    if folder is None or shutil.which("node") is None:
        pytest.skip("CAFFE2_WASM_BUILD names no build for WebAssembly, or there is no node")
    return Path(folder) / "native/api/caffe2.js"


@pytest.fixture
def nets():
    model = model_helper.ModelHelper("small")
    y = brew.conv(model, "x", "conv", 3, 8, 3, pad=1)
    y = brew.max_pool(model, brew.relu(model, y, "relu"), "pool", kernel=3, stride=3)
    brew.softmax(model, brew.fc(model, y, "fc", 8 * 3 * 3, 5), "softmax")
    workspace.RunNetOnce(model.param_init_net)
    init = caffe2_pb2.NetDef(name="init")
    for name in map(str, model.params):
        add_tensor(init, name, workspace.FetchBlob(name))
    predict = model.net.Proto()
    predict.external_output.append("softmax")
    return init, predict


def answer(library, model, values, shape=SHAPE):
    return subprocess.run(
        ["node", ROOT / "examples/predict.cjs", library, model, ",".join(map(str, shape))],
        input=values.tobytes(),
        capture_output=True,
        check=False,
    )


def test_a_model_answers_as_here(library, nets, tmp_path):
    save_model(*nets, tmp_path / "model.pb")
    x = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    done = answer(library, tmp_path / "model.pb", x)
    assert done.returncode == 0, done.stderr
    outputs = json.loads(done.stdout)
    wanted = workspace.Predictor(*nets).run([x])[0]
    assert list(outputs) == ["softmax"]
    np.testing.assert_allclose(np.reshape(outputs["softmax"], wanted.shape), wanted, rtol=1e-5)


def test_errors_are_told(library, nets, tmp_path):
    (tmp_path / "model.pb").write_bytes(b"no model")
    done = answer(library, tmp_path / "model.pb", np.zeros(SHAPE, np.float32))
    assert done.returncode == 1 and b"/model.pb" in done.stderr
    save_model(*nets, tmp_path / "model.pb")
    done = answer(library, tmp_path / "model.pb", np.zeros(SHAPE, np.float32), (2, 4, 9, 9))
    assert done.returncode == 1 and b"'x'" in done.stderr
