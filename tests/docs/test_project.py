"""What pyproject.toml says twice is the same."""

from __future__ import annotations

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_group_build_has_what_the_build_requires():
    missing = set(PROJECT["build-system"]["requires"]) - set(PROJECT["dependency-groups"]["build"])
    assert not missing


def test_only_numpy_and_protobuf_are_needed_to_run():
    names = [re.split(r"[<>=~!]", text)[0] for text in PROJECT["project"]["dependencies"]]
    assert sorted(names) == ["numpy", "protobuf"]


def test_changelog_knows_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {PROJECT['project']['version']}" in changelog
