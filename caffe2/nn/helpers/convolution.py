"""Convolution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from caffe2.graph.errors import UsageError
from caffe2.graph.weights import conv_weight_shape
from caffe2.nn.engine import engine_arguments
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import Fill, ParameterTags, output_name, update_initializer

Transform: TypeAlias = Callable[[ModelHelper, Any, list[Any]], None]


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
    transform_inputs: Transform | None = None,
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
    return _convolution(
        model,
        blob_in,
        blob_out,
        conv_weight_shape(dim_in, dim_out, sizes, group, kwargs["order"]),
        update_initializer(WeightInitializer, weight_init, ("XavierFill", {})),
        update_initializer(BiasInitializer, bias_init, ("ConstantFill", {})),
        transform_inputs,
        group,
        {**kernels, **kwargs},
    )


def conv_nd(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    kernel: Sequence[int],
    weight_init: Fill | None = None,
    bias_init: Fill | None = None,
    WeightInitializer: Callable[[], Any] | None = None,
    BiasInitializer: Callable[[], Any] | None = None,
    group: int = 1,
    transform_inputs: Transform | None = None,
    order: str = "NCHW",
    **kwargs: Any,
) -> Any:
    """A convolution over as many spatial axes as `kernel` has sizes; all else as for `conv`."""
    return _convolution(
        model,
        blob_in,
        blob_out,
        conv_weight_shape(dim_in, dim_out, list(kernel), group, order),
        update_initializer(WeightInitializer, weight_init, ("XavierFill", {})),
        update_initializer(BiasInitializer, bias_init, ("ConstantFill", {})),
        transform_inputs,
        group,
        {"kernels": list(kernel), "order": order, **kwargs},
    )


def group_conv(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    kernel: int | Sequence[int],
    weight_init: Fill | None = None,
    bias_init: Fill | None = None,
    group: int = 1,
    **kwargs: Any,
) -> Any:
    """`conv` with groups of channels that do not see each other."""
    return conv(
        model,
        blob_in,
        blob_out,
        dim_in,
        dim_out,
        kernel,
        weight_init=weight_init,
        bias_init=bias_init,
        group=group,
        **kwargs,
    )


def group_conv_deprecated(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    kernel: int,
    weight_init: Fill | None = None,
    bias_init: Fill | None = None,
    group: int = 1,
    order: str = "NCHW",
    **kwargs: Any,
) -> Any:
    """`group` convolutions side by side: the channels are split, and the results concatenated.

    Group i has the parameters `<blob_out>_gconv_<i>_w` and `_b`.  As in old nets; `group_conv` does
    the same with one operator.
    """
    if dim_in % group or dim_out % group:
        raise UsageError(f"dim_in={dim_in} and dim_out={dim_out} are no multiples of group={group}")
    blob_out = output_name(model.net, blob_out)
    parts = model.net.DepthSplit(
        blob_in,
        ["_" + blob_out + f"_gconv_split_{i}" for i in range(group)],
        dimensions=[dim_in // group] * group,
        order=order,
    )
    results = [
        conv(
            model,
            part,
            blob_out + f"_gconv_{i}",
            dim_in // group,
            dim_out // group,
            kernel,
            weight_init=weight_init,
            bias_init=bias_init,
            order=order,
            **kwargs,
        )
        for i, part in enumerate(parts)
    ]
    return model.net.Concat(results, [blob_out, "_" + blob_out + "_concat_dims"], order=order)[0]


def conv_transpose(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    kernel: int,
    weight_init: Fill | None = None,
    bias_init: Fill | None = None,
    order: str = "NCHW",
    **kwargs: Any,
) -> Any:
    """A transposed convolution with bias.

    The parameters are `<blob_out>_w`, (dim_in, dim_out, kernel, kernel) or, with order "NHWC",
    (dim_in, kernel, kernel, dim_out), filled by XavierFill, and `<blob_out>_b`, (dim_out), filled
    with 0.  Further arguments (stride, pad, adj, ...) go to the operator ConvTranspose.
    """
    blob_out = output_name(model.net, blob_out)
    shape = [dim_in, dim_out, kernel, kernel]
    if order == "NHWC":
        shape = [dim_in, kernel, kernel, dim_out]
    inputs = [blob_in]
    inputs += _parameters(
        model,
        blob_out,
        shape,
        dim_out,
        update_initializer(None, weight_init, ("XavierFill", {})),
        update_initializer(None, bias_init, ("ConstantFill", {})),
    )
    arguments = _conv_arguments({"kernel": kernel, "order": order, **kwargs})
    return model.net.ConvTranspose(inputs, blob_out, **arguments)


def _convolution(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    shape: list[int],
    weight_initializer: Any,
    bias_initializer: Any,
    transform_inputs: Transform | None,
    group: int,
    kwargs: dict[str, Any],
) -> Any:
    """The parameters of the given shape, and the operator Conv."""
    blob_out = output_name(model.net, blob_out)
    no_bias = kwargs.pop("no_bias", False)
    inputs = [blob_in]
    inputs += _parameters(
        model, blob_out, shape, shape[0], weight_initializer, None if no_bias else bias_initializer
    )
    if transform_inputs is not None:
        transform_inputs(model, blob_out, inputs)
    arguments = _conv_arguments(kwargs)
    if group != 1:
        arguments["group"] = group
    return model.net.Conv(inputs, blob_out, **arguments)


def _conv_arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The engine, and what only cuDNN looks at under the names that it has there."""
    use_cudnn = bool(kwargs.get("use_cudnn"))
    if "engine" in kwargs and use_cudnn != (kwargs["engine"] == "CUDNN"):
        needed = "needs" if use_cudnn else "excludes"
        raise UsageError(f"use_cudnn={use_cudnn} {needed} engine='CUDNN', got {kwargs['engine']!r}")
    arguments = engine_arguments(kwargs)
    exhaustive = arguments.pop("cudnn_exhaustive_search", None)
    workspace_limit = arguments.pop("ws_nbytes_limit", None)
    if arguments.get("engine") == "CUDNN":
        arguments |= {"exhaustive_search": exhaustive, "ws_nbytes_limit": workspace_limit}
    return arguments


def _parameters(
    model: ModelHelper,
    blob_out: Any,
    shape: list[int],
    outputs: int,
    weight_initializer: Any,
    bias_initializer: Any,
) -> list[Any]:
    """The weights and, where there is something that fills it, the bias."""
    weight = model.create_param(
        blob_out + "_w", shape, weight_initializer, tags=ParameterTags.WEIGHT
    )
    if bias_initializer is None:
        return [weight]
    bias = model.create_param(blob_out + "_b", [outputs], bias_initializer, tags=ParameterTags.BIAS)
    return [weight, bias]


HELPERS = [conv, conv_nd, conv_transpose, group_conv, group_conv_deprecated]
