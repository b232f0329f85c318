"""Clipped gradients; see `caffe2.train.net_modifiers`."""

from caffe2.train.net_modifiers import GradientClipping

__all__ = ["GradientClipping"]
