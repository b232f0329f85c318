"""Parameters for layers that are given sizes instead of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError

if TYPE_CHECKING:
    from caffe2.graph.net import Net


def conv_weight_shape(
    dim_in: int, dim_out: int, kernels: Sequence[int], group: int = 1, order: str = "NCHW"
) -> list[int]:
    """The shape of a convolution's weights: one filter per output channel."""
    if dim_in % group:
        raise UsageError(f"dim_in should be divisible by group, got {dim_in} and {group}")
    channels = dim_in // group
    if order == "NHWC":
        return [dim_out, *kernels, channels]
    return [dim_out, channels, *kernels]


def missing_weights(
    net: Net,
    op_type: str,
    inputs: Sequence[BlobReference],
    outputs: Sequence[BlobReference],
    kwargs: dict[str, Any],
) -> list[BlobReference]:
    """The weights and bias of a Conv or FC that was given only data and `dim_in`, `dim_out`.

    They are called `<output>_w` and `<output>_b`; operators that make them go to
    `net.param_init`.  The sizes are taken out of `kwargs`.  Otherwise there is nothing to add.
    """
    sized = "dim_out" in kwargs or "num_output" in kwargs
    if op_type not in ("Conv", "FC") or len(inputs) != 1 or not sized:
        return []
    if "dim_in" not in kwargs:
        raise UsageError(f"{op_type} '{outputs[0]}' without weights needs dim_in and dim_out")
    dim_in = kwargs.pop("dim_in")
    dim_out = kwargs.pop("dim_out", None) or kwargs["num_output"]
    kwargs.pop("num_output", None)
    if op_type == "FC":
        shape = [dim_out, dim_in]
    else:
        kernel = kwargs.get("kernel", 0)
        kernels = kwargs.get("kernels") or [
            kwargs.get("kernel_h", kernel),
            kwargs.get("kernel_w", kernel),
        ]
        shape = conv_weight_shape(
            dim_in, dim_out, kernels, kwargs.get("group", 1), kwargs.get("order", "NCHW")
        )
    made = [outputs[0] + "_w"]
    if not kwargs.get("no_bias"):
        made.append(outputs[0] + "_b")
    for blob, fill, size in zip(
        made, ("XavierFill", "ConstantFill"), (shape, [dim_out]), strict=False
    ):
        if not net.param_init.BlobIsDefined(blob):
            net.param_init.__getattr__(fill)([], blob, shape=size)
    return made
