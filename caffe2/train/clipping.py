"""Gradients that are too large: their norm over all parameters, and what is done about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.device import DeviceOption
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.scope import DeviceScope, NameScope
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import ParameterInfo
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2
from caffe2.train.devices import parameter_device

LEARNING_RATE_INJECTION = "lr_injection"


def global_norm(model: ModelHelper, infos: Sequence[ParameterInfo]) -> BlobReference:
    """A blob with the Euclidean norm of the gradients of all these parameters together: float,
    shape (), on the CPU.  To be called inside a NameScope of its own."""
    squares = []
    for number, info in enumerate(infos):
        grad = info.grad.values if isinstance(info.grad, GradientSlice) else info.grad
        with parameter_device(model, info):
            square = model.net.SumSqrElements([grad], f"grad_{number}_squared_sum")
            squares.append(model.net.EnsureCPUOutput([square]))
    with DeviceScope(DeviceOption(caffe2_pb2.CPU)):
        total = model.net.Sum(squares, "grad_squared_full_sum")
        return model.net.Pow(total, "global_norm", exponent=0.5)  # type: ignore[no-any-return]


def learning_rate_multiplier(
    model: ModelHelper,
    infos: Sequence[ParameterInfo],
    max_gradient_norm: float | None,
    allow_lr_injection: bool,
) -> Any:
    """The blob that learning rates are to be multiplied with, or None."""
    parts = []
    if max_gradient_norm is not None:
        _check_norm("max_gradient_norm", max_gradient_norm)
        if infos:
            parts.append(_norm_ratio(model, infos, max_gradient_norm))
    if allow_lr_injection:
        parts.append(
            model.param_init_net.ConstantFill([], LEARNING_RATE_INJECTION, shape=[1], value=1.0)
        )
    if len(parts) < 2:
        return parts[0] if parts else None
    return model.net.Mul(parts, "lr_multiplier", broadcast=1)


def _norm_ratio(model: ModelHelper, infos: Sequence[ParameterInfo], most: float) -> Any:
    """most / max(norm, most)."""
    with NameScope("norm_clipped_grad_update"):
        norm = global_norm(model, infos)
        with DeviceScope(DeviceOption(caffe2_pb2.CPU)):
            net: Net = model.net
            clip = model.param_init_net.ConstantFill([], "clip_norm", shape=[], value=float(most))
            larger = net.Max([norm, clip], "max_norm")
            return net.Div([clip, larger], "norm_ratio")


def add_clip_gradient_norm(model: ModelHelper, clip_norm: float) -> None:
    """Scales all gradients by min(1, clip_norm / norm), with their norm over all parameters, in
    place.  To be called after AddGradientOperators and before an optimizer is built."""
    _check_norm("clip_norm", clip_norm)
    infos = model.GetOptimizationParamInfo()
    if not infos:
        return
    with NameScope("clip_gradient_norm"):
        norm = global_norm(model, infos)
        for info in infos:
            grad = info.grad.values if isinstance(info.grad, GradientSlice) else info.grad
            with parameter_device(model, info):
                here = model.net.CopyFromCPUInput(norm)
                model.net.ClipTensorByScaling([grad, here], grad, threshold=float(clip_norm))


def _check_norm(name: str, value: float) -> None:
    if not value > 0:
        raise UsageError(f"{name} is {value}; it must be positive")


def get_lr_injection() -> Any:
    """The number that learning rates are multiplied with now, of what was built with
    allow_lr_injection=True: float array of shape (1,)."""
    from caffe2.runtime import workspace

    return workspace.FetchBlob(LEARNING_RATE_INJECTION)


def set_lr_injection(lr_injection_value: float) -> None:
    """Sets it."""
    import numpy as np

    from caffe2.runtime import workspace

    workspace.FeedBlob(
        LEARNING_RATE_INJECTION, np.array([float(lr_injection_value)], dtype=np.float32)
    )
