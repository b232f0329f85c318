"""Errors of building a net."""

from __future__ import annotations


class UsageError(ValueError, AssertionError):
    """A call with values that make no sense.  Also an AssertionError, which old scripts catch."""


class GradientError(RuntimeError):
    """A net cannot be differentiated as it is."""
