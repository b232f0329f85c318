"""The commands of docs/legacy-models.md, on the model that its Python writes."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from caffe2 import cli

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/legacy-models.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    caffe2 (.*)$", TEXT.replace("\\\n", ""), re.MULTILINE)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """The files that the document begins with, and an input."""
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)[1], {})
    np.save("x.npy", np.float32([[1, -1]]))


@pytest.mark.parametrize("command", [line for line in COMMANDS if "cat.jpg" not in line])
def test_a_command_ends_well(model, command, capsys):
    assert cli.main(shlex.split(command)) == 0, capsys.readouterr().err


def test_an_image_through_the_command_of_the_document(model, tmp_path):
    image = pytest.importorskip("PIL.Image")
    from caffe2.graph.files import load_net, save_net

    [command] = [line for line in COMMANDS if "cat.jpg" in line]
    image.fromarray(np.zeros((5, 4, 3), np.uint8)).save("cat.jpg")
    (tmp_path / "labels.txt").write_text("\n".join("abcde" * 100000))
    predict = load_net("predict_net.pb")
    predict.op[0].CopyFrom(type(predict.op[0])(type="Flatten", input=["data"], output=["scores"]))
    save_net(predict, "predict_net.pb")
    assert cli.main(shlex.split(command)) == 0
