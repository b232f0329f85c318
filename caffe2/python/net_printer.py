"""Nets as text; see `caffe2.graph.printer`."""

from caffe2.graph.printer import debug_net, to_string

__all__ = ["debug_net", "to_string"]
