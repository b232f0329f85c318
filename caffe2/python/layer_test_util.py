"""Tests of layers; see `caffe2.testing.layers`."""

from caffe2.testing.layers import LayersTestCase, OpSpec

__all__ = ["LayersTestCase", "OpSpec"]
