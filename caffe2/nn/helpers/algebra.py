"""Products, differences and sums of blobs."""

from __future__ import annotations

from typing import Any

from caffe2.nn.model_helper import ModelHelper


def sub(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Sub, element by element: the first blob less the second."""
    return model.net.Sub(blob_in, blob_out, **kwargs)


def mat_mul(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator MatMul, the product of two matrices."""
    return model.net.MatMul(blob_in, blob_out, **kwargs)


def batch_mat_mul(
    model: ModelHelper,
    blob_in: Any,
    blob_out: Any,
    enable_tensor_core: bool = False,
    **kwargs: Any,
) -> Any:
    """The operator BatchMatMul, products of the last two dimensions.

    enable_tensor_core: no effect.
    """
    return model.net.BatchMatMul(blob_in, blob_out, **kwargs)


def reduce_sum(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator ReduceSum over the dimensions `axes` (default: all)."""
    return model.net.ReduceSum(blob_in, blob_out, **kwargs)


def arg_min(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator ArgMin: where the least value along `axis` is."""
    return model.net.ArgMin(blob_in, blob_out, **kwargs)


HELPERS = [arg_min, batch_mat_mul, mat_mul, reduce_sum, sub]
