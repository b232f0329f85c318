"""Nets as text, and looking for what is wrong in plans; see `caffe2.graph.printer` and
`caffe2.plans.analysis`."""

from caffe2.graph.printer import debug_net, to_string
from caffe2.plans.analysis import analyze

__all__ = ["analyze", "debug_net", "to_string"]
