"""Tags of layers; see `caffe2.layers.tags`."""

from caffe2.layers.tags import TagContext, Tags

__all__ = ["TagContext", "Tags"]
