"""What scripts of three or more public repositories import and call is there.

The counts are facts gathered from public scripts; they are not part of this repository.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

FACTS = Path(__file__).resolve().parents[2].parent / "shared/reference/usage_frequency.json"
LEAST = 3
# Names that need what nobody ships with the package.
ELSEWHERE = {
    "caffe2.python.models.squeezenet": "a model that has to be downloaded",
    "models.squeezenet": "a model that has to be downloaded",
}


def used():
    if not FACTS.exists():
        return [pytest.param("", marks=pytest.mark.skip("the counts of names are not there"))]
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    names = {}
    for kind in ("imports", "calls"):
        for name, (_, repositories) in facts[kind].items():
            if repositories >= LEAST and name not in ELSEWHERE:
                names[full_name(name)] = None
    return list(names)


def full_name(name):
    if name.partition(".")[0] == "caffe2":
        return name
    return f"caffe2.{'proto' if name.split('.')[0].endswith('_pb2') else 'python'}.{name}"


@pytest.mark.parametrize("name", used())
def test_names(name):
    if ".onnx." in name:
        pytest.importorskip("onnx")
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
            break
        except ModuleNotFoundError:
            continue
    for part in parts[length:]:
        found = getattr(found, part)
