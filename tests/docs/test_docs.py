"""The documents say what is true: their Python runs, their links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")])
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def run_snippets(text: str, name: str) -> int:
    """Runs the ```python blocks of a document one after the other, in one namespace.

    Returns their number.  A traceback names the document and its line.
    """
    namespace = {"__name__": name}
    blocks = list(FENCE.finditer(text))
    for block in blocks:
        lines_before = text.count("\n", 0, block.start(1))
        exec(compile("\n" * lines_before + block[1], name, "exec"), namespace)
    return len(blocks)


def broken_links(text: str, folder: Path) -> list[str]:
    """The relative links of a document that lead to no file."""
    return [link for link in LINK.findall(text) if not (folder / link).exists()]


with_python = [path for path in DOCUMENTS if FENCE.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", with_python, ids=lambda path: path.name)
def test_python_of_a_document_runs(path, tmp_path):
    done = subprocess.run(
        [sys.executable, __file__, path], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_document_lead_somewhere(path):
    assert broken_links(path.read_text(encoding="utf-8"), path.parent) == []


def test_a_snippet_that_fails_is_found():
    text = "text\n\n```python\nx = 1\n```\n\nmore\n\n```python\nassert x == 2\n```\n"
    with pytest.raises(AssertionError) as caught:
        run_snippets(text, "some.md")
    frame = traceback.extract_tb(caught.tb)[-1]
    assert (frame.filename, frame.lineno) == ("some.md", 10)


def test_a_link_to_nowhere_is_found():
    text = "[a](test_docs.py), [b](none.md#part), [c](https://example.org/none)"
    assert broken_links(text, Path(__file__).parent) == ["none.md"]


if __name__ == "__main__":
    run_snippets(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[1])
