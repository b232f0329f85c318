# mypy: disable-error-code="misc, no-any-return"
"""Operators that call Python functions of the process that built the net."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Ints, OperatorError, Str
from caffe2.ops.datatypes import dtype_of
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator

_workspace: ContextVar[Callable[[], Any]] = ContextVar("workspace of a running operator")


@contextmanager
def running_in(workspace: Callable[[], Any]) -> Iterator[None]:
    """What gives the workspace that Python operators hand to functions which ask for it."""
    token = _workspace.set(workspace)
    try:
        yield
    finally:
        _workspace.reset(token)


class HostTensor:
    """What a Python function sees of an input or output: `data` is a NumPy array."""

    def __init__(self, data: Array | None = None) -> None:
        self._data = data

    @property
    def data(self) -> Array:
        if self._data is None:
            raise ValueError("the output has no shape yet: reshape(shape) or feed(array) first")
        return self._data

    @property
    def shape(self) -> tuple[int, ...]:
        return () if self._data is None else self._data.shape

    def reshape(self, shape: Sequence[int]) -> None:
        """Gives it a shape; values stay where their number does, else it is float32 zeros."""
        dims = tuple(int(dim) for dim in shape)
        if self._data is not None and self._data.size == np.prod(dims, dtype=np.int64):
            self._data = self._data.reshape(dims)
        else:
            self._data = np.zeros(dims, np.float32)

    def init(self, shape: Sequence[int], data_type: int) -> None:
        """Zeros of a shape and a number of DataType."""
        self._data = np.zeros(tuple(int(dim) for dim in shape), dtype_of(data_type))

    def feed(self, array: Any, device_option: Any = None) -> None:
        """Becomes a copy of an array."""
        self._data = np.array(array)

    def fetch(self) -> Array:
        """A copy of the values."""
        return np.array(self.data)


class PythonFunction:
    """A function and its gradient, under a name that operators of this process find them by.

    A tuple (make, args, kwargs) stands for the function that make(*args, **kwargs) gives.
    """

    def __init__(self, function: Any, gradient: Any = None, pass_workspace: bool = False) -> None:
        self.function, self.gradient = map(_made, (function, gradient))
        self.pass_workspace = pass_workspace
        name = getattr(self.function, "__name__", type(self.function).__name__)
        with _lock:
            number = next(_numbers)
            self.token = f"{name}:{number}"
            _functions[self.token] = self

    def call(self, function: Callable[..., Any], inputs: Sequence[Array], op: OpView) -> Any:
        """The outputs of an operator that calls `function`."""
        tensors = {name: HostTensor(x) for name, x in zip(op.inputs, inputs, strict=True)}
        read = [tensors[name] for name in op.inputs]
        written = [tensors.get(name) or HostTensor() for name in op.outputs]
        function(read, written, *([_workspace.get()()] if self.pass_workspace else []))
        for name, tensor in zip(op.outputs, written, strict=True):
            if tensor._data is None:
                raise OperatorError("", f"the Python function {self.token} wrote no '{name}'")
        return [tensor.data for tensor in written]


_lock = threading.Lock()
_numbers = itertools.count()
_functions: weakref.WeakValueDictionary[str, PythonFunction] = weakref.WeakValueDictionary()


def _made(function: Any) -> Any:
    if isinstance(function, tuple):
        make, args, kwargs = (*function, (), {})[:3] if len(function) < 3 else function
        return make(*args, **kwargs)
    return function


class _Token(Str):
    def from_message(self, message: Any) -> Any:
        token = Str().element(super().from_message(message))
        function = _functions.get(token)
        if function is None:
            raise OperatorError(
                "argument 'token'",
                f"is '{token}': no Python function of this process, or its net is gone",
            )
        return function

    def element(self, value: Any) -> Any:
        return value if isinstance(value, PythonFunction) else super().element(value)


class _Pickle(Str):
    def from_message(self, message: Any) -> Any:
        raise OperatorError(
            f"argument '{message.name}'", "holds pickled code, which is never run from a net"
        )


_ARGS = {
    "token": _Token(),
    "grad_input_indices": Ints(),
    "grad_output_indices": Ints(),
    "pass_workspace": Bool(False),
    "pickled_builder": _Pickle(),
    "pickled_grad_builder": _Pickle(),
}


def _function(op: OpView) -> Any:
    if op.args.token is None:
        raise OperatorError("", "names no Python function (argument 'token')")
    return op.args.token


def _unknown(*X: Spec, op: OpView) -> tuple[None, ...]:
    return (None,) * len(op.outputs)


@operator(
    "Python",
    inputs="X*?",
    outputs="Y*?",
    touches=("code",),
    args=_ARGS,
    inplace="any",
    kind="io",
    native=False,
    blocks=True,
    shape=_unknown,
)
class Python:
    """Calls a Python function of the process that built the net; see `core.Net.Python`.

    X, Y: tensors, as the function reads and makes them.
    token: the name of the function in this process.  Pickled functions are refused.
    """

    def reference(*X: Array, op: OpView) -> Any:
        token = _function(op)
        return token.call(token.function, X, op)

    def gradient(op: GradientContext) -> Any:
        token = op.args.token
        if token is not None and token.gradient is None:
            raise OperatorError("", f"the Python function {token.token} has no gradient")
        outputs = op.args.grad_output_indices or range(len(op.outputs))
        inputs = op.args.grad_input_indices or range(len(op.inputs))
        return op.make(
            "PythonGradient",
            [*op.inputs, *op.outputs, *(op.grad(index) for index in outputs)],
            [op.input_grad(index) for index in inputs],
        )


@operator(
    "PythonGradient",
    inputs="X*?",
    outputs="dX*?",
    touches=("code",),
    args=_ARGS,
    inplace="any",
    kind="io",
    native=False,
    blocks=True,
    shape=_unknown,
)
class PythonGradient:
    """Calls the gradient function of a Python operator.

    X: the inputs and the outputs of the operator, then the gradients of the outputs.
    dX: the gradients of the inputs.
    """

    def reference(*X: Array, op: OpView) -> Any:
        token = _function(op)
        return token.call(token.gradient, X, op)
