"""Names that saved predictors use; see `caffe2/proto/predictor_consts.proto`."""

from caffe2.proto.predictor_consts_pb2 import PredictorConsts

__all__ = ["predictor_constants"]

predictor_constants = PredictorConsts()
