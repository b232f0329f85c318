# mypy: disable-error-code="misc, no-any-return"
"""SpatialSoftmaxWithLoss: a class for each point of a map."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Float, OperatorError, Str
from caffe2.ops.datatypes import FLOAT, INT32
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.loss import gradient_inputs
from caffe2.ops.shapes import require_rank, require_same_shape, require_single

_DONT_CARE = -1  # the label of a point that does not count
_ARGS = {"scale": Float(1.0, min=0.0), "order": Str("NCHW", choices=("NCHW",))}


def _check_shapes(logits: Spec, labels: Spec, weights: Spec | None) -> None:
    require_rank("logits", logits, 4)
    points = (logits.shape[0], *logits.shape[2:])
    for name, spec in (("labels", labels), ("weight_tensor", weights)):
        if spec is not None and spec.shape != points:
            raise OperatorError(name, f"has shape {spec.shape}; {points} is needed")


def _points(labels: Array, weights: Array | None, classes: int) -> tuple[Array, Array, float]:
    """The label of each point (0 for those that do not count), its weight, 1 / sum of weights."""
    cares = labels != _DONT_CARE
    wrong = np.argwhere(cares & ((labels < 0) | (labels >= classes)))
    if wrong.size:
        at = tuple(map(int, wrong[0]))
        problem = f"holds {labels[at]} at {at}; allowed is 0 <= label < {classes}, or {_DONT_CARE}"
        raise OperatorError("labels", problem)
    given = np.ones(labels.shape) if weights is None else weights.astype(np.float64)
    each = np.where(cares, given, 0)
    total = float(each.sum())
    return np.where(cares, labels, 0), each, 1 / total if total > 0 else 0.0


def _log_softmax(logits: Array) -> Array:
    x = logits.astype(np.float64)
    if not x.size:
        return x
    x = x - x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


@operator(
    "SpatialSoftmaxWithLoss",
    inputs="logits labels weight_tensor?",
    outputs="softmax loss",
    args=_ARGS,
    types={"logits": FLOAT, "labels": INT32, "weight_tensor": FLOAT},
)
class SpatialSoftmaxWithLoss:
    """softmax = Softmax over the channels; loss = scale * sum(w * -log(softmax at label)) / sum(w).

    logits: float (N, D, H, W).
    labels: int32 (N, H, W), 0 <= label < D, or -1 for a point that does not count.
    weight_tensor: float (N, H, W); 1 each when left out.
    softmax: float (N, D, H, W).  loss: float scalar, shape (), in nats; 0 when the weights of the
        points that count do not sum to more than 0.

    The original scales the gradient only.
    """

    def shape(logits: Spec, labels: Spec, weight_tensor: Spec | None) -> tuple[Spec, Spec]:
        _check_shapes(logits, labels, weight_tensor)
        return logits, Spec((), logits.dtype)

    def reference(
        logits: Array, labels: Array, weight_tensor: Array | None, op: OpView
    ) -> tuple[Array, Array]:
        label, each, inverse = _points(labels, weight_tensor, logits.shape[1])
        logs = _log_softmax(logits)
        loss = 0.0
        if inverse:
            losses = -np.take_along_axis(logs, label[:, None], axis=1)[:, 0]
            loss = op.args.scale * (losses * each).sum() * inverse
        return np.exp(logs).astype(logits.dtype), np.asarray(loss, dtype=logits.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make(
            "SpatialSoftmaxWithLossGradient",
            [*op.inputs, op.output(0), op.grad(1)],
            [op.input_grad(0)],
        )


@operator(
    "SpatialSoftmaxWithLossGradient",
    inputs="logits labels weight_tensor_or_softmax softmax_or_loss_grad loss_grad?",
    outputs="logits_grad",
    args=_ARGS,
    types={
        "logits": FLOAT,
        "labels": INT32,
        "weight_tensor_or_softmax": FLOAT,
        "softmax_or_loss_grad": FLOAT,
        "loss_grad": FLOAT,
    },
)
class SpatialSoftmaxWithLossGradient:
    """logits_grad = (softmax - (1 at the label, else 0)) * w / sum(w) * scale * loss_grad.

    Inputs: logits, labels, weight_tensor (only if SpatialSoftmaxWithLoss had it), softmax,
    loss_grad; loss_grad is a float with one element.
    logits_grad: float with the shape of logits; 0 at points that do not count.
    """

    def shape(
        logits: Spec,
        labels: Spec,
        weight_tensor_or_softmax: Spec,
        softmax_or_loss_grad: Spec,
        loss_grad: Spec | None,
    ) -> Spec:
        weights, softmax, grad, names = gradient_inputs(
            weight_tensor_or_softmax, softmax_or_loss_grad, loss_grad
        )
        _check_shapes(logits, labels, weights)
        require_same_shape(names[0], softmax, "logits", logits)
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
        classes = logits.shape[1]
        label, each, inverse = _points(labels, weights, classes)
        target = np.arange(classes)[:, None, None] == label[:, None]
        factor = op.args.scale * inverse * float(grad.reshape(()))
        difference = softmax.astype(np.float64) - target
        return (difference * each[:, None] * factor).astype(logits.dtype)
