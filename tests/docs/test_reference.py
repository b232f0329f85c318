"""The pages of operators are those of the declarations; modules that a document names exist."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "operators.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("operators_reference", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_up_to_date(script):
    wanted = script.pages()
    found = {page.name: page.read_text(encoding="utf-8") for page in script.FOLDER.glob("*.md")}
    stale = sorted(
        name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)
    )
    assert not stale, f"{', '.join(stale)}: run `python docs/operators.py`"


def test_what_a_page_says(script):
    text = script.pages()["activation.md"]
    relu = text.partition("## Relu\n")[2].partition("\n## ")[0]
    assert "`Relu`: `X` → `Y`" in relu
    assert "- In place: `Y` may be `X`." in relu
    assert "- Gradient: yes." in relu and "- Runs on: C++ kernel." in relu
    conv = script.pages()["conv.md"]
    assert "| `group` | Int | `1` | ≥ 1 |" in conv
    assert '| `order` | String | `"NCHW"` | `NCHW`, `NHWC`, `nchw`, `nhwc` |' in conv


def test_the_modules_of_the_table_exist():
    rows = re.findall(r"^\| \w.*$", (ROOT / "docs" / "from-caffe2.md").read_text(), re.MULTILINE)
    names = [name for row in rows[1:] for name in re.findall(r"`(\w+)`", row.split("|")[2])]
    assert len(names) > 20
    for name in names:
        assert importlib.util.find_spec(f"caffe2.python.{name}"), name
