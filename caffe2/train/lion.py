"""Lion, an optimizer that needs one state and knows only the sign of its step."""

from __future__ import annotations

from typing import Any

from caffe2.graph.net import Net
from caffe2.nn.parameters import ParameterInfo
from caffe2.train.optimizer import Optimizer, dense_gradient


class LionOptimizer(Optimizer):
    """Lion; see the operator LionUpdate.  alpha and policy are as for SgdOptimizer.  Dense
    gradients only."""

    def __init__(
        self,
        alpha: float = 1e-4,
        beta1: float = 0.9,
        beta2: float = 0.99,
        weight_decay: float = 0.0,
        policy: str = "fixed",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.beta1 = beta1
        self.beta2 = beta2
        self.weight_decay = weight_decay
        self.policy = policy
        self.init_kwargs = kwargs

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, dense_gradient(param_info)
        rate, _ = self.build_lr(
            net,
            param_init_net,
            base_learning_rate=self.alpha,
            policy=self.policy,
            **self.init_kwargs,
        )
        momentum = self._state(param_init_net, param, "_momentum")
        net.LionUpdate(
            [param, grad, momentum, rate],
            [param, momentum],
            beta1=self.beta1,
            beta2=self.beta2,
            wd=self.weight_decay,
        )

    def scale_learning_rate(self, scale: float) -> None:
        """Multiplies the learning rate of what is built from here on."""
        self.alpha *= scale
