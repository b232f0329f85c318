"""Stochastic gradient descent, with momentum or without."""

from __future__ import annotations

from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import ParameterInfo
from caffe2.train.optimizer import Optimizer, dense_gradient


class SgdOptimizer(Optimizer):
    """w -= lr * g; or with momentum m: v = m v + lr * g, then w -= v, or with `nesterov`
    w -= (1 + m) v - m v_old.

    base_learning_rate  the learning rate at first; with 0 the parameters stay as they are
    policy              how it changes: "fixed", "step", "exp", "inv", ...; further arguments
                        (stepsize, gamma, power, ...) are those of the operator LearningRate
    momentum            0 for none
    """

    def __init__(
        self,
        base_learning_rate: float = 0.01,
        policy: str = "fixed",
        momentum: float = 0.0,
        nesterov: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if base_learning_rate < 0:
            raise UsageError(f"Expect positive base learning rate, got {base_learning_rate}")
        self.base_learning_rate = base_learning_rate
        self.policy = policy
        self.momentum = momentum
        self.nesterov = nesterov
        self.init_kwargs = kwargs

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, dense_gradient(param_info)
        if self.base_learning_rate == 0:
            return
        # MomentumSGDUpdate subtracts what WeightedSum adds.
        sign = -1 if self.momentum else 1
        rate, _ = self.build_lr(
            net,
            param_init_net,
            base_learning_rate=sign * self.base_learning_rate,
            policy=self.policy,
            **self.init_kwargs,
        )
        if not self.momentum:
            one = self._constant(param_init_net, "ONE", 1.0)
            net.WeightedSum([param, one, grad, rate], param)
            return
        velocity = param_init_net.ConstantFill(param, param + "_momentum", value=0.0)
        self._aux_params.local.append(velocity)
        net.MomentumSGDUpdate(
            [grad, velocity, rate, param],
            [grad, velocity, param],
            momentum=float(self.momentum),
            nesterov=int(self.nesterov),
        )

    def scale_learning_rate(self, scale: float) -> None:
        """Multiplies the learning rate of what is built from here on."""
        self.base_learning_rate *= scale


def build_sgd(model: ModelHelper, base_learning_rate: float, **kwargs: Any) -> SgdOptimizer:
    """Updates every parameter of a model that has a gradient by an SgdOptimizer, which is given
    back.  To be called after AddGradientOperators; the arguments are those of SgdOptimizer."""
    optimizer = SgdOptimizer(base_learning_rate, **kwargs)
    optimizer.build(model)
    return optimizer
