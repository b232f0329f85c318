# mypy: disable-error-code="misc, no-any-return"
"""Elements put elsewhere: Transpose, Slice, Tile, Expand and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, INT64_MIN, Int, Ints, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INTS
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import (
    canonical_axis,
    require_rank,
    require_same_types,
    require_single,
)

_SUMMED = FLOAT | DOUBLE | INTS


def _permutation(op: OpView, rank: int) -> tuple[int, ...]:
    axes = tuple(op.args.axes) if op.args.axes else tuple(range(rank))[::-1]
    if sorted(axes) != list(range(rank)):
        problem = f"is {list(axes)}; needed is an order of the {rank} dimensions of X"
        raise OperatorError("argument 'axes'", problem)
    return axes


@operator("Transpose", inputs="X", outputs="Y", args={"axes": Ints(min=0)})
class Transpose:
    """Y = X with its dimensions in another order: dimension i of Y is dimension axes[i] of X.

    X, Y: any one type.  axes: each dimension once; by default the last comes first.
    """

    def shape(X: Spec, op: OpView) -> Spec:
        return Spec(tuple(X.shape[axis] for axis in _permutation(op, len(X.shape))), X.dtype)

    def reference(X: Array, op: OpView) -> Array:
        return np.array(X.transpose(_permutation(op, X.ndim)), order="C")

    def gradient(op: GradientContext) -> Any:
        axes, grad = op.args.axes, op.input_grad(0)
        if not axes:
            return op.make("Transpose", [op.grad(0)], [grad])
        inverse = sorted(range(len(axes)), key=axes.__getitem__)
        return op.make("Transpose", [op.grad(0)], [grad], axes=inverse)


def _declare_order(name: str, other: str, source: int, target: int, doc: str) -> None:
    class Order:
        def shape(data: Spec) -> Spec:
            if len(data.shape) < 3:
                raise OperatorError(
                    "data", f"has shape {data.shape}; 3 dimensions at least are needed"
                )
            shape = list(data.shape)
            shape.insert(target % len(shape), shape.pop(source))
            return Spec(tuple(shape), data.dtype)

        def reference(data: Array) -> Array:
            return np.array(np.moveaxis(data, source, target), order="C")

        def gradient(op: GradientContext) -> Any:
            return op.make(other, [op.grad(0)], [op.input_grad(0)])

    Order.__doc__ = doc
    operator(name, inputs="data", outputs="output")(Order)


_declare_order(
    "NCHW2NHWC", "NHWC2NCHW", 1, -1,
    """output = data with its second dimension as the last: from NCHW to NHWC.

    data, output: any one type, 3 dimensions or more.
    """,
)  # fmt: skip
_declare_order(
    "NHWC2NCHW", "NCHW2NHWC", -1, 1,
    """output = data with its last dimension as the second: from NHWC to NCHW.

    data, output: any one type, 3 dimensions or more.
    """,
)  # fmt: skip


def _bounds(
    starts: Sequence[int] | None, ends: Sequence[int] | None, shape: tuple[int, ...]
) -> tuple[slice, ...]:
    """What of each dimension is kept."""
    if starts is None or ends is None:
        raise OperatorError("", "needs starts and ends, both as arguments or both as inputs")
    if len(starts) != len(ends) or len(starts) > len(shape):
        problem = f"has {len(starts)} starts and {len(ends)} ends for {len(shape)} dimensions"
        raise OperatorError("", problem)
    slices = []
    for start, end, size in zip(starts, ends, shape, strict=False):
        first = min(start + size + 1 if start < 0 else start, size)
        last = min(end + size + 1 if end < 0 else end, size)
        if not 0 <= first <= last:
            raise OperatorError("", f"cannot take [{start}, {end}) of a dimension of {size}")
        slices.append(slice(first, last))
    return tuple(slices)


def _check_bounds(starts: Spec, ends: Spec, rank: int) -> None:
    for name, spec in (("starts", starts), ("ends", ends)):
        require_rank(name, spec, 1)
        if spec.shape[0] > rank or spec != starts:
            problem = f"has shape {spec.shape} and type {spec.dtype}; X has {rank} dimensions"
            raise OperatorError(name, f"{problem}, starts is {starts.dtype}, {starts.shape}")


_SLICE_ARGS = {
    "starts": Ints(None, min=INT64_MIN, max=INT64_MAX),
    "ends": Ints(None, min=INT64_MIN, max=INT64_MAX),
}


def _sliced(X: Spec, op: OpView) -> Spec:
    slices = _bounds(op.args.starts, op.args.ends, X.shape)
    kept = (part.stop - part.start for part in slices)
    return Spec((*kept, *X.shape[len(slices) :]), X.dtype)


@operator(
    "Slice",
    inputs="X starts? ends?",
    outputs="Y",
    args=_SLICE_ARGS,
    types={"starts": INTS, "ends": INTS},
)
class Slice:
    """Y = X[starts[0]:ends[0], starts[1]:ends[1], ...].

    X, Y: any one type.
    starts, ends: one for each of the first dimensions, as arguments or as two inputs (1-d, both
    int32 or both int64); dimensions that have none are kept whole.
    A negative one counts from behind the end: -1 is the size of the dimension, -2 the place of
    the last element.  With X = [[1, 2, 3, 4], [5, 6, 7, 8]], starts = (0, -2), ends = (-1, -1) the
    result is [[4], [8]].  What lies behind the end is cut off; an end before its start is refused.
    """

    def shape(X: Spec, starts: Spec | None, ends: Spec | None, op: OpView) -> Spec | None:
        if starts is None or ends is None:
            if starts is not None:
                raise OperatorError("ends", "is missing; it is an input where starts is one")
            return _sliced(X, op)
        _check_bounds(starts, ends, len(X.shape))
        return None

    def reference(X: Array, starts: Array | None, ends: Array | None, op: OpView) -> Array:
        first = op.args.starts if starts is None else starts.tolist()
        last = op.args.ends if ends is None else ends.tolist()
        return X[_bounds(first, last, X.shape)].copy()

    def gradient(op: GradientContext) -> Any:
        return op.make("SliceGradient", [*op.inputs, op.grad(0)], [op.input_grad(0)])


@operator(
    "SliceGradient",
    inputs="X starts_or_dY ends? dY?",
    outputs="dX",
    args=_SLICE_ARGS,
)
class SliceGradient:
    """dX = dY where Slice took Y from X, and zero elsewhere.

    Inputs: X and dY, or X, starts, ends and dY, as Slice has arguments or inputs.
    X, dY, dX: one type; dX has the shape of X.
    """

    def shape(X: Spec, starts_or_dY: Spec, ends: Spec | None, dY: Spec | None, op: OpView) -> Spec:
        if (ends is None) != (dY is None):
            raise OperatorError("", "takes two inputs or four")
        if ends is not None and dY is not None:
            _check_bounds(starts_or_dY, ends, len(X.shape))
            if starts_or_dY.dtype not in INTS:
                raise OperatorError("starts_or_dY", f"is {starts_or_dY.dtype}; starts are integers")
            require_same_types((X, dY), op)
            require_rank("dY", dY, len(X.shape))
        elif starts_or_dY != _sliced(X, op):
            problem = (
                f"is {starts_or_dY.dtype}, shape {starts_or_dY.shape}; needed is {_sliced(X, op)}"
            )
            raise OperatorError("starts_or_dY", problem)
        return X

    def reference(
        X: Array, starts_or_dY: Array, ends: Array | None, dY: Array | None, op: OpView
    ) -> Array:
        if ends is None or dY is None:
            slices, grad = _bounds(op.args.starts, op.args.ends, X.shape), starts_or_dY
        else:
            slices, grad = _bounds(starts_or_dY.tolist(), ends.tolist(), X.shape), dY
        dX = np.zeros_like(X)
        if dX[slices].shape != grad.shape:
            raise OperatorError("dY", f"has shape {grad.shape}; needed is {dX[slices].shape}")
        dX[slices] = grad
        return dX


_TILE_ARGS = {"tiles": Int(None, min=0), "axis": Int(None)}
_TILE_TYPES = {"tiles": INTS, "axis": INTS}


def _check_tile(X: Spec, tiles: Spec | None, axis: Spec | None, op: OpView) -> None:
    for name, spec, argument in (("tiles", tiles, op.args.tiles), ("axis", axis, op.args.axis)):
        if spec is not None:
            require_single(name, spec)
        elif argument is None:
            raise OperatorError(f"argument '{name}'", "is missing; it is no input either")
    if axis is None:
        canonical_axis(op.args.axis, len(X.shape))


def _tiling(rank: int, tiles: Array | None, axis: Array | None, op: OpView) -> tuple[int, int]:
    count = op.args.tiles if tiles is None else int(tiles.reshape(()))
    if count < 0:
        raise OperatorError("tiles", f"is {count}; it is not negative")
    return count, canonical_axis(op.args.axis if axis is None else int(axis.reshape(())), rank)


@operator("Tile", inputs="X tiles? axis?", outputs="Y", args=_TILE_ARGS, types=_TILE_TYPES)
class Tile:
    """Y = X repeated along an axis.

    X, Y: any one type.
    tiles: how often, 0 or more.  axis: negative from the end.  Each is an argument, or an input
    with one int32 or int64 value, which goes before the argument.
    """

    def shape(X: Spec, tiles: Spec | None, axis: Spec | None, op: OpView) -> Spec | None:
        _check_tile(X, tiles, axis, op)
        if tiles is not None or axis is not None:
            return None
        shape = list(X.shape)
        shape[op.args.axis] *= op.args.tiles
        return Spec(tuple(shape), X.dtype)

    def reference(X: Array, tiles: Array | None, axis: Array | None, op: OpView) -> Array:
        count, along = _tiling(X.ndim, tiles, axis, op)
        return np.tile(X, [count if place == along else 1 for place in range(X.ndim)])

    def gradient(op: GradientContext) -> Any:
        return op.make("TileGradient", [op.grad(0), *op.inputs[1:]], [op.input_grad(0)])


@operator(
    "TileGradient",
    inputs="dY tiles? axis?",
    outputs="dX",
    args=_TILE_ARGS,
    types={"dY": _SUMMED, **_TILE_TYPES},
)
class TileGradient:
    """dX = the sum of the repetitions in dY: the gradient of Tile.

    dY: float, double, int32 or int64.  dX: the same type, smaller by `tiles` along the axis.
    tiles, axis: as for Tile; tiles is 1 or more.
    """

    def shape(dY: Spec, tiles: Spec | None, axis: Spec | None, op: OpView) -> Spec | None:
        _check_tile(dY, tiles, axis, op)
        if tiles is not None or axis is not None:
            return None
        return Spec(_untiled(dY.shape, op.args.tiles, op.args.axis), dY.dtype)

    def reference(dY: Array, tiles: Array | None, axis: Array | None, op: OpView) -> Array:
        count, along = _tiling(dY.ndim, tiles, axis, op)
        shape = _untiled(dY.shape, count, along)
        parts = dY.reshape(*shape[:along], count, *shape[along:])
        return parts.sum(axis=along, dtype=np.float64 if dY.dtype.kind == "f" else dY.dtype).astype(
            dY.dtype
        )


def _untiled(shape: tuple[int, ...], tiles: int, axis: int) -> tuple[int, ...]:
    if tiles == 0 or shape[axis] % tiles:
        problem = f"has shape {shape}, which are not {tiles} tiles along axis {axis}"
        raise OperatorError("dY", problem)
    sizes = list(shape)
    sizes[axis] //= tiles
    return tuple(sizes)


@operator("NumpyTile", inputs="data repeats", outputs="tiled_data", types={"repeats": INTS})
class NumpyTile:
    """tiled_data = data repeated along every axis, repeats[i] times along axis i.

    data, tiled_data: any one type.
    repeats: int32 or int64, one value, not negative, for each dimension of data.
    """

    def shape(data: Spec, repeats: Spec) -> None:
        if repeats.shape != (len(data.shape),):
            problem = f"has shape {repeats.shape}; data has {len(data.shape)} dimensions"
            raise OperatorError("repeats", problem)

    def reference(data: Array, repeats: Array) -> Array:
        if repeats.size and repeats.min() < 0:
            raise OperatorError("repeats", f"holds {repeats.min()}; it is not negative")
        return np.tile(data, repeats.tolist())


def _expanded(old: tuple[int, ...], wanted: Sequence[int]) -> tuple[int, ...]:
    """Both shapes, aligned at the end, as one."""
    rank = max(len(old), len(wanted))
    pairs = zip(
        (*[1] * (rank - len(old)), *old), (*[1] * (rank - len(wanted)), *wanted), strict=True
    )
    shape = []
    for size, other in pairs:
        if other > 1 and size not in (1, other):
            raise OperatorError("shape", f"is {list(wanted)}, which does not fit to X, {old}")
        shape.append(other if other > 1 else size)
    return tuple(shape)


@operator("Expand", inputs="X shape", outputs="Y", types={"shape": INTS})
class Expand:
    """Y = X repeated along its dimensions of size 1 until it has `shape`.

    X, Y: any one type.
    shape: int64 or int32, 1-d, aligned with the shape of X at the end.  Where it is 1 or less the
    dimension of X stays as it is.
    """

    def shape(X: Spec, shape: Spec) -> None:
        require_rank("shape", shape, 1)

    def reference(X: Array, shape: Array) -> Array:
        return np.broadcast_to(X, _expanded(X.shape, shape.tolist())).copy()

    def gradient(op: GradientContext) -> Any:
        return op.make("ExpandGradient", [op.grad(0), op.input(0)], [op.input_grad(0)])


@operator("ExpandGradient", inputs="dY X", outputs="dX", types={"dY": _SUMMED, "X": _SUMMED})
class ExpandGradient:
    """dX = dY summed over what Expand repeated.

    dY, X, dX: float, double, int32 or int64, all the same.  dX has the shape of X.
    """

    def shape(dY: Spec, X: Spec, op: OpView) -> Spec:
        require_same_types((dY, X), op)
        if len(X.shape) > len(dY.shape) or _expanded(X.shape, dY.shape) != dY.shape:
            raise OperatorError("dY", f"has shape {dY.shape}, to which X, {X.shape}, cannot grow")
        return X

    def reference(dY: Array, X: Array) -> Array:
        if math.prod(X.shape) == 0:
            return np.zeros_like(X)
        new = dY.ndim - X.ndim
        grown = [new + i for i, size in enumerate(X.shape) if size != dY.shape[new + i]]
        wide = np.float64 if dY.dtype.kind == "f" else dY.dtype
        total = dY.sum(axis=(*range(new), *grown), dtype=wide)
        return total.reshape(X.shape).astype(X.dtype)
