"""Modifiers of nets; see `caffe2.train.net_modifiers`."""

from caffe2.train.net_modifiers import NetModifier

__all__ = ["NetModifier"]
