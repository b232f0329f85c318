"""If and While over nets; see `caffe2.graph.control_ops`."""

from caffe2.graph.control_ops import add_if_op, add_while_op, get_external_blob_names

__all__ = ["add_if_op", "add_while_op", "get_external_blob_names"]
