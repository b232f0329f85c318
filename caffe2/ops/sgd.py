# mypy: disable-error-code="misc, no-any-return"
"""Training by gradient descent: iteration counters and momentum."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import INT64_MAX, Bool, Float, OperatorError
from caffe2.ops.datatypes import FLOAT, INT64, INTS
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    NativeOnly,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_same_shape, require_same_size, require_single
from caffe2.ops.updates import each_row, like, require_rows, wide


def _next(iter: Array) -> Array:
    count = int(iter.reshape(()))
    if not 0 <= count < INT64_MAX:
        raise OperatorError("iter", f"is {count}; allowed is 0 <= iter < {INT64_MAX}")
    return iter.astype(np.int64) + 1


@operator(
    "Iter",
    inputs="iter?",
    outputs="output",
    types={"iter": INTS},
    enforced_inplace=[(0, 0)],
    kind="stateful",
)
class Iter:
    """Adds 1 to a counter of iterations, in place.

    iter, output: one blob, int64 with one element, not negative.  A counter of int32, as old
    scripts feed it, becomes one of int64.  Without an input the counter is
    the output blob, which is made with 1 when it does not exist; only the C++ kernel does this,
    as a NumPy body does not see the blobs it writes.
    """

    gradient = NO_GRADIENT

    def shape(iter: Spec | None) -> Spec:
        if iter is None:
            return Spec((1,), np.dtype(np.int64))
        require_single("iter", iter)
        return Spec(iter.shape, np.dtype(np.int64))

    def reference(iter: Array | None) -> Array:
        if iter is None:
            raise OperatorError(
                "", "counts in its output blob when there is no input; its NumPy body cannot"
            )
        return _next(iter)


@operator(
    "AccumulateStats",
    inputs="iter",
    outputs="output",
    types={"iter": INT64},
    enforced_inplace=[(0, 0)],
    kind="stateful",
)
class AccumulateStats:
    """Iter by another name: the count of steps that the correction of Adam needs.  The original has
    no such operator.

    iter, output: one blob, int64 with one element, not negative.
    """

    gradient = NO_GRADIENT

    def shape(iter: Spec) -> Spec:
        require_single("iter", iter)
        return iter

    def reference(iter: Array) -> Array:
        return _next(iter)


@operator("CreateMutex", inputs="", outputs="mutex_ptr", kind="stateful")
class CreateMutex:
    """Makes a mutex, which AtomicIter takes.  mutex_ptr: a blob that holds no tensor."""

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("a mutex is no tensor")

    def shape() -> None:
        return None


@operator(
    "AtomicIter",
    inputs="mutex iter",
    outputs="output",
    enforced_inplace=[(1, 0)],
    kind="stateful",
    types={"iter": INT64},
)
class AtomicIter:
    """Iter under a mutex: adds 1 to the counter; several threads may do so at once.

    mutex: made by CreateMutex.  iter, output: one blob, int64 with one element, not negative.
    """

    gradient = NO_GRADIENT
    reference = NativeOnly("a mutex is no tensor")

    def shape(mutex: Spec, iter: Spec) -> Spec:
        require_single("iter", iter)
        return iter


_MOMENTUM_ARGS = {"momentum": Float(0.0), "nesterov": Bool(False)}


def _check_momentum(grad: Spec, moment: Spec, lr: Spec) -> None:
    require_same_size("moment", moment, "grad", grad)
    require_single("lr", lr)


def _momentum_step(grad: Array, moment: Array, lr: Array, op: OpView) -> tuple[Array, Array]:
    """The step to subtract and the new momentum, in float64."""
    old = moment.astype(np.float64)
    new = op.args.momentum * old + float(lr.reshape(())) * grad.reshape(old.shape)
    step = (1 + op.args.momentum) * new - op.args.momentum * old if op.args.nesterov else new
    return step, new


@operator(
    "MomentumSGD",
    inputs="grad moment lr",
    outputs="output_grad output_moment",
    args=_MOMENTUM_ARGS,
    types={"grad": FLOAT, "moment": FLOAT, "lr": FLOAT},
    inplace=[(0, 0), (1, 1)],
)
class MomentumSGD:
    """output_moment = momentum * moment + lr * grad; output_grad = the step to subtract.

    The step is output_moment or, with nesterov=1,
    (1 + momentum) * output_moment - momentum * moment (Sutskever et al., "On the importance of
    initialization and momentum in deep learning", 2013).

    grad, moment: floats with equally many elements.  lr: float with one element.
    output_grad, output_moment: floats with the shapes of grad and moment.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(grad: Spec, moment: Spec, lr: Spec) -> tuple[Spec, Spec]:
        _check_momentum(grad, moment, lr)
        return grad, moment

    def reference(grad: Array, moment: Array, lr: Array, op: OpView) -> tuple[Array, Array]:
        step, new = _momentum_step(grad, moment, lr, op)
        return step.reshape(grad.shape).astype(grad.dtype), new.astype(moment.dtype)


@operator(
    "MomentumSGDUpdate",
    inputs="grad moment lr param",
    outputs="output_grad output_moment output_param",
    args=_MOMENTUM_ARGS,
    types={"grad": FLOAT, "moment": FLOAT, "lr": FLOAT, "param": FLOAT},
    inplace=[(0, 0), (1, 1), (3, 2)],
)
class MomentumSGDUpdate:
    """MomentumSGD, and output_param = param - output_grad.

    grad, moment, lr, arguments: as for MomentumSGD.  param: float with as many elements as grad.
    output_param: float with the shape of param.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(grad: Spec, moment: Spec, lr: Spec, param: Spec) -> tuple[Spec, Spec, Spec]:
        _check_momentum(grad, moment, lr)
        require_same_size("param", param, "grad", grad)
        return grad, moment, param

    def reference(
        grad: Array, moment: Array, lr: Array, param: Array, op: OpView
    ) -> tuple[Array, Array, Array]:
        step, new = _momentum_step(grad, moment, lr, op)
        moved = param.astype(np.float64) - step.reshape(param.shape)
        return (
            step.reshape(grad.shape).astype(grad.dtype),
            new.astype(moment.dtype),
            moved.astype(param.dtype),
        )


@operator(
    "SparseMomentumSGDUpdate",
    inputs="grad moment lr param indices",
    outputs="output_grad output_moment output_param",
    args=_MOMENTUM_ARGS,
    types={"grad": FLOAT, "moment": FLOAT, "lr": FLOAT, "param": FLOAT, "indices": INTS},
    inplace=[(0, 0)],
    enforced_inplace=[(1, 1), (3, 2)],
    kind="stateful",
)
class SparseMomentumSGDUpdate:
    """MomentumSGDUpdate for those rows of param that have a gradient; the others stay as they are,
    and so does their momentum.

    moment, param: floats of one shape, changed in place.  indices: int32 or int64 of any shape, the
    rows; one that comes twice is updated twice, in order.  grad: float, a row for each index.
    lr: float with one element.  output_grad: the steps, in the shape of grad.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        grad: Spec, moment: Spec, lr: Spec, param: Spec, indices: Spec
    ) -> tuple[Spec, Spec, Spec]:
        require_rows(param, indices, grad)
        require_same_shape("moment", moment, "param", param)
        require_single("lr", lr)
        return grad, moment, param

    def reference(
        grad: Array, moment: Array, lr: Array, param: Array, indices: Array, op: OpView
    ) -> tuple[Array, Array, Array]:
        steps, m, p = wide(grad, moment, param)
        by_row = steps.reshape(indices.size, *param.shape[1:])

        def rule(place: int, row: int, g: Array) -> None:
            by_row[place], m[row] = _momentum_step(g, m[row], lr, op)
            p[row] -= by_row[place]

        each_row(param, indices, grad, rule)
        return like(steps, grad), like(m, moment), like(p, param)
