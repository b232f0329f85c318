"""Optimizers: rules that turn gradients into operators which update the parameters."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from caffe2.graph.blob import BlobReference, ScopedBlobReference
from caffe2.graph.device import DeviceOption, IsGPUDeviceType
from caffe2.graph.errors import UsageError
from caffe2.graph.gradients import Gradient
from caffe2.graph.net import Net
from caffe2.graph.scope import CurrentDeviceScope, DeviceScope
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import ParameterInfo
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2
from caffe2.train.iteration import BuildUniqueMutexIter

_instance_count: dict[str, int] = defaultdict(int)
_count_lock = threading.Lock()


class AuxOptimizerParams(NamedTuple):
    """Blobs of an optimizer besides the parameters: of one parameter each, or shared by all."""

    local: list[BlobReference]
    shared: list[BlobReference]


def reset_optimizer_instance_count() -> None:
    """Lets the names of blobs count optimizers from 0 again."""
    _instance_count.clear()


class Optimizer:
    """The base of all optimizers; a subclass has `_run(net, param_init_net, param_info)`.

    `optimizer(net, param_init_net, param, grad)` adds the operators that update one parameter to
    `net`, and those that fill the optimizer's own blobs to `param_init_net`.
    """

    def __init__(self) -> None:
        kind = type(self).__name__
        with _count_lock:
            self._instance_num = _instance_count[kind]
            _instance_count[kind] += 1
        self._aux_params = AuxOptimizerParams([], [])

    def __call__(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> None:
        if grad is not None:
            if not isinstance(param, BlobReference):
                raise TypeError(f"a parameter is a BlobReference, got {param!r}")
            param = ParameterInfo(None, param, grad=grad)
        elif not isinstance(param, ParameterInfo):
            raise UsageError(f"Expected parameter to be of type ParameterInfo, got {param!r}")
        self._run(net, param_init_net, param)

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say how to update a parameter")

    def build(self, model: ModelHelper) -> Optimizer:
        """Updates every parameter of a model that has a gradient; gives the optimizer back.

        RuntimeError before AddGradientOperators.  A parameter with an optimizer of its own
        (`ParameterInfo.optimizer`) is updated by that.
        """
        for info in model.GetOptimizationParamInfo():
            with _parameter_device(model, info):
                (info.optimizer or self)(model.net, model.param_init_net, info)
        return self

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
            net.LearningRate(
                [iteration], rate, base_lr=-float(base_learning_rate), policy=policy, **kwargs
            )
        return rate, iteration

    def _constant(self, param_init_net: Net, base: str, value: float) -> BlobReference:
        """A blob of one number on the current device, shared by all who name it `base`."""
        device = CurrentDeviceScope() or caffe2_pb2.DeviceOption()
        name = f"{base}_{device.device_type}_{device.device_id}{device.node_name}"
        blob = ScopedBlobReference(name)
        if not param_init_net.BlobIsDefined(blob):
            param_init_net.ConstantFill([], blob, shape=[1], value=value)
        if blob not in self._aux_params.shared:
            self._aux_params.shared.append(blob)
        return blob


def dense_gradient(param_info: ParameterInfo) -> Any:
    """The gradient of a parameter; UsageError when there is none or it is sparse."""
    if param_info.grad is None:
        raise UsageError(f"parameter '{param_info.name}' has no gradient")
    if isinstance(param_info.grad, GradientSlice):
        raise UsageError(
            f"the gradient of '{param_info.name}' is sparse ({', '.join(param_info.grad)}); "
            "this optimizer takes dense ones only"
        )
    return param_info.grad


def get_param_device(
    param_name: str,
    grad: Gradient,
    param_to_device: Mapping[str, caffe2_pb2.DeviceOption] | None = None,
    default_device: caffe2_pb2.DeviceOption | None = None,
) -> caffe2_pb2.DeviceOption:
    """The device of a parameter, or else of its gradient.  UsageError when neither is known and
    there is no default."""
    values = grad.values if isinstance(grad, GradientSlice) else grad
    known = param_to_device or {}
    for name in (param_name, str(values)):
        if name in known:
            return known[name]
    if default_device is None:
        raise UsageError(f"Cannot infer device for {param_name}: no op creates it")
    return default_device


@contextmanager
def _parameter_device(model: ModelHelper, info: ParameterInfo) -> Iterator[None]:
    """The scope of the device on which a parameter is updated."""
    assert info.grad is not None
    devices = {
        name: op.device_option if op.HasField("device_option") else net.device_option
        for net in (model.net.Proto(), model.param_init_net.Proto())
        for op in net.op
        for name in op.output
    }
    with DeviceScope(get_param_device(info.name, info.grad, devices, DeviceOption(0))):
        yield


class WeightDecayBuilder(Optimizer):
    """Adds weight_decay * parameter to the gradient."""

    def __init__(self, weight_decay: float) -> None:
        super().__init__()
        self.weight_decay = weight_decay

    def _run(self, net: Net, param_init_net: Net, param_info: ParameterInfo) -> None:
        grad = dense_gradient(param_info)
        one = self._constant(param_init_net, "ONE", 1.0)
        decay = self._constant(param_init_net, "wd", float(self.weight_decay))
        net.WeightedSum([grad, one, param_info.blob, decay], grad)


def add_weight_decay(model: ModelHelper, weight_decay: float) -> None:
    """Adds weight_decay * weight to the gradient of each weight; biases are left alone.

    To be called after AddGradientOperators and before an optimizer is built.
    """
    decay = WeightDecayBuilder(weight_decay)
    for info in model.GetOptimizationParamInfo(model.weights):
        with _parameter_device(model, info):
            decay(model.net, model.param_init_net, info)
