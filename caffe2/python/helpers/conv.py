"""Convolutions; see `caffe2.nn.helpers`."""

from caffe2.nn.helpers.convolution import (
    conv,
    conv_nd,
    conv_transpose,
    group_conv,
    group_conv_deprecated,
)

__all__ = ["conv", "conv_nd", "conv_transpose", "group_conv", "group_conv_deprecated"]
