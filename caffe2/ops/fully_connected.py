# mypy: disable-error-code="misc, no-any-return"
"""Matrix products: FC, FCTransposed, MatMul."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Int, OperatorError
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import canonical_axis, require_rank, size, split_at

_FC_ARGS = {"axis": Int(1), "axis_w": Int(1), "float16_compute": Bool(False)}


def _fc_sizes(X: Spec, W: Spec, op: OpView, transposed: bool) -> tuple[int, int, int, int]:
    """Rows M, outputs N, features K, and the axis of X where its features begin."""
    axis = canonical_axis(op.args.axis, len(X.shape))
    axis_w = canonical_axis(op.args.axis_w, len(W.shape), "axis_w")
    rows, features = split_at(X.shape, axis)
    sides = split_at(W.shape, axis_w)
    outputs, features_w = reversed(sides) if transposed else sides
    if features != features_w:
        place = f"before axis_w={axis_w}" if transposed else f"from axis_w={axis_w} on"
        raise OperatorError(
            "W",
            f"has shape {W.shape}: {features_w} features {place}; "
            f"X has shape {X.shape}: {features} from axis={axis} on",
        )
    return rows, outputs, features, axis


def _spec(array: Array) -> Spec:
    return Spec(array.shape, array.dtype)


def _declare_layer(name: str, transposed: bool, equation: str, weights: str) -> Any:
    """`name`, which is returned, and its gradient; W is [N, K], or where transposed [K, N]."""

    def sizes(X: Any, W: Any, op: OpView) -> tuple[int, int, int, int]:
        return _fc_sizes(_spec(X), _spec(W), op, transposed)

    def matrix(W: Array, outputs: int, features: int) -> Array:
        """W as [N, K] in float64."""
        wide = W.astype(np.float64)
        if transposed:
            return wide.reshape(features, outputs).T
        return wide.reshape(outputs, features)

    class Layer:
        __doc__ = f"""{equation}, the fully connected layer.

    X: float (..., K): the dimensions from `axis` on are flattened to K features.
    {weights}
    b: float (N,).
    Y: float, the dimensions of X before `axis`, then N.
    axis, axis_w: negative ones count from the back.  float16_compute is accepted and has no
    effect: products are summed in float32 or better.
    """

        def shape(X: Spec, W: Spec, b: Spec, op: OpView) -> Spec:
            _, outputs, _, axis = sizes(X, W, op)
            if b.shape != (outputs,):
                problem = f"has shape {b.shape}; ({outputs},) is needed, as W has shape {W.shape}"
                raise OperatorError("b", problem)
            return Spec((*X.shape[:axis], outputs), X.dtype)

        def reference(X: Array, W: Array, b: Array, op: OpView) -> Array:
            rows, outputs, features, axis = sizes(X, W, op)
            x = X.reshape(rows, features).astype(np.float64)
            y = x @ matrix(W, outputs, features).T + b
            return y.astype(X.dtype).reshape(*X.shape[:axis], outputs)

        def gradient(op: GradientContext) -> Any:
            return op.make(
                f"{name}Gradient",
                [op.input(0), op.input(1), op.grad(0)],
                [op.input_grad(1), op.input_grad(2), op.input_grad(0)],
            )

    class Gradient:
        __doc__ = f"""The gradient of {name}: dW, db = sum of dY over rows, and dX.

    X, W: as for {name}.  dY: float with as many elements as Y there, in its order.
    dW, db, dX: float with the shapes of W, b, X; dX is computed only when named.
    """

        def shape(X: Spec, W: Spec, dY: Spec, op: OpView) -> tuple[Spec, ...]:
            rows, outputs, _, _ = sizes(X, W, op)
            if size(dY) != rows * outputs:
                raise OperatorError(
                    "dY", f"has shape {dY.shape}; {rows} x {outputs} elements are needed"
                )
            return W, Spec((outputs,), W.dtype), X

        def reference(X: Array, W: Array, dY: Array, op: OpView) -> tuple[Array, ...]:
            rows, outputs, features, _ = sizes(X, W, op)
            x = X.reshape(rows, features).astype(np.float64)
            dy = dY.reshape(rows, outputs).astype(np.float64)
            dw = (x.T @ dy if transposed else dy.T @ x).reshape(W.shape)
            dx = (dy @ matrix(W, outputs, features)).reshape(X.shape)
            return dw.astype(W.dtype), dy.sum(axis=0).astype(W.dtype), dx.astype(X.dtype)

    types = {"X": FLOAT, "W": FLOAT}
    operator(name, inputs="X W b", outputs="Y", args=_FC_ARGS, types={**types, "b": FLOAT})(Layer)
    operator(
        f"{name}Gradient",
        inputs="X W dY",
        outputs="dW db dX?",
        args=_FC_ARGS,
        types={**types, "dY": FLOAT},
    )(Gradient)
    return Layer


_FC = _declare_layer(
    "FC",
    False,
    "Y = X W^T + b",
    """W: float (N, ...): the dimensions from `axis_w` on are flattened to K; (N, K, 1, 1) of old
       models is fine.""",
)
_declare_layer(
    "FCTransposed",
    True,
    "Y = X W + b",
    """W: float (K..., N...): the dimensions before `axis_w` are K features, the others N.""",
)


class _Pack:
    """Y = the weights X of FbFCPacked, rounded to numbers of 16 bits, in the order of FC.

    X: float (N, K), for FbGemmPackTranspose (K, N).  Y: float (N, K).
    (The original packs them for its library; its Y can be read by FbFCPacked alone.)
    """

    def shape(X: Spec, op: OpView) -> Spec:
        require_rank("X", X, 2)
        return Spec(X.shape[:: -1 if op.type == "FbGemmPackTranspose" else 1], X.dtype)

    def reference(X: Array, op: OpView) -> Array:
        with np.errstate(over="ignore"):
            rounded = X.astype(np.float16).astype(X.dtype)
        return rounded.T.copy() if op.type == "FbGemmPackTranspose" else rounded


for _name in ("FbGemmPack", "FbGemmPackTranspose"):
    operator(_name, inputs="X", outputs="Y", types={"X": FLOAT}, inplace=[(0, 0)])(_Pack)


class _PackedLayer:
    """Y = X W^T + b, with weights of FbGemmPack or FbGemmPackTranspose.

    X: float, whose dimensions from `axis` on hold K features.  W: float (N, K).  b: float (N,).
    Y: float, the dimensions of X before `axis`, then N.
    """

    shape = _FC.shape
    reference = _FC.reference


operator(
    "FbFCPacked",
    inputs="X W b",
    outputs="Y",
    args=_FC_ARGS,
    types={"X": FLOAT, "W": FLOAT, "b": FLOAT},
)(_PackedLayer)


def _matmul_sizes(A: Spec, B: Spec, op: OpView) -> tuple[int, int]:
    """Rows and columns of the product."""
    a = split_at(A.shape, canonical_axis(op.args.axis_a, len(A.shape), "axis_a"))
    b = split_at(B.shape, canonical_axis(op.args.axis_b, len(B.shape), "axis_b"))
    rows, inner = reversed(a) if op.args.trans_a else a
    inner_b, columns = reversed(b) if op.args.trans_b else b
    if inner != inner_b:
        raise OperatorError(
            "B",
            f"has shape {B.shape}, {inner_b} rows after flattening and trans_b; "
            f"A has shape {A.shape}, {inner} columns after flattening and trans_a",
        )
    return rows, columns


@operator(
    "MatMul",
    inputs="A B like?",
    outputs="Y",
    args={"axis_a": Int(1), "axis_b": Int(1), "trans_a": Bool(False), "trans_b": Bool(False)},
    types={"A": FLOAT, "B": FLOAT},
)
class MatMul:
    """Y = A B, the product of two matrices.

    A: float, flattened to a matrix at `axis_a`, then transposed if `trans_a`; B likewise.
    like: any tensor; when given, Y has its shape instead of (rows, columns).
    Y: float (rows of A, columns of B).
    """

    def shape(A: Spec, B: Spec, like: Spec | None, op: OpView) -> Spec:
        rows, columns = _matmul_sizes(A, B, op)
        if like is None:
            return Spec((rows, columns), A.dtype)
        if size(like) != rows * columns:
            raise OperatorError(
                "like", f"has shape {like.shape}; {rows} x {columns} elements are needed"
            )
        return Spec(like.shape, A.dtype)

    def reference(A: Array, B: Array, like: Array | None, op: OpView) -> Array:
        a = A.reshape(split_at(A.shape, canonical_axis(op.args.axis_a, A.ndim)))
        b = B.reshape(split_at(B.shape, canonical_axis(op.args.axis_b, B.ndim)))
        a, b = a.T if op.args.trans_a else a, b.T if op.args.trans_b else b
        product = (a.astype(np.float64) @ b.astype(np.float64)).astype(A.dtype)
        return product if like is None else product.reshape(like.shape)

    def gradient(op: GradientContext) -> Any:
        a, b, dy = op.input(0), op.input(1), op.grad(0)
        axis_a, axis_b = op.args.axis_a, op.args.axis_b
        da, db = [op.input_grad(0)], [op.input_grad(1)]

        def product(inputs: list[Any], outputs: list[str], **args: Any) -> Any:
            return op.make("MatMul", inputs, outputs, copy_args=False, **args)

        if op.args.trans_a and op.args.trans_b:
            return [
                product([b, dy, a], da, trans_a=1, trans_b=1, axis_a=axis_b),
                product([dy, a, b], db, trans_a=1, trans_b=1, axis_b=axis_a),
            ]
        if op.args.trans_a:
            return [
                product([b, dy, a], da, trans_b=1, axis_a=axis_b),
                product([a, dy, b], db, axis_a=axis_a),
            ]
        if op.args.trans_b:
            return [
                product([dy, b, a], da, axis_b=axis_b),
                product([dy, a, b], db, trans_a=1, axis_b=axis_a),
            ]
        return [
            product([dy, b, a], da, trans_b=1, axis_b=axis_b),
            product([a, dy, b], db, trans_a=1, axis_a=axis_a),
        ]
