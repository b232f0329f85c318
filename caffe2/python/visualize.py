"""Pictures of images and filters; see `caffe2.testing.pictures`."""

from caffe2.testing.pictures import NCHW, NHWC, ChannelFirst, ChannelLast, PatchVisualizer

__all__ = ["NCHW", "NHWC", "ChannelFirst", "ChannelLast", "PatchVisualizer"]
