# mypy: disable-error-code="misc, no-any-return"
"""Reductions of the first or last dimensions, which may have a length for each result."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Int, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INT32, INT64, INTS
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_rank, require_same_shape, size, split_at

_ARGS = {"num_reduce_dim": Int(1, min=0)}


def _fold(shape: tuple[int, ...], front: bool, op: OpView) -> tuple[tuple[int, ...], int]:
    """The shape of the result, and how many elements each of its elements comes from."""
    dims = op.args.num_reduce_dim
    if dims > len(shape):
        problem = f"is {dims}; X has {len(shape)} dimensions"
        raise OperatorError("argument 'num_reduce_dim'", problem)
    cut = dims if front else len(shape) - dims
    first, last = split_at(shape, cut)
    return (shape[cut:], first) if front else (shape[:cut], last)


def _matrix(X: Array, front: bool, op: OpView) -> Array:
    """X with a row for each element of the result."""
    shape, count = _fold(X.shape, front, op)
    wide = X.astype(np.float64) if X.dtype.kind == "f" else X
    rows = int(np.prod(shape, dtype=np.int64))
    return wide.reshape(count, rows).T if front else wide.reshape(rows, count)


def _check_lengths(X: Spec, lengths: Spec | None, front: bool, op: OpView) -> None:
    shape, _ = _fold(X.shape, front, op)
    if lengths is None:
        return
    if op.args.num_reduce_dim != 1:
        problem = f"is {op.args.num_reduce_dim}; with lengths it must be 1"
        raise OperatorError("argument 'num_reduce_dim'", problem)
    if size(lengths) != size(Spec(shape, X.dtype)):
        raise OperatorError("lengths", f"has shape {lengths.shape}; one for each of {shape}")


def _counts(lengths: Array | None, rows: int, count: int) -> Array:
    """How many elements of each row count."""
    if lengths is None:
        return np.full(rows, count)
    wrong = np.flatnonzero((lengths < 0) | (lengths > count))
    if wrong.size:
        at = int(wrong[0])
        found = lengths.reshape(-1)[at]
        problem = f"holds {found} at position {at}; allowed is 0 <= length <= {count}"
        raise OperatorError("lengths", problem)
    return lengths.reshape(-1)


def _divided(total: Array, counts: Array) -> Array:
    """total / counts, 0 for a count of 0; integers are rounded toward zero."""
    counts = np.maximum(counts, 1).astype(total.dtype)
    if total.dtype.kind == "f":
        return total / counts
    return np.sign(total) * (np.abs(total) // counts)


def _declare(name: str, front: bool) -> None:
    kind = "Mean" if name.endswith("Mean") else "Max" if name.endswith("Max") else "Sum"
    side = "first" if front else "last"
    types = FLOAT if kind == "Max" else FLOAT | DOUBLE | INTS
    type_text = "float" if kind == "Max" else "float, double, int32 or int64"
    word = {"Sum": "sum", "Mean": "mean", "Max": "largest"}[kind]

    class Reduce:
        __doc__ = f"""Y = the {word} over the {side} num_reduce_dim dimensions of X.

    X: {type_text}, any shape.  Y: the same type, the other dimensions of X; 0 where there is
    nothing to reduce.
    lengths: int32, one for each element of Y: only so many of its elements count, the first ones.
    """

        def shape(X: Spec, lengths: Spec | None, op: OpView) -> Spec:
            _check_lengths(X, lengths, front, op)
            return Spec(_fold(X.shape, front, op)[0], X.dtype)

        def reference(X: Array, lengths: Array | None, op: OpView) -> Array:
            shape, count = _fold(X.shape, front, op)
            rows = _matrix(X, front, op)
            counts = _counts(lengths, len(rows), count)
            counted = np.arange(count)[None, :] < counts[:, None]
            if kind == "Max":
                least = np.max(np.where(counted, rows, -np.inf), axis=1, initial=-np.inf)
                return np.where(counts == 0, 0, least).astype(X.dtype).reshape(shape)
            total = np.where(counted, rows, 0).sum(axis=1)
            found = _divided(total, counts) if kind == "Mean" else total
            return found.astype(X.dtype).reshape(shape)

        def gradient(op: GradientContext) -> Any:
            inputs = [op.grad(0), op.input(0)]
            if kind == "Max":
                inputs.append(op.output(0))
            return op.make(f"{name}Gradient", [*inputs, *op.inputs[1:]], [op.input_grad(0)])

    operator(
        name,
        inputs="X lengths?",
        outputs="Y",
        args=_ARGS,
        types={"X": types, "lengths": INT32},
    )(Reduce)
    if kind == "Max":
        _declare_max_gradient(name, front)
    else:
        _declare_gradient(name, front, kind)


def _rows_of(shape: tuple[int, ...], dY: Array, front: bool, op: OpView) -> tuple[Array, int]:
    """dY as a column with a row for each element of the result, and the length of the rows."""
    _, count = _fold(shape, front, op)
    return dY.reshape(-1, 1), count


def _unfolded(rows: Array, shape: tuple[int, ...], front: bool) -> Array:
    return (rows.T if front else rows).reshape(shape)


def _declare_gradient(name: str, front: bool, kind: str) -> None:
    class Gradient:
        __doc__ = f"""dX = {"dY / count" if kind == "Mean" else "dY"}, repeated; 0 behind a length.

    The gradient of {name}.  dY: as Y there.  X_or_shape: X, or its shape as an int64 vector.
    lengths: as there.  dX: the type of dY.
    """

        def shape(dY: Spec, X_or_shape: Spec, lengths: Spec | None, op: OpView) -> Spec | None:
            if X_or_shape.dtype in INT64:
                require_rank("X_or_shape", X_or_shape, 1)
                return None
            X = X_or_shape
            _check_lengths(X, lengths, front, op)
            if size(dY) != size(Spec(_fold(X.shape, front, op)[0], X.dtype)):
                raise OperatorError("dY", f"has shape {dY.shape}; X has {X.shape}")
            return Spec(X.shape, dY.dtype)

        def reference(dY: Array, X_or_shape: Array, lengths: Array | None, op: OpView) -> Array:
            shape = X_or_shape.shape
            if X_or_shape.dtype in INT64:
                shape = tuple(map(int, X_or_shape))
                if min(shape, default=0) < 0:
                    raise OperatorError("X_or_shape", f"is {shape}; a dimension is negative")
                given = None if lengths is None else Spec(lengths.shape, lengths.dtype)
                X = Spec(shape, dY.dtype)
                _check_lengths(X, given, front, op)
                if dY.size != size(Spec(_fold(shape, front, op)[0], dY.dtype)):
                    raise OperatorError("dY", f"has shape {dY.shape}; X has {shape}")
            rows, count = _rows_of(shape, dY, front, op)
            counts = _counts(lengths, len(rows), count)[:, None]
            found = _divided(rows, counts) if kind == "Mean" else rows
            found = np.where(np.arange(count)[None, :] < counts, found, 0).astype(dY.dtype)
            return _unfolded(found, shape, front)

    operator(
        f"{name}Gradient",
        inputs="dY X_or_shape lengths?",
        outputs="dX",
        args=_ARGS,
        types={
            "dY": FLOAT | DOUBLE | INTS,
            "X_or_shape": FLOAT | DOUBLE | INTS,
            "lengths": INT32,
        },
    )(Gradient)


def _declare_max_gradient(name: str, front: bool) -> None:
    class Gradient:
        __doc__ = f"""dX = dY where X = Y, else 0; the gradient of {name}.

    All of several largest elements count; those behind a length do not.
    dY, Y: float as Y there.  X, lengths: as there.  dX: float, like X.
    """

        def shape(dY: Spec, X: Spec, Y: Spec, lengths: Spec | None, op: OpView) -> Spec:
            _check_lengths(X, lengths, front, op)
            expected = size(Spec(_fold(X.shape, front, op)[0], X.dtype))
            for subject, spec in (("dY", dY), ("Y", Y)):
                if size(spec) != expected:
                    problem = f"has shape {spec.shape}; {expected} elements are needed"
                    raise OperatorError(subject, problem)
            return X

        def reference(dY: Array, X: Array, Y: Array, lengths: Array | None, op: OpView) -> Array:
            rows, count = _rows_of(X.shape, dY, front, op)
            counts = _counts(lengths, len(rows), count)[:, None]
            x = _matrix(X, front, op)
            hit = (x == Y.reshape(-1, 1)) & (np.arange(count)[None, :] < counts)
            return _unfolded(np.where(hit, rows, 0).astype(X.dtype), X.shape, front)

    operator(
        f"{name}Gradient",
        inputs="dY X Y lengths?",
        outputs="dX",
        args=_ARGS,
        types={"dY": FLOAT, "X": FLOAT, "Y": FLOAT, "lengths": INT32},
    )(Gradient)


for _kind in ("Sum", "Mean", "Max"):
    _declare(f"ReduceFront{_kind}", front=True)
    _declare(f"ReduceBack{_kind}", front=False)


def _declare_matrix_max(name: str, axis: int, what: str) -> None:
    """Maxima along one axis of a batch of matrices."""

    class Max:
        __doc__ = f"""Y = the largest element of each {what} of each matrix of a batch.

    X: float (B, M, N).  Y: float, X without dimension {axis}.  NaN where there is one.
    """

        def shape(X: Spec) -> Spec:
            require_rank("X", X, 3)
            if X.shape[axis] == 0 and X.shape[0] * X.shape[3 - axis] > 0:
                raise OperatorError("X", f"has shape {X.shape}; a {what} is empty")
            return Spec(X.shape[:axis] + X.shape[axis + 1 :], X.dtype)

        def reference(X: Array) -> Array:
            if X.size == 0:
                return np.zeros(X.shape[:axis] + X.shape[axis + 1 :], X.dtype)
            return X.max(axis=axis)

        def gradient(op: GradientContext) -> Any:
            inputs = [op.input(0), op.output(0), op.grad(0)]
            return op.make(f"{name}Gradient", inputs, [op.input_grad(0)])

    class Gradient:
        __doc__ = f"""dX = dY where X = Y, else 0; the gradient of {name}.

    X: float (B, M, N).  Y, dY: float, as Y there.  dX: like X.
    """

        def shape(X: Spec, Y: Spec, dY: Spec) -> Spec:
            require_rank("X", X, 3)
            expected = X.shape[:axis] + X.shape[axis + 1 :]
            for subject, spec in (("Y", Y), ("dY", dY)):
                if spec.shape != expected:
                    raise OperatorError(subject, f"has shape {spec.shape}; {expected} is needed")
            return X

        def reference(X: Array, Y: Array, dY: Array) -> Array:
            hit = np.expand_dims(Y, axis) == X
            return np.where(hit, np.expand_dims(dY, axis), 0).astype(X.dtype)

    operator(name, inputs="X", outputs="Y", types={"X": FLOAT})(Max)
    operator(
        f"{name}Gradient",
        inputs="X Y dY",
        outputs="dX",
        types={"X": FLOAT, "Y": FLOAT, "dY": FLOAT},
    )(Gradient)


_declare_matrix_max("RowwiseMax", 2, "row")
_declare_matrix_max("ColwiseMax", 1, "column")


@operator(
    "ReduceFrontWeightedSum",
    inputs="DATA SCALARS",
    outputs="OUTPUT",
    args={"grad_on_weights": Bool(False)},
    types={"DATA": FLOAT, "SCALARS": FLOAT},
)
class ReduceFrontWeightedSum:
    """OUTPUT = the sum of DATA[i] * SCALARS[i] over i.

    DATA: float (N, ...).  SCALARS: float (N,).  OUTPUT: float, the other dimensions of DATA.
    grad_on_weights is accepted; SCALARS gets no gradient, as in the original.
    """

    def shape(DATA: Spec, SCALARS: Spec) -> Spec:
        require_rank("DATA", DATA, *range(1, 17))
        if SCALARS.shape != DATA.shape[:1]:
            raise OperatorError("SCALARS", f"has shape {SCALARS.shape}; {DATA.shape[:1]} is needed")
        return Spec(DATA.shape[1:], DATA.dtype)

    def reference(DATA: Array, SCALARS: Array) -> Array:
        total = np.tensordot(SCALARS.astype(np.float64), DATA.astype(np.float64), axes=1)
        return np.asarray(total).astype(DATA.dtype)

    def gradient(op: GradientContext) -> Any:
        dims = f"_{op.output(0)}_dims"
        return [
            op.make("Shape", [op.input(0)], [dims]),
            op.make(
                "ReduceFrontWeightedSumGradient",
                [op.input(1), op.grad(0), dims],
                [op.input_grad(0)],
            ),
        ]


@operator(
    "ReduceFrontWeightedSumGradient",
    inputs="SCALARS dOUTPUT dims",
    outputs="dDATA",
    args={"grad_on_weights": Bool(False)},
    types={"SCALARS": FLOAT, "dOUTPUT": FLOAT, "dims": INT64},
)
class ReduceFrontWeightedSumGradient:
    """dDATA[i] = SCALARS[i] * dOUTPUT: the gradient of ReduceFrontWeightedSum.

    SCALARS: float (N,).  dOUTPUT: float (...).  dims: int64, the shape of DATA.
    dDATA: float (N, ...).
    """

    def shape(SCALARS: Spec, dOUTPUT: Spec, dims: Spec) -> Spec:
        require_rank("SCALARS", SCALARS, 1)
        expected = Spec((len(dOUTPUT.shape) + 1,), dims.dtype)
        require_same_shape("dims", dims, "a shape of DATA", expected)
        return Spec((*SCALARS.shape, *dOUTPUT.shape), dOUTPUT.dtype)

    def reference(SCALARS: Array, dOUTPUT: Array, dims: Array) -> Array:
        shape = (*SCALARS.shape, *dOUTPUT.shape)
        if tuple(dims) != shape:
            raise OperatorError("dims", f"is {tuple(map(int, dims))}; {shape} is needed")
        return np.multiply.outer(SCALARS, dOUTPUT)
