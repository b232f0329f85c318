"""What the harness tests each operator with: one line per operator and set of arguments.

The lines are in the modules `cases_<family>.py`, which are found by themselves. Each has a list
`CASES`. There may be dictionaries, from operators to text:

SPECIAL              the harness does not know the contract; the file that tests it
NOT_OF_THE_ORIGINAL  the last release of the original lacks it; why
OTHER_GRADIENTS      the original's gradient is made of other operators or blobs; why
LOOSER               the original's schema allows other counts of inputs or outputs; why
MORE_IN_PLACE        the original allows more in place than the facts say; how that is known
"""

import importlib
from pathlib import Path

MODULES = [
    importlib.import_module(path.stem) for path in sorted(Path(__file__).parent.glob("cases_*.py"))
]
CASES = [case for module in MODULES for case in module.CASES]


def _merged(name):
    """The dictionary of this name of all modules in one."""
    return {key: value for module in MODULES for key, value in getattr(module, name, {}).items()}


SPECIAL = _merged("SPECIAL")
NOT_OF_THE_ORIGINAL = _merged("NOT_OF_THE_ORIGINAL")
OTHER_GRADIENTS = _merged("OTHER_GRADIENTS")
LOOSER = _merged("LOOSER")
MORE_IN_PLACE = _merged("MORE_IN_PLACE")
