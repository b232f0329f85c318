# mypy: disable-error-code="misc, no-any-return"
"""Rows taken and put by their numbers: Gather, Scatter, masks and one-hot rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.ops.arguments import Argument, Bool, Int, OperatorError
from caffe2.ops.datatypes import BOOL, DOUBLE, FLOAT, INT64, INTS
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    GradientSlice,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import (
    canonical_axis,
    require_dimensions,
    require_rank,
    require_single,
    size,
)

_SUMMED = FLOAT | DOUBLE | INTS
_GATHER_ARGS: dict[str, Argument] = {"axis": Int(None), "match_outer": Bool(False)}


def _require_numbers(name: str, numbers: Array, limit: int, least: int = 0) -> None:
    """OperatorError unless least <= x < limit for all."""
    if numbers.size and not (numbers.min() >= least and numbers.max() < limit):
        problem = f"holds {numbers.min()} to {numbers.max()}; allowed is [{least}, {limit})"
        raise OperatorError(name, problem)


def _gather_axis(op: OpView, rank: int) -> int:
    axis = op.args.axis
    if axis is None:
        axis = 0 if op.type == "Gather" else 1
    return canonical_axis(axis, rank)


def _gathered(DATA: Spec, INDICES: Spec, op: OpView) -> Spec:
    axis = _gather_axis(op, len(DATA.shape))
    own = axis if op.args.match_outer else 0
    if INDICES.shape[:own] != DATA.shape[:own]:
        problem = f"has shape {INDICES.shape}; with match_outer it begins with {DATA.shape[:own]}"
        raise OperatorError("INDICES", problem)
    shape = (*DATA.shape[:axis], *INDICES.shape[own:], *DATA.shape[axis + 1 :])
    return Spec(shape, DATA.dtype)


def _places(DATA: Array, INDICES: Array, axis: int, op: OpView) -> tuple[Array, Array]:
    """For DATA seen as (outer, size, inner): the row numbers of both first dimensions."""
    outer = math.prod(DATA.shape[:axis])
    per_outer = INDICES.reshape(outer if op.args.match_outer else 1, -1)
    numbers = np.broadcast_to(per_outer, (outer, per_outer.shape[1]))
    return np.arange(outer)[:, None], numbers.astype(np.int64)


def _gather(DATA: Array, INDICES: Array, op: OpView) -> Array:
    axis = _gather_axis(op, DATA.ndim)
    limit = DATA.shape[axis]
    _require_numbers("INDICES", INDICES, limit, -limit if op.type == "Gather" else 0)
    spec = _gathered(Spec(DATA.shape, DATA.dtype), Spec(INDICES.shape, INDICES.dtype), op)
    if math.prod(spec.shape) == 0:
        return np.empty(spec.shape, DATA.dtype)
    inner = math.prod(DATA.shape[axis + 1 :])
    rows = DATA.reshape(-1, limit, inner)
    return rows[_places(DATA, INDICES, axis, op)].reshape(spec.shape)


@operator(
    "Gather",
    inputs="DATA INDICES",
    outputs="OUTPUT",
    args={**_GATHER_ARGS, "dense_gradient": Bool(False)},
    types={"INDICES": INTS},
)
class Gather:
    """OUTPUT = the slices of DATA along an axis that INDICES name.

    DATA: any type, at least 1-d.  INDICES: int32 or int64 of any shape, -size <= i < size of the
    axis; negative ones count from the end.
    axis: 0 by default.  OUTPUT: DATA's type and shape, the axis replaced by the shape of INDICES.
    match_outer: INDICES begins with the dimensions of DATA before the axis, and each of those
    places has numbers of its own.
    The gradient is sparse for axis 0, unless dense_gradient is set, else dense.
    """

    def shape(DATA: Spec, INDICES: Spec, op: OpView) -> Spec:
        return _gathered(DATA, INDICES, op)

    def reference(DATA: Array, INDICES: Array, op: OpView) -> Array:
        return _gather(DATA, INDICES, op)

    def gradient(op: GradientContext) -> Any:
        grad: Any = op.grad(0)
        if op.args.axis in (None, 0):
            if isinstance(grad, GradientSlice):
                raise OperatorError("OUTPUT", "has a sparse gradient; a dense one is needed")
            if op.args.dense_gradient:
                inputs = [op.input(1), grad, op.input(0)]
                return op.make("SparseToDense", inputs, [op.input_grad(0)])
            op.set_input_grad(0, None if grad is None else GradientSlice(op.input(1), grad))
            return []
        inputs = [op.input(0), op.input(1), grad]
        return op.make("BatchGatherGradient", inputs, [op.input_grad(0)])


@operator(
    "BatchGather",
    inputs="DATA INDICES",
    outputs="OUTPUT",
    args=_GATHER_ARGS,
    types={"INDICES": INTS},
)
class BatchGather:
    """OUTPUT = the slices of DATA along its second dimension that INDICES name.

    DATA: any type, at least 2-d.  INDICES: int32 or int64 of any shape, 0 <= i < size of the axis.
    axis, match_outer: as for Gather; axis is 1 by default.
    """

    def shape(DATA: Spec, INDICES: Spec, op: OpView) -> Spec:
        return _gathered(DATA, INDICES, op)

    def reference(DATA: Array, INDICES: Array, op: OpView) -> Array:
        return _gather(DATA, INDICES, op)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(0), op.input(1), op.grad(0)]
        return op.make("BatchGatherGradient", inputs, [op.input_grad(0)])


@operator(
    "BatchGatherGradient",
    inputs="DATA INDICES dY",
    outputs="dX",
    args=_GATHER_ARGS,
    types={"DATA": _SUMMED, "INDICES": INTS, "dY": _SUMMED},
)
class BatchGatherGradient:
    """dX = for each slice of DATA the sum of the gradients of what was gathered from it.

    DATA, dY, dX: float, double, int32 or int64, all the same; dX has the shape of DATA.
    INDICES, axis, match_outer: as for BatchGather.
    """

    def shape(DATA: Spec, INDICES: Spec, dY: Spec, op: OpView) -> Spec:
        if dY != _gathered(DATA, INDICES, op):
            needed = _gathered(DATA, INDICES, op)
            raise OperatorError("dY", f"is {dY.dtype} of shape {dY.shape}; needed is {needed}")
        return DATA

    def reference(DATA: Array, INDICES: Array, dY: Array, op: OpView) -> Array:
        axis = _gather_axis(op, DATA.ndim)
        _require_numbers("INDICES", INDICES, DATA.shape[axis])
        if dY.size == 0:
            return np.zeros_like(DATA)
        inner = math.prod(DATA.shape[axis + 1 :])
        wide = np.float64 if DATA.dtype.kind == "f" else DATA.dtype
        dX = np.zeros((math.prod(DATA.shape[:axis]), DATA.shape[axis], inner), dtype=wide)
        places = _places(DATA, INDICES, axis, op)
        np.add.at(dX, places, dY.reshape(*places[1].shape, inner))
        return dX.reshape(DATA.shape).astype(DATA.dtype)


def _require_slices(name: str, spec: Spec, DATA: Spec, INDICES: Spec) -> None:
    require_dimensions("DATA", DATA, 1)
    needed = size(INDICES) * math.prod(DATA.shape[1:])
    if spec.dtype != DATA.dtype or size(spec) != needed:
        problem = f"is {spec.dtype} of shape {spec.shape}; needed are {needed} of {DATA.dtype}"
        raise OperatorError(name, problem)


@operator(
    "ScatterAssign",
    inputs="DATA INDICES SLICES",
    outputs="DATA",
    types={"INDICES": INTS},
    enforced_inplace=[(0, 0)],
    kind="stateful",
)
class ScatterAssign:
    """DATA[INDICES] = SLICES, in place.

    DATA: any type, at least 1-d.  INDICES: int32 or int64 of any shape, 0 <= i < rows of DATA; of
    equal ones the last counts.  SLICES: DATA's type, one row for each of INDICES.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(DATA: Spec, INDICES: Spec, SLICES: Spec) -> Spec:
        _require_slices("SLICES", SLICES, DATA, INDICES)
        return DATA

    def reference(DATA: Array, INDICES: Array, SLICES: Array) -> Array:
        _require_numbers("INDICES", INDICES, len(DATA))
        result = DATA.copy()
        rows = SLICES.reshape(INDICES.size, *DATA.shape[1:])
        for place, row in zip(INDICES.reshape(-1), rows, strict=True):
            result[place] = row
        return result


@operator(
    "Scatter",
    inputs="DATA INDICES UPDATES",
    outputs="OUTPUT",
    args={"axis": Int(1)},
    types={"INDICES": INTS},
    inplace=[(0, 0)],
)
class Scatter:
    """OUTPUT = DATA, with UPDATES at the places of INDICES along an axis.

    With axis=1: OUTPUT[i, INDICES[i, j], k] = UPDATES[i, j, k], in turn, for each i, j and k.
    DATA: any type, at least 1-d.
    INDICES: int32 or int64, with as many dimensions and none larger than that of DATA, besides the
    axis; 0 <= x < size of the axis.  UPDATES: DATA's type, shaped like INDICES.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(DATA: Spec, INDICES: Spec, UPDATES: Spec, op: OpView) -> Spec:
        axis = canonical_axis(op.args.axis, len(DATA.shape))
        fits = len(INDICES.shape) == len(DATA.shape) and all(
            own <= most or place == axis
            for place, (own, most) in enumerate(zip(INDICES.shape, DATA.shape, strict=True))
        )
        if not fits:
            raise OperatorError("INDICES", f"has shape {INDICES.shape}; DATA has {DATA.shape}")
        if Spec(INDICES.shape, DATA.dtype) != UPDATES:
            problem = f"is {UPDATES.dtype} of shape {UPDATES.shape}"
            needed = f"{DATA.dtype} of shape {INDICES.shape} is needed"
            raise OperatorError("UPDATES", f"{problem}; {needed}")
        return DATA

    def reference(DATA: Array, INDICES: Array, UPDATES: Array, op: OpView) -> Array:
        axis = canonical_axis(op.args.axis, DATA.ndim)
        _require_numbers("INDICES", INDICES, DATA.shape[axis])
        output = DATA.copy()
        for place in np.ndindex(INDICES.shape):
            target = (*place[:axis], INDICES[place], *place[axis + 1 :])
            output[target] = UPDATES[place]
        return output


@operator(
    "ScatterWeightedSum",
    inputs="X_0 Weight_0 INDICES X_1 Weight_1 others*?",
    outputs="X_0",
    types={
        "X_0": FLOAT | DOUBLE,
        "Weight_0": FLOAT,
        "INDICES": INTS,
        "X_1": FLOAT | DOUBLE,
        "Weight_1": FLOAT,
        "others": FLOAT | DOUBLE,
    },
    enforced_inplace=[(0, 0)],
    kind="stateful",
)
class ScatterWeightedSum:
    """X_0[INDICES] = X_0[INDICES] * Weight_0 + X_1 * Weight_1 + ..., in place.

    X_0: float or double, at least 1-d.  INDICES: int32 or int64 of any shape, 0 <= i < rows of X_0;
    of equal ones each is applied in turn.
    X_1 and further ones (others: X_2, Weight_2, ...): X_0's type, one row for each of INDICES.
    Weight_0, Weight_1, ...: float, one element each.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        X_0: Spec, Weight_0: Spec, INDICES: Spec, X_1: Spec, Weight_1: Spec, *others: Spec
    ) -> Spec:
        if len(others) % 2:
            raise OperatorError("", "needs a weight for each of the slices")
        require_single("Weight_0", Weight_0)
        pairs = (X_1, Weight_1, *others)
        for slices, weight in zip(pairs[::2], pairs[1::2], strict=True):
            _require_slices("X_1", slices, X_0, INDICES)
            require_single("Weight_1", weight)
            if weight.dtype != np.float32:
                raise OperatorError("Weight_1", f"is {weight.dtype}; float32 is needed")
        return X_0

    def reference(
        X_0: Array, Weight_0: Array, INDICES: Array, X_1: Array, Weight_1: Array, *others: Array
    ) -> Array:
        _require_numbers("INDICES", INDICES, len(X_0))
        result = X_0.astype(np.float64)
        places = INDICES.reshape(-1)
        np.multiply.at(result, places, float(Weight_0.reshape(())))
        pairs = (X_1, Weight_1, *others)
        for slices, weight in zip(pairs[::2], pairs[1::2], strict=True):
            rows = slices.reshape(len(places), *X_0.shape[1:])
            np.add.at(result, places, rows.astype(np.float64) * float(weight.reshape(())))
        return result.astype(X_0.dtype)


@operator(
    "SparseToDense",
    inputs="indices values data_to_infer_dim?",
    outputs="output",
    types={"indices": INTS, "values": _SUMMED},
)
class SparseToDense:
    """output[indices[j]] = values[j], zero where there is none, the sum where there are several.

    indices: int32 or int64, 1-d, not negative.  values: float, double, int32 or int64, one row for
    each of indices.  output: the type of values, as many rows as data_to_infer_dim (any type), or
    without it as the largest index says.
    """

    def shape(indices: Spec, values: Spec, data_to_infer_dim: Spec | None) -> Spec | None:
        require_rank("indices", indices, 1)
        require_dimensions("values", values, 1)
        if values.shape[0] != indices.shape[0]:
            problem = f"has shape {values.shape}; indices has {indices.shape}"
            raise OperatorError("values", problem)
        if data_to_infer_dim is None:
            return None
        require_dimensions("data_to_infer_dim", data_to_infer_dim, 1)
        return Spec((data_to_infer_dim.shape[0], *values.shape[1:]), values.dtype)

    def reference(indices: Array, values: Array, data_to_infer_dim: Array | None) -> Array:
        rows = (
            int(indices.max(initial=-1)) + 1
            if data_to_infer_dim is None
            else len(data_to_infer_dim)
        )
        _require_numbers("indices", indices, rows)
        wide = np.float64 if values.dtype.kind == "f" else values.dtype
        output = np.zeros((rows, *values.shape[1:]), dtype=wide)
        np.add.at(output, indices, values)
        return output.astype(values.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make("Gather", [op.grad(0), op.input(0)], [op.input_grad(1)])


@operator(
    "BooleanMask",
    inputs="data mask",
    outputs="masked_data masked_indices?",
    types={"mask": BOOL},
)
class BooleanMask:
    """masked_data = the rows of data where the mask is true.

    data: any type, at least 1-d.  mask: bool, one value for each row.
    masked_data: data's type.  masked_indices: int64, the numbers of the rows.
    """

    def shape(data: Spec, mask: Spec) -> tuple[None, None]:
        require_dimensions("data", data, 1)
        if mask.shape != data.shape[:1]:
            raise OperatorError("mask", f"has shape {mask.shape}; data has {data.shape}")
        return None, None

    def reference(data: Array, mask: Array) -> tuple[Array, Array]:
        return data[mask], np.flatnonzero(mask).astype(np.int64)

    def gradient(op: GradientContext) -> Any:
        return op.make("BooleanMaskGradient", [op.input(1), op.grad(0)], [op.input_grad(0)])


@operator("BooleanMaskGradient", inputs="mask dY", outputs="dX", types={"mask": BOOL})
class BooleanMaskGradient:
    """dX = the rows of dY where the mask is true, and zero elsewhere.

    mask: bool, 1-d.  dY: any type, one row for each true value.  dX: as many rows as the mask.
    """

    def shape(mask: Spec, dY: Spec) -> Spec:
        require_rank("mask", mask, 1)
        require_dimensions("dY", dY, 1)
        return Spec((*mask.shape, *dY.shape[1:]), dY.dtype)

    def reference(mask: Array, dY: Array) -> Array:
        if len(dY) != mask.sum():
            raise OperatorError("dY", f"has shape {dY.shape}; the mask keeps {mask.sum()} rows")
        dX = np.zeros((len(mask), *dY.shape[1:]), dtype=dY.dtype)
        dX[mask] = dY
        return dX


@operator(
    "OneHot",
    inputs="indices index_size_tensor",
    outputs="one_hots",
    types={"indices": INT64, "index_size_tensor": INT64},
)
class OneHot:
    """one_hots[j, indices[j]] = 1, all else 0.

    indices: int64, 1-d, 0 <= i < size.  index_size_tensor: int64 with one element, the size.
    one_hots: float (number of indices, size).
    """

    gradient = NO_GRADIENT

    def shape(indices: Spec, index_size_tensor: Spec) -> None:
        require_rank("indices", indices, 1)
        require_single("index_size_tensor", index_size_tensor)

    def reference(indices: Array, index_size_tensor: Array) -> Array:
        width = int(index_size_tensor.reshape(()))
        _require_numbers("indices", indices, width)
        one_hots = np.zeros((len(indices), max(width, 0)), dtype=np.float32)
        one_hots[np.arange(len(indices)), indices] = 1
        return one_hots
