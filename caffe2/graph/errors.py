"""Errors of building a net."""

from __future__ import annotations


class UsageError(ValueError, AssertionError):
    """A call with values that make no sense.  Also an AssertionError, which old scripts catch."""


class FileError(UsageError):
    """A file that does not hold what is wanted.

    file  its path
    """

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file} {problem}")
        self.file = file


class DamagedError(FileError):
    """A file whose bytes are not those that were written."""


class GradientError(RuntimeError):
    """A net cannot be differentiated as it is."""
