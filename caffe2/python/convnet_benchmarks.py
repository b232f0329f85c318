"""Networks that convolution is measured with; see `caffe2.nn.convnets`."""

from caffe2.nn.convnets import MLP, VGGA, AddParameterUpdate, AlexNet, Inception, OverFeat

__all__ = ["MLP", "VGGA", "AddParameterUpdate", "AlexNet", "Inception", "OverFeat"]
