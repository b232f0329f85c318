"""Operators as functions of arrays: `Functional.Relu(x).output_0`."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from caffe2 import ops
from caffe2.graph.errors import UsageError
from caffe2.graph.operator import CreateOperator
from caffe2.runtime.handles import Workspace


def namedtupledict(typename: str, field_names: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """A namedtuple class whose values are also found by name: `values["output_0"]`."""
    base: Any = namedtuple(typename, field_names, *args, **kwargs)  # type: ignore[misc]

    def get(self: Any, key: Any) -> Any:
        return getattr(self, key) if isinstance(key, str) else base.__getitem__(self, key)

    return type(typename, (base,), {"__slots__": (), "__getitem__": get})


class _Functional:
    """Each operator as a function: of its inputs as arrays, and its arguments by name.

    It gives a tuple of the outputs, `output_0`, `output_1`, ...: as many as the operator can have;
    `num_output` says how many where there is no limit.  AttributeError for an unknown operator,
    ValueError for a number of inputs or outputs that it cannot have.
    """

    def __getattribute__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("__"):
            return object.__getattribute__(self, op_type)  # type: ignore[no-any-return]

        def run(*inputs: Any, **args: Any) -> Any:
            return _run(op_type, inputs, args)

        return run


def _run(op_type: str, inputs: Sequence[Any], args: dict[str, Any]) -> Any:
    try:
        declaration = ops.find(op_type)
    except ops.UnknownOperatorError as error:
        raise AttributeError(str(error)) from None
    count = args.pop("num_output", declaration.outputs.most)
    if count is None:
        raise UsageError(f"{op_type} may have any number of outputs: give num_output=")
    sources = [f"input_{i}" for i in range(len(inputs))]
    results = [f"output_{i}" for i in range(count)]
    workspace = Workspace()
    for name, value in zip(sources, inputs, strict=True):
        workspace.feed_blob(name, value)
    workspace.run(CreateOperator(op_type, sources, results, **args))
    values = [workspace.fetch_blob(name) for name in results]
    return namedtupledict("output", results)(*values)


Functional = _Functional()
