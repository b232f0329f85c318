"""Objects in force within a `with` block; see `caffe2.plans.context`."""

from caffe2.plans.context import DefaultManaged, Managed

__all__ = ["DefaultManaged", "Managed"]
