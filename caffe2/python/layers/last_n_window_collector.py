"""The layer LastNWindowCollector; see `caffe2.layers.sampling`."""

from caffe2.layers.sampling import LastNWindowCollector

__all__ = ["LastNWindowCollector"]
