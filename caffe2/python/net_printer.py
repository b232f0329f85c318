"""Nets and plans as text, and looking for what is wrong in them; see `caffe2.plans.printing` and
`caffe2.plans.analysis`."""

from caffe2.plans.analysis import analyze
from caffe2.plans.printing import debug_net, to_string

__all__ = ["analyze", "debug_net", "to_string"]
