"""Tests of the old API; see `caffe2.testing.test_case`."""

from caffe2.testing.test_case import (
    TestCase,
    caffe2_flaky,
    get_default_test_flags,
    is_flaky_test_mode,
    numOps,
    rand_array,
    randBlob,
    randBlobFloat32,
    randBlobsFloat32,
    str_compare,
)

__all__ = [
    "TestCase",
    "caffe2_flaky",
    "get_default_test_flags",
    "is_flaky_test_mode",
    "numOps",
    "randBlob",
    "randBlobFloat32",
    "randBlobsFloat32",
    "rand_array",
    "str_compare",
]
