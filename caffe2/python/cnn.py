"""CNNModelHelper; see `caffe2.nn.cnn`."""

from caffe2.nn.cnn import CNNModelHelper
from caffe2.python import brew
from caffe2.python.model_helper import ModelHelper

__all__ = ["CNNModelHelper", "ModelHelper", "brew"]
