"""The demo: a net that was trained and saved gives the same answers in another process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import mnist
import mnist_data
import mnist_predict
import numpy as np
import pytest

from caffe2.python import workspace

PREDICT = """
import sys
import numpy as np
from pathlib import Path
from caffe2.python import workspace
folder = Path(sys.argv[1])
predictor = workspace.Predictor(
    (folder / "init_net.pb").read_bytes(), (folder / "predict_net.pb").read_bytes()
)
[probabilities] = predictor.run({"data": np.load(folder / "images.npy")})
np.save(folder / "probabilities.npy", probabilities)
"""


def synthetic_digits(count: int) -> mnist_data.Digits:
    """Ten kinds of pictures that are easily told apart: coarse patterns, with empty edges."""
    rng = np.random.default_rng(7)
    coarse = (rng.random((10, 1, 5, 5)) < 0.5).repeat(4, axis=2).repeat(4, axis=3)
    patterns = np.pad(coarse, [(0, 0), (0, 0), (4, 4), (4, 4)])
    labels = rng.permutation(np.arange(count) % 10).astype(np.int32)
    images = patterns[labels] * rng.uniform(0.7, 1, (count, 1, 28, 28))
    return mnist_data.Digits(images.astype(np.float32), labels)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a saved net, five pictures, and what the net said before it was saved."""
    folder = tmp_path_factory.mktemp("demo")
    digits = synthetic_digits(320)
    workspace.ResetWorkspace()
    losses = mnist.train(digits, seed=1, epochs=4)
    mnist.test(mnist_data.Digits(digits.images[:5], digits.labels[:5]))
    said = workspace.FetchBlob("softmax")
    mnist.save(folder)
    np.save(folder / "images.npy", digits.images[:5])
    return folder, losses, said


def test_training_lowers_the_loss(trained):
    _, losses, _ = trained
    assert len(losses) == 4 * 5
    assert losses[0] == pytest.approx(np.log(10), abs=0.5)  # all ten are equally probable
    assert np.mean(losses[-5:]) < 0.5 * losses[0]


def test_a_new_process_gives_the_same_probabilities_to_the_bit(trained):
    folder, _, said = trained
    done = subprocess.run(
        [sys.executable, "-c", PREDICT, folder],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(folder / "probabilities.npy"), said)


def test_equal_seeds_give_equal_nets():
    digits = synthetic_digits(128)
    weights = []
    for seed in (1, 1, 2):
        workspace.ResetWorkspace()
        mnist.train(digits, seed, epochs=1)
        weights.append(workspace.FetchBlob("fc3_w"))
    np.testing.assert_array_equal(weights[0], weights[1])
    assert (weights[0] != weights[2]).any()


def test_a_net_that_cannot_be_written_leaves_the_old_one(trained, tmp_path, monkeypatch):
    folder, _, _ = trained
    before = (folder / "init_net.pb").read_bytes()
    (tmp_path / "init_net.pb").write_bytes(before)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    workspace.ResetWorkspace()
    mnist.train(synthetic_digits(64), seed=3, epochs=1)
    with pytest.raises(OSError, match="disk full"):
        mnist.save(tmp_path)
    assert (tmp_path / "init_net.pb").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["init_net.pb"]


@pytest.mark.parametrize(
    ("name", "share", "problem"),
    [
        ("predict_net", 0.0, " holds no NetDef: it is empty (0 bytes)"),
        ("predict_net", 0.3, " holds no NetDef: it is truncated: "),
        ("predict_net", 0.999, " holds no NetDef: it is truncated: "),
        ("init_net", 0.3, " holds no NetDef: it is truncated: "),
        ("init_net", 0.999, " holds no NetDef: it is truncated: "),
    ],
)
def test_a_truncated_file_is_an_error(trained, tmp_path, name, share, problem):
    folder, _, _ = trained
    for file in ("init_net.pb", "predict_net.pb"):
        whole = (folder / file).read_bytes()
        kept = whole[: int(share * len(whole))] if file == f"{name}.pb" else whole
        (tmp_path / file).write_bytes(kept)
    with pytest.raises(ValueError, match=re.escape(name + problem)):
        mnist_predict.load(tmp_path)


def test_a_missing_file_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mnist_data, "load", lambda: (None, synthetic_digits(10)))
    monkeypatch.setattr(sys, "argv", ["mnist_predict.py", "--folder", str(tmp_path)])
    assert mnist_predict.main() == 1
    assert "init_net.pb is missing: run examples/mnist.py first" in capsys.readouterr().err


def test_ten_digits_are_shown(trained, monkeypatch, capsys):
    folder, _, _ = trained
    digits = synthetic_digits(50)
    monkeypatch.setattr(mnist_data, "load", lambda: (None, digits))
    monkeypatch.setattr(sys, "argv", ["mnist_predict.py", "--folder", str(folder), "--json"])
    assert mnist_predict.main() == 0
    report = json.loads(capsys.readouterr().out)
    assert report["labels"] == list(range(10))
    np.testing.assert_allclose(np.sum(report["probabilities"], axis=1), 1, atol=1e-5)

    monkeypatch.setattr(sys, "argv", ["mnist_predict.py", "--folder", str(folder)])
    assert mnist_predict.main() == 0
    shown = capsys.readouterr().out
    assert shown.count("%") == 10
    right = sum(map(int.__eq__, report["labels"], report["said"]))
    assert f"{right} of 10 right" in shown


def test_blocks_show_ink_where_the_picture_has_it():
    image = np.zeros((28, 28), np.float32)
    image[0:2, 0:2] = 1  # the upper left corner
    image[26:28, 26:28] = 1  # the lower right one
    lines = mnist_predict.blocks(image)
    assert (len(lines), {len(line) for line in lines}) == (7, {14})
    assert (lines[0][0], lines[6][13]) == ("▀", "▄")
    assert "".join(lines).count(" ") == 7 * 14 - 2


@pytest.mark.slow
def test_five_seeds_read_more_than_96_percent_of_the_held_out_digits(tmp_path):
    try:
        mnist_data.load()
    except mnist_data.DataError as error:
        pytest.skip(str(error).partition("\n")[0])
    done = subprocess.run(
        [sys.executable, mnist.__file__, "--seeds", "5", "--json", "--output", tmp_path],
        stdout=subprocess.PIPE,
        check=True,
    )
    report = json.loads(done.stdout)
    assert list(report["accuracy"]) == ["1", "2", "3", "4", "5"]
    assert min(report["accuracy"].values()) > 0.96
    assert all(Path(file).stat().st_size for file in report["files"])
