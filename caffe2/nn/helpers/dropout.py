"""Dropout."""

from __future__ import annotations

from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.nn.engine import engine_arguments
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameters import output_name


def dropout(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Dropout: ratio (default: 0.5), and is_test, which must be given: in training 0,
    in tests 1.  The mask is in `_<blob_out>_mask`."""
    if "is_test" not in kwargs:
        raise UsageError("Argument 'is_test' is required")
    blob_out = output_name(model.net, blob_out)
    outputs = [blob_out, "_" + blob_out + "_mask"]
    return model.net.Dropout([blob_in], outputs, **engine_arguments(kwargs))[0]


HELPERS = [dropout]
