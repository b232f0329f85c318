"""ShuffleNet; see `caffe2.nn.shufflenet`."""

from caffe2.nn.shufflenet import OUTPUT_CHANNELS, ShuffleNetV2Builder, create_shufflenet

__all__ = ["OUTPUT_CHANNELS", "ShuffleNetV2Builder", "create_shufflenet"]
