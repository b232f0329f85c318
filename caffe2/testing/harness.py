"""What operators are held to.  `check` runs the contract of the operator's kind:

pure      the values, shapes and types of the NumPy body and of the shape rule; inputs untouched;
          in place only where allowed, with the same values; the same bits again, whatever the
          number of threads; the gradient against the numeric one; bad input
random    the distribution; the same seed gives the same numbers, another seed or run others;
          shape rule; bad input
stateful  the states of several runs; shape rule; bad input

Bad input: wrong numbers of blobs, missing blobs, types, sizes and arguments that are not allowed,
blobs in place where that is not allowed.  It must end in an error that names the operator, leave
every blob as it was, and leave a session in which the operator still works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from caffe2 import ops
from caffe2.ops.arguments import Argument
from caffe2.ops.datatypes import ANY, DataType, dtype_of, type_names
from caffe2.ops.declaration import Array, Declaration, NativeOnly, OpView, Spec
from caffe2.testing.cases import Bad, Case, full_effort
from caffe2.testing.gradient_checker import check_gradient
from caffe2.testing.runners import NumpyRunner, Operation, RefusedError, Runner, Session

Drawn: TypeAlias = list[tuple[str, str, Array]]
_SENTINEL = np.array([3.25, -1.5], dtype=np.float32)


class ContractError(AssertionError):
    """An operator that breaks its contract; the text begins with operator and contract."""


def check(
    case: Case,
    runner: Runner | None = None,
    declarations: Mapping[str, Declaration] | None = None,
) -> None:
    """Holds an operator to its contract.  AssertionError says what it breaks.

    runner        where it runs: NumpyRunner() by default, or EngineRunner()
    declarations  stand for those of the catalogue
    """
    catalogue = dict(declarations or {})
    declaration = catalogue.get(case.type) or ops.find(case.type)
    _Check(case, declaration, runner or NumpyRunner(catalogue), catalogue).run()


@dataclass(frozen=True)
class _Check:
    case: Case
    declaration: Declaration
    runner: Runner
    catalogue: Mapping[str, Declaration]

    def run(self) -> None:
        contracts: dict[str, tuple[Callable[[], None], ...]] = {
            "pure": (self.values, self.in_place, self.gradient, self.bad_input),
            "random": (self.distribution, self.seeds, self.bad_input),
            "stateful": (self.states, self.bad_input),
        }
        if self.declaration.kind not in contracts:
            raise ContractError(f"{self.case.type}: kind {self.declaration.kind} has no contract")
        for contract in contracts[self.declaration.kind]:
            contract()

    # Pieces

    def fail(self, contract: str, problem: str) -> ContractError:
        return ContractError(f"{self.case!r}: {contract}: {problem}")

    def outputs(self, drawn: Drawn) -> tuple[str, ...]:
        """The names of the outputs; in place where the operator demands it."""
        names = list(self.case.outputs)
        for source, target in self.declaration.enforced_inplace:
            if source < len(drawn) and target < len(names):
                names[target] = drawn[source][1]
        return tuple(names)

    def operation(self, drawn: Drawn, outputs: tuple[str, ...] | None = None) -> Operation:
        inputs = tuple(blob for _, blob, _ in drawn)
        return Operation(self.case.type, inputs, outputs or self.outputs(drawn), self.case.args)

    def feed(self, session: Session, drawn: Drawn) -> None:
        for _, blob, array in drawn:
            session.feed(blob, array)

    def view(self, drawn: Drawn) -> OpView:
        operation = self.operation(drawn)
        return self.declaration.view(operation.inputs, operation.outputs, operation.args)

    def expected(self, drawn: Drawn) -> tuple[Array, ...]:
        return self.declaration.run(self.view(drawn), [array.copy() for _, _, array in drawn])

    def run_in(self, session: Session, operation: Operation, contract: str) -> None:
        try:
            session.run(operation)
        except RefusedError as error:
            raise self.fail(contract, f"good input is refused: {error}") from error

    def check_shape_rule(self, drawn: Drawn, outputs: tuple[Array, ...]) -> None:
        op = self.view(drawn)
        specs = self.declaration.infer(op, [Spec(a.shape, a.dtype) for _, _, a in drawn])
        for name, spec, output in zip(self.case.outputs, specs, outputs, strict=True):
            if spec is not None and tuple(spec.shape) != output.shape:
                problem = f"says {tuple(spec.shape)} for {name}, the run gives {output.shape}"
                raise self.fail("shape rule", f"{problem} ({_shapes(drawn)})")
            if spec is not None and spec.dtype != output.dtype:
                problem = f"says {spec.dtype} for {name}, the run gives {output.dtype}"
                raise self.fail("shape rule", problem)

    def compare(
        self, contract: str, drawn: Drawn, found: tuple[Array, ...], expected: tuple[Array, ...]
    ) -> None:
        for name, value, right in zip(self.case.outputs, found, expected, strict=True):
            problem = _difference(value, right, self.case.tolerance)
            if problem:
                raise self.fail(contract, f"{name} {problem} ({_shapes(drawn)})")

    # Pure operators

    def values(self) -> None:
        for drawn in self.case.draws():
            expected = self.expected(drawn)
            first: tuple[Array, ...] | None = None
            for session in self.runner.variants():
                operation = self.operation(drawn)
                # Twice: the second run meets outputs that exist already.
                for contract in ("value", "repeated run"):
                    self.feed(session, drawn)
                    self.run_in(session, operation, contract)
                    for _, blob, array in drawn:
                        if blob in operation.outputs:
                            continue
                        if not _same_bits(session.fetch(blob), array):
                            raise self.fail("inputs", f"{blob} is changed by the run")
                    found = tuple(session.fetch(name) for name in operation.outputs)
                    self.compare(contract, drawn, found, expected)
                    if first is not None and not all(map(_same_bits, first, found)):
                        raise self.fail("determinism", f"bits differ ({_shapes(drawn)})")
                    first = found
            self.check_shape_rule(drawn, first or expected)

    def in_place(self) -> None:
        drawn = self.case.small()
        expected = self.expected(drawn)
        for source, (_, blob, _) in enumerate(drawn):
            for target in range(len(self.case.outputs)):
                outputs = list(self.outputs(drawn))
                outputs[target] = blob
                session = self.runner.session()
                self.feed(session, drawn)
                operation = self.operation(drawn, tuple(outputs))
                fits = self.case.in_place or expected[target].shape == drawn[source][2].shape
                if self.declaration.allows_inplace(source, target) and fits:
                    self.run_in(session, operation, f"in-place {(source, target)}")
                    found = tuple(session.fetch(name) for name in outputs)
                    self.compare(f"in-place {(source, target)}", drawn, found, expected)
                else:
                    what = f"output {target} in the blob of input {source}"
                    self.must_refuse(session, operation, what, drawn)

    def gradient(self) -> None:
        if not callable(self.declaration.gradient) or not self.case.gradient:
            return
        drawn = self.case.small()
        native = self.runner.native(self.case.type)
        try:
            check_gradient(
                self.operation(drawn),
                {blob: array for _, blob, array in drawn},
                declaration=self.declaration,
                declarations=self.catalogue,
                loss=self.case.loss,
                no_gradient=self.case.no_gradient,
                session=self.runner.session() if native else None,
                tolerance=self.case.tolerance,
            )
        except RefusedError as error:
            raise self.fail("gradient", f"good input is refused: {error}") from error
        except AssertionError as error:
            raise self.fail("gradient", str(error)) from error

    # Random operators

    def _random_run(self, session: Session, drawn: Drawn) -> tuple[Array, ...]:
        self.feed(session, drawn)
        self.run_in(session, self.operation(drawn), "value")
        return tuple(session.fetch(name) for name in self.case.outputs)

    def distribution(self) -> None:
        if self.case.distribution is None:
            raise self.fail("distribution", "the case does not say which one is right")
        for drawn in self.case.draws():
            session = self.runner.session()
            session.seed(1701)
            outputs = self._random_run(session, drawn)
            self.check_shape_rule(drawn, outputs)
            if outputs[0].size < 1000:
                continue
            problem = self.case.distribution.difference(outputs[0])
            if problem:
                raise self.fail("distribution", f"{problem}; right is {self.case.distribution}")

    def seeds(self) -> None:
        drawn = self.case.small()

        def two_runs(session: Session, seed: int) -> list[Array]:
            session.seed(seed)
            return [self._random_run(session, drawn)[0] for _ in range(2)]

        first, second = two_runs(self.runner.session(), 1)
        for session in self.runner.variants():
            if not all(map(_same_bits, two_runs(session, 1), (first, second))):
                raise self.fail("determinism", "one seed gives different numbers")
        if _same_bits(first, second):
            raise self.fail("seeds", "two runs give the same numbers")
        if _same_bits(first, two_runs(self.runner.session(), 2)[0]):
            raise self.fail("seeds", "two seeds give the same numbers")

    # Stateful operators

    def states(self) -> None:
        if isinstance(self.declaration.reference, NativeOnly):
            raise self.fail("states", "has no NumPy body; it needs a test of its own")
        for drawn in self.case.draws():
            outputs = self.outputs(drawn)
            session = self.runner.session()
            self.feed(session, drawn)
            state = {blob: array for _, blob, array in drawn}
            for number in range(3):
                self.run_in(session, self.operation(drawn), f"run {number}")
                inputs = [state[blob] for _, blob, _ in drawn]
                results = self.declaration.run(self.view(drawn), inputs)
                self.check_shape_rule(drawn, results)
                state.update(zip(outputs, results, strict=True))
                found = tuple(session.fetch(name) for name in outputs)
                right = tuple(state[name] for name in outputs)
                self.compare(f"run {number}", drawn, found, right)

    # Bad input

    def bad_input(self) -> None:
        drawn = self.case.small()
        for why, bad_drawn, operation in self._bad(drawn):
            session = self.runner.session()
            self.feed(session, bad_drawn)
            self.must_refuse(session, operation, why, bad_drawn)
            if self.declaration.kind == "pure":
                self.feed(session, drawn)
                self.run_in(session, self.operation(drawn), f"good input after bad ({why})")

    def must_refuse(self, session: Session, operation: Operation, why: str, drawn: Drawn) -> None:
        inputs = {blob: array for _, blob, array in drawn}
        outputs = [name for name in operation.outputs if name not in inputs]
        for name in outputs:
            session.feed(name, _SENTINEL)
        try:
            session.run(operation)
        except RefusedError as error:
            if self.case.type not in str(error):
                problem = f"{why}: the error does not name the operator: {error}"
                raise self.fail("bad input", problem) from error
        else:
            raise self.fail("bad input", f"{why} is not refused")
        for blob, array in inputs.items():
            if blob in operation.inputs and not _same_bits(session.fetch(blob), array):
                raise self.fail("bad input", f"{why} changes input {blob}")
        for name in outputs:
            if not _same_bits(session.fetch(name), _SENTINEL):
                raise self.fail("bad input", f"{why} changes output {name}")

    def _bad(self, drawn: Drawn) -> Iterator[tuple[str, Drawn, Operation]]:
        good = self.operation(drawn)
        yield from self._bad_counts(drawn, good)
        yield from self._bad_arguments(drawn, good)
        yield from self._bad_inputs(drawn, good)
        for bad in self.case.bad:
            yield bad.why, *self._applied(bad, drawn, good)

    def _bad_counts(self, drawn: Drawn, good: Operation) -> Iterator[tuple[str, Drawn, Operation]]:
        inputs, outputs = self.declaration.inputs, self.declaration.outputs
        if inputs.least and not inputs.variadic:
            few = good.inputs[: inputs.least - 1]
            yield "too few inputs", drawn, _changed(good, inputs=few)
        if inputs.most is not None:
            extra = [("extra", f"extra_{i}", _SENTINEL) for i in range(inputs.most + 1)]
            many = (*good.inputs, *(blob for _, blob, _ in extra))[: inputs.most + 1]
            yield "too many inputs", [*drawn, *extra], _changed(good, inputs=many)
        if outputs.least:
            few_outputs = good.outputs[: outputs.least - 1]
            yield "too few outputs", drawn, _changed(good, outputs=few_outputs)
        if outputs.most is not None:
            names = tuple(f"out_{i}" for i in range(outputs.most + 1))
            yield "too many outputs", drawn, _changed(good, outputs=names)
        for index, (name, _, _) in enumerate(drawn):
            blobs = list(good.inputs)
            blobs[index] = "no_such_blob"
            yield f"input {name} that does not exist", drawn, _changed(good, inputs=tuple(blobs))

    def _bad_arguments(
        self, drawn: Drawn, good: Operation
    ) -> Iterator[tuple[str, Drawn, Operation]]:
        for declared, argument in self.declaration.args.items():
            name = declared.replace("#", "0")
            for value in _bad_values(argument):
                args = {**good.args, name: value}
                yield f"argument {name}={value!r}", drawn, _changed(good, args=args)
            if argument.required:
                args = {key: value for key, value in good.args.items() if key != name}
                yield f"argument {name} left out", drawn, _changed(good, args=args)

    def _bad_inputs(self, drawn: Drawn, good: Operation) -> Iterator[tuple[str, Drawn, Operation]]:
        for index, (name, blob, array) in enumerate(drawn):
            allowed = self.declaration.types.get(name, ANY)
            for dtype in _other_types(allowed):
                wrong = list(drawn)
                wrong[index] = (name, blob, np.ones(array.shape, dtype=dtype))
                yield f"input {blob} of type {type_names([dtype])}", wrong, good
            axis = self.case.mismatch.get(name, -1)
            if len(drawn) > 1 and axis is not None and array.ndim:
                longer = np.concatenate([array, array.take([0], axis=axis)], axis=axis)
                wrong = list(drawn)
                wrong[index] = (name, blob, longer)
                yield f"input {blob} of shape {longer.shape}", wrong, good

    def _applied(self, bad: Bad, drawn: Drawn, good: Operation) -> tuple[Drawn, Operation]:
        changed: Drawn = [
            (name, blob, np.asarray(bad.inputs.get(blob, array))) for name, blob, array in drawn
        ]
        known = {blob for _, blob, _ in drawn}
        more = [(blob, blob, np.asarray(a)) for blob, a in bad.inputs.items() if blob not in known]
        inputs = (*good.inputs, *(blob for _, blob, _ in more))
        outputs = good.outputs
        if bad.outputs is not None:
            outputs = tuple(f"out_{index}" for index in range(bad.outputs))
        args = {**good.args, **bad.args}
        return [*changed, *more], Operation(good.type, inputs, outputs, args)


def _changed(operation: Operation, **fields: Any) -> Operation:
    parts = {
        "type": operation.type,
        "inputs": operation.inputs,
        "outputs": operation.outputs,
        "args": operation.args,
    }
    return Operation(**{**parts, **fields})


def _bad_values(argument: Argument) -> Iterator[Any]:
    """Values of the wrong kind or out of range."""

    def one(value: Any) -> Any:
        return [value] if argument.repeated else value

    if argument.min is not None and argument.min > -(2**62):
        yield one(_type_of_bound(argument)(argument.min - 1))
    if argument.max is not None and argument.max < 2**62:
        yield one(_type_of_bound(argument)(argument.max + 1))
    if argument.choices:
        yield one("no_such_choice")
    if argument.kind not in ("String", "Strings", "Any", "Anys"):
        yield one("text")
    if argument.kind in ("String", "Strings"):
        yield one(7)


def _type_of_bound(argument: Argument) -> type:
    return float if argument.kind in ("Float", "Floats") else int


def _other_types(allowed: frozenset[np.dtype[Any]]) -> list[np.dtype[Any]]:
    """Types that are not allowed: one, or all with full effort."""
    order = [DataType.DOUBLE, DataType.INT32, DataType.UINT8, DataType.BOOL, DataType.INT64]
    others = [dtype_of(kind) for kind in order if dtype_of(kind) not in allowed]
    return others if full_effort() else others[:2]


def _shapes(drawn: Drawn) -> str:
    return ", ".join(f"{blob} {array.dtype}{list(array.shape)}" for _, blob, array in drawn)


def _same_bits(first: Array, second: Array) -> bool:
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if first.dtype.kind == "O":
        return bool(first.tolist() == second.tolist())
    return first.tobytes() == second.tobytes()


def _difference(found: Array, right: Array, tolerance: float) -> str | None:
    """What tells `found` from `right`, or None."""
    if found.shape != right.shape:
        return f"has shape {found.shape}; right is {right.shape}"
    if found.dtype != right.dtype:
        return f"has type {found.dtype}; right is {right.dtype}"
    if right.dtype.kind not in "f":
        equal = np.asarray(found == right)
    else:
        wide, wanted = found.astype(np.float64), right.astype(np.float64)
        finite = wanted[np.isfinite(wanted)]
        # Never a share of 1, for which zeros would pass as tiny values.
        scale = float(np.abs(finite).max(initial=0))
        with np.errstate(invalid="ignore"):
            near = np.abs(wide - wanted) <= tolerance * scale
        equal = near | (wide == wanted) | (np.isnan(wide) & np.isnan(wanted))
    if equal.all():
        return None
    place = tuple(map(int, np.argwhere(~equal)[0])) if equal.ndim else ()
    return f"is {found[place]} at {place}; right is {right[place]}"
