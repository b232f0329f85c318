"""Where operators run in tests: on their NumPy bodies, or in the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from caffe2 import ops
from caffe2.ops.arguments import OperatorError
from caffe2.ops.declaration import Array, Declaration


@dataclass(frozen=True)
class Operation:
    """One use of an operator: type, blob names, arguments that are given."""

    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    args: Mapping[str, Any] = field(default_factory=dict)


class RefusedError(Exception):
    """The clean error that bad input must end in; the text is the runner's."""


class Session(Protocol):
    """A workspace with blobs, in which operators run."""

    def feed(self, name: str, value: Array) -> None: ...
    def fetch(self, name: str) -> Array: ...
    def seed(self, seed: int) -> None:
        """Starts random numbers anew."""

    def run(self, operation: Operation) -> None:
        """Runs it; RefusedError, with all blobs as before, when it cannot be."""


class Runner(Protocol):
    """Makes sessions.  The sessions of `variants` must agree in every bit."""

    def session(self) -> Session: ...
    def variants(self) -> Iterator[Session]: ...
    def native(self, type: str) -> bool:
        """Whether the operator runs on something else than its NumPy body."""


class NumpyRunner:
    """Runs the NumPy bodies.  `declarations` take the place of those of the catalogue."""

    def __init__(self, declarations: Mapping[str, Declaration] | None = None) -> None:
        self._declarations = dict(declarations or {})

    def session(self) -> Session:
        return _NumpySession(self._declarations)

    def variants(self) -> Iterator[Session]:
        yield self.session()

    def native(self, type: str) -> bool:
        return False


class _NumpySession:
    def __init__(self, declarations: Mapping[str, Declaration]) -> None:
        self._declarations = declarations
        self._blobs: dict[str, Array] = {}
        self._rng = np.random.default_rng()

    def feed(self, name: str, value: Array) -> None:
        self._blobs[name] = value.copy()

    def fetch(self, name: str) -> Array:
        return np.array(self._blobs[name])

    def seed(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def run(self, operation: Operation) -> None:
        declaration = self._declarations.get(operation.type) or ops.find(operation.type)
        missing = [name for name in operation.inputs if name not in self._blobs]
        if missing:
            raise RefusedError(f"{operation.type}: there is no blob '{missing[0]}'")
        inputs = [self._blobs[name].copy() for name in operation.inputs]
        try:
            op = declaration.view(operation.inputs, operation.outputs, operation.args, self._rng)
            outputs = declaration.run(op, inputs)
        except OperatorError as error:
            raise RefusedError(str(error)) from error
        self._blobs.update(zip(operation.outputs, outputs, strict=True))


class EngineRunner:
    """Runs the engine's kernels: of one instruction set, of one `engine` (an operator's kernels by
    name; "REFERENCE" is its NumPy body).  `unavailable` says why it cannot, or is None."""

    def __init__(self, threads: int = 2, isa: str = "auto", engine: str = "") -> None:
        self._threads, self._isa, self._engine = threads, isa, engine

    @staticmethod
    def unavailable() -> str | None:
        try:
            from caffe2 import _native  # noqa: F401
        except ImportError as error:
            return f"the engine is not built: {error}"
        return None

    def session(self) -> Session:
        return _EngineSession(self._threads, self._isa, self._engine)

    def variants(self) -> Iterator[Session]:
        """Results do not depend on the number of threads."""
        for threads in (1, 3):
            yield _EngineSession(threads, self._isa, self._engine)

    def native(self, type: str) -> bool:
        return ops.find(type).native


class _EngineSession:
    def __init__(self, threads: int, isa: str, engine: str) -> None:
        from caffe2 import _native
        from caffe2.runtime.engine import new_workspace

        self._error, self._engine = _native.EngineError, engine
        self._workspace = new_workspace(_native.Engine(threads=threads, isa=isa))

    def feed(self, name: str, value: Array) -> None:
        if value.dtype.hasobject:
            self._workspace.feed_strings(name, value)
        else:
            self._workspace.feed(name, value)

    def fetch(self, name: str) -> Array:
        return np.asarray(self._workspace.fetch(name))

    def seed(self, seed: int) -> None:
        self._workspace.random_seed = seed

    def run(self, operation: Operation) -> None:
        try:
            self._workspace.run_operator(_message(operation, self._engine))
        except self._error as error:
            raise RefusedError(str(error)) from error


def _message(operation: Operation, engine: str) -> bytes:
    """The OperatorDef, not checked in Python: the engine must refuse what is wrong."""
    from caffe2.graph.operator import MakeArgument
    from caffe2.proto import caffe2_pb2

    message = caffe2_pb2.OperatorDef(
        type=operation.type, input=operation.inputs, output=operation.outputs, engine=engine
    )
    message.arg.extend(MakeArgument(name, _plain(value)) for name, value in operation.args.items())
    return bytes(message.SerializeToString())


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
