"""Sharing of parameters; see `caffe2.nn.parameter_sharing`."""

from caffe2.nn.parameter_sharing import (
    ParameterSharing,
    ParameterSharingContext,
    parameter_sharing_context,
)

__all__ = ["ParameterSharing", "ParameterSharingContext", "parameter_sharing_context"]
