"""docs/adding-an-operator.md, followed to the letter in a copy of the project."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "adding-an-operator.md"
# ```language path [name of the list that the lines go into]
BLOCK = re.compile(r"^```\w+ (\S+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(document: str, root: Path) -> None:
    """Does to the tree at `root` what the blocks with a path say."""
    for path, name, text in BLOCK.findall(document):
        target = root / path
        if not name:
            assert not target.exists(), f"{path} is there already"
            target.write_text(text, encoding="utf-8")
            continue
        before = target.read_text(encoding="utf-8")
        assert before.count(f"\n{name} = [\n") == 1, f"{path} has no list {name}"
        after = before.replace(f"\n{name} = [\n", f"\n{name} = [\n{text}")
        target.write_text(after, encoding="utf-8")


def test_the_document_has_three_blocks_to_follow(tmp_path):
    for folder in ("caffe2/ops", "native/operators", "tests/ops"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "tests/ops/cases_nn.py", tmp_path / "tests/ops")
    follow(DOCUMENT.read_text(encoding="utf-8"), tmp_path)
    made = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.*"))
    assert made == [
        "caffe2/ops/squareplus.py",
        "native/operators/squareplus.cc",
        "tests/ops/cases_nn.py",
    ]


@pytest.mark.slow
def test_whoever_follows_the_document_has_a_tested_operator(tmp_path):
    copy = tmp_path / "copy"
    # Not .clang-format, which the last of the checks reads.
    left_out = shutil.ignore_patterns("build", ".git", ".venv", ".*cache", "__pycache__", "demo")
    shutil.copytree(ROOT, copy, ignore=left_out)
    follow(DOCUMENT.read_text(encoding="utf-8"), copy)

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    run("make", "build")
    assert " passed" in run(".venv/bin/pytest", "tests/ops", "-k", "Squareplus")
    run(".venv/bin/ruff", "check", "caffe2", "tests/ops")
    run(".venv/bin/ruff", "format", "--check", "caffe2/ops/squareplus.py")
    run(".venv/bin/clang-format", "--dry-run", "-Werror", "native/operators/squareplus.cc")
    run(".venv/bin/mypy", "caffe2/ops/squareplus.py")
    run(".venv/bin/python", "-m", "doctest", "docs/adding-an-operator.md")
