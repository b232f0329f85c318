# mypy: disable-error-code="misc, no-any-return"
"""Products of batches of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, OperatorError
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_rank

_RANKS = range(1, 17)


def _matrix(shape: tuple[int, ...], row: bool, trans: bool) -> tuple[int, int]:
    """Rows and columns of one matrix; a vector is a row as A and a column as B."""
    if len(shape) == 1:
        return (1, shape[0]) if row else (shape[0], 1)
    return (shape[-1], shape[-2]) if trans else (shape[-2], shape[-1])


def _batch(A: Spec, B: Spec, op: OpView) -> tuple[int, ...]:
    """The batch dimensions of the product."""
    a, b = A.shape[:-2], B.shape[:-2]
    vector = len(A.shape) == 1 or len(B.shape) == 1
    if not op.args.broadcast and not vector and a != b:
        problem = f"has batch dimensions {b} and A {a}; without broadcast=1 they must be the same"
        raise OperatorError("B", problem)
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise OperatorError("B", f"has batch dimensions {b}, A has {a}") from None


@operator(
    "BatchMatMul",
    inputs="A B",
    outputs="Y",
    args={"trans_a": Bool(False), "trans_b": Bool(False), "broadcast": Bool(False)},
    types={"A": FLOAT, "B": FLOAT},
)
class BatchMatMul:
    """Y = A B for each matrix of a batch.

    A: float (..., M, K), with trans_a (..., K, M), or a vector (K,), which is a row.
    B: float (..., K, N), with trans_b (..., N, K), or a vector (K,), which is a column.
    Y: float (..., M, N), without M where A is a vector and without N where B is one; (1,) of two.
    broadcast: the dimensions of the batches are broadcast as NumPy does; otherwise they must be the
        same, unless one operand is a vector.  There is a gradient without broadcast only.
    """

    def shape(A: Spec, B: Spec, op: OpView) -> Spec:
        require_rank("A", A, *_RANKS)
        require_rank("B", B, *_RANKS)
        rows, inner = _matrix(A.shape, True, op.args.trans_a)
        inner_b, columns = _matrix(B.shape, False, op.args.trans_b)
        if inner != inner_b:
            problem = f"has shape {B.shape}, {inner_b} rows after trans_b; A has {inner} columns"
            raise OperatorError("B", problem)
        m = (rows,) if len(A.shape) > 1 else ()
        n = (columns,) if len(B.shape) > 1 else ()
        return Spec((*_batch(A, B, op), *m, *n) or (1,), A.dtype)

    def reference(A: Array, B: Array, op: OpView) -> Array:
        a, b = A.astype(np.float64), B.astype(np.float64)
        if op.args.trans_a and a.ndim > 1:
            a = a.swapaxes(-1, -2)
        if op.args.trans_b and b.ndim > 1:
            b = b.swapaxes(-1, -2)
        product = np.asarray(np.matmul(a, b)).astype(A.dtype)
        return product.reshape(1) if A.ndim == B.ndim == 1 else product

    def gradient(op: GradientContext) -> Any:
        if op.args.broadcast:
            raise OperatorError("argument 'broadcast'", "is 1; there is no gradient with it")
        a, b, dy = op.input(0), op.input(1), op.grad(0)

        def product(inputs: list[Any], index: int, **trans: int) -> Any:
            return op.make(op.type, inputs, [op.input_grad(index)], copy_args=False, **trans)

        if op.args.trans_a and op.args.trans_b:
            return [
                product([b, dy], 0, trans_a=1, trans_b=1),
                product([dy, a], 1, trans_a=1, trans_b=1),
            ]
        if op.args.trans_a:
            return [product([b, dy], 0, trans_b=1), product([a, dy], 1)]
        if op.args.trans_b:
            return [product([dy, b], 0), product([dy, a], 1, trans_a=1)]
        return [product([dy, b], 0, trans_b=1), product([a, dy], 1, trans_a=1)]
