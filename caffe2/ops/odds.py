# mypy: disable-error-code="misc, no-any-return"
"""Element-wise operators around training: clipping in place, scaling many blobs, running sums,
and operators that change nothing but the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Float, OperatorError
from caffe2.ops.datatypes import FLOAT, INTS
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
    same_as,
)

_LARGEST = float(np.finfo(np.float32).max)


@operator(
    "EnsureClipped",
    inputs="param indices? grad?",
    outputs="output_param",
    args={"min": Float(-_LARGEST), "max": Float(_LARGEST)},
    types={"param": FLOAT, "indices": INTS, "grad": FLOAT},
    inplace=[(0, 0)],
)
class EnsureClipped:
    """output_param = param within [min, max]; with indices, only their rows of param change.

    param, output_param: float tensors of one shape.
    indices: int32 or int64 tensor of rows of param.  grad: the sparse gradient of these rows, of
    which the shape alone counts; it must be given with indices.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(param: Spec, indices: Spec | None, grad: Spec | None) -> Spec:
        if indices is None:
            return param
        if grad is None:
            raise OperatorError("", "has indices but no grad; both are needed")
        if not param.shape:
            raise OperatorError("param", "is a scalar, which has no rows")
        if grad.shape != indices.shape + param.shape[1:]:
            needed = indices.shape + param.shape[1:]
            raise OperatorError("grad", f"has shape {grad.shape}; {needed} is needed")
        return param

    def reference(param: Array, indices: Array | None, grad: Array | None, op: OpView) -> Array:
        low, high = np.float32(op.args.min), np.float32(op.args.max)
        found = param.copy()
        rows: Any = ...
        if indices is not None:
            rows = indices.reshape(-1)
            outside = (rows < 0) | (rows >= len(param))
            if outside.any():
                row = int(rows[outside][0])
                raise OperatorError("indices", f"holds {row}; param has {len(param)} rows")
        found[rows] = np.minimum(np.maximum(found[rows], low), high)
        return found


@operator(
    "ScaleBlobs",
    inputs="X*",
    outputs="Y*",
    args={"scale": Float(1.0)},
    types={"X": FLOAT},
    inplace="any",
)
class ScaleBlobs:
    """Y_i = scale * X_i for as many tensors as there are.

    X_i, Y_i: float tensors of one shape, any for each i.
    """

    def shape(*X: Spec, op: OpView) -> tuple[Spec, ...]:
        if len(op.outputs) != len(X):
            raise OperatorError("", f"has {len(op.outputs)} outputs for {len(X)} inputs")
        return X

    def reference(*X: Array, op: OpView) -> tuple[Array, ...]:
        return tuple((array * np.float32(op.args.scale)).astype(array.dtype) for array in X)


@operator(
    "NegateGradient",
    inputs="input",
    outputs="output",
    inplace=[(0, 0)],
    shape=same_as("input"),
)
class NegateGradient:
    """output = input; the gradient that passes back through it changes its sign.

    input, output: tensors of any one shape and type.
    """

    def reference(input: Array) -> Array:
        return input.copy()

    def gradient(op: GradientContext) -> Any:
        return op.make("Negative", [op.grad(0)], [op.input_grad(0)])


@operator("ZeroGradient", inputs="input", outputs="")
class ZeroGradient:
    """Computes nothing; the gradient of its input is 0.

    input: a tensor of any shape and type.
    """

    def shape(input: Spec) -> tuple[Spec, ...]:
        return ()

    def reference(input: Array) -> tuple[Array, ...]:
        return ()

    def gradient(op: GradientContext) -> Any:
        return op.make("ConstantFill", [op.input(0)], [op.input_grad(0)], value=0.0)
