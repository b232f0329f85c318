"""FTRL-Proximal, which makes weights exactly 0."""

from __future__ import annotations

from typing import Any

from caffe2.graph.net import Net
from caffe2.nn.parameters import ParameterInfo
from caffe2.ops.declaration import GradientSlice
from caffe2.train.optimizer import Optimizer, dense_gradient, gradient_of


class FtrlOptimizer(Optimizer):
    """FTRL; see the operator of this name.  alpha is the learning rate, without a policy."""

    def __init__(
        self,
        alpha: float = 0.01,
        beta: float = 1e-4,
        lambda1: float = 0,
        lambda2: float = 0,
        sparse_dedup_aggregator: str | None = None,
        engine: str = "",
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.beta = beta
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.sparse_dedup_aggregator = sparse_dedup_aggregator
        self.engine = engine

    def _arguments(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "alpha": self.alpha,
            "beta": self.beta,
            "lambda1": self.lambda1,
            "lambda2": self.lambda2,
        }

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, gradient_of(param_info)
        if self.alpha <= 0:
            return
        self._refuse_multiplier()
        sums = self._state(param_init_net, param, "_ftrl_nz", extra_shape=[2])
        if isinstance(grad, GradientSlice):
            grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
            net.SparseFtrl(
                [param, sums, grad.indices, grad.values], [param, sums], **self._arguments()
            )
        else:
            net.Ftrl([param, sums, grad], [param, sums], **self._arguments())

    def _refuse_multiplier(self) -> None:
        if self._lr_multiplier is not None:
            raise ValueError(f"{type(self).__name__} has no learning rate that can be multiplied")

    def scale_learning_rate(self, scale: float) -> None:
        """Multiplies the learning rate of what is built from here on."""
        self.alpha *= scale


class GFtrlOptimizer(FtrlOptimizer):
    """Group FTRL, which makes all weights of an input 0 together; see the operator GFtrl.  Dense
    gradients only."""

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, dense_gradient(param_info)
        if self.alpha <= 0:
            return
        self._refuse_multiplier()
        sums = self._state(param_init_net, param, "_gftrl_nz", extra_shape=[2])
        net.GFtrl([param, sums, grad], [param, sums], **self._arguments())
