"""What the harness tests each operator with: one line per operator and set of arguments.

The lines are in the modules `cases_<family>.py`, which are found by themselves. Each has a list
`CASES`; `SPECIAL`, where there is one, names operators whose contract the harness does not know,
and the file that tests them.
"""

import importlib
from pathlib import Path

MODULES = [
    importlib.import_module(path.stem) for path in sorted(Path(__file__).parent.glob("cases_*.py"))
]
CASES = [case for module in MODULES for case in module.CASES]
SPECIAL = {
    type: file for module in MODULES for type, file in getattr(module, "SPECIAL", {}).items()
}
