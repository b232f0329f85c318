# mypy: disable-error-code="misc, no-any-return"
"""Rules of optimizers whose parameters or states take less memory, and SparseMomentumSGD."""

from __future__ import annotations

import numpy as np

from caffe2.ops.adam import BELOW_ONE, correction
from caffe2.ops.arguments import Bool, Float, OperatorError
from caffe2.ops.datatypes import FLOAT, FLOAT16, INT64, INTS, DataType, dtype_of
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_same_shape, require_single, size
from caffe2.ops.updates import (
    each_row,
    like,
    numbers,
    require_rows,
    require_scalars,
    require_state,
    scalar,
    step_number,
    wide,
)

BLOCK = 256  # elements of the momentum with one scale


@operator(
    "AdamFP16",
    inputs="param moment_1 moment_2 grad lr iter",
    outputs="output_param output_moment_1 output_moment_2",
    args={
        "beta1": Float(0.9, min=0, max=BELOW_ONE),
        "beta2": Float(0.999, min=0, max=BELOW_ONE),
        "epsilon": Float(1e-5, min=0),
    },
    types={
        "param": FLOAT16,
        "moment_1": FLOAT,
        "moment_2": FLOAT,
        "grad": FLOAT16,
        "lr": FLOAT,
        "iter": INT64,
    },
    inplace=[(0, 0), (1, 1), (2, 2)],
)
class AdamFP16:
    """Adam for a float16 parameter: computed in float32, rounded at the end.

    param, grad: float16; moment_1, moment_2: float, for a square of a small gradient is 0 in
    float16; equally many elements each.  lr, iter: as for Adam.  The original has no such operator.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec, moment_1: Spec, moment_2: Spec, grad: Spec, lr: Spec, iter: Spec
    ) -> tuple[Spec, ...]:
        require_state("grad", grad, param=param, moment_1=moment_1, moment_2=moment_2)
        require_scalars(lr=lr, iter=iter)
        return param, moment_1, moment_2

    def reference(
        param: Array,
        moment_1: Array,
        moment_2: Array,
        grad: Array,
        lr: Array,
        iter: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        beta1, beta2, epsilon = numbers(op.args, "beta1", "beta2", "epsilon")
        p, m, v, g = (a.reshape(-1) for a in wide(param, moment_1, moment_2, grad))
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        step = correction(beta1, beta2, step_number(iter)) * m / (np.sqrt(v) + epsilon)
        return like(p + scalar(lr) * step, param), like(m, moment_1), like(v, moment_2)


@operator(
    "Fused8BitMomentum",
    inputs="param grad moment scale lr",
    outputs="output_param output_moment output_scale",
    args={"momentum": Float(0.9), "nesterov": Bool(False)},
    types={
        "param": FLOAT,
        "grad": FLOAT,
        "moment": frozenset({dtype_of(DataType.INT8)}),
        "scale": FLOAT,
        "lr": FLOAT,
    },
    inplace=[(0, 0), (2, 1), (3, 2)],
)
class Fused8BitMomentum:
    """MomentumSGDUpdate whose momentum takes 8 bits (after Dettmers et al., "8-bit Optimizers via
    Block-wise Quantization", 2022).

    A block is 256 elements; the momentum is scale of its block * moment.  The new scale is the
    largest |new momentum| of the block / 127, and the new moment is rounded to the nearest number.

    param, grad: floats with equally many elements.  moment: int8, as many.  scale: float, one for
    each block, 0 at first.  lr: float with one element.  The original has no such operator.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(param: Spec, grad: Spec, moment: Spec, scale: Spec, lr: Spec) -> tuple[Spec, ...]:
        require_state("grad", grad, param=param, moment=moment)
        require_single("lr", lr)
        if size(scale) != -(-size(param) // BLOCK):
            problem = f"has shape {scale.shape}; needed is one for each {BLOCK} of param"
            raise OperatorError("scale", f"{problem} {param.shape}")
        return param, moment, scale

    def reference(
        param: Array, grad: Array, moment: Array, scale: Array, lr: Array, op: OpView
    ) -> tuple[Array, ...]:
        (mu,) = (np.float32(n) for n in numbers(op.args, "momentum"))
        p, g = (a.reshape(-1).astype(np.float32) for a in (param, grad))
        rate = np.float32(scalar(lr))
        codes, scales = moment.reshape(-1).copy(), scale.reshape(-1).copy()
        for block in range(scales.size):
            part = slice(block * BLOCK, (block + 1) * BLOCK)
            old = scales[block] * codes[part].astype(np.float32)
            new = mu * old + rate * g[part]
            p[part] -= (1 + mu) * new - mu * old if op.args.nesterov else new
            scales[block] = np.abs(new).max() / np.float32(127)
            if scales[block] > 0:
                codes[part] = np.clip(np.rint(new / scales[block]), -127, 127)
            else:
                codes[part] = 0
        return like(p, param), like(codes, moment), like(scales, scale)


@operator(
    "SparseMomentumSGD",
    inputs="param grad_idx grad_value velocity lr?",
    outputs="output_param output_velocity",
    args={"momentum": Float(0.9), "lr": Float(0.01)},
    types={
        "param": FLOAT,
        "grad_idx": INTS,
        "grad_value": FLOAT,
        "velocity": FLOAT,
        "lr": FLOAT,
    },
    enforced_inplace=[(0, 0), (3, 1)],
    kind="stateful",
)
class SparseMomentumSGD:
    """velocity = momentum * velocity + lr * grad and param -= velocity, for the rows that have a
    gradient; the others stay as they are.

    param, velocity: floats of one shape, changed in place.  grad_idx: int32 or int64 of any shape,
    the rows; one that comes twice is updated twice, in order.  grad_value: float, a row for each
    index.  lr: float with one element; the argument lr when it is left out.  The original has
    SparseMomentumSGDUpdate instead.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec, grad_idx: Spec, grad_value: Spec, velocity: Spec, lr: Spec | None
    ) -> tuple[Spec, Spec]:
        require_rows(param, grad_idx, grad_value)
        require_same_shape("velocity", velocity, "param", param)
        if lr is not None:
            require_single("lr", lr)
        return param, velocity

    def reference(
        param: Array,
        grad_idx: Array,
        grad_value: Array,
        velocity: Array,
        lr: Array | None,
        op: OpView,
    ) -> tuple[Array, Array]:
        momentum, rate = numbers(op.args, "momentum", "lr")
        if lr is not None:
            rate = scalar(lr)
        p, v = wide(param, velocity)

        def rule(place: int, row: int, g: Array) -> None:
            v[row] = momentum * v[row] + rate * g
            p[row] -= v[row]

        each_row(param, grad_idx, grad_value, rule)
        return like(p, param), like(v, velocity)
