"""A queue of records; see `caffe2.data.record_queue`."""

from caffe2.data.record_queue import RecordQueue

__all__ = ["RecordQueue"]
