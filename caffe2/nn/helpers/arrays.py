"""Sums, shapes and orders of blobs."""

from __future__ import annotations

from typing import Any

from caffe2.nn.engine import engine_arguments, plain_arguments
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import output_name


def sum(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Sum, element by element over several blobs."""
    return model.net.Sum(blob_in, blob_out, **kwargs)


def flatten(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Flatten; `axis` says where the second dimension begins (default: 1)."""
    return model.net.Flatten(blob_in, blob_out, **plain_arguments(kwargs))


def concat(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Concat: blobs one after the other along `axis`, by default the channels.

    The sizes along the axis are in the blob `_<blob_out>_concat_dims`.
    """
    blob_out = output_name(model.net, blob_out)
    if "axis" in kwargs:
        kwargs.pop("order", None)
    return model.net.Concat(blob_in, [blob_out, "_" + blob_out + "_concat_dims"], **kwargs)[0]


def depth_concat(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The former name of `concat`."""
    return concat(model, blob_in, blob_out, **kwargs)


def transpose(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Transpose; `axes` says which dimension of the input each one is."""
    return model.net.Transpose(blob_in, blob_out, **engine_arguments(kwargs))


HELPERS = [concat, depth_concat, flatten, sum, transpose]
