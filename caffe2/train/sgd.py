"""Stochastic gradient descent, with momentum or without, in several precisions."""

from __future__ import annotations

from typing import Any

from caffe2.graph.datatype import DataType
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.nn.parameters import ParameterInfo
from caffe2.ops.declaration import GradientSlice
from caffe2.train.optimizer import Optimizer, dense_gradient, gradient_of


class SgdOptimizer(Optimizer):
    """w -= lr * g; or with momentum m: v = m v + lr * g, then w -= v, or with `nesterov`
    w -= (1 + m) v - m v_old.

    base_learning_rate       the learning rate at first; with 0 the parameters stay as they are
    policy                   how it changes: "fixed", "step", "exp", "inv", ...; further arguments
                             (stepsize, gamma, power, ...) are those of the operator LearningRate
    momentum                 0 for none
    sparse_dedup_aggregator  "sum" or "mean": what becomes of rows that come twice in a sparse
                             gradient; without it they are applied one after the other
    lars                     the offset of LARS (see the operator Lars), for dense parameters
    """

    def __init__(
        self,
        base_learning_rate: float = 0.01,
        policy: str = "fixed",
        momentum: float = 0.0,
        nesterov: bool = True,
        sparse_dedup_aggregator: str | None = None,
        lars: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if base_learning_rate < 0:
            raise UsageError(f"Expect positive base learning rate, got {base_learning_rate}")
        self.base_learning_rate = base_learning_rate
        self.policy = policy
        self.momentum = momentum
        self.nesterov = nesterov
        self.sparse_dedup_aggregator = sparse_dedup_aggregator
        self.lars = lars
        self.init_kwargs = kwargs

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, gradient_of(param_info)
        if self.base_learning_rate == 0:
            return
        self._use_lars(net, param_init_net, param_info, self.lars)
        # MomentumSGDUpdate subtracts what WeightedSum adds.
        sign = -1 if self.momentum else 1
        rate, _ = self.build_lr(
            net,
            param_init_net,
            base_learning_rate=sign * self.base_learning_rate,
            policy=self.policy,
            **self.init_kwargs,
        )
        grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
        one = self._constant(param_init_net, "ONE", 1.0)
        if one not in self._aux_params.shared:
            self._aux_params.shared.append(one)
        if self.momentum:
            self._momentum_update(net, param_init_net, param, grad, rate, param + "_momentum")
            return
        if isinstance(grad, GradientSlice):
            net.ScatterWeightedSum([param, one, grad.indices, grad.values, rate], param)
        else:
            net.WeightedSum([param, one, grad, rate], param)

    def _momentum_update(
        self, net: Net, param_init_net: Net, param: Any, grad: Any, rate: Any, name: Any
    ) -> None:
        velocity = param_init_net.ConstantFill(param, name, value=0.0)
        self._aux_params.local.append(velocity)
        args = {"momentum": float(self.momentum), "nesterov": int(self.nesterov)}
        if isinstance(grad, GradientSlice):
            net.SparseMomentumSGDUpdate(
                [grad.values, velocity, rate, param, grad.indices],
                [grad.values, velocity, param],
                **args,
            )
        else:
            net.MomentumSGDUpdate([grad, velocity, rate, param], [grad, velocity, param], **args)

    def scale_learning_rate(self, scale: float) -> None:
        """Multiplies the learning rate of what is built from here on."""
        self.base_learning_rate *= scale


class MultiPrecisionSgdOptimizer(SgdOptimizer):
    """SgdOptimizer with momentum that updates a float32 copy of float16 parameters, which the
    initializer PseudoFP16Initializer has made; parameters without a copy are updated themselves."""

    def __init__(
        self,
        base_learning_rate: float = 0.1,
        momentum: float = 0.0,
        policy: str = "fixed",
        nesterov: bool = True,
        sparse_dedup_aggregator: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            base_learning_rate=base_learning_rate,
            policy=policy,
            momentum=momentum,
            nesterov=nesterov,
            sparse_dedup_aggregator=sparse_dedup_aggregator,
            **kwargs,
        )

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        copies = param_info.blob_copy or {}
        if DataType.FLOAT not in copies:
            super()._run(net, param_init_net, param_info)
            return
        param, grad = copies[DataType.FLOAT], dense_gradient(param_info)
        if self.base_learning_rate == 0:
            return
        rate, _ = self.build_lr(
            net,
            param_init_net,
            base_learning_rate=-self.base_learning_rate,
            policy=self.policy,
            **self.init_kwargs,
        )
        wide = net.HalfToFloat(grad, grad + "_fp32")
        momentum = param_info.blob + "_momentum"
        self._momentum_update(net, param_init_net, param, wide, rate, momentum)
        net.FloatToHalf(param, param_info.blob)


class FP16SgdOptimizer(SgdOptimizer):
    """SgdOptimizer with momentum and weight decay for float16 parameters, whose momentum is float16
    as well; float32 parameters have float32 momentum.  Dense gradients only."""

    def __init__(
        self,
        base_learning_rate: float = 0.1,
        momentum: float = 0.0,
        policy: str = "fixed",
        nesterov: bool = True,
        weight_decay: float = 0.0001,
        sparse_dedup_aggregator: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            base_learning_rate=base_learning_rate,
            policy=policy,
            momentum=momentum,
            nesterov=nesterov,
            sparse_dedup_aggregator=sparse_dedup_aggregator,
            **kwargs,
        )
        self.weight_decay = weight_decay

    def _run(
        self,
        net: Net,
        param_init_net: Net,
        param_info: ParameterInfo,
    ) -> None:
        param, grad = param_info.blob, dense_gradient(param_info)
        if self.base_learning_rate == 0:
            return
        rate, _ = self.build_lr(
            net,
            param_init_net,
            base_learning_rate=-self.base_learning_rate,
            policy=self.policy,
            **self.init_kwargs,
        )
        # Which of the two copies of a parameter there is has 32 bits, and which has 16.
        copies = param_info.blob_copy or {}
        half = copies.get(DataType.FLOAT16, param)
        full = copies.get(DataType.FLOAT, param)
        wide = param_init_net.ConstantFill(full, half + "_momentum_fp32", value=0.0)
        narrow = param_init_net.FloatToHalf(wide, half + "_momentum")
        self._aux_params.local.append(narrow)
        kind, velocity, param = "FP32MomentumSGDUpdate", wide, full
        if copies:
            kind, velocity, param = "FP16MomentumSGDUpdate", narrow, half
        getattr(net, kind)(
            [grad, velocity, rate, param],
            [grad, velocity, param],
            momentum=float(self.momentum),
            nesterov=int(self.nesterov),
            weight_decay=float(self.weight_decay),
        )
