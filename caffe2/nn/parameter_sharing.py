"""Layers that share their parameters: name scopes that stand for others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from caffe2.graph.errors import UsageError
from caffe2.graph.scope import SEPARATOR, CurrentNameScope


class ParameterSharingContext:
    """Which scopes stand for which others, at present."""

    def __init__(self) -> None:
        self._contexts: list[dict[str, str]] = []

    def get_parameter_name(self, name: str) -> str:
        """The full name of the parameter that is called `name` in the current NameScope."""
        scope = CurrentNameScope().rstrip(SEPARATOR)
        return f"{self._resolve(scope)}{SEPARATOR}{name}".lstrip(SEPARATOR)

    def _resolve(self, scope: str) -> str:
        """The scope that this one stands for; its longest part with an override counts."""
        overrides: dict[str, str] = {}
        for context in self._contexts:
            overrides.update(context)
        rest: list[str] = []
        seen = set()
        while scope:
            if scope in overrides:
                if scope in seen:
                    raise UsageError(f"the shared scope '{scope}' stands for itself: {overrides}")
                seen.add(scope)
                scope = overrides[scope]
            else:
                scope, _, last = scope.rpartition(SEPARATOR)
                rest.insert(0, last)
        return SEPARATOR.join(rest)

    def add_scope_overrides(self, shared_scopes: Mapping[str, str]) -> None:
        """Lets the first scope of each pair stand for the second; UsageError when the second lies
        inside the first."""
        for scope, target in shared_scopes.items():
            if target == scope or target.startswith(scope + SEPARATOR):
                raise UsageError(
                    f"Illegal override for parameter sharing. {scope} is prefix of {target}"
                )
        self._contexts.append(dict(shared_scopes))

    def pop(self) -> None:
        """Takes back the last `add_scope_overrides`."""
        self._contexts.pop()


parameter_sharing_context = ParameterSharingContext()


def _normal(scope: str) -> str:
    return scope.rstrip(SEPARATOR)


@contextmanager
def ParameterSharing(shared_scopes: Mapping[str, str]) -> Iterator[None]:
    """`with ParameterSharing({"b": "a"}):` layers in the scope "b" use the parameters of "a".

    Names are relative to the current NameScope.
    """
    here = CurrentNameScope()
    scopes = {
        _normal(here + scope): _normal(here + target) for scope, target in shared_scopes.items()
    }
    parameter_sharing_context.add_scope_overrides(scopes)
    try:
        yield
    finally:
        parameter_sharing_context.pop()
