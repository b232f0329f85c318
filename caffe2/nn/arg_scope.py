"""Arguments that layers get by default within a `with` block."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from caffe2.graph.errors import UsageError


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.arguments: dict[str, dict[str, Any]] = {}


_scopes = _Scopes()


def get_current_scope() -> dict[str, dict[str, Any]]:
    """The arguments in force, by name of the helper."""
    return _scopes.arguments


@contextmanager
def arg_scope(
    single_helper_or_list: Callable[..., Any] | Iterable[Callable[..., Any]], **kwargs: Any
) -> Iterator[None]:
    """Gives helpers of `brew` arguments: `with arg_scope([brew.conv, brew.fc], weight_init=...)`.

    Inner scopes and the call itself override them.
    """
    if callable(single_helper_or_list):
        helpers = [single_helper_or_list]
    elif isinstance(single_helper_or_list, (list, tuple)):
        helpers = list(single_helper_or_list)
    else:
        helpers = []
    if not helpers or not all(map(callable, helpers)):
        raise UsageError(
            "arg_scope is only supporting single or a list of helper functions, "
            f"got {single_helper_or_list!r}"
        )
    outer = _scopes.arguments
    inner = dict(outer)
    for helper in helpers:
        name = helper.__name__
        inner[name] = {**inner.get(name, {}), **kwargs}
    _scopes.arguments = inner
    try:
        yield
    finally:
        _scopes.arguments = outer
