"""Writes the Python messages and their type stubs from the .proto files beside this one.

    python caffe2/proto/generate.py [--check]

Needs protoc 21.x (called 3.21.x by Debian), the one named by $PROTOC or found on PATH: messages of
that generation work with every protobuf from 4.21 on, since they ask for no version of their own.
`--check` writes nothing and fails when the committed files differ from what would be written.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
PROTOC = re.compile(r"libprotoc (3\.)?21\.")


def generate(target: Path) -> None:
    """Writes the generated files of all .proto files under `target`, as caffe2/proto/...."""
    protoc = os.environ.get("PROTOC", "protoc")
    version = subprocess.run([protoc, "--version"], check=True, capture_output=True, text=True)
    if not PROTOC.match(version.stdout):
        raise SystemExit(f"{protoc} is {version.stdout.strip()}; protoc 21.x is needed")
    sources = [str(path.relative_to(ROOT)) for path in sorted(FOLDER.glob("*.proto"))]
    outputs = [f"--python_out={target}", f"--pyi_out={target}"]
    subprocess.run([protoc, "--proto_path=.", *outputs, *sources], check=True, cwd=ROOT)
    for stub in sorted((target / "caffe2/proto").glob("*_pb2.pyi")):
        finish_stub(stub)


def finish_stub(stub: Path) -> None:
    """Adds the device names without PROTO_ (see __init__.py); spares the stub mypy's strictness."""
    text = stub.read_text()
    aliases = re.findall(r"^PROTO_\w+: DeviceTypeProto\n", text, re.MULTILINE)
    lines = "".join(alias.removeprefix("PROTO_") for alias in aliases)
    stub.write_text("# mypy: ignore-errors\n" + text + lines)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        raise SystemExit(__doc__)
    if not arguments:
        generate(ROOT)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        made = sorted(Path(folder, "caffe2/proto").iterdir())
        stale = [
            path.name
            for path in made
            if not (FOLDER / path.name).exists()
            or (FOLDER / path.name).read_bytes() != path.read_bytes()
        ]
    if stale:
        print("out of date:", *stale, file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
