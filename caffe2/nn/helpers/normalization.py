"""Normalization layers and their parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from caffe2.graph.blob import BlobReference
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import ParameterTags, output_name, update_initializer

Initializer = Callable[[], Any]


def spatial_bn(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    init_scale: float = 1.0,
    init_bias: float = 0.0,
    ScaleInitializer: Initializer | None = None,
    BiasInitializer: Initializer | None = None,
    RunningMeanInitializer: Initializer | None = None,
    RunningVarianceInitializer: Initializer | None = None,
    order: str = "NCHW",
    **kwargs: Any,
) -> Any:
    """Batch normalization of `dim_in` channels, the operator SpatialBN.

    The parameters are `<blob_out>_s` (scale) and `<blob_out>_b` (bias), and, computed while
    training, `<blob_out>_rm` (running mean) and `<blob_out>_riv` (running variance), each
    (dim_in).  Without is_test=1 the mean and the inverse deviation of the batch are in
    `<blob_out>_sm` and `<blob_out>_siv`.
    """
    name = output_name(model.net, blob_out)
    scale, bias = _scale_and_bias(
        model, name, [dim_in], (init_scale, init_bias), (ScaleInitializer, BiasInitializer)
    )
    mean, variance = _running_moments(
        model, name, dim_in, RunningMeanInitializer, RunningVarianceInitializer
    )
    outputs: list[Any] = [name]
    if not kwargs.get("is_test"):
        outputs += [mean, variance, name + "_sm", name + "_siv"]
    inputs = [blob_in, scale, bias, mean, variance]
    return _first(model.net.SpatialBN(inputs, outputs, order=order, **kwargs))


def instance_norm(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    order: str = "NCHW",
    **kwargs: Any,
) -> Any:
    """Each channel of each picture normalized for itself, the operator InstanceNorm.

    The parameters are `<blob_out>_s` (scale, 1 at first) and `<blob_out>_b` (bias, 0), each
    (dim_in).  Without is_test=1 mean and inverse deviation are in `_sm` and `_siv`.
    """
    name = output_name(model.net, blob_out)
    scale, bias = _scale_and_bias(model, name, [dim_in], (1.0, 0.0))
    outputs = [name] if kwargs.get("is_test") else [name, name + "_sm", name + "_siv"]
    return _first(model.net.InstanceNorm([blob_in, scale, bias], outputs, order=order, **kwargs))


def spatial_gn(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    init_scale: float = 1.0,
    init_bias: float = 0.0,
    ScaleInitializer: Initializer | None = None,
    BiasInitializer: Initializer | None = None,
    RunningMeanInitializer: Initializer | None = None,
    RunningVarianceInitializer: Initializer | None = None,
    order: str = "NCHW",
    **kwargs: Any,
) -> Any:
    """Normalization over groups of channels, the operator GroupNorm; `group` (default: 32).

    The parameters are `<blob_out>_s` and `<blob_out>_b`, each (dim_in).  Without is_test=1 mean and
    inverse deviation are in `_mean` and `_std`.  There are no running moments: what would fill
    them is taken and not used.
    """
    name = output_name(model.net, blob_out)
    scale, bias = _scale_and_bias(
        model, name, [dim_in], (init_scale, init_bias), (ScaleInitializer, BiasInitializer)
    )
    outputs = [name] if kwargs.get("is_test") else [name, name + "_mean", name + "_std"]
    return _first(model.net.GroupNorm([blob_in, scale, bias], outputs, order=order, **kwargs))


def layer_norm(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int | Sequence[int],
    axis: int = 1,
    epsilon: float = 1e-4,
    initial_scale: float = 1.0,
    initial_bias: float = 0.0,
) -> tuple[BlobReference, ...]:
    """Normalization over what lies behind `axis`, the operator LayerNorm.

    The parameters are `<blob_out>_scale` and `<blob_out>_bias` with the shape `dim_in`.
    Returns the output and the blobs `<blob_out>_mean` and `<blob_out>_std`.
    """
    name = output_name(model.net, blob_out)
    shape = [dim_in] if isinstance(dim_in, int) else list(dim_in)
    # Saved nets have the parameters in the current scope even where the output is in another one.
    scale, bias = _scale_and_bias(
        model, str(name), shape, (initial_scale, initial_bias), suffixes=("scale", "bias")
    )
    outputs: tuple[BlobReference, ...] = model.net.LayerNorm(
        [blob_in, scale, bias],
        [name, name + "_mean", name + "_std"],
        axis=axis,
        epsilon=epsilon,
        elementwise_affine=True,
    )
    return outputs


def moments_with_running_stats(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    RunningMeanInitializer: Initializer | None = None,
    RunningVarianceInitializer: Initializer | None = None,
    order: str = "NCHW",
    **kwargs: Any,
) -> tuple[BlobReference, ...]:
    """Mean and variance of each channel, the operator Moments: `<blob_out>_sm`, `<blob_out>_sv`.

    Makes the parameters `<blob_out>_rm` and `<blob_out>_riv` for running moments, too.
    """
    name = output_name(model.net, blob_out)
    _running_moments(model, name, dim_in, RunningMeanInitializer, RunningVarianceInitializer)
    axes = [0, 1, 2] if order == "NHWC" else [0, 2, 3]
    outputs: tuple[BlobReference, ...] = model.net.Moments(
        [blob_in],
        [name + "_sm", name + "_sv"],
        axes=axes,
        order=order,
        keepdims=False,
        **kwargs,
    )
    return outputs


def lrn(model: ModelHelper, blob_in: Any, blob_out: Any, order: str = "NCHW", **kwargs: Any) -> Any:
    """The operator LRN: size, alpha, beta, bias; its scale is in `_<blob_out>_scale`."""
    name = output_name(model.net, blob_out)
    arguments = {key: value for key, value in kwargs.items() if key != "use_cudnn"}
    return _first(model.net.LRN(blob_in, [name, "_" + name + "_scale"], order=order, **arguments))


def _first(outputs: Any) -> Any:
    return outputs[0] if isinstance(outputs, (list, tuple)) else outputs


def _scale_and_bias(
    model: ModelHelper,
    name: Any,
    shape: list[int],
    values: tuple[float, float],
    initializers: tuple[Initializer | None, Initializer | None] = (None, None),
    suffixes: tuple[str, str] = ("s", "b"),
) -> list[BlobReference]:
    kinds = (ParameterTags.WEIGHT, ParameterTags.BIAS)
    return [
        model.create_param(
            name + "_" + suffix,
            shape,
            update_initializer(initializer, None, ("ConstantFill", {"value": value})),
            tags=kind,
        )
        for suffix, value, initializer, kind in zip(
            suffixes, values, initializers, kinds, strict=True
        )
    ]


def _running_moments(
    model: ModelHelper,
    name: Any,
    dim_in: int,
    mean: Initializer | None,
    variance: Initializer | None,
) -> list[BlobReference]:
    return [
        model.create_param(
            name + "_" + suffix,
            [dim_in],
            update_initializer(initializer, None, ("ConstantFill", {"value": value})),
            tags=ParameterTags.COMPUTED_PARAM,
        )
        for suffix, value, initializer in (("rm", 0.0, mean), ("riv", 1.0, variance))
    ]


HELPERS = [
    instance_norm,
    layer_norm,
    lrn,
    moments_with_running_stats,
    spatial_bn,
    spatial_gn,
]
