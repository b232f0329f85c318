"""Pieces that the operators of optimizers share: checks, numbers as the wire has them, rows."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from caffe2.ops.arguments import OperatorError
from caffe2.ops.declaration import Array, Spec
from caffe2.ops.shapes import require_same_size, require_single, size


def numbers(args: SimpleNamespace, *names: str) -> list[float]:
    """Arguments as the wire has them: 1 - beta is another number for 0.999 in float32."""
    return [float(np.float32(getattr(args, name))) for name in names]


def scalar(array: Array) -> float:
    """The only element."""
    return float(array.reshape(()))


def step_number(iter: Array) -> int:
    """1 for the first step, whose `iter` is 0; OperatorError when it is negative."""
    count = int(iter.reshape(()))
    if count < 0:
        raise OperatorError("iter", f"is {count}; an iteration is not negative")
    return count + 1


def wide(*arrays: Array) -> list[Array]:
    """Copies in float64, which a rule may write."""
    return [np.array(array, dtype=np.float64) for array in arrays]


def like(values: Array, array: Array) -> Array:
    """`values` in the type and shape of `array`."""
    return values.reshape(array.shape).astype(array.dtype)


def require_state(like: str, other: Spec, **states: Spec) -> None:
    """OperatorError unless each of `states` has as many elements as `other`."""
    for name, spec in states.items():
        require_same_size(name, spec, like, other)


def require_scalars(**scalars: Spec) -> None:
    """OperatorError unless each has one element."""
    for name, spec in scalars.items():
        require_single(name, spec)


def require_rows(param: Spec, indices: Spec, grad: Spec, name: str = "param") -> None:
    """OperatorError unless `grad` has a row of `param` for each of the indices."""
    if not param.shape:
        raise OperatorError(name, "is a scalar; rows are needed")
    row = size(Spec(param.shape[1:], param.dtype))
    if size(grad) != size(indices) * row:
        raise OperatorError(
            "grad",
            f"has shape {grad.shape}; needed are {size(indices)} rows of {row} elements, "
            f"as many as indices {indices.shape} and as in {name} {param.shape}",
        )


def require_row_values(name: str, values: Spec, param: Spec) -> None:
    """OperatorError unless there is one value for each row of `param`."""
    if size(values) != param.shape[0]:
        problem = f"has shape {values.shape}; needed is one element for each row of param"
        raise OperatorError(name, f"{problem} {param.shape}")


def mean_square(row: Array) -> float:
    """The mean of row^2; 0 for an empty row."""
    return float(np.mean(row**2)) if row.size else 0.0


def check_rows(indices: Array, count: int) -> None:
    """OperatorError unless all indices are row numbers of `count` rows."""
    wrong = indices[(indices < 0) | (indices >= count)]
    if wrong.size:
        raise OperatorError("indices", f"has {wrong[0]}; allowed is 0 <= index < {count}")


def each_row(
    param: Array, indices: Array, grad: Array, rule: Callable[[int, int, Array], None]
) -> None:
    """Calls rule(place in grad, row, float64 gradient of the row) for one index after the other,
    so that an index that comes twice is updated twice.  OperatorError for an index out of range,
    before the first call."""
    check_rows(indices, param.shape[0])
    rows = indices.reshape(-1)
    gradients = grad.astype(np.float64).reshape(rows.size, *param.shape[1:])
    for place, row in enumerate(rows):
        rule(place, int(row), gradients[place])
