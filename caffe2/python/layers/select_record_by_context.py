"""The layer SelectRecordByContext; see `caffe2.layers.structure`."""

from caffe2.layers.structure import SelectRecordByContext

__all__ = ["SelectRecordByContext"]
