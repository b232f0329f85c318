"""The catalogue: every operator, declared once, in the module of its family.

Family modules are the modules of this package; they are found by themselves and imported when
an operator is first asked for.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import pkgutil
import threading
from collections.abc import Iterator

from caffe2.ops.declaration import Declaration, _declarations

__all__ = ["Declaration", "UnknownOperatorError", "all", "declarations_of", "declared", "find"]

_lock = threading.RLock()
_loaded = False


class UnknownOperatorError(KeyError):
    """No operator has this type; the text suggests near names."""

    def __init__(self, type: str) -> None:
        super().__init__(type)
        self.type = type

    @property
    def near(self) -> list[str]:
        """Names that it may have been meant to be."""
        return list(_near(self.type, len(_declarations)))

    def __str__(self) -> str:
        hint = f"; did you mean {' or '.join(self.near)}?" if self.near else ""
        return f"no operator is called '{self.type}'{hint}"


def find(type: str) -> Declaration:
    """The declaration of an operator type, or UnknownOperatorError."""
    if type not in _declarations:
        _load_families()
    try:
        return _declarations[type]
    except KeyError:
        raise UnknownOperatorError(type) from None


@functools.lru_cache(maxsize=256)  # looking is slow, and a net may ask for each of its operators
def _near(type: str, declared: int) -> tuple[str, ...]:
    by_lower = {name.lower(): name for name in _declarations}
    # Operators of somebody's own look a little like many; a wrong letter in five is a slip.
    cutoff = 0.8 if len(type) > 5 else 0.75
    close = difflib.get_close_matches(type.lower(), by_lower, 3, cutoff)
    return tuple(by_lower[name] for name in close)


def declared(type: str) -> bool:
    """Whether an operator has this type."""
    if type not in _declarations:
        _load_families()
    return type in _declarations


def all() -> dict[str, Declaration]:
    """Every operator by name, in the order of names."""
    _load_families()
    return dict(sorted(_declarations.items()))


def _load_families() -> None:
    global _loaded  # noqa: PLW0603 -- set once, under the lock
    with _lock:
        if _loaded:
            return
        for module in pkgutil.iter_modules(__path__, f"{__name__}."):
            with declarations_of(module.name):
                importlib.import_module(module.name)
        _loaded = True


@contextlib.contextmanager
def declarations_of(module: str) -> Iterator[None]:
    """Around the import of a module: one that fails half-way is declared afresh at the next try."""
    try:
        yield
    except BaseException:
        for name in [n for n, d in _declarations.items() if d.module == module]:
            del _declarations[name]
        raise
