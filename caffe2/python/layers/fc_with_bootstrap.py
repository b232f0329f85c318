"""The layer FCWithBootstrap; see `caffe2.layers.dense`."""

from caffe2.layers.dense import FCWithBootstrap, get_fc_predictor_version

__all__ = ["FCWithBootstrap", "get_fc_predictor_version"]
