"""Optimizers whose steps depend on the size of the gradients so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from caffe2.graph.datatype import DataType
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.nn.parameters import ParameterInfo
from caffe2.ops.declaration import GradientSlice
from caffe2.train.iteration import BuildUniqueMutexIter
from caffe2.train.optimizer import Optimizer, dense_gradient, gradient_of


class _Adaptive(Optimizer):
    """An optimizer with a learning rate `alpha` that its operator adds, times the step."""

    def __init__(
        self,
        alpha: float,
        policy: str,
        init_kwargs: Mapping[str, Any],
        sparse_dedup_aggregator: str | None = None,
        engine: str = "",
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.policy = policy
        self.sparse_dedup_aggregator = sparse_dedup_aggregator
        self.engine = engine
        self.init_kwargs = dict(init_kwargs)

    def _rate(self, net: Net, param_init_net: Net) -> tuple[Any, Any]:
        return self.build_lr(
            net,
            param_init_net,
            base_learning_rate=self.alpha,
            policy=self.policy,
            **self.init_kwargs,
        )

    def scale_learning_rate(self, scale: float) -> None:
        """Multiplies the learning rate of what is built from here on."""
        self.alpha *= scale


def rows_of(param_init_net: Net, info: ParameterInfo) -> int:
    """How many rows a parameter has; UsageError when its shape is not known."""
    if info.shape is not None:
        return int(info.shape[0])
    for op in reversed(param_init_net.Proto().op):
        if info.name in op.output:
            for arg in op.arg:
                if arg.name == "shape" and arg.ints:
                    return int(arg.ints[0])
            break
    raise UsageError(f"the shape of '{info.name}' is not known; a state for each row needs it")


class AdagradOptimizer(_Adaptive):
    """Adagrad: h = decay * h + g^2, then w -= lr * g / (sqrt(h) + epsilon).

    alpha, policy                   the learning rate; as for SgdOptimizer
    weight_decay                    this times the weight is added to its gradient; not for dense
                                    parameters of one dimension, which are biases
    rowWise                         True: one h for each row, of sparse gradients only
    counter_halflife                > 0: weight decay of a row is divided by how often it is
                                    updated, counted with this half-life; with rowWise
    lars, sparse_dedup_aggregator   as for SgdOptimizer
    output_effective_lr             the blob `<param>_effective_lr` holds lr / (sqrt(h) + epsilon)
    output_effective_lr_and_update  and `<param>_update` the step
    weight_scale                    an object or mapping with stepsize, upper_bound_iter and
                                    weight_scale (see the operator WeightScale); with to_aux the
                                    scaled weight goes to `<param>_scaled` and the weight stays
    """

    def __init__(
        self,
        alpha: float = 0.01,
        epsilon: float = 1e-4,
        decay: float = 1,
        weight_decay: float = 0.0,
        policy: str = "fixed",
        sparse_dedup_aggregator: str | None = None,
        rowWise: bool = False,
        engine: str = "",
        lars: float | None = None,
        output_effective_lr: bool = False,
        output_effective_lr_and_update: bool = False,
        pruning_options: Any = None,
        swa_options: Any = None,
        ema_options: Any = None,
        weight_scale: Any = None,
        counter_halflife: int = -1,
        **kwargs: Any,
    ) -> None:
        super().__init__(alpha, policy, kwargs, sparse_dedup_aggregator, engine)
        refuse_averages(pruning_options=pruning_options, swa_options=swa_options)
        refuse_averages(ema_options=ema_options)
        self.epsilon = epsilon
        self.decay = decay
        self.weight_decay = weight_decay
        self.rowWise = rowWise
        self.lars = lars
        self.output_effective_lr = output_effective_lr
        self.output_effective_lr_and_update = output_effective_lr_and_update
        self.weight_scale = weight_scale
        self.counter_halflife = counter_halflife

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        grad = gradient_of(param_info)
        if self.alpha <= 0:
            return
        sparse = isinstance(grad, GradientSlice)
        if self.rowWise and not sparse:
            raise UsageError(
                f"rowWise=True is for sparse gradients; that of '{param_info.name}' is dense"
            )
        if sparse and self.decay != 1:
            raise UsageError(f"decay is {self.decay}; for sparse gradients it must be 1")
        self._use_lars(net, param_init_net, param_info, self.lars)
        rate, iteration = self._rate(net, param_init_net)
        if sparse:
            self._sparse(net, param_init_net, param_info, rate, iteration)
        else:
            self._dense(net, param_init_net, param_info, rate)
        if self.weight_scale:
            self._scale(net, param_info, iteration)

    def _dense(self, net: Net, param_init_net: Net, info: ParameterInfo, rate: Any) -> None:
        param, moment = info.blob, self._state(param_init_net, info.blob, "_squared_sum")
        outputs = [param, moment]
        if self.output_effective_lr or self.output_effective_lr_and_update:
            outputs.append(param + "_effective_lr")
        if self.output_effective_lr_and_update:
            outputs.append(param + "_update")
        args = {"epsilon": self.epsilon, "decay": float(self.decay), "engine": self.engine}
        if self.weight_decay and not (info.shape is not None and len(info.shape) == 1):
            args["weight_decay"] = self.weight_decay
        net.Adagrad([param, moment, info.grad, rate], outputs, **args)

    def _sparse(
        self, net: Net, param_init_net: Net, info: ParameterInfo, rate: Any, iteration: Any
    ) -> None:
        param, grad = info.blob, self.dedup(net, self.sparse_dedup_aggregator, info.grad)
        args: dict[str, Any] = {"epsilon": self.epsilon, "engine": self.engine}
        if self.weight_decay:
            args["weight_decay"] = self.weight_decay
        if not self.rowWise:
            moment = self._state(param_init_net, param, "_squared_sum")
            net.SparseAdagrad(
                [param, moment, grad.indices, grad.values, rate], [param, moment], **args
            )
            return
        shape = [rows_of(param_init_net, info)]
        moment = self._state(param_init_net, param, "_avg_squared_sum", shape=shape)
        inputs = [param, moment, grad.indices, grad.values, rate]
        if self.counter_halflife <= 0:
            net.RowWiseSparseAdagrad(inputs, [param, moment], **args)
            return
        counter = self._state(
            param_init_net, param, "_update_counter", shape=shape, dtype=DataType.DOUBLE
        )
        last = self._state(
            param_init_net, param, "_prev_update_iter", 0, shape, dtype=DataType.INT64
        )
        self._aux_params.shared.append(iteration)
        halflife = {"counter_halflife": self.counter_halflife}
        net.RowWiseSparseAdagrad([*inputs, counter], [param, moment], **args, **halflife)
        net.RowWiseCounter([last, counter, grad.indices, iteration], [last, counter], **halflife)

    def _scale(self, net: Net, info: ParameterInfo, iteration: Any) -> None:
        options = self.weight_scale
        chosen = options if isinstance(options, Mapping) else vars(options)
        target = info.blob + "_scaled" if chosen["to_aux"] else info.blob
        net.WeightScale(
            [info.blob, iteration],
            [target],
            stepsize=chosen["stepsize"],
            upper_bound_iter=chosen["upper_bound_iter"],
            scale=float(chosen["weight_scale"]),
        )


def refuse_averages(**options: Any) -> None:
    """UsageError for options whose operators do not exist, in the original neither."""
    for name, value in options.items():
        chosen = value if isinstance(value, Mapping) else vars(value) if value else {}
        if any(setting not in (None, False) for setting in chosen.values()):
            raise UsageError(f"{name} is not supported: {value!r}")


class WngradOptimizer(_Adaptive):
    """WNGrad: w -= lr * g / (b + epsilon), b += |g|^2 / (b + epsilon), with one b for the whole
    parameter, `moment_init` at first.  Arguments are those of AdagradOptimizer."""

    def __init__(
        self,
        alpha: float = 1.0,
        epsilon: float = 1e-9,
        policy: str = "fixed",
        sparse_dedup_aggregator: str | None = None,
        engine: str = "",
        moment_init: float = 100.0,
        lars: float | None = None,
        output_effective_lr: bool = False,
        output_effective_lr_and_update: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(alpha, policy, kwargs, sparse_dedup_aggregator, engine)
        self.epsilon = epsilon
        self.moment_init = moment_init
        self.lars = lars
        self.output_effective_lr = output_effective_lr
        self.output_effective_lr_and_update = output_effective_lr_and_update

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, gradient_of(param_info)
        if self.alpha <= 0:
            return
        self._use_lars(net, param_init_net, param_info, self.lars)
        rate, _ = self._rate(net, param_init_net)
        moment = self._state(param_init_net, param, "_moment", self.moment_init, [1])
        args = {"epsilon": self.epsilon, "engine": self.engine}
        if isinstance(grad, GradientSlice):
            grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
            net.SparseWngrad(
                [param, moment, grad.indices, grad.values, rate], [param, moment], **args
            )
            return
        outputs = [param, moment]
        if self.output_effective_lr or self.output_effective_lr_and_update:
            outputs.append(param + "_effective_lr")
        if self.output_effective_lr_and_update:
            outputs.append(param + "_update")
        net.Wngrad([param, moment, grad, rate], outputs, **args)


class StormOptimizer(_Adaptive):
    """STORM; see the operator Storm.  grad_sq_init is the sum of squares at first, which is not 0;
    other arguments are those of SgdOptimizer."""

    def __init__(
        self,
        lr: float = 0.1,
        momentum: float = 10.0,
        beta: float = 0.1,
        grad_sq_init: float = 0.01,
        policy: str = "fixed",
        sparse_dedup_aggregator: str | None = None,
        lars: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(lr, policy, kwargs, sparse_dedup_aggregator)
        self.momentum = momentum
        self.beta = beta
        self.grad_sq_init = grad_sq_init
        self.lars = lars

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, gradient_of(param_info)
        if self.alpha <= 0:
            return
        self._use_lars(net, param_init_net, param_info, self.lars)
        rate, _ = self._rate(net, param_init_net)
        states = [
            param,
            self._state(param_init_net, param, "_moment"),
            self._state(param_init_net, param, "_grad_sq_sum", self.grad_sq_init, [1]),
        ]
        args = {"momentum": self.momentum, "beta": self.beta}
        if isinstance(grad, GradientSlice):
            grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
            net.SparseStorm([*states, grad.values, grad.indices, rate], states, **args)
        else:
            net.Storm([*states, grad, rate], states, **args)


class AdadeltaOptimizer(_Adaptive):
    """Adadelta; see the operator of this name.  Other arguments are those of SgdOptimizer."""

    def __init__(
        self,
        alpha: float = 0.01,
        epsilon: float = 1e-4,
        decay: float = 0.95,
        policy: str = "fixed",
        sparse_dedup_aggregator: str | None = None,
        engine: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(alpha, policy, kwargs, sparse_dedup_aggregator, engine)
        self.epsilon = epsilon
        self.decay = decay

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, gradient_of(param_info)
        if self.alpha <= 0:
            return
        rate, _ = self._rate(net, param_init_net)
        states = [
            param,
            self._state(param_init_net, param, "_squared_moment"),
            self._state(param_init_net, param, "_squared_moment_update"),
        ]
        args = {"epsilon": self.epsilon, "decay": float(self.decay), "engine": self.engine}
        if isinstance(grad, GradientSlice):
            grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
            net.SparseAdadelta([*states, grad.indices, grad.values, rate], states, **args)
        else:
            net.Adadelta([*states, grad, rate], states, **args)


class RmsPropOptimizer(_Adaptive):
    """RMSProp: s = decay * s + (1 - decay) * g^2, then w -= lr * (momentum * m + g / sqrt(s)).
    Dense gradients only."""

    def __init__(
        self,
        alpha: float = 0.01,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-5,
        policy: str = "fixed",
        engine: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(alpha, policy, kwargs, engine=engine)
        self.decay = decay
        self.momentum = momentum
        self.epsilon = epsilon

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, dense_gradient(param_info)
        if self.alpha <= 0:
            return
        # RmsProp gives a step for the learning rate 1, which MomentumSGDUpdate then subtracts.
        rate, _ = self.build_lr(
            net,
            param_init_net,
            base_learning_rate=-self.alpha,
            policy=self.policy,
            **self.init_kwargs,
        )
        step = param_init_net.ConstantFill(param, str(grad) + "_o", value=0.0)
        squares = self._state(param_init_net, param, "_mean_squares")
        velocity = self._state(param_init_net, param, "_momentum")
        one = self._constant(param_init_net, "ONE", 1.0)
        net.RmsProp(
            [grad, squares, velocity, one],
            [step, squares, velocity],
            decay=self.decay,
            momentum=self.momentum,
            epsilon=self.epsilon,
            engine=self.engine,
        )
        net.MomentumSGDUpdate([step, velocity, rate, param], [step, velocity, param])


class AdamOptimizer(_Adaptive):
    """Adam; see the operator of this name.

    alpha, policy                   the learning rate; as for SgdOptimizer
    epsilon                         may also be given as `eps`
    use_lr_adaption                 the learning rate is learned, too, with lr_alpha and
                                    normalized_lr_adaption: see LearningRateAdaption
    rowWise                         True: one second moment for each row; sparse gradients only
    enableRAdam                     the step of RAdam
    use_smart_decay                 sparse gradients are updated by SmartDecaySparseAdam, which
                                    needs `<param>_last_seen`; dense ones do not read it
    """

    def __init__(
        self,
        alpha: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        policy: str = "fixed",
        use_lr_adaption: bool = False,
        lr_alpha: float = 0.01,
        normalized_lr_adaption: bool = True,
        sparse_dedup_aggregator: str | None = None,
        rowWise: bool = False,
        engine: str = "",
        enableRAdam: bool = False,
        use_smart_decay: bool = False,
        **kwargs: Any,
    ) -> None:
        epsilon = kwargs.pop("eps", epsilon)
        super().__init__(alpha, policy, kwargs, sparse_dedup_aggregator, engine)
        if use_smart_decay and (rowWise or enableRAdam or use_lr_adaption):
            raise UsageError(
                "use_smart_decay goes with none of rowWise, enableRAdam and use_lr_adaption"
            )
        if rowWise and enableRAdam:
            raise UsageError("rowWise does not go with enableRAdam")
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.use_lr_adaption = use_lr_adaption
        self.lr_alpha = lr_alpha
        self.normalized_lr_adaption = normalized_lr_adaption
        self.rowWise = rowWise
        self.enableRAdam = enableRAdam
        self.use_smart_decay = use_smart_decay

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, gradient_of(param_info)
        if self.alpha <= 0:
            return
        sparse = isinstance(grad, GradientSlice)
        if self.rowWise and not sparse:
            raise UsageError(
                f"rowWise=True is for sparse gradients; that of '{param_info.name}' is dense"
            )
        rate, iteration = self._rate(net, param_init_net)
        states = [param, self._state(param_init_net, param, "_first_moment")]
        if self.rowWise:
            shape = [rows_of(param_init_net, param_info)]
            states.append(self._state(param_init_net, param, "_avg_second_moment", shape=shape))
        else:
            states.append(self._state(param_init_net, param, "_second_moment"))
        self._aux_params.shared.append(iteration)
        args: dict[str, Any] = {
            "beta1": self.beta1,
            "beta2": self.beta2,
            "epsilon": self.epsilon,
        }
        outputs = [*states]
        if self.use_lr_adaption:
            outputs.append(param + "_effective_grad")
        last_seen = []
        if self.use_smart_decay:
            shape = [rows_of(param_init_net, param_info)]
            last_seen.append(
                self._state(param_init_net, param, "_last_seen", 0, shape, dtype=DataType.INT64)
            )
        if not sparse:
            if self.enableRAdam:
                args["enableRAdam"] = 1
            net.Adam([*states, grad, rate, iteration], outputs, **args)
            self._adapt(net, rate, grad, outputs[-1])
            return
        grad = self.dedup(net, self.sparse_dedup_aggregator, grad)
        inputs = [grad.indices, grad.values, rate, iteration]
        if self.use_smart_decay:
            states += last_seen
            net.SmartDecaySparseAdam([*states, *inputs], states, **args)
        elif self.rowWise:
            net.RowWiseSparseAdam([*states, *inputs], outputs, **args)
        else:
            net.SparseAdam([*states, *inputs], outputs, enableRAdam=int(self.enableRAdam), **args)
        self._adapt(net, rate, grad.values, outputs[-1])

    def _adapt(self, net: Net, rate: Any, grad: Any, step: Any) -> None:
        if self.use_lr_adaption:
            net.LearningRateAdaption(
                [rate, grad, step],
                [rate],
                lr_alpha=self.lr_alpha,
                normalized_lr_adaption=int(self.normalized_lr_adaption),
            )


class DecayAdagradOptimizer(_Adaptive):
    """Adagrad with momentum and weight decay apart from the gradient; see the operator
    DecayAdagrad.  Sparse gradients are updated by SparseAdagrad."""

    def __init__(
        self,
        alpha: float = 0.01,
        beta1: float = 0.0,
        beta2: float = 0.999,
        epsilon: float = 0.1,
        weight_decay: float = 0.0,
        ema_options: Any = None,
        bias_correction_first: bool = True,
        policy: str = "fixed",
        engine: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(alpha, policy, kwargs, engine=engine)
        refuse_averages(ema_options=ema_options)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.weight_decay = weight_decay
        self.bias_correction_first = bias_correction_first

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, gradient_of(param_info)
        if self.alpha <= 0:
            return
        rate, iteration = self._rate(net, param_init_net)
        if isinstance(grad, GradientSlice):
            moment = self._state(param_init_net, param, "_squared_sum")
            net.SparseAdagrad(
                [param, moment, grad.indices, grad.values, rate],
                [param, moment],
                epsilon=self.epsilon,
                engine=self.engine,
            )
            return
        # The names of the original, which saved nets have.
        states = [
            param,
            self._state(param_init_net, param, "_first_mo1ment"),
            self._state(param_init_net, param, "_second_moment"),
        ]
        self._aux_params.shared.append(iteration)
        net.DecayAdagrad(
            [*states, grad, rate, iteration],
            states,
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            weight_decay=self.weight_decay,
            bias_correction_first=int(self.bias_correction_first),
        )


class YellowFinOptimizer(_Adaptive):
    """YellowFin, which tunes learning rate and momentum for each parameter; see the operator of
    this name.  alpha and mu are what it begins with.  Dense gradients only."""

    def __init__(
        self,
        alpha: float = 0.1,
        mu: float = 0.0,
        beta: float = 0.999,
        curv_win_width: int = 20,
        zero_debias: bool = True,
        epsilon: float = 0.1**6,
        policy: str = "fixed",
        sparse_dedup_aggregator: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(alpha, policy, kwargs, sparse_dedup_aggregator)
        self.mu = mu
        self.beta = beta
        self.curv_win_width = curv_win_width
        self.zero_debias = zero_debias
        self.epsilon = epsilon

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        param, grad = param_info.blob, dense_gradient(param_info)
        if self.alpha <= 0:
            return
        width = self.curv_win_width
        shapes: Sequence[tuple[str, float, list[int] | None]] = (
            ("_moment", 0.0, None),
            ("_lr_avg", self.alpha, [1]),
            ("_mu_avg", self.mu, [1]),
            ("_curv_win", 0.0, [width]),
            ("_g_avg", 0.0, None),
            ("_g2_avg", 0.0, None),
            ("_scalars_memory", 0.0, [5]),
        )
        states = [
            param,
            *(
                self._state(param_init_net, param, suffix, value, shape)
                for suffix, value, shape in shapes
            ),
        ]
        iteration = BuildUniqueMutexIter(param_init_net, net, iter_val=0)
        self._aux_params.shared.append(iteration)
        net.YellowFin(
            [*states, grad, iteration],
            states,
            beta=self.beta,
            epsilon=self.epsilon,
            curv_win_width=width,
            zero_debias=int(self.zero_debias),
        )
