"""Libraries of further operators, loaded while the program runs."""

from __future__ import annotations

import importlib.util
import logging
import os
import threading

from caffe2 import ops
from caffe2.ops.arguments import DeclarationError

_log = logging.getLogger(__name__)
dll_lock = threading.Lock()
_imported: set[str] = set()
# Libraries that scripts load for the operators of GPUs, databases or Detectron.
_KNOWN_NATIVE = (".so", ".dylib", ".dll")


def InitOpsLibrary(name: str, trigger_lazy: bool = True) -> None:
    """Loads a library of operators, once.

    name  a Python file whose declarations (see caffe2.ops) become operators, which run on their
          NumPy bodies: DeclarationError for one without native=False.  A native library
          made for the original cannot be loaded: when the file is there it is an OSError, when it
          is not, as where a script names the library of its GPU build, a note in the log.
    """
    if not isinstance(name, str):
        raise TypeError(f"a library is named by its path, not by {name!r:.200}")
    path = os.path.abspath(name)
    with dll_lock:
        if path in _imported:
            return
        if not os.path.exists(path):
            if name.endswith(".py"):
                raise FileNotFoundError(f"there is no operator library {path}")
            _log.warning("operator library %s is not there: its operators are missing", path)
            return
        if path.endswith(_KNOWN_NATIVE):
            raise OSError(
                f"{path} is a native library of the original Caffe2, whose binary interface "
                "differs; declare its operators in Python (see docs/adding-an-operator.md)"
            )
        module = f"caffe2_plugin_{len(_imported)}"
        spec = importlib.util.spec_from_file_location(module, path)
        if spec is None or spec.loader is None:
            raise OSError(f"{path} is no Python file")
        built_in = ops.all()
        with ops.declarations_of(module):
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
            for declaration in ops.all().values():
                if declaration.native and declaration.name not in built_in:
                    raise DeclarationError(
                        f"operator {declaration.name} ({path}) needs native=False: operators of a "
                        "plug-in run on their NumPy bodies"
                    )
        _imported.add(path)


def GetImportedOpsLibraries() -> set[str]:
    """The paths of all libraries loaded."""
    return set(_imported)
