"""Names of blobs that a graph does not have."""

from __future__ import annotations

from collections.abc import Iterable


class DummyName:
    """Gives names that nobody has used, in the same order after each reset."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next = 0

    def reset(self, used: Iterable[str] = ()) -> None:
        """Begins anew; names in `used` are left out."""
        self._used, self._next = set(used), 0

    def new_dummy_name(self) -> str:
        """The next name, which is not given twice."""
        while True:
            name = f"OC2_DUMMY_{self._next}"
            self._next += 1
            if name not in self._used:
                return name
