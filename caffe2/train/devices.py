"""Where a parameter lives, and so where its update runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from caffe2.graph.device import DeviceOption
from caffe2.graph.errors import UsageError
from caffe2.graph.gradients import Gradient
from caffe2.graph.scope import DeviceScope
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import ParameterInfo
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2


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


def get_param_to_device(model: ModelHelper) -> dict[str, caffe2_pb2.DeviceOption]:
    """The device of each blob that an operator of the model writes: that of the operator, or else
    of its net."""
    return {
        name: op.device_option if op.HasField("device_option") else net.device_option
        for net in (model.net.Proto(), model.param_init_net.Proto())
        for op in net.op
        for name in op.output
    }


@contextmanager
def parameter_device(model: ModelHelper, info: ParameterInfo) -> Iterator[None]:
    """The scope of the device on which a parameter is updated."""
    assert info.grad is not None
    devices = get_param_to_device(model)
    with DeviceScope(get_param_device(info.name, info.grad, devices, DeviceOption(0))):
        yield
