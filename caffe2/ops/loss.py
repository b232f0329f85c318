# mypy: disable-error-code="misc, no-any-return"
"""Losses and accuracy: LabelCrossEntropy, AveragedLoss, SoftmaxWithLoss, Accuracy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Float, Int, OperatorError, Str
from caffe2.ops.datatypes import FLOAT, INT32
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import canonical_axis, require_rank, require_single, size, split_at

# Logarithms see no smaller probability than this.
_SMALLEST = 1e-20


def check_labels(name: str, labels: Array, classes: int) -> None:
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        at = int(wrong[0])
        problem = (
            f"holds {labels.reshape(-1)[at]} at position {at}; allowed is 0 <= label < {classes}"
        )
        raise OperatorError(name, problem)


def _rows_and_classes(X: Spec) -> tuple[int, int]:
    require_rank("X", X, *range(1, 17))
    return split_at(X.shape, 1) if len(X.shape) > 1 else (1, X.shape[0])


def _label_entropy_sizes(X: Spec, label: Spec) -> tuple[int, int]:
    rows, classes = _rows_and_classes(X)
    if label.shape not in ((rows,), (rows, 1)):
        raise OperatorError("label", f"has shape {label.shape}; ({rows},) or ({rows}, 1) is needed")
    return rows, classes


@operator(
    "LabelCrossEntropy",
    inputs="X label",
    outputs="Y",
    types={"X": FLOAT, "label": INT32},
)
class LabelCrossEntropy:
    """Y[i] = -log(max(X[i, label[i]], 1e-20)): cross-entropy of probabilities and class numbers.

    X: float (N, ...), each row of D values a distribution; a 1-d X is one row.
    label: int32 (N,) or (N, 1), 0 <= label < D.
    Y: float (N,), in nats.
    """

    def shape(X: Spec, label: Spec) -> Spec:
        return Spec((_label_entropy_sizes(X, label)[0],), X.dtype)

    def reference(X: Array, label: Array) -> Array:
        rows, classes = _rows_and_classes(Spec(X.shape, X.dtype))
        check_labels("label", label, classes)
        chosen = X.reshape(rows, classes)[np.arange(rows), label.reshape(-1)]
        return (-np.log(np.maximum(chosen.astype(np.float64), _SMALLEST))).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make(
            "LabelCrossEntropyGradient",
            [op.input(0), op.input(1), op.grad(0)],
            [op.input_grad(0)],
        )


@operator(
    "LabelCrossEntropyGradient",
    inputs="X label dY",
    outputs="dX",
    types={"X": FLOAT, "label": INT32, "dY": FLOAT},
)
class LabelCrossEntropyGradient:
    """dX[i, label[i]] = -dY[i] / max(X[i, label[i]], 1e-20), 0 elsewhere.

    X, label: as for LabelCrossEntropy.  dY: float (N,).  dX: float with the shape of X.
    """

    def shape(X: Spec, label: Spec, dY: Spec) -> Spec:
        rows, _ = _label_entropy_sizes(X, label)
        if dY.shape != (rows,):
            raise OperatorError("dY", f"has shape {dY.shape}; ({rows},) is needed")
        return X

    def reference(X: Array, label: Array, dY: Array) -> Array:
        rows, classes = _rows_and_classes(Spec(X.shape, X.dtype))
        check_labels("label", label, classes)
        at = np.arange(rows), label.reshape(-1)
        dx = np.zeros((rows, classes))
        chosen = X.reshape(rows, classes)[at].astype(np.float64)
        dx[at] = -dY / np.maximum(chosen, _SMALLEST)
        return dx.astype(X.dtype).reshape(X.shape)


@operator("AveragedLoss", inputs="input", outputs="output", types={"input": FLOAT})
class AveragedLoss:
    """output = the mean of all elements of input; 0 when there are none.

    input: float of any shape.  output: float scalar, shape ().
    """

    def shape(input: Spec) -> Spec:
        return Spec((), input.dtype)

    def reference(input: Array) -> Array:
        total = input.astype(np.float64).sum()
        return np.asarray(total / max(input.size, 1), dtype=input.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make("AveragedLossGradient", [op.input(0), op.grad(0)], [op.input_grad(0)])


@operator(
    "AveragedLossGradient",
    inputs="X dY",
    outputs="dX",
    types={"X": FLOAT, "dY": FLOAT},
)
class AveragedLossGradient:
    """dX = dY / (number of elements of X) everywhere: the gradient of AveragedLoss.

    X, dX: float of one shape.  dY: float with one element.
    """

    def shape(X: Spec, dY: Spec) -> Spec:
        require_single("dY", dY)
        return X

    def reference(X: Array, dY: Array) -> Array:
        return np.full(X.shape, dY.reshape(()).astype(np.float64) / max(X.size, 1), X.dtype)


def _loss_sizes(logits: Spec, labels: Spec, weights: Spec | None, op: OpView) -> tuple[int, int]:
    axis = canonical_axis(op.args.axis, len(logits.shape))
    rows, classes = split_at(logits.shape, axis)
    if op.args.label_prob:
        fits = len(labels.shape) >= 2 and split_at(labels.shape, axis) == (rows, classes)
        wanted = f"{rows} rows of {classes} probabilities"
    else:
        fits = math.prod(labels.shape[:axis]) == size(labels) == rows
        wanted = f"{rows} class numbers"
    if not fits:
        raise OperatorError("labels", f"has shape {labels.shape}; {wanted} are needed")
    if weights is not None and size(weights) != rows:
        raise OperatorError(
            "weight_tensor", f"has shape {weights.shape}; {rows} weights are needed"
        )
    return rows, classes


def _row_weights(weights: Array | None, rows: int, op: OpView) -> tuple[Array, float]:
    """Weight of each row and 1 / (sum of weights); 0 for no rows and for weights that cancel."""
    each = np.ones(rows) if weights is None else weights.reshape(rows).astype(np.float64)
    total = rows if op.args.average_by_batch_size else float(each.sum())
    return each, 1 / total if total else 0.0


def _check_probabilities(labels: Array) -> None:
    negative = np.argwhere(~(labels >= 0))
    if negative.size:
        row, column = map(int, negative[0])
        problem = f"holds {labels[row, column]} at row {row}; probabilities are not negative"
        raise OperatorError("labels", problem)
    wrong = np.flatnonzero(~(np.abs(labels.sum(axis=1) - 1) < 1e-5))
    if wrong.size:
        row = int(wrong[0])
        raise OperatorError("labels", f"sums to {labels[row].sum()} in row {row}; 1 is needed")


_LOSS_ARGS = {
    "label_prob": Bool(False),
    "axis": Int(1),
    "scale": Float(1.0, min=0.0),
    "average_by_batch_size": Bool(False),
    "order": Str("NCHW", choices=("NCHW", "NHWC")),
}


@operator(
    "SoftmaxWithLoss",
    inputs="logits labels weight_tensor?",
    outputs="softmax loss",
    args=_LOSS_ARGS,
    types={"logits": FLOAT, "labels": INT32 | FLOAT, "weight_tensor": FLOAT},
)
class SoftmaxWithLoss:
    """softmax = Softmax(logits); loss = scale * sum(w[i] * l[i]) / sum(w[i]).

    l[i] = -log(softmax[i, labels[i]]), computed without loss of precision; with label_prob,
    l[i] = -sum_j(labels[i, j] * log(max(softmax[i, j], 1e-20))).

    logits: float; the dimensions before `axis` are N rows, the others D classes (all of them are
        normalized together, as for Softmax).
    labels: int32 with N elements, 0 <= label < D; with label_prob=1 float with N rows of D
        probabilities that sum to 1 within 1e-5.
    weight_tensor: float with N weights; 1 each when left out.
    softmax: float with the shape of logits.  loss: float scalar, shape (), in nats; 0 when there
        are no rows or the weights sum to 0.
    average_by_batch_size: the sum is divided by N instead of by the sum of the weights.
    order is accepted and has no effect.
    """

    def shape(
        logits: Spec, labels: Spec, weight_tensor: Spec | None, op: OpView
    ) -> tuple[Spec, Spec]:
        _loss_sizes(logits, labels, weight_tensor, op)
        _check_label_type(labels, op)
        return logits, Spec((), logits.dtype)

    def reference(
        logits: Array, labels: Array, weight_tensor: Array | None, op: OpView
    ) -> tuple[Array, Array]:
        axis = canonical_axis(op.args.axis, logits.ndim)
        rows, classes = split_at(logits.shape, axis)
        x = logits.reshape(rows, classes).astype(np.float64)
        logs = x
        if x.size:
            with np.errstate(invalid="ignore"):
                x = x - x.max(axis=1, keepdims=True)
            logs = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
        if op.args.label_prob:
            probabilities = labels.reshape(rows, classes).astype(np.float64)
            _check_probabilities(probabilities)
            losses = -(probabilities * np.maximum(logs, np.log(_SMALLEST))).sum(axis=1)
        else:
            check_labels("labels", labels, classes)
            losses = -logs[np.arange(rows), labels.reshape(-1)]
        weights, inverse = _row_weights(weight_tensor, rows, op)
        loss = op.args.scale * (losses * weights).sum() * inverse if inverse else 0.0
        softmax = np.exp(logs).astype(logits.dtype).reshape(logits.shape)
        return softmax, np.asarray(loss, dtype=logits.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make(
            "SoftmaxWithLossGradient",
            [*op.inputs, op.output(0), op.grad(1)],
            [op.input_grad(0)],
        )


def _check_label_type(labels: Spec, op: OpView) -> None:
    wanted = FLOAT if op.args.label_prob else INT32
    if labels.dtype not in wanted:
        problem = f"is {labels.dtype}; with label_prob={int(op.args.label_prob)} needed is "
        raise OperatorError("labels", problem + str(*wanted))


@operator(
    "SoftmaxWithLossGradient",
    inputs="logits labels weight_tensor_or_softmax softmax_or_loss_grad loss_grad?",
    outputs="logits_grad",
    args=_LOSS_ARGS,
    types={
        "logits": FLOAT,
        "labels": INT32 | FLOAT,
        "weight_tensor_or_softmax": FLOAT,
        "softmax_or_loss_grad": FLOAT,
        "loss_grad": FLOAT,
    },
)
class SoftmaxWithLossGradient:
    """logits_grad = (softmax - target) * w[i] / sum(w) * scale * loss_grad.

    target: 1 at the label and 0 elsewhere, or the given probabilities.  The gradient of
    SoftmaxWithLoss with respect to logits; a gradient of its output softmax is not counted.

    Inputs: logits, labels, weight_tensor (only if SoftmaxWithLoss had it), softmax, loss_grad;
    loss_grad is a float with one element.
    logits_grad: float with the shape of logits.
    """

    def shape(
        logits: Spec,
        labels: Spec,
        weight_tensor_or_softmax: Spec,
        softmax_or_loss_grad: Spec,
        loss_grad: Spec | None,
        op: OpView,
    ) -> Spec:
        weights, softmax, grad, names = gradient_inputs(
            weight_tensor_or_softmax, softmax_or_loss_grad, loss_grad
        )
        _loss_sizes(logits, labels, weights, op)
        _check_label_type(labels, op)
        if softmax.shape != logits.shape:
            raise OperatorError(names[0], f"has shape {softmax.shape}; logits has {logits.shape}")
        require_single(names[1], grad)
        return logits

    def reference(
        logits: Array,
        labels: Array,
        weight_tensor_or_softmax: Array,
        softmax_or_loss_grad: Array,
        loss_grad: Array | None,
        op: OpView,
    ) -> Array:
        weights, softmax, grad, _ = gradient_inputs(
            weight_tensor_or_softmax, softmax_or_loss_grad, loss_grad
        )
        rows, classes = split_at(logits.shape, canonical_axis(op.args.axis, logits.ndim))
        if op.args.label_prob:
            target = labels.reshape(rows, classes).astype(np.float64)
            _check_probabilities(target)
        else:
            check_labels("labels", labels, classes)
            target = np.zeros((rows, classes))
            target[np.arange(rows), labels.reshape(-1)] = 1
        each, inverse = _row_weights(weights, rows, op)
        factor = op.args.scale * inverse * float(grad.reshape(()))
        difference = softmax.reshape(rows, classes).astype(np.float64) - target
        return (difference * each[:, None] * factor).astype(logits.dtype).reshape(logits.shape)


def gradient_inputs(third: Any, fourth: Any, fifth: Any) -> tuple[Any, Any, Any, tuple[str, str]]:
    """Weights or None, softmax, gradient of the loss; and the declared names of the last two."""
    if fifth is None:
        return None, third, fourth, ("weight_tensor_or_softmax", "softmax_or_loss_grad")
    return third, fourth, fifth, ("softmax_or_loss_grad", "loss_grad")


@operator(
    "Accuracy",
    inputs="predictions labels",
    outputs="accuracy",
    args={"top_k": Int(1, min=1)},
    types={"predictions": FLOAT, "labels": INT32},
)
class Accuracy:
    """The share of rows whose label is among the top_k largest predictions.

    Of equal predictions the one with the lower class number counts as larger.  No prediction is
    larger than NaN: a row whose label has the prediction NaN counts as right, as in the original,
    so an accuracy of 1 may also mean that training has failed.

    predictions: float (N, D).  labels: int32 (N,), 0 <= label < D.
    accuracy: float scalar, shape (); NaN when there are no rows.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(predictions: Spec, labels: Spec) -> Spec:
        require_rank("predictions", predictions, 2)
        if labels.shape != predictions.shape[:1]:
            rows = predictions.shape[0]
            raise OperatorError("labels", f"has shape {labels.shape}; ({rows},) is needed")
        return Spec((), predictions.dtype)

    def reference(predictions: Array, labels: Array, op: OpView) -> Array:
        rows, classes = predictions.shape
        check_labels("labels", labels, classes)
        own = predictions[np.arange(rows), labels][:, None]
        before = np.arange(classes)[None, :] < labels[:, None]
        ahead = ((predictions > own) | ((predictions == own) & before)).sum(axis=1)
        correct = np.count_nonzero(ahead < op.args.top_k)
        return np.asarray(correct / rows if rows else np.nan, dtype=predictions.dtype)
