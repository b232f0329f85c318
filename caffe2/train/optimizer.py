"""Optimizers: rules that turn gradients into operators which update the parameters."""

from __future__ import annotations

import difflib
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from caffe2 import ops
from caffe2.graph.blob import BlobReference, ScopedBlobReference
from caffe2.graph.device import IsGPUDeviceType
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.scope import CurrentDeviceScope
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import ParameterInfo
from caffe2.ops.arguments import find_argument
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2
from caffe2.train.clipping import learning_rate_multiplier
from caffe2.train.devices import parameter_device
from caffe2.train.iteration import BuildUniqueMutexIter
from caffe2.train.schedule import LearningRateSchedule

_optimizer_instance_count: dict[str, int] = defaultdict(int)
_count_lock = threading.Lock()
_FLOAT_MAX = 3.4028234663852886e38


class AuxOptimizerParams(NamedTuple):
    """Blobs of an optimizer besides the parameters: of one parameter each, or shared by all."""

    local: list[BlobReference]
    shared: list[BlobReference]


def reset_optimizer_instance_count() -> None:
    """Lets the names of blobs count optimizers from 0 again."""
    _optimizer_instance_count.clear()


class Optimizer:
    """The base of all optimizers; a subclass has `_run(net, param_init_net, param_info)`.

    `optimizer(net, param_init_net, param, grad)` adds the operators that update one parameter to
    `net`, and those that fill the optimizer's own blobs to `param_init_net`.
    """

    def __init__(self) -> None:
        kind = type(self).__name__
        with _count_lock:
            self._instance_num = _optimizer_instance_count[kind]
            _optimizer_instance_count[kind] += 1
        self._aux_params = AuxOptimizerParams([], [])
        self._lr_multiplier: BlobReference | None = None  # of all parameters, on the CPU
        self._local_lr_multiplier: BlobReference | None = None  # of the parameter at hand

    def __call__(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> None:
        if grad is not None:
            if isinstance(param, str):
                param = BlobReference(param)
            if not isinstance(param, BlobReference):
                raise TypeError(f"a parameter is a blob, got {param!r}")
            if isinstance(grad, str):
                grad = BlobReference(grad)
            param = ParameterInfo(None, param, grad=grad)
        elif not isinstance(param, ParameterInfo):
            raise UsageError(f"Expected parameter to be of type ParameterInfo, got {param!r}")
        self._local_lr_multiplier = None
        self._run(net, param_init_net, param)

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        net.AppendNet(self.get_update_op(param_info.blob, param_info.grad))

    def get_update_op(self, param: Any, param_grad: Any) -> list[caffe2_pb2.OperatorDef]:
        """The operators that update one parameter: what a rule of one's own has instead of `_run`.
        It makes the blobs of its state itself, in the workspace."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to update a parameter")

    def get_update_ops(self, param: Any, grad: Any) -> list[caffe2_pb2.OperatorDef]:
        """The operators that update `param`, a blob of the workspace, by its gradient.

        The blobs of the optimizer's state are made in the workspace now, unless they exist, so
        that the operators can be run again and again, or be appended to a net by `AppendNet`.
        """
        from caffe2.runtime import workspace

        net, init = Net("update"), Net("update_init")
        self(net, init, ParameterInfo(None, BlobReference(str(param)), grad=grad))
        for op in init.Proto().op:
            if not all(workspace.HasBlob(name) for name in op.output):
                workspace.RunOperatorOnce(op)
        return list(net.Proto().op)

    def build(
        self,
        model: ModelHelper,
        parameters: Iterable[Any] | None = None,
        weights_only: bool = False,
        max_gradient_norm: float | None = None,
        allow_lr_injection: bool = False,
        weight_decay: float = 0.0,
    ) -> Optimizer:
        """Updates every parameter of a model that has a gradient; gives the optimizer back.

        RuntimeError before AddGradientOperators.  A parameter with an optimizer of its own
        (`ParameterInfo.optimizer`) is updated by that.

        parameters          only these
        weights_only        True: no biases
        max_gradient_norm   the learning rate is made smaller where the norm of all gradients
                            together is larger than this, as if they had this norm
        allow_lr_injection  the learning rate is multiplied by the blob "lr_injection", 1 at first:
                            see set_lr_injection
        weight_decay        this times the weight is added to the gradient of each weight
        """
        if weight_decay:
            add_weight_decay(model, weight_decay)
        chosen = model.weights if weights_only else parameters
        infos = model.GetOptimizationParamInfo(chosen)
        multiplier = learning_rate_multiplier(model, infos, max_gradient_norm, allow_lr_injection)
        for info in infos:
            optimizer = info.optimizer or self
            if multiplier is not None:
                optimizer.add_lr_multiplier(multiplier)
            with parameter_device(model, info):
                optimizer(model.net, model.param_init_net, info)
        return self

    @property
    def attributes(self) -> dict[str, Any]:
        """Everything that was set, for a copy of the optimizer or a log."""
        return {name: value for name, value in vars(self).items() if name != "_instance_num"}

    def scale_learning_rate(self, *args: Any, **kwargs: Any) -> None:
        """Multiplies the learning rate of what is built from here on by a number."""
        raise NotImplementedError(f"{type(self).__name__} has no learning rate to scale")

    def auto_scale_lr(
        self, policy: str | LearningRateSchedule, stepscale: float | None = None, **kwargs: Any
    ) -> None:
        """How the learning rate changes in what is built from here on: a policy of the operator
        LearningRate and its arguments, or a schedule.  `stepscale` is another name of gamma.

        UsageError for optimizers without a policy.
        """
        if not hasattr(self, "init_kwargs"):
            raise UsageError(f"{type(self).__name__} has no learning rate policy")
        if not isinstance(policy, LearningRateSchedule):
            if stepscale is not None:
                kwargs["gamma"] = stepscale
            _check_schedule(policy, kwargs)
            policy = LearningRateSchedule(policy, **kwargs)
        self.policy, self.init_kwargs = policy.policy, dict(policy.arguments)

    def add_lr_multiplier(self, lr_multiplier: Any) -> None:
        """A blob of one number, on the CPU, that the learning rate is multiplied with."""
        self._lr_multiplier = lr_multiplier

    # -- blobs --------------------------------------------------------------------------------

    def get_cpu_blob_name(self, base_str: str, node_name: str = "") -> str:
        return f"{type(self).__name__}_{self._instance_num}_{base_str}{node_name}_cpu"

    def get_gpu_blob_name(self, base_str: str, gpu_id: int, node_name: str) -> str:
        return f"{type(self).__name__}_{self._instance_num}_{base_str}{node_name}_gpu{gpu_id}"

    def make_unique_blob_name(self, base_str: str) -> str:
        """A name for a blob of this optimizer on the current device."""
        device = CurrentDeviceScope() or caffe2_pb2.DeviceOption()
        if IsGPUDeviceType(device.device_type):
            return self.get_gpu_blob_name(base_str, device.device_id, device.node_name)
        return self.get_cpu_blob_name(base_str, device.node_name)

    def get_auxiliary_parameters(self) -> AuxOptimizerParams:
        """The blobs that make up the optimizer's state; they are saved with the model."""
        return self._aux_params

    def build_lr(
        self,
        net: Net,
        param_init_net: Net,
        base_learning_rate: float,
        learning_rate_blob: str | None = None,
        policy: str = "fixed",
        iter_val: int = 0,
        **kwargs: Any,
    ) -> tuple[BlobReference, BlobReference]:
        """The blobs of the learning rate and of the count of steps it depends on.

        The learning rate is -base_learning_rate at first: updates add it times the gradient.
        `policy` and further arguments are those of the operator LearningRate.
        """
        iteration = BuildUniqueMutexIter(param_init_net, net, iter_val=iter_val)
        rate = ScopedBlobReference(learning_rate_blob or self.make_unique_blob_name("lr"))
        if not net.BlobIsDefined(rate):
            _check_schedule(policy, kwargs)
            net.LearningRate(
                [iteration], rate, base_lr=-float(base_learning_rate), policy=policy, **kwargs
            )
        if self._lr_multiplier is not None:
            here = net.CopyFromCPUInput(
                self._lr_multiplier, self.make_unique_blob_name("lr_multiplier")
            )
            rate = net.Mul([rate, here], self.make_unique_blob_name("scaled_lr"), broadcast=1)
        if self._local_lr_multiplier is not None:
            name = self.make_unique_blob_name("local_scaled_lr")
            rate = net.Mul([rate, self._local_lr_multiplier], name, broadcast=1)
        return rate, iteration

    # -- for subclasses -----------------------------------------------------------------------

    def _state(
        self,
        param_init_net: Net,
        param: Any,
        suffix: str,
        value: float = 0.0,
        shape: Sequence[int] | None = None,
        **kwargs: Any,
    ) -> BlobReference:
        """A blob `<param><suffix>` of the optimizer's state, in the shape of the parameter unless
        one is given."""
        like: Any = [] if shape is not None else param
        if shape is not None:
            kwargs["shape"] = list(shape)
        blob = param_init_net.ConstantFill(like, param + suffix, value=value, **kwargs)
        self._aux_params.local.append(blob)
        return blob  # type: ignore[no-any-return]

    def _get_momentum_name(self, param: Any) -> str:
        """The usual name of the momentum of a parameter."""
        return f"{param}_momentum"

    @staticmethod
    def dedup(net: Net, sparse_dedup_aggregator: str | None, grad: Any) -> Any:
        """A sparse gradient in which no row comes twice: its rows of one index are put together by
        `sparse_dedup_aggregator` ("sum" or "mean").  Dense gradients, and without an aggregator
        all, stay as they are."""
        if not sparse_dedup_aggregator or not isinstance(grad, GradientSlice):
            return grad
        kinds = ("sum", "mean")
        if sparse_dedup_aggregator not in kinds:
            raise UsageError(f"{sparse_dedup_aggregator!r} is none of {', '.join(kinds)}")
        unique, place = net.Unique(grad.indices, 2, engine="SparseHash")
        gather = getattr(net, f"UnsortedSegment{sparse_dedup_aggregator.title()}")
        values = gather([grad.values, place], 1)
        return GradientSlice(indices=unique, values=values)

    def create_lars_inputs(
        self, param_init_net: Net, weight_decay: float, trust: float, lr_max: float
    ) -> tuple[Any, Any, Any]:
        """The blobs weight_decay, trust and lr_max that the operator Lars takes."""
        weight_decay_blob, trust_blob, lr_max_blob = (
            param_init_net.ConstantFill([], name, shape=[1], value=float(value))
            for name, value in (
                ("weight_decay", weight_decay),
                ("trust", trust),
                ("lr_max", lr_max),
            )
        )
        return weight_decay_blob, trust_blob, lr_max_blob

    def _use_lars(
        self, net: Net, param_init_net: Net, param_info: ParameterInfo, lars: Any
    ) -> None:
        """Scales the learning rate of a dense parameter by LARS with this offset, unless None."""
        if lars is None or isinstance(param_info.grad, GradientSlice):
            return
        if lars < 0:
            raise UsageError(f"the offset of LARS is {lars}; it is not negative")
        inputs = self.create_lars_inputs(param_init_net, 0.0, 1.0, _FLOAT_MAX)
        self._local_lr_multiplier = net.Lars(
            [param_info.blob, param_info.grad, *inputs],
            self.make_unique_blob_name(f"{param_info.blob}_lars"),
            offset=lars,
            lr_min=0.0,
        )

    @staticmethod
    def _constant(param_init_net: Net, base: str, value: float) -> BlobReference:
        """A blob of one number on the current device, shared by all who name it `base`."""
        device = CurrentDeviceScope() or caffe2_pb2.DeviceOption()
        name = f"{base}_{device.device_type}_{device.device_id}{device.node_name}"
        blob = ScopedBlobReference(name)
        if not param_init_net.BlobIsDefined(blob):
            param_init_net.ConstantFill([], blob, shape=[1], value=value)
        return blob


def _check_schedule(policy: str, kwargs: Mapping[str, Any]) -> None:
    """TypeError for arguments that LearningRate does not have."""
    declared = ops.find("LearningRate").args
    for name in kwargs:
        if find_argument(declared, name) is None:
            near = difflib.get_close_matches(name, declared, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise TypeError(
                f"unexpected argument '{name}': neither the optimizer nor the learning rate "
                f"policy '{policy}' has one{hint}"
            )


def gradient_of(param_info: ParameterInfo) -> Any:
    """The gradient of a parameter, dense or sparse; UsageError when there is none."""
    if param_info.grad is None:
        raise UsageError(f"parameter '{param_info.name}' has no gradient")
    return param_info.grad


def dense_gradient(param_info: ParameterInfo) -> Any:
    """The gradient of a parameter; UsageError when there is none or it is sparse."""
    grad = gradient_of(param_info)
    if isinstance(grad, GradientSlice):
        raise UsageError(
            f"the gradient of '{param_info.name}' is sparse ({', '.join(map(str, grad))}); "
            "this optimizer takes dense ones only"
        )
    return grad


class WeightDecayBuilder(Optimizer):
    """Adds weight_decay * parameter to the gradient."""

    def __init__(self, weight_decay: float) -> None:
        super().__init__()
        self.weight_decay = weight_decay

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        if isinstance(param_info.grad, GradientSlice):
            raise UsageError(
                f"Weight decay does not yet support sparse gradients; '{param_info.name}' has one"
            )
        grad = gradient_of(param_info)
        one = self._constant(param_init_net, "ONE", 1.0)
        decay = self._constant(param_init_net, "wd", float(self.weight_decay))
        net.WeightedSum([grad, one, param_info.blob, decay], grad)


def add_weight_decay(model: ModelHelper, weight_decay: float) -> None:
    """Adds weight_decay * weight to the gradient of each weight; biases are left alone.

    To be called after AddGradientOperators and before an optimizer is built.
    """
    decay = WeightDecayBuilder(weight_decay)
    for info in model.GetOptimizationParamInfo(model.weights):
        with parameter_device(model, info):
            decay(model.net, model.param_init_net, info)
