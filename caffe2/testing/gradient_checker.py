"""Gradients: what a rule's operators compute against numeric derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2 import ops
from caffe2.ops.arguments import OperatorError
from caffe2.ops.declaration import Array, Declaration, Gradient, GradientSlice, OpView
from caffe2.testing.runners import Operation, Session

_STEP = 1e-6
# Central differences in float64 err by about 1e-16 / _STEP + _STEP^2, relative to the values.
_TOLERANCE = 1e-6


class GradientRecorder:
    """The GradientContext of a single operator: records what its rule makes.

    operations       the gradient operators, in the order the rule gave them
    input_gradients  input number -> blob (or GradientSlice) that holds its gradient
    """

    def __init__(self, op: OpView, args: Mapping[str, Any], grads: Mapping[int, str]) -> None:
        self._op, self._args, self._grads = op, dict(args), dict(grads)
        self.input_gradients: dict[int, Gradient] = {}
        self.operations: list[Operation] = []
        rule = op.declaration.gradient
        if not callable(rule):
            raise OperatorError("", f"{op.type} has no gradient rule: {rule.value}")
        made = rule(self)
        self.operations.extend([made] if isinstance(made, Operation) else made)

    @property
    def type(self) -> str:
        return self._op.type

    @property
    def inputs(self) -> Sequence[str]:
        return self._op.inputs

    @property
    def outputs(self) -> Sequence[str]:
        return self._op.outputs

    @property
    def args(self) -> SimpleNamespace:
        return self._op.args

    def input(self, index: int) -> str:
        return self._op.input(index)

    def output(self, index: int) -> str:
        return self._op.output(index)

    def grad(self, index: int) -> Gradient:
        return self._grads.get(index)

    def input_grad(self, index: int) -> str:
        name = f"{self.input(index)}_grad"
        self.input_gradients[index] = name
        return name

    def input_grad_slice(self, index: int) -> GradientSlice:
        name = f"{self.input(index)}_grad"
        found = GradientSlice(f"{name}_indices", f"{name}_values")
        self.input_gradients[index] = found
        return found

    def set_input_grad(self, index: int, gradient: Gradient) -> None:
        self.input_gradients[index] = gradient

    def make(
        self,
        type: str,
        inputs: Sequence[Gradient],
        outputs: Sequence[str],
        copy_args: bool = True,
        **args: Any,
    ) -> Operation:
        for blob in inputs:
            if not isinstance(blob, str):
                raise OperatorError("", f"the gradient of {self.type} needs a dense {blob}")
        given = {**self._args, **args} if copy_args else args
        return Operation(type, tuple(map(str, inputs)), tuple(outputs), given)


def check_gradient(
    operation: Operation,
    inputs: Mapping[str, Array],
    *,
    declaration: Declaration | None = None,
    declarations: Mapping[str, Declaration] | None = None,
    loss: int | None = None,
    no_gradient: Sequence[str] = (),
    session: Session | None = None,
    tolerance: float = 1e-5,
) -> None:
    """Compares the gradient of an operator with the numeric one; AssertionError tells the
    difference.

    operation    the operator; inputs: blob -> array, floats in any precision
    loss         the output whose gradient is taken; None: all outputs of floats
    no_gradient  inputs of floats that are known to get none
    session      where the gradient operators run as well, in float32, within `tolerance`
    declaration, declarations  stand for those of the catalogue

    The scalar that is differentiated is the sum of the outputs with random weights.  All is
    computed in float64 on the NumPy bodies.
    """
    declared = declaration or ops.find(operation.type)
    catalogue = dict(declarations or {})
    op = declared.view(operation.inputs, operation.outputs, operation.args)
    wide = {name: _widened(array) for name, array in inputs.items()}
    outputs = declared.compute(op, [wide[name] for name in op.inputs])
    rng = np.random.default_rng(1)
    weights = {
        index: rng.uniform(0.5, 1.5, output.shape)
        for index, output in enumerate(outputs)
        if output.dtype.kind == "f" and loss in (None, index)
    }
    blobs = dict(wide)
    blobs.update(zip(op.outputs, outputs, strict=True))
    grads = {index: f"{op.output(index)}_grad" for index in weights}
    blobs.update((grads[index], weight) for index, weight in weights.items())

    recorder = GradientRecorder(op, operation.args, grads)
    for step in recorder.operations:
        found = catalogue.get(step.type) or _find_gradient_operator(op.type, step.type)
        view = found.view(step.inputs, step.outputs, step.args)
        results = found.compute(view, [blobs[name] for name in step.inputs])
        blobs.update(zip(step.outputs, results, strict=True))

    for index, name in enumerate(op.inputs):
        if wide[name].dtype.kind != "f" or name in no_gradient:
            if index in recorder.input_gradients and name in no_gradient:
                raise AssertionError(f"the rule gives input {name} a gradient; none was expected")
            continue
        if index not in recorder.input_gradients:
            raise AssertionError(f"the rule gives input {name} no gradient")
        analytic = _dense(recorder.input_gradients[index], blobs, wide[name])
        numeric = _numeric(declared, op, wide, name, weights)
        _compare(f"gradient of input {name}", analytic, numeric, _TOLERANCE, "numeric")
    if session is not None:
        _compare_session(session, recorder, blobs, tolerance)


def _find_gradient_operator(type: str, name: str) -> Declaration:
    try:
        return ops.find(name)
    except ops.UnknownOperatorError as error:
        raise AssertionError(f"the gradient rule of {type} makes {name}: {error}") from None


def _widened(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _numeric(
    declared: Declaration,
    op: OpView,
    inputs: Mapping[str, Array],
    name: str,
    weights: Mapping[int, Array],
) -> Array:
    def scalar(array: Array) -> float:
        changed = {**inputs, name: array}
        outputs = declared.compute(op, [changed[blob] for blob in op.inputs])
        return sum(float((outputs[index] * weight).sum()) for index, weight in weights.items())

    array = inputs[name]
    gradient = np.zeros(array.shape)
    for place in np.ndindex(array.shape):
        ahead, behind = array.copy(), array.copy()
        ahead[place] += _STEP
        behind[place] -= _STEP
        gradient[place] = (scalar(ahead) - scalar(behind)) / (2 * _STEP)
    return gradient


def _dense(gradient: Gradient, blobs: Mapping[str, Array], like: Array) -> Array:
    if isinstance(gradient, GradientSlice):
        dense = np.zeros(like.shape)
        np.add.at(dense, blobs[gradient.indices].reshape(-1), blobs[gradient.values])
        return dense
    if gradient is None:
        return np.zeros(like.shape)
    return blobs[gradient]


def _compare(what: str, found: Array, expected: Array, tolerance: float, name: str) -> None:
    if found.shape != expected.shape:
        raise AssertionError(f"{what} has shape {found.shape}; {name}: {expected.shape}")
    if not expected.size:
        return
    error = np.abs(found.astype(np.float64) - expected)
    allowed = tolerance * float(np.abs(expected).max())
    if not (error <= allowed).all():
        worst = int(np.where(np.isnan(error), np.inf, error).argmax())
        place = tuple(map(int, np.unravel_index(worst, error.shape)))
        raise AssertionError(
            f"{what} is {found[place]:.6g} at {place}; {name}: {expected[place]:.6g}"
        )


def _compare_session(
    session: Session, recorder: GradientRecorder, blobs: Mapping[str, Array], tolerance: float
) -> None:
    made = {name for step in recorder.operations for name in step.outputs}
    for step in recorder.operations:
        for name in step.inputs:
            if name not in made:
                array = blobs[name]
                session.feed(name, array.astype(np.float32) if array.dtype.kind == "f" else array)
    for step in recorder.operations:
        session.run(step)
    # At the end: a step may go on with the output of one before.
    for step in recorder.operations:
        for name in step.outputs:
            what = f"{step.type}: {name} in the session"
            _compare(what, session.fetch(name), blobs[name], tolerance, "NumPy body")
