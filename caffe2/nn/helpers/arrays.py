"""Sums and shapes of blobs."""

from __future__ import annotations

from typing import Any

from caffe2.nn.engine import plain_arguments
from caffe2.nn.model_helper import ModelHelper


def sum(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Sum, element by element over several blobs."""
    return model.net.Sum(blob_in, blob_out, **kwargs)


def flatten(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Flatten; `axis` says where the second dimension begins (default: 1)."""
    return model.net.Flatten(blob_in, blob_out, **plain_arguments(kwargs))


HELPERS = [flatten, sum]
