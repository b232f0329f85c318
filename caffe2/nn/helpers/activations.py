"""Element-wise functions and softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caffe2.nn.engine import engine_arguments
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import Fill, ParameterTags, output_name, update_initializer


def relu(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Relu."""
    return model.net.Relu(blob_in, blob_out, **engine_arguments(kwargs))


def tanh(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Tanh."""
    return model.net.Tanh(blob_in, blob_out, **engine_arguments(kwargs))


def softmax(model: ModelHelper, blob_in: Any, blob_out: Any = None, **kwargs: Any) -> Any:
    """The operator Softmax."""
    return model.net.Softmax(blob_in, blob_out, **engine_arguments(kwargs))


def prelu(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    num_channels: int = 1,
    slope_init: Fill | None = None,
    **kwargs: Any,
) -> Any:
    """The operator PRelu, with a slope for each of `num_channels` channels, or one for all.

    The slopes are the parameter `<blob_out>_slope`, filled with 0.25 or by `slope_init`, an
    operator and its arguments.
    """
    blob_out = output_name(model.net, blob_out)
    slope = model.create_param(
        blob_out + "_slope",
        [num_channels],
        update_initializer(None, slope_init, ("ConstantFill", {"value": 0.25})),
    )
    # NCHW, which models give every layer, is the operator's default.
    order = {"order": "NHWC"} if kwargs.get("order") == "NHWC" else {}
    return model.net.PRelu([blob_in, slope], blob_out, **order)


def elementwise_linear(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim: int,
    weight_init: Fill | None = None,
    bias_init: Fill | None = None,
    WeightInitializer: Callable[[], Any] | None = None,
    BiasInitializer: Callable[[], Any] | None = None,
    **kwargs: Any,
) -> Any:
    """The operator ElementwiseLinear, Y = X * w + b for each of `dim` columns.

    The parameters are `<blob_out>_w`, filled with 1, and `<blob_out>_b`, filled with 0, of length
    `dim`; `weight_init` and `bias_init` name other operators and arguments.
    """
    blob_out = output_name(model.net, blob_out)
    weight = model.create_param(
        blob_out + "_w",
        [dim],
        update_initializer(WeightInitializer, weight_init, ("ConstantFill", {"value": 1.0})),
        tags=ParameterTags.WEIGHT,
    )
    bias = model.create_param(
        blob_out + "_b",
        [dim],
        update_initializer(BiasInitializer, bias_init, ("ConstantFill", {"value": 0.0})),
        tags=ParameterTags.BIAS,
    )
    return model.net.ElementwiseLinear([blob_in, weight, bias], blob_out, **kwargs)


HELPERS = [elementwise_linear, prelu, relu, softmax, tanh]
