# mypy: disable-error-code="misc, no-any-return"
"""Cross-entropies of distributions and of logits, divergence of Bernoulli distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, OperatorError
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_rank, require_same_shape, require_same_size

# Logarithms see no smaller probability than this.
_SMALLEST = 1e-20


def _check_distributions(X: Spec, label: Spec) -> None:
    require_rank("X", X, 2)
    require_same_shape("label", label, "X", X)


@operator(
    "CrossEntropy",
    inputs="X label",
    outputs="Y",
    types={"X": FLOAT, "label": FLOAT},
)
class CrossEntropy:
    """Y[i] = -sum over j of label[i, j] * log(max(X[i, j], 1e-20)).

    X, label: float (N, D), each row a distribution.  Y: float (N,), in nats.
    """

    def shape(X: Spec, label: Spec) -> Spec:
        _check_distributions(X, label)
        return Spec(X.shape[:1], X.dtype)

    def reference(X: Array, label: Array) -> Array:
        logs = np.log(np.maximum(X.astype(np.float64), _SMALLEST))
        return -(label * logs).sum(axis=1).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(0), op.input(1), op.grad(0)]
        return op.make("CrossEntropyGradient", inputs, [op.input_grad(0)])


@operator(
    "CrossEntropyGradient",
    inputs="X label dY",
    outputs="dX",
    types={"X": FLOAT, "label": FLOAT, "dY": FLOAT},
)
class CrossEntropyGradient:
    """dX[i, j] = -label[i, j] * dY[i] / max(X[i, j], 1e-20): the gradient of CrossEntropy.

    X, label: as there.  dY: float (N,).  dX: float (N, D).
    """

    def shape(X: Spec, label: Spec, dY: Spec) -> Spec:
        _check_distributions(X, label)
        if dY.shape != X.shape[:1]:
            raise OperatorError("dY", f"has shape {dY.shape}; {X.shape[:1]} is needed")
        return X

    def reference(X: Array, label: Array, dY: Array) -> Array:
        x = np.maximum(X.astype(np.float64), _SMALLEST)
        return (-label * dY[:, None] / x).astype(X.dtype)


_LOGIT_ARGS = {"log_D_trick": Bool(False), "unjoined_lr_loss": Bool(False)}


def _check_form(op: OpView) -> None:
    if op.args.log_D_trick and op.args.unjoined_lr_loss:
        raise OperatorError("argument 'log_D_trick'", "cannot be used with 'unjoined_lr_loss'")


def _averaged(losses: Array, like: Array) -> Array:
    """The mean over the last dimension; a scalar is its own mean, one of no elements 0."""
    if losses.ndim == 0:
        return losses.astype(like.dtype)
    return (losses.sum(axis=-1) / max(1, losses.shape[-1])).astype(like.dtype)


def _spread(out_grad: Array, logits: Array) -> Array:
    """The gradient of each element, of the gradients of the means."""
    if logits.ndim == 0:
        return out_grad.reshape(()).astype(np.float64)
    count = max(1, logits.shape[-1])
    return out_grad.astype(np.float64).reshape(*logits.shape[:-1], 1) / count


def _check_gradient(g: Spec, logits: Spec) -> None:
    require_same_size("g", g, "the loss", Spec(logits.shape[:-1], logits.dtype))


def _log_sigmoid(x: Array) -> Array:
    return -np.logaddexp(0, -x)


def _sigmoid(x: Array) -> Array:
    return np.exp(_log_sigmoid(x))


@operator(
    "SigmoidCrossEntropyWithLogits",
    inputs="logits targets",
    outputs="xentropy",
    args=_LOGIT_ARGS,
    types={"logits": FLOAT, "targets": FLOAT},
)
class SigmoidCrossEntropyWithLogits:
    """xentropy = the mean over the last dimension of -t log s - (1 - t) log(1 - s), s = sigmoid(x).

    logits x, targets t: float of one shape.  xentropy: float, without the last dimension, in nats.
    log_D_trick: instead -(2 t - 1) log s, the loss of a generator (Goodfellow et al., 2014).
    unjoined_lr_loss: instead -t x - (1 - t) log(1 - s), for positive examples that come a second
        time as negative ones.
    """

    def shape(logits: Spec, targets: Spec, op: OpView) -> Spec:
        _check_form(op)
        require_same_shape("targets", targets, "logits", logits)
        return Spec(logits.shape[:-1], logits.dtype)

    def reference(logits: Array, targets: Array, op: OpView) -> Array:
        x, t = logits.astype(np.float64), targets.astype(np.float64)
        if op.args.log_D_trick:
            losses = -(2 * t - 1) * _log_sigmoid(x)
        elif op.args.unjoined_lr_loss:
            losses = -t * x - (1 - t) * _log_sigmoid(-x)
        else:
            losses = -t * _log_sigmoid(x) - (1 - t) * _log_sigmoid(-x)
        return _averaged(np.asarray(losses), logits)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.grad(0), op.input(0), op.input(1)]
        return op.make("SigmoidCrossEntropyWithLogitsGradient", inputs, [op.input_grad(0)])


@operator(
    "SigmoidCrossEntropyWithLogitsGradient",
    inputs="g logits targets",
    outputs="d_logits",
    args=_LOGIT_ARGS,
    types={"g": FLOAT, "logits": FLOAT, "targets": FLOAT},
)
class SigmoidCrossEntropyWithLogitsGradient:
    """d_logits = g * (sigmoid(x) - t) / D: the gradient of SigmoidCrossEntropyWithLogits.

    With log_D_trick -(2 t - 1) (1 - sigmoid(x)), with unjoined_lr_loss -t + (1 - t) sigmoid(x)
    instead of sigmoid(x) - t.
    g: float, one for each loss.  logits, targets: as there, the last dimension D.  d_logits: float.
    """

    def shape(g: Spec, logits: Spec, targets: Spec, op: OpView) -> Spec:
        _check_form(op)
        require_same_shape("targets", targets, "logits", logits)
        _check_gradient(g, logits)
        return logits

    def reference(g: Array, logits: Array, targets: Array, op: OpView) -> Array:
        x, t = logits.astype(np.float64), targets.astype(np.float64)
        if op.args.log_D_trick:
            slope = -(2 * t - 1) * _sigmoid(-x)
        elif op.args.unjoined_lr_loss:
            slope = -t + (1 - t) * _sigmoid(x)
        else:
            slope = _sigmoid(x) - t
        return np.asarray(_spread(g, logits) * slope).astype(logits.dtype)


@operator(
    "WeightedSigmoidCrossEntropyWithLogits",
    inputs="logits targets weights",
    outputs="xentropy",
    types={"logits": FLOAT, "targets": FLOAT, "weights": FLOAT},
)
class WeightedSigmoidCrossEntropyWithLogits:
    """SigmoidCrossEntropyWithLogits with a weight for each element, before the mean is taken.

    logits, targets, weights: float of one shape.  xentropy: float, without the last dimension.
    """

    def shape(logits: Spec, targets: Spec, weights: Spec) -> Spec:
        require_same_shape("targets", targets, "logits", logits)
        require_same_shape("weights", weights, "logits", logits)
        return Spec(logits.shape[:-1], logits.dtype)

    def reference(logits: Array, targets: Array, weights: Array) -> Array:
        x, t = logits.astype(np.float64), targets.astype(np.float64)
        losses = -t * _log_sigmoid(x) - (1 - t) * _log_sigmoid(-x)
        return _averaged(np.asarray(weights * losses), logits)

    def gradient(op: GradientContext) -> Any:
        name = "WeightedSigmoidCrossEntropyWithLogitsGradient"
        return op.make(name, [op.grad(0), *op.inputs], [op.input_grad(0)])


@operator(
    "WeightedSigmoidCrossEntropyWithLogitsGradient",
    inputs="g logits targets weights",
    outputs="d_logits",
    types={"g": FLOAT, "logits": FLOAT, "targets": FLOAT, "weights": FLOAT},
)
class WeightedSigmoidCrossEntropyWithLogitsGradient:
    """d_logits = g * weights * (sigmoid(logits) - targets) / D.

    The gradient of WeightedSigmoidCrossEntropyWithLogits.  g: float, one for each loss.
    logits, targets, weights: as there, the last dimension D.  d_logits: float.
    """

    def shape(g: Spec, logits: Spec, targets: Spec, weights: Spec) -> Spec:
        require_same_shape("targets", targets, "logits", logits)
        require_same_shape("weights", weights, "logits", logits)
        _check_gradient(g, logits)
        return logits

    def reference(g: Array, logits: Array, targets: Array, weights: Array) -> Array:
        slope = weights * (_sigmoid(logits.astype(np.float64)) - targets)
        return np.asarray(_spread(g, logits) * slope).astype(logits.dtype)


def _entropy(p: Array) -> Array:
    """Of Bernoulli distributions in nats; 0 for what is no probability."""
    inside = np.where((p > _SMALLEST) & (p < 1), p, 0.5)
    entropy = -inside * np.log(inside) - (1 - inside) * np.log1p(-inside)
    return np.where(inside == p, entropy, 0)


def _logit(p: Array) -> Array:
    return np.log(np.maximum(p, _SMALLEST)) - np.log(np.maximum(1 - p, _SMALLEST))


@operator("BernoulliJSD", inputs="X T", outputs="L", types={"X": FLOAT, "T": FLOAT})
class BernoulliJSD:
    """L = H((X + T) / 2) - (H(X) + H(T)) / 2: the Jensen-Shannon divergence of two Bernoulli
    distributions in nats, with H(p) = -p log(p) - (1 - p) log(1 - p) (Lin, 1991).

    X, T: float, probabilities, equally many elements.  L: float with the shape of X.
    """

    def shape(X: Spec, T: Spec) -> Spec:
        require_same_size("T", T, "X", X)
        return X

    def reference(X: Array, T: Array) -> Array:
        x, t = X.astype(np.float64), T.astype(np.float64).reshape(X.shape)
        return (_entropy((x + t) / 2) - (_entropy(x) + _entropy(t)) / 2).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.grad(0), op.input(0), op.input(1)]
        return op.make("BernoulliJSDGradient", inputs, [op.input_grad(0)])


@operator(
    "BernoulliJSDGradient",
    inputs="dL X T",
    outputs="dX",
    types={"dL": FLOAT, "X": FLOAT, "T": FLOAT},
)
class BernoulliJSDGradient:
    """dX = dL * (logit(X) - logit((X + T) / 2)) / 2, with logit(p) = log(p / (1 - p)) and neither
    side of it below 1e-20: the gradient of BernoulliJSD with respect to X.

    dL, X, T: float, equally many elements.  dX: float with the shape of X.
    """

    def shape(dL: Spec, X: Spec, T: Spec) -> Spec:
        require_same_size("dL", dL, "X", X)
        require_same_size("T", T, "X", X)
        return X

    def reference(dL: Array, X: Array, T: Array) -> Array:
        x, t = X.astype(np.float64), T.astype(np.float64).reshape(X.shape)
        slope = (_logit(x) - _logit((x + t) / 2)) / 2
        return (dL.reshape(X.shape) * slope).astype(X.dtype)
