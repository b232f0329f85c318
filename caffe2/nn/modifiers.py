"""Optimizers, regularizers and normalizers that layers find by name.

with UseOptimizer({"embedding": AdagradOptimizer(), "DEFAULT": SgdOptimizer(0.1)}):
    OptimizerContext.current().get_optimizer("embedding")
"""

from __future__ import annotations

from typing import Any, ClassVar

from caffe2.graph.errors import UsageError
from caffe2.plans.context import DefaultManaged

DEFAULT_MODIFIER = "DEFAULT"


class ModifierContext:
    """Names and what they stand for; inner blocks add to outer ones and hide what they name
    anew."""

    def __init__(self) -> None:
        self._modifiers: dict[str, Any] = {}
        self._modifiers_list: list[dict[str, Any]] = []

    def _rebuild_modifiers(self) -> None:
        self._modifiers = {}
        for modifiers in self._modifiers_list:
            self._modifiers.update(modifiers)

    def _has_modifier(self, name: str) -> bool:
        return name in self._modifiers

    def _get_modifier(self, name: str) -> Any:
        return self._modifiers.get(name)

    def push_modifiers(self, modifiers: dict[str, Any]) -> None:
        """Adds what these names stand for."""
        self._modifiers_list.append(modifiers)
        self._modifiers.update(modifiers)

    def pop_modifiers(self) -> None:
        """Takes back the last `push_modifiers`."""
        if not self._modifiers_list:
            raise UsageError("there are no modifiers to take back")
        self._modifiers_list.pop()
        self._rebuild_modifiers()


class UseModifierBase:
    """`with` a modifier, which is the one called "DEFAULT", or with a dictionary of them."""

    def __init__(self, modifier_or_dict: Any) -> None:
        if isinstance(modifier_or_dict, dict):
            self._modifiers = modifier_or_dict
        else:
            self._modifiers = {DEFAULT_MODIFIER: modifier_or_dict}

    def _context_class(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} names no context")

    def __enter__(self) -> UseModifierBase:
        self._context_class().current().push_modifiers(self._modifiers)
        return self

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self._context_class().current().pop_modifiers()


class _Named(ModifierContext, DefaultManaged):
    what: ClassVar[str]

    def _get(self, name: str) -> Any:
        if not self._has_modifier(name):
            raise UsageError(f"{name} {self.what} is not provided!")
        return self._get_modifier(name)


class OptimizerContext(_Named):
    """The optimizers of the `UseOptimizer` blocks around."""

    what = "optimizer"

    def has_optimizer(self, name: str) -> bool:
        return self._has_modifier(name)

    def get_optimizer(self, name: str) -> Any:
        """The optimizer of this name; UsageError when there is none."""
        return self._get(name)


class UseOptimizer(UseModifierBase):
    """`with UseOptimizer(optimizer)` or `with UseOptimizer({name: optimizer})`."""

    def _context_class(self) -> Any:
        return OptimizerContext


class RegularizerContext(_Named):
    """The regularizers of the `UseRegularizer` blocks around."""

    what = "regularizer"

    def has_regularizer(self, name: str) -> bool:
        return self._has_modifier(name)

    def get_regularizer(self, name: str) -> Any:
        """The regularizer of this name; UsageError when there is none."""
        return self._get(name)


class UseRegularizer(UseModifierBase):
    """`with UseRegularizer(regularizer)` or `with UseRegularizer({name: regularizer})`."""

    def _context_class(self) -> Any:
        return RegularizerContext


class NormalizerContext(_Named):
    """The normalizers of the `UseNormalizer` blocks around."""

    what = "normalizer"

    def has_normalizer(self, name: str) -> bool:
        return self._has_modifier(name)

    def get_normalizer(self, name: str) -> Any:
        """The normalizer of this name; UsageError when there is none."""
        return self._get(name)


class UseNormalizer(UseModifierBase):
    """`with UseNormalizer(normalizer)` or `with UseNormalizer({name: normalizer})`."""

    def _context_class(self) -> Any:
        return NormalizerContext
