"""Element-wise functions and softmax."""

from __future__ import annotations

from typing import Any

from caffe2.nn.engine import engine_arguments
from caffe2.nn.model_helper import ModelHelper


def relu(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Relu."""
    return model.net.Relu(blob_in, blob_out, **engine_arguments(kwargs))


def tanh(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Tanh."""
    return model.net.Tanh(blob_in, blob_out, **engine_arguments(kwargs))


def softmax(model: ModelHelper, blob_in: Any, blob_out: Any = None, **kwargs: Any) -> Any:
    """The operator Softmax."""
    return model.net.Softmax(blob_in, blob_out, **engine_arguments(kwargs))


HELPERS = [relu, softmax, tanh]
