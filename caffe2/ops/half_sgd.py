# mypy: disable-error-code="misc, no-any-return"
"""Momentum with weight decay, for parameters of 16 or 32 bits."""

from __future__ import annotations

from caffe2.ops.arguments import Bool, Float
from caffe2.ops.datatypes import FLOAT, FLOAT16, TypeSet
from caffe2.ops.declaration import Array, OpView, Spec, operator
from caffe2.ops.shapes import require_single
from caffe2.ops.updates import like, numbers, require_state, scalar, wide

_ARGS = {"momentum": Float(0.0), "nesterov": Bool(False), "weight_decay": Float(0.0)}


def _types(values: TypeSet) -> dict[str, TypeSet]:
    return {"grad": values, "moment": values, "lr": FLOAT, "param": values}


def _check(grad: Spec, moment: Spec, lr: Spec, param: Spec) -> tuple[Spec, Spec, Spec]:
    require_state("grad", grad, moment=moment, param=param)
    require_single("lr", lr)
    return grad, moment, param


def _update(
    grad: Array, moment: Array, lr: Array, param: Array, op: OpView
) -> tuple[Array, Array, Array]:
    momentum, decay = numbers(op.args, "momentum", "weight_decay")
    g, m, p = (a.reshape(-1) for a in wide(grad, moment, param))
    new = momentum * m + scalar(lr) * (g + decay * p)
    step = (1 + momentum) * new - momentum * m if op.args.nesterov else new
    return like(step, grad), like(new, moment), like(p - step, param)


@operator(
    "FP16MomentumSGDUpdate",
    inputs="grad moment lr param",
    outputs="output_grad output_moment output_param",
    args=_ARGS,
    types=_types(FLOAT16),
    inplace=[(0, 0), (1, 1), (3, 2)],
)
class FP16MomentumSGDUpdate:
    """MomentumSGDUpdate for float16 parameters: computed in float32, kept in float16.

    The gradient is grad + weight_decay * param.  grad, moment, param: float16 with equally many
    elements.  lr: float with one element.
    """

    def shape(grad: Spec, moment: Spec, lr: Spec, param: Spec) -> tuple[Spec, Spec, Spec]:
        return _check(grad, moment, lr, param)

    def reference(
        grad: Array, moment: Array, lr: Array, param: Array, op: OpView
    ) -> tuple[Array, Array, Array]:
        return _update(grad, moment, lr, param, op)


@operator(
    "FP32MomentumSGDUpdate",
    inputs="grad moment lr param",
    outputs="output_grad output_moment output_param",
    args=_ARGS,
    types=_types(FLOAT),
    inplace=[(0, 0), (1, 1), (3, 2)],
)
class FP32MomentumSGDUpdate:
    """MomentumSGDUpdate with weight decay: the gradient is grad + weight_decay * param.

    grad, moment, param: floats with equally many elements.  lr: float with one element.
    """

    def shape(grad: Spec, moment: Spec, lr: Spec, param: Spec) -> tuple[Spec, Spec, Spec]:
        return _check(grad, moment, lr, param)

    def reference(
        grad: Array, moment: Array, lr: Array, param: Array, op: OpView
    ) -> tuple[Array, Array, Array]:
        return _update(grad, moment, lr, param, op)
