"""Errors of building a net, and what their texts are made of."""

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


def printable(text: str) -> str:
    """One line as it may be printed.  Names in nets are anything, also what moves a terminal's
    cursor, or ends the line and begins one that looks like ours."""
    if text.isprintable():
        return text  # nearly all
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def net_called(name: str, role: str = "") -> str:
    """A net as messages call it, by its name or else by what it is for ("init", "predict")."""
    if name:
        return f'net "{name}"'
    return f"the unnamed {role} net" if role else "an unnamed net"
