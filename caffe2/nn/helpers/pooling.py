"""Pooling."""

from __future__ import annotations

from typing import Any

from caffe2.nn.engine import engine_arguments
from caffe2.nn.model_helper import ModelHelper


def max_pool(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator MaxPool: kernel, stride, pad, ..."""
    return model.net.MaxPool(blob_in, blob_out, **engine_arguments(kwargs))


def average_pool(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator AveragePool: kernel, stride, pad, ..."""
    return model.net.AveragePool(blob_in, blob_out, **engine_arguments(kwargs))


HELPERS = [average_pool, max_pool]
