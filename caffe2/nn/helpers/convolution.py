"""Convolution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.graph.weights import conv_weight_shape
from caffe2.nn.engine import engine_arguments
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import Fill, ParameterTags, update_initializer


def conv(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    kernel: int | Sequence[int],
    weight_init: Fill | None = None,
    bias_init: Fill | None = None,
    WeightInitializer: Callable[[], Any] | None = None,
    BiasInitializer: Callable[[], Any] | None = None,
    group: int = 1,
    transform_inputs: Callable[[ModelHelper, Any, list[Any]], None] | None = None,
    **kwargs: Any,
) -> Any:
    """A 2-d convolution with bias (unless `no_bias`); `kernel` is one size or [height, width].

    The parameters are `<blob_out>_w`, (dim_out, dim_in / group, height, width) or, with order
    "NHWC", (dim_out, height, width, dim_in / group), filled by XavierFill, and `<blob_out>_b`,
    (dim_out), filled with 0; `weight_init` and `bias_init` name other operators and arguments.
    Further arguments (stride, pad, dilation, ...) go to the operator Conv.
    """
    if isinstance(kernel, int):
        sizes, kernels = [kernel, kernel], {"kernel": kernel}
    else:
        sizes = list(kernel)
        kernels = dict(zip(("kernel_h", "kernel_w"), sizes, strict=True))
    inputs = [blob_in]
    inputs += _parameters(
        model,
        blob_out,
        conv_weight_shape(dim_in, dim_out, sizes, group, kwargs["order"]),
        update_initializer(WeightInitializer, weight_init, ("XavierFill", {})),
        update_initializer(BiasInitializer, bias_init, ("ConstantFill", {})),
        kwargs.pop("no_bias", False),
    )
    if transform_inputs is not None:
        transform_inputs(model, blob_out, inputs)
    use_cudnn = bool(kwargs.get("use_cudnn"))
    if "engine" in kwargs and use_cudnn != (kwargs["engine"] == "CUDNN"):
        needed = "needs" if use_cudnn else "excludes"
        raise UsageError(f"use_cudnn={use_cudnn} {needed} engine='CUDNN', got {kwargs['engine']!r}")
    arguments = engine_arguments({**kernels, **kwargs})
    exhaustive = arguments.pop("cudnn_exhaustive_search", None)
    workspace_limit = arguments.pop("ws_nbytes_limit", None)
    if arguments.get("engine") == "CUDNN":
        arguments |= {"exhaustive_search": exhaustive, "ws_nbytes_limit": workspace_limit}
    if group != 1:
        arguments["group"] = group
    return model.net.Conv(inputs, blob_out, **arguments)


def _parameters(
    model: ModelHelper,
    blob_out: Any,
    shape: list[int],
    weight_initializer: Any,
    bias_initializer: Any,
    no_bias: bool,
) -> list[Any]:
    weight = model.create_param(
        blob_out + "_w", shape, weight_initializer, tags=ParameterTags.WEIGHT
    )
    if no_bias:
        return [weight]
    bias = model.create_param(
        blob_out + "_b", [shape[0]], bias_initializer, tags=ParameterTags.BIAS
    )
    return [weight, bias]


HELPERS = [conv]
