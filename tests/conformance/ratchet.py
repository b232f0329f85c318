"""The original Caffe2's own tests: no fewer may pass than before.

    python tests/conformance/ratchet.py                run the files of floor.json and compare
    python tests/conformance/ratchet.py brew_test      only files whose name contains this
    python tests/conformance/ratchet.py --update       raise the floor to what passes now
    python tests/conformance/ratchet.py --update PATH  the same, and take up a new test file

floor.json says for each test file how many of its tests pass.  The tests themselves and their
runner, run.py, are no part of this project; the folder of the runner is CAFFE2_CONFORMANCE, or
shared/conformance beside this repository.  Exit code 1: a floor was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FLOOR = HERE / "floor.json"
RUNNER = Path(os.environ.get("CAFFE2_CONFORMANCE", HERE.parents[2] / "shared" / "conformance"))


def missed(floor: Mapping[str, int], report: Mapping[str, Any]) -> list[str]:
    """A line for each file of `floor` of which the report of run.py says that fewer tests pass."""
    lines = []
    for file, least in floor.items():
        row = report["files"].get(file)
        if row is None:
            lines.append(f"{file}: was not run; {least} tests have to pass")
        elif row["passed"] < least:
            lines.append(f"{file}: {row['passed']} tests pass; {least} have to")
            lines += [f"    {test}: {why}" for test, why in row["missing"].items()]
    return lines


def raised(floor: Mapping[str, int], report: Mapping[str, Any]) -> dict[str, int]:
    """The floor with the report's figures where those are higher; it never sinks."""
    passed = {file: row["passed"] for file, row in report["files"].items()}
    higher = {file: count for file, count in passed.items() if count > floor.get(file, 0)}
    return dict(sorted({**floor, **higher}.items()))


def run(files: Sequence[str]) -> dict[str, Any]:
    """The report of run.py on these files."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder) / "files.txt", Path(folder) / "report.json"
        wanted.write_text("\n".join(files))
        command = [sys.executable, RUNNER / "run.py", "--files", wanted, "--report", report]
        done = subprocess.run(command, check=False)
        if not report.exists():
            sys.exit(f"ratchet.py: run.py ended with exit code {done.returncode} and no report")
        found: dict[str, Any] = json.loads(report.read_text())
        return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("patterns", nargs="*", help="part of a file's name; all files without one")
    parser.add_argument("--update", action="store_true", help="raise the floor")
    options = parser.parse_args(arguments)
    if not (RUNNER / "run.py").exists():
        print(f"conformance skipped: there is no runner {RUNNER / 'run.py'}")
        return 0

    floor: dict[str, int] = json.loads(FLOOR.read_text())
    known = (RUNNER / "files.txt").read_text().split() if options.update else list(floor)
    if options.patterns:
        files = [file for file in known if any(part in file for part in options.patterns)]
    else:
        files = list(floor)
    if not files:
        parser.error(f"no test file has a name with {' or '.join(options.patterns)}")
    report = run(files)
    lines = missed({file: floor[file] for file in files if file in floor}, report)
    print("\n".join(lines) or f"no floor was missed ({len(files)} files)")
    if options.update:
        FLOOR.write_text(json.dumps(raised(floor, report), indent=1) + "\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
