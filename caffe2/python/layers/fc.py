"""The layer FC; see `caffe2.layers.dense`."""

from caffe2.layers.dense import FC, get_fc_predictor_version

__all__ = ["FC", "get_fc_predictor_version"]
