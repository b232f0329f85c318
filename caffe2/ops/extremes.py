# mypy: disable-error-code="misc, no-any-return"
"""Of several tensors: the largest, the smallest, the mean; sums with a Relu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from caffe2.ops.arguments import OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INT32, INTS
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_same_types


def all_alike(*X: Spec, op: OpView) -> Spec:
    """The shape rule of operators whose inputs and output all are alike."""
    require_same_types(X, op)
    for index, spec in enumerate(X):
        if spec.shape != X[0].shape:
            problem = f"has shape {spec.shape}; input 0 ('{op.input(0)}') has {X[0].shape}"
            raise OperatorError(f"input {index} ('{op.input(index)}')", problem)
    return X[0]


def _declare(name: str, what: str, compute: Callable[..., Array]) -> None:
    class Extreme:
        __doc__ = f"""M = the {what} of all inputs, element by element; NaN where one is NaN.

    Inputs: one or more float tensors of one shape.  M: the same.
    """

        def shape(*X: Spec, op: OpView) -> Spec:
            return all_alike(*X, op=op)

        def reference(*X: Array) -> Array:
            found = X[0]
            for array in X[1:]:
                found = compute(found, array)
            return found.copy()

        def gradient(op: GradientContext) -> Any:
            inputs = [op.output(0), op.grad(0), *op.inputs]
            outputs = [op.input_grad(index) for index in range(len(op.inputs))]
            return op.make(f"{name}Gradient", inputs, outputs)

    class Gradient:
        __doc__ = f"""dX_i = dM where X_i is M, else 0: the gradient of {name}.

    Inputs: M, dM, X_0, X_1, ...: float tensors of one shape.  Outputs: dX_0, dX_1, ..., all or the
    first ones.  Of equal inputs, all get dM.
    """

        def shape(M: Spec, dM: Spec, *X: Spec, op: OpView) -> tuple[Spec, ...]:
            all_alike(M, dM, *X, op=op)
            if len(op.outputs) > len(X):
                problem = f"has {len(op.outputs)} outputs for {len(X)} inputs X"
                raise OperatorError("", problem)
            return X

        def reference(M: Array, dM: Array, *X: Array) -> tuple[Array, ...]:
            return tuple(np.where(array == M, dM, np.zeros_like(dM)) for array in X)

    operator(name, inputs="X*", outputs="M", types={"X": FLOAT}, inplace=[(0, 0)])(Extreme)
    operator(
        f"{name}Gradient",
        inputs="M dM X*",
        outputs="dX*",
        types={"M": FLOAT, "dM": FLOAT, "X": FLOAT},
    )(Gradient)


_declare("Max", "largest", np.maximum)
_declare("Min", "smallest", np.minimum)


@operator(
    "Mean",
    inputs="X*",
    outputs="M",
    types={"X": FLOAT | DOUBLE},
    inplace=[(0, 0)],
)
class Mean:
    """M = the mean of all inputs, element by element.

    Inputs: one or more float or double tensors of one shape and one type.  M: the same.
    """

    def shape(*X: Spec, op: OpView) -> Spec:
        return all_alike(*X, op=op)

    def reference(*X: Array) -> Array:
        total = np.zeros(X[0].shape)
        for array in X:
            total = total + array
        return np.asarray(total / len(X)).astype(X[0].dtype)

    def gradient(op: GradientContext) -> Any:
        outputs = [op.input_grad(index) for index in range(len(op.inputs))]
        return op.make("MeanGradient", [op.grad(0)], outputs)


@operator(
    "MeanGradient",
    inputs="dM",
    outputs="dX*",
    types={"dM": FLOAT | DOUBLE},
    inplace=[(0, 0)],
)
class MeanGradient:
    """Every dX_i = dM / the number of outputs: the gradient of Mean.

    dM, dX_i: float or double tensors of one shape and type.
    """

    def shape(dM: Spec, op: OpView) -> tuple[Spec, ...]:
        return (dM,) * len(op.outputs)

    def reference(dM: Array, op: OpView) -> tuple[Array, ...]:
        count = len(op.outputs)
        return (np.asarray(dM.astype(np.float64) / count).astype(dM.dtype),) * count


@operator(
    "SumRelu",
    inputs="A*",
    outputs="C",
    types={"A": FLOAT | DOUBLE | INT32},
    inplace=[(0, 0)],
)
class SumRelu:
    """C = max(the sum of all inputs, 0), element by element.

    Inputs: one or more float, double or int32 tensors of one shape and one type (sums of integers
    wrap around).  C: the same.
    """

    def shape(*A: Spec, op: OpView) -> Spec:
        return all_alike(*A, op=op)

    def reference(*A: Array) -> Array:
        return np.maximum(_sum(A), 0)


@operator(
    "SumInt",
    inputs="A*",
    outputs="C",
    types={"A": FLOAT | DOUBLE | INTS},
    inplace=[(0, 0)],
)
class SumInt:
    """C = the sum of all inputs, element by element: Sum under an old name, without a gradient.

    Inputs, C: as for Sum.
    """

    def shape(*A: Spec, op: OpView) -> Spec:
        return all_alike(*A, op=op)

    def reference(*A: Array) -> Array:
        return _sum(A)


def _sum(arrays: tuple[Array, ...]) -> Array:
    total = arrays[0].astype(np.float64 if arrays[0].dtype.kind == "f" else arrays[0].dtype)
    for array in arrays[1:]:
        total = total + array
    return np.asarray(total).astype(arrays[0].dtype)
