"""The program `caffe2`: saved models looked at, checked, run and changed.

Exit codes: 0 all is well, 1 something was found wrong or different, 2 an error.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and gives the exit code; `arguments` are those of the process unless given."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="caffe2", description="Saved models of Caffe2.")
    commands = parser.add_subparsers(dest="command", required=True)
    chosen = next((item for item in arguments if item in COMMANDS), None)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name == chosen:
            importlib.import_module(f"caffe2.commands.{name}").add(command)
    options = parser.parse_args(arguments)
    try:
        run = importlib.import_module(f"caffe2.commands.{options.command}").run
        return int(run(options))
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except (OSError, ValueError, RuntimeError) as error:
        print(f"caffe2 {options.command}: {error}", file=sys.stderr)
        return 2
