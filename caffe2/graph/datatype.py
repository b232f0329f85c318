"""Element types by name, for arguments such as `dtype` and `to`."""

from enum import IntEnum

from caffe2.proto import caffe2_pb2

DataType = IntEnum("DataType", dict(caffe2_pb2.TensorProto.DataType.items()))  # type: ignore[misc]
DataType.__doc__ = "The numbers of `TensorProto.DataType`."
