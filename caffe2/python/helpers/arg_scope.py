"""Defaults for the arguments of layers; see `caffe2.nn.arg_scope`."""

from caffe2.nn.arg_scope import arg_scope, get_current_scope

__all__ = ["arg_scope", "get_current_scope"]
