"""Fully connected layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import Fill, ParameterTags, output_name, update_initializer


def fc(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    dim_in: int,
    dim_out: int,
    weight_init: Fill | None = None,
    bias_init: Fill | None = None,
    WeightInitializer: Callable[[], Any] | None = None,
    BiasInitializer: Callable[[], Any] | None = None,
    **kwargs: Any,
) -> Any:
    """A fully connected layer, Y = X W^T + b.

    The parameters are `<blob_out>_w`, (dim_out, dim_in), filled by XavierFill, and `<blob_out>_b`,
    (dim_out), filled with 0; `weight_init` and `bias_init` name other operators and arguments.
    Further arguments (axis, ...) go to the operator FC.
    """
    blob_out = output_name(model.net, blob_out)
    weight = model.create_param(
        blob_out + "_w",
        [dim_out, dim_in],
        update_initializer(WeightInitializer, weight_init, ("XavierFill", {})),
        tags=ParameterTags.WEIGHT,
    )
    bias = model.create_param(
        blob_out + "_b",
        [dim_out],
        update_initializer(BiasInitializer, bias_init, ("ConstantFill", {})),
        tags=ParameterTags.BIAS,
    )
    return model.net.FC([blob_in, weight, bias], blob_out, **kwargs)


HELPERS = [fc]
