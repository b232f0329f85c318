"""brew: layers by name, `brew.conv(model, "data", "conv1", dim_in=1, dim_out=20, kernel=5)`."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any, TypeAlias

from caffe2.graph.net import Net
from caffe2.nn import helpers
from caffe2.nn.arg_scope import arg_scope
from caffe2.nn.arg_scope import get_current_scope as current_arguments
from caffe2.nn.model_helper import ModelHelper

Helper: TypeAlias = Callable[..., Any]


class Brew:
    """The registered layers, each an attribute.

    A layer gets the model (a ModelHelper, or a plain Net, whose `param_init` then makes the
    parameters) as first argument or as `model=`, and as defaults the `arg_scope` of the model and
    of the `with brew.arg_scope(...)` blocks around the call.
    """

    arg_scope = staticmethod(arg_scope)

    def __init__(self) -> None:
        self._helpers: dict[str, Helper] = {}

    def Register(self, helper: Helper) -> None:
        """Adds a layer under the name of its function."""
        if helper.__name__ in self._helpers:
            raise AttributeError(
                f"Helper {helper.__name__} already exists. Please change your helper name."
            )
        self._helpers[helper.__name__] = helper

    def has_helper(self, helper_or_helper_name: Helper | str) -> bool:
        """Whether there is a layer of this name."""
        name = helper_or_helper_name
        return (name if isinstance(name, str) else name.__name__) in self._helpers

    def __getattr__(self, helper_name: str) -> Helper:
        helper = vars(self).get("_helpers", {}).get(helper_name)
        if helper is None:
            raise AttributeError(f"Helper function {helper_name} not registered.")

        @functools.wraps(helper)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            model, rest = (args[0], args[1:]) if args else (kwargs.pop("model", None), ())
            if isinstance(model, Net):
                model = ModelHelper.of_net(model)
            if not isinstance(model, ModelHelper):
                raise RuntimeError(
                    "The first input of helper function should be model. "
                    "Or you can provide it in kwargs as model=<your_model>."
                )
            defaults = {**model.arg_scope, **current_arguments().get(helper_name, {})}
            return helper(model, *rest, **{**_taken(helper, defaults), **kwargs})

        return scoped

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._helpers]


def _taken(helper: Helper, arguments: dict[str, Any]) -> dict[str, Any]:
    """Those of the arguments that a helper takes."""
    parameters = inspect.signature(helper).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return arguments
    return {name: value for name, value in arguments.items() if name in parameters}


brew = Brew()

for _module in pkgutil.iter_modules(helpers.__path__, f"{helpers.__name__}."):
    for _helper in importlib.import_module(_module.name).HELPERS:
        brew.Register(_helper)
