"""Tests of operators; nothing is recorded here, the assertions are those of
`hypothesis_test_util`."""

from hypothesis import given, settings

from caffe2.testing.hypothesis_case import HypothesisTestCase as SerializedTestCase

__all__ = ["SerializedTestCase", "given", "settings"]
