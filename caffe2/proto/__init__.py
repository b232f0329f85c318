"""The messages of the wire format: nets, operators, tensors, plans and stored predictors."""

from caffe2.proto import caffe2_pb2

# Scripts say caffe2_pb2.CUDA; the enum says PROTO_CUDA. Both are offered.
for _name, _number in caffe2_pb2.DeviceTypeProto.items():
    setattr(caffe2_pb2, _name.removeprefix("PROTO_"), _number)
