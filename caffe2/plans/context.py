"""Objects that are in force within a `with` block, each thread having its own."""

from __future__ import annotations

import functools
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from caffe2.graph.errors import UsageError

Self = TypeVar("Self", bound="Managed")


class _Entered(threading.local):
    def __init__(self) -> None:
        self.stacks: dict[type, list[Any]] = defaultdict(list)


_entered = _Entered()


class Managed:
    """Base of classes whose instances are found by `current()` inside their `with` block, also as
    instances of their base classes.  An instance is a decorator, too."""

    @classmethod
    def current(cls: type[Self], value: Self | None = None, required: bool = True) -> Self | None:
        """`value`, or else the innermost instance around here.

        UsageError when there is none and one is required.
        """
        if value is not None:
            if not isinstance(value, cls):
                raise UsageError(f"a {cls.__name__} is needed, got {value!r}")
            return value
        stack = _entered.stacks[cls]
        if stack:
            return stack[-1]  # type: ignore[no-any-return]
        default = cls._default()
        if default is None and required:
            raise UsageError(f"No {cls.__name__} is in force here: use `with {cls.__name__}(...)`")
        return default

    @classmethod
    def _default(cls: type[Self]) -> Self | None:
        return None

    @classmethod
    def _stacks(cls) -> list[list[Any]]:
        return [
            _entered.stacks[base]
            for base in cls.__mro__
            if issubclass(base, Managed) and base not in (Managed, DefaultManaged)
        ]

    def __enter__(self: Self) -> Self:
        for stack in self._stacks():
            stack.append(self)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        for stack in self._stacks():
            stack.pop()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return wrapper


class DefaultManaged(Managed):
    """Managed whose `current()` makes an instance, one for each thread, where there is none."""

    @classmethod
    def _default(cls: type[Self]) -> Self | None:
        stack = _entered.stacks[cls]
        stack.append(cls())
        return stack[-1]  # type: ignore[no-any-return]
