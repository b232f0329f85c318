"""ModelHelper; see `caffe2.nn.model_helper`."""

from caffe2.graph.predictor import ExtractPredictorNet
from caffe2.nn.model_helper import ModelHelper

__all__ = ["ExtractPredictorNet", "ModelHelper"]
