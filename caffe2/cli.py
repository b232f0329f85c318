"""The program `caffe2`: saved models looked at, checked, run and changed.

Exit codes: 0 all is well, 1 something was found wrong or different, 2 an error.  With --json an
error is an object, too: {"error": its text, "kind": "usage", "file", "model" or "engine"}, and for
kind "file" also "file": its path.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from typing import NoReturn

from caffe2.graph.errors import FileError, UsageError, printable

# Modules of caffe2.commands, each loaded when it is asked for.
COMMANDS = {
    "summary": "operators, shapes, parameters, cost, and what is missing",
    "verify": "whether a model is right, and fit for a phone",
    "run": "its outputs for files of arrays or images",
    "draw": "a picture of a net",
    "diff": "where two models, or two runs, differ",
    "bench": "how long it takes, operator by operator",
    "optimize": "make it ready for inference",
    "upgrade": "bring an old net up to date",
}


_CODES = "Exit codes: 0 all is well, 1 something was found wrong or different, 2 an error."


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise argparse.ArgumentError(None, message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and gives the exit code; `arguments` are those of the process unless given."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = _Parser(prog="caffe2", description="Saved models of Caffe2.", epilog=_CODES)
    commands = parser.add_subparsers(dest="command", required=True)
    chosen = next((item for item in arguments if item in COMMANDS), None)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text, epilog=_CODES)
        if name == chosen:
            importlib.import_module(f"caffe2.commands.{name}").add(command)
    try:
        options = parser.parse_args(arguments)
        return int(importlib.import_module(f"caffe2.commands.{options.command}").run(options))
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    except (argparse.ArgumentError, OSError, ValueError, RuntimeError, MemoryError) as error:
        if "--json" in arguments:
            print(json.dumps(_as_object(error), indent=1))
        else:
            program = " ".join(["caffe2", *([chosen] if chosen else [])])
            hint = f" (see {program} -h)" if isinstance(error, argparse.ArgumentError) else ""
            text = "\n    ".join(map(printable, _text(error).split("\n")))
            print(f"{program}: {text}{hint}", file=sys.stderr)
        return 2


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _as_object(error: BaseException) -> dict[str, str]:
    """An error for programs."""
    found = {"error": _text(error)}
    if isinstance(error, FileError):
        return found | {"kind": "file", "file": error.file}
    if isinstance(error, OSError):
        return found | {"kind": "file", "file": str(error.filename or "")}
    if isinstance(error, (UsageError, argparse.ArgumentError)):
        return found | {"kind": "usage"}
    return found | {"kind": "model" if isinstance(error, ValueError) else "engine"}
