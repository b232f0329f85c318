"""The ratchet itself: a report with fewer passes than the floor must fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import ratchet

FLOOR = {"a_test.py": 3, "b_test.py": 1}


def report(**passed):
    return {
        "files": {
            f"{name}.py": {"passed": count, "missing": {"Case::test": "failed: why"}}
            for name, count in passed.items()
        }
    }


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (report(a_test=3, b_test=1), []),
        (report(a_test=4, b_test=1), []),
        (
            report(a_test=2, b_test=1),
            ["a_test.py: 2 tests pass; 3 have to", "    Case::test: failed: why"],
        ),
        (report(a_test=3), ["b_test.py: was not run; 1 tests have to pass"]),
    ],
)
def test_fewer_passes_are_a_miss(found, lines):
    assert ratchet.missed(FLOOR, found) == lines


def test_the_floor_rises_and_never_sinks():
    found = report(a_test=2, b_test=5, c_test=7, none_test=0)
    assert ratchet.raised(FLOOR, found) == {"a_test.py": 3, "b_test.py": 5, "c_test.py": 7}


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """A folder with a runner that reports what the test puts into passes.json."""
    (tmp_path / "files.txt").write_text("a_test.py\nb_test.py\nnew_test.py\n")
    (tmp_path / "run.py").write_text(
        "import json, pathlib, sys\n"
        "options = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
        "passes = json.loads((pathlib.Path(__file__).parent / 'passes.json').read_text())\n"
        "files = pathlib.Path(options['--files']).read_text().split()\n"
        "rows = {file: {'passed': passes[file], 'missing': {}} for file in files}\n"
        "pathlib.Path(options['--report']).write_text(json.dumps({'files': rows}))\n"
    )
    monkeypatch.setattr(ratchet, "RUNNER", tmp_path)
    monkeypatch.setattr(ratchet, "FLOOR", tmp_path / "floor.json")
    ratchet.FLOOR.write_text(json.dumps(FLOOR))

    def passes(**counts):
        counts = {f"{name}.py": count for name, count in counts.items()}
        (tmp_path / "passes.json").write_text(json.dumps(counts))

    return passes


def test_exit_code_says_whether_a_floor_was_missed(runner, capsys):
    runner(a_test=3, b_test=1)
    assert ratchet.main([]) == 0
    runner(a_test=3, b_test=0)
    assert ratchet.main([]) == 1
    assert "b_test.py: 0 tests pass; 1 have to" in capsys.readouterr().out
    assert ratchet.main(["a_test"]) == 0


def test_update_writes_the_higher_floor_and_new_files(runner):
    runner(a_test=4, b_test=0, new_test=2)
    assert ratchet.main(["--update", "_test"]) == 1
    expected = {"a_test.py": 4, "b_test.py": 1, "new_test.py": 2}
    assert json.loads(ratchet.FLOOR.read_text()) == expected


def test_absent_runner_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(ratchet, "RUNNER", tmp_path / "none")
    assert ratchet.main([]) == 0
    assert "conformance skipped" in capsys.readouterr().out


def test_the_floor_of_this_project_is_well_formed():
    floor = json.loads((Path(__file__).parent / "floor.json").read_text())
    assert floor
    assert all(file.startswith("caffe2/") and count > 0 for file, count in floor.items())
