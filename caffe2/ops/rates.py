# mypy: disable-error-code="misc, no-any-return"
"""What changes learning rates, gradients and weights besides the rules of optimizers."""

from __future__ import annotations

import math

import numpy as np

from caffe2.ops.arguments import INT64_MAX, Bool, Float, Int, OperatorError
from caffe2.ops.datatypes import FLOAT, INT64, INTS
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_same_size, require_single
from caffe2.ops.updates import (
    check_rows,
    like,
    numbers,
    require_rows,
    require_scalars,
    scalar,
    step_number,
    wide,
)


@operator(
    "Lars",
    inputs="X dX wd trust lr_max",
    outputs="lr_rescaled",
    args={"offset": Float(0.5), "lr_min": Float(0.0)},
    types=dict.fromkeys(("X", "dX", "wd", "trust", "lr_max"), FLOAT),
)
class Lars:
    """The learning rate of one layer by LARS (You, Gitman and Ginsburg, "Large Batch Training of
    Convolutional Networks", 2017).

    lr_rescaled = trust / (|dX| / |X| + wd + offset), at least lr_min and at most lr_max; 1 takes
    the place of the quotient when X is zero

    X, dX: floats with equally many elements, the parameter and its gradient.  wd (the weight
    decay), trust, lr_max: floats with one element.  lr_rescaled: float, shape (1,).
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(X: Spec, dX: Spec, wd: Spec, trust: Spec, lr_max: Spec) -> Spec:
        require_same_size("dX", dX, "X", X)
        require_scalars(wd=wd, trust=trust, lr_max=lr_max)
        return Spec((1,), X.dtype)

    def reference(X: Array, dX: Array, wd: Array, trust: Array, lr_max: Array, op: OpView) -> Array:
        offset, least = numbers(op.args, "offset", "lr_min")
        x, dx = (float(np.linalg.norm(a.reshape(-1))) for a in wide(X, dX))
        rate = 1.0
        if x > 0:
            with np.errstate(divide="ignore", invalid="ignore"):
                rate = float(np.float64(scalar(trust)) / (dx / x + scalar(wd) + offset))
        return np.array([min(max(rate, least), scalar(lr_max))], dtype=X.dtype)


@operator(
    "LearningRateAdaption",
    inputs="lr grad effgrad",
    outputs="output_lr",
    args={"lr_alpha": Float(0.01), "normalized_lr_adaption": Bool(True)},
    types={"lr": FLOAT, "grad": FLOAT, "effgrad": FLOAT},
    inplace=[(0, 0)],
)
class LearningRateAdaption:
    """A learning rate that is learned as well (Baydin et al., "Online Learning Rate Adaptation with
    Hypergradient Descent", 2018).

    output_lr = lr * (1 - lr_alpha * grad . effgrad / (|grad| |effgrad|)), or lr when one is zero;
    with normalized_lr_adaption=0: lr - lr_alpha * grad . effgrad

    lr: float with one element.  grad: float, the gradient now; effgrad: as many floats, the last
    step before it was multiplied by the learning rate.  output_lr has the shape of lr.
    """

    gradient = NO_GRADIENT

    def shape(lr: Spec, grad: Spec, effgrad: Spec) -> Spec:
        require_same_size("effgrad", effgrad, "grad", grad)
        require_single("lr", lr)
        return lr

    def reference(lr: Array, grad: Array, effgrad: Array, op: OpView) -> Array:
        (alpha,) = numbers(op.args, "lr_alpha")
        g, e = (a.reshape(-1) for a in wide(grad, effgrad))
        dot = float(g @ e)
        if not op.args.normalized_lr_adaption:
            return like(np.float64(scalar(lr) - alpha * dot), lr)
        norms = math.sqrt(float(g @ g)) * math.sqrt(float(e @ e))
        cosine = dot / norms if norms > 0 else 0.0
        return like(np.float64(scalar(lr) * (1 - alpha * cosine)), lr)


@operator(
    "WeightScale",
    inputs="w iter",
    outputs="nw",
    args={
        "stepsize": Int(INT64_MAX, min=1, max=INT64_MAX),
        "upper_bound_iter": Int(INT64_MAX, min=-INT64_MAX, max=INT64_MAX),
        "scale": Float(1.0),
    },
    types={"w": FLOAT, "iter": INT64},
    inplace=[(0, 0)],
)
class WeightScale:
    """nw = scale * w each time that iter + 1 is a multiple of stepsize and below upper_bound_iter;
    otherwise nw = w.

    w, nw: floats of one shape.  iter: int64 with one element, not negative.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(w: Spec, iter: Spec) -> Spec:
        require_single("iter", iter)
        return w

    def reference(w: Array, iter: Array, op: OpView) -> Array:
        step = step_number(iter)
        due = step % op.args.stepsize == 0 and step < op.args.upper_bound_iter
        return np.float32(op.args.scale) * w if due else w.copy()


@operator(
    "ClipTensorByScaling",
    inputs="input_tensor val additional_threshold?",
    outputs="clipped",
    args={"threshold": Float(required=True, min=2.0**-126)},
    types={"input_tensor": FLOAT, "val": FLOAT, "additional_threshold": FLOAT},
    inplace=[(0, 0)],
)
class ClipTensorByScaling:
    """clipped = input_tensor * t / val when val > t, else input_tensor; t = threshold *
    additional_threshold.

    With val the norm of the tensor, its norm is t afterwards, or what it was below that.

    input_tensor, clipped: floats of one shape.  val: float with one element.  additional_threshold:
    float with one element, 1 when left out.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(input_tensor: Spec, val: Spec, additional_threshold: Spec | None) -> Spec:
        require_single("val", val)
        if additional_threshold is not None:
            require_single("additional_threshold", additional_threshold)
        return input_tensor

    def reference(
        input_tensor: Array, val: Array, additional_threshold: Array | None, op: OpView
    ) -> Array:
        (most,) = numbers(op.args, "threshold")
        if additional_threshold is not None:
            most *= scalar(additional_threshold)
        value = scalar(val)
        return input_tensor * np.float32(most / value) if value > most else input_tensor.copy()


@operator(
    "SparseLpRegularizer",
    inputs="param indices grad?",
    outputs="output_param",
    args={"p": Float(2.0, min=1, max=2), "reg_lambda": Float(1e-5, min=0)},
    types={"param": FLOAT, "indices": INTS, "grad": FLOAT},
    enforced_inplace=[(0, 0)],
    kind="stateful",
)
class SparseLpRegularizer:
    """Makes the rows of param that are named smaller.

    p = 1: each element moves by reg_lambda toward 0 and stops there
    p = 2: each element is multiplied by 1 - reg_lambda

    param: float, changed in place.  indices: int32 or int64 of any shape, the rows; one that comes
    twice is changed twice.  grad: float, not read; a row for each index.
    """

    def shape(param: Spec, indices: Spec, grad: Spec | None, op: OpView) -> Spec:
        if op.args.p not in (1.0, 2.0):
            raise OperatorError("argument 'p'", f"is {op.args.p}; allowed are 1 and 2")
        if not param.shape:
            raise OperatorError("param", "is a scalar; rows are needed")
        if grad is not None:
            require_rows(param, indices, grad)
        return param

    def reference(param: Array, indices: Array, grad: Array | None, op: OpView) -> Array:
        (strength,) = numbers(op.args, "reg_lambda")
        check_rows(indices, param.shape[0])
        (p,) = wide(param)
        for row in indices.reshape(-1):
            if op.args.p == 1:
                p[row] = np.sign(p[row]) * np.maximum(np.abs(p[row]) - strength, 0)
            else:
                p[row] *= 1 - strength
        return like(p, param)
