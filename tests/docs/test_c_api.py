"""The C program of docs/c-api.md compiles as it stands and says what Python says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from caffe2.python import core, workspace

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```c\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The compiled program."""
    folder = os.environ.get("CAFFE2_NATIVE_BUILD")
    if not folder:
        pytest.skip("CAFFE2_NATIVE_BUILD names no build of the C library")
    library = next(Path(folder).rglob("libcaffe2_c.so"), None)
    if not library:
        pytest.skip(f"no libcaffe2_c.so in {folder}")
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler (cc)")
    [source] = FENCE.findall((ROOT / "docs/c-api.md").read_text(encoding="utf-8"))
    build = tmp_path_factory.mktemp("c_api")
    (build / "predict.c").write_text(source, encoding="utf-8")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    places = [f"-I{ROOT / 'native/api'}", f"-L{library.parent}", f"-Wl,-rpath,{library.parent}"]
    done = subprocess.run(
        [compiler, *strict, *places, "predict.c", "-lcaffe2_c", "-o", "predict"],
        cwd=build,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return build / "predict"


@pytest.fixture(scope="module")
def nets(tmp_path_factory):
    """The files of a net that reads digits, with random weights."""
    rng = np.random.default_rng(5)
    init, predict = core.Net("init"), core.Net("predict")
    for name, shape in {"w": (10, 784), "b": (10,)}.items():
        values = rng.normal(0, 0.1, shape).astype(np.float32)
        init.GivenTensorFill([], name, shape=shape, values=values.ravel().tolist())
    predict.FC(["data", "w", "b"], "scores")
    predict.Softmax("scores", "softmax")
    message = predict.Proto()
    del message.external_input[:]
    message.external_input.extend(["data", "w", "b"])
    message.external_output.append("softmax")
    folder = tmp_path_factory.mktemp("nets")
    (folder / "init_net.pb").write_bytes(init.Proto().SerializeToString())
    (folder / "predict_net.pb").write_bytes(message.SerializeToString())
    return folder / "init_net.pb", folder / "predict_net.pb"


def run(program, nets, image):
    return subprocess.run(
        [program, *nets], input=image.tobytes(), capture_output=True, check=False, timeout=60
    )


def test_the_program_says_what_python_says(program, nets):
    image = np.random.default_rng(6).random((1, 1, 28, 28), np.float32)
    [expected] = workspace.Predictor(*(path.read_bytes() for path in nets)).run([image])
    done = run(program, nets, image)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    assert [int(label) for label, _ in lines] == list(range(10))
    # Six digits are printed.
    np.testing.assert_allclose([float(p) for _, p in lines], expected[0], rtol=0, atol=6e-7)


def test_errors_are_told(program, nets, tmp_path):
    image = np.zeros((1, 1, 28, 28), np.float32)
    damaged = tmp_path / "init_net.pb"
    damaged.write_bytes(nets[0].read_bytes()[:-3])
    done = run(program, (damaged, nets[1]), image)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"init_net is no serialized NetDef" in done.stderr
    done = run(program, (tmp_path / "none", nets[1]), image)
    assert (done.returncode, done.stderr) == (1, b"init_net is NULL\n")
    assert run(program, nets, image[..., 1:]).returncode == 2
