# mypy: disable-error-code="misc, no-any-return"
"""Adagrad and its relatives, for dense and for sparse gradients."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import INT64_MAX, INT64_MIN, Float, Int
from caffe2.ops.datatypes import DOUBLE, FLOAT, INT64, INTS
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_rank, require_same_shape, require_single
from caffe2.ops.updates import (
    check_rows,
    each_row,
    like,
    mean_square,
    numbers,
    require_row_values,
    require_rows,
    require_state,
    scalar,
    wide,
)

_TYPES = dict.fromkeys(("param", "moment", "grad", "lr"), FLOAT)
_SPARSE = {**_TYPES, "indices": INTS}
_EPSILON = Float(1e-5, min=0)
_HALFLIFE = Int(-1, min=INT64_MIN, max=INT64_MAX)


@operator(
    "Adagrad",
    inputs="param moment grad lr",
    outputs="output_param output_moment output_effective_lr? output_update?",
    args={"epsilon": _EPSILON, "decay": Float(1.0), "weight_decay": Float(0.0)},
    types=_TYPES,
    inplace=[(0, 0), (1, 1)],
)
class Adagrad:
    """One step of Adagrad (Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011).

    With g = grad + weight_decay * param:
    output_moment       = decay * moment + g^2
    output_effective_lr = lr / (sqrt(output_moment) + epsilon)
    output_update       = output_effective_lr * g
    output_param        = param + output_update

    param, moment, grad: floats with equally many elements.  lr: float with one element, negative
    to go down.  output_moment has the shape of moment, the other outputs that of param.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(param: Spec, moment: Spec, grad: Spec, lr: Spec) -> tuple[Spec, ...]:
        require_state("grad", grad, param=param, moment=moment)
        require_single("lr", lr)
        return param, moment, param, param

    def reference(
        param: Array, moment: Array, grad: Array, lr: Array, op: OpView
    ) -> tuple[Array, ...]:
        epsilon, decay, weight_decay = numbers(op.args, "epsilon", "decay", "weight_decay")
        p, h, g = (a.reshape(-1) for a in wide(param, moment, grad))
        g = g + weight_decay * p
        h = decay * h + g**2
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = scalar(lr) / (np.sqrt(h) + epsilon)
            update = rate * g
        return like(p + update, param), like(h, moment), like(rate, param), like(update, param)


@operator(
    "SparseAdagrad",
    inputs="param moment indices grad lr",
    outputs="output_param output_moment_1",
    args={"epsilon": _EPSILON, "weight_decay": Float(0.0)},
    types=_SPARSE,
    enforced_inplace=[(0, 0), (1, 1)],
    kind="stateful",
)
class SparseAdagrad:
    """Adagrad for those rows of param that have a gradient.

    param, moment: floats of one shape, changed in place.  indices: int32 or int64 of any shape,
    the rows; one that comes twice is updated twice, in order.  grad: float, a row for each index.
    lr: float with one element, negative to go down.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(param: Spec, moment: Spec, indices: Spec, grad: Spec, lr: Spec) -> tuple[Spec, Spec]:
        require_rows(param, indices, grad)
        require_same_shape("moment", moment, "param", param)
        require_single("lr", lr)
        return param, moment

    def reference(
        param: Array, moment: Array, indices: Array, grad: Array, lr: Array, op: OpView
    ) -> tuple[Array, Array]:
        epsilon, decay = numbers(op.args, "epsilon", "weight_decay")
        rate = scalar(lr)
        p, h = wide(param, moment)

        def rule(place: int, row: int, g: Array) -> None:
            g = g + decay * p[row]
            h[row] += g**2
            with np.errstate(divide="ignore", invalid="ignore"):
                p[row] += rate * g / (np.sqrt(h[row]) + epsilon)

        each_row(param, indices, grad, rule)
        return like(p, param), like(h, moment)


@operator(
    "RowWiseSparseAdagrad",
    inputs="param moment indices grad lr counter?",
    outputs="output_param output_moment_1",
    args={"epsilon": _EPSILON, "weight_decay": Float(0.0), "counter_halflife": _HALFLIFE},
    types={**_SPARSE, "counter": DOUBLE},
    enforced_inplace=[(0, 0), (1, 1)],
    kind="stateful",
)
class RowWiseSparseAdagrad:
    """SparseAdagrad with one moment for each row, the sum of the means of grad^2 in the row.

    moment: float with an element for each row of param.  All else is as for SparseAdagrad.

    counter: double with an element for each row, made by RowWiseCounter.  With it and
    counter_halflife > 0 the weight decay of a row is weight_decay * counter_halflife / counter, so
    that rare rows decay as fast as others; where the counter is 0 it is weight_decay.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec, moment: Spec, indices: Spec, grad: Spec, lr: Spec, counter: Spec | None
    ) -> tuple[Spec, Spec]:
        require_rows(param, indices, grad)
        require_row_values("moment", moment, param)
        require_single("lr", lr)
        if counter is not None:
            require_row_values("counter", counter, param)
        return param, moment

    def reference(
        param: Array,
        moment: Array,
        indices: Array,
        grad: Array,
        lr: Array,
        counter: Array | None,
        op: OpView,
    ) -> tuple[Array, Array]:
        epsilon, decay = numbers(op.args, "epsilon", "weight_decay")
        rate, halflife = scalar(lr), op.args.counter_halflife
        p, h = wide(param, moment)
        h = h.reshape(-1)

        def rule(place: int, row: int, g: Array) -> None:
            seen = 0.0 if counter is None or halflife <= 0 else float(counter.reshape(-1)[row])
            g = g + (decay * halflife / seen if seen > 0 else decay) * p[row]
            h[row] += mean_square(g)
            with np.errstate(divide="ignore", invalid="ignore"):
                p[row] += rate / (np.sqrt(h[row]) + epsilon) * g

        each_row(param, indices, grad, rule)
        return like(p, param), like(h, moment)


@operator(
    "RowWiseCounter",
    inputs="prev_iter update_counter indices iter",
    outputs="output_prev_iter output_update_counter",
    args={"counter_halflife": _HALFLIFE},
    types={"prev_iter": INT64, "update_counter": DOUBLE, "indices": INTS, "iter": INT64},
    enforced_inplace=[(0, 0), (1, 1)],
    kind="stateful",
)
class RowWiseCounter:
    """Counts how often each row is updated; what is long ago counts less.

    For each index, with d = max(iter - prev_iter, 0) of its row:
    output_update_counter = 1 + update_counter * 2^(-d / counter_halflife)
    output_prev_iter      = max(iter, prev_iter)
    With counter_halflife <= 0 (the default) nothing changes.

    prev_iter: int64 and update_counter: double, an element for each row, changed in place.
    indices: int32 or int64, any shape; one that comes twice counts twice.  iter: int64 with one
    element.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        prev_iter: Spec, update_counter: Spec, indices: Spec, iter: Spec
    ) -> tuple[Spec, Spec]:
        require_rank("prev_iter", prev_iter, 1)
        require_same_shape("update_counter", update_counter, "prev_iter", prev_iter)
        require_single("iter", iter)
        return prev_iter, update_counter

    def reference(
        prev_iter: Array, update_counter: Array, indices: Array, iter: Array, op: OpView
    ) -> tuple[Array, Array]:
        halflife, now = op.args.counter_halflife, int(iter.reshape(()))
        last, counter = prev_iter.copy(), update_counter.copy()
        check_rows(indices, last.size)
        for row in indices.reshape(-1) if halflife > 0 else ():
            passed = max(now - int(last[row]), 0)
            counter[row] = 1 + counter[row] * 2 ** (-passed / halflife)
            last[row] = max(now, last[row])
        return last, counter


@operator(
    "Wngrad",
    inputs="param seq_b grad lr",
    outputs="output_param output_seq_b output_effective_lr? output_update?",
    args={"epsilon": _EPSILON},
    types=dict.fromkeys(("param", "seq_b", "grad", "lr"), FLOAT),
    inplace=[(0, 0), (1, 1)],
)
class Wngrad:
    """One step of WNGrad (Wu, Ward and Bottou, "WNGrad: Learn the Learning Rate in Gradient
    Descent", 2018).

    output_effective_lr = lr / (seq_b + epsilon)
    output_update       = output_effective_lr * grad
    output_param        = param + output_update
    output_seq_b        = seq_b + sum(grad^2) / (seq_b + epsilon)

    param, grad: floats with equally many elements.  seq_b, lr: floats with one element; lr is
    negative to go down.  output_effective_lr has the shape of seq_b, output_update that of param.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(param: Spec, seq_b: Spec, grad: Spec, lr: Spec) -> tuple[Spec, ...]:
        require_state("grad", grad, param=param)
        require_single("seq_b", seq_b)
        require_single("lr", lr)
        return param, seq_b, seq_b, param

    def reference(
        param: Array, seq_b: Array, grad: Array, lr: Array, op: OpView
    ) -> tuple[Array, ...]:
        (epsilon,) = numbers(op.args, "epsilon")
        p, b, g = (a.reshape(-1) for a in wide(param, seq_b, grad))
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = scalar(lr) / (b + epsilon)
            b = b + np.sum(g**2) / (b + epsilon)
        update = rate * g
        return like(p + update, param), like(b, seq_b), like(rate, seq_b), like(update, param)


@operator(
    "SparseWngrad",
    inputs="param seq_b indices grad lr",
    outputs="output_param output_seq_b",
    args={"epsilon": _EPSILON},
    types={**dict.fromkeys(("param", "seq_b", "grad", "lr"), FLOAT), "indices": INTS},
    enforced_inplace=[(0, 0), (1, 1)],
    kind="stateful",
)
class SparseWngrad:
    """Wngrad for those rows of param that have a gradient.

    output_seq_b = seq_b + sum(grad^2) / seq_b, without epsilon, as in the original.

    param, indices, grad, lr: as for SparseAdagrad.  seq_b: float with one element.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(param: Spec, seq_b: Spec, indices: Spec, grad: Spec, lr: Spec) -> tuple[Spec, Spec]:
        require_rows(param, indices, grad)
        require_single("seq_b", seq_b)
        require_single("lr", lr)
        return param, seq_b

    def reference(
        param: Array, seq_b: Array, indices: Array, grad: Array, lr: Array, op: OpView
    ) -> tuple[Array, Array]:
        (epsilon,) = numbers(op.args, "epsilon")
        p, b, g = wide(param, seq_b, grad)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = scalar(lr) / (b.reshape(()) + epsilon)
            b = b + np.sum(g**2) / b

        def rule(place: int, row: int, g: Array) -> None:
            p[row] += rate * g

        each_row(param, indices, grad, rule)
        return like(p, param), like(b, seq_b)
