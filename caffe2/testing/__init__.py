"""Tools for testing operators, for their authors and for the project's own tests.

    from caffe2.testing import Case, any_shape, check, floats

    def test_softplus():
        check(Case("Softplus", X=floats(any_shape)))

`check` draws inputs and holds the operator to the contract of its kind; `EngineRunner` does so for
the C++ kernels.  `CAFFE2_TEST_EFFORT=full` in the environment draws many more inputs.
"""

from __future__ import annotations

from caffe2.testing.cases import (
    Bad,
    Case,
    any_shape,
    anything,
    distinct,
    exactly,
    floats,
    integers,
    labels,
    like,
    probabilities,
    result_of,
)
from caffe2.testing.distributions import Integers, Normal, Share, Uniform
from caffe2.testing.gradient_checker import check_gradient
from caffe2.testing.harness import check
from caffe2.testing.runners import (
    EngineRunner,
    NumpyRunner,
    Operation,
    RefusedError,
    Runner,
    Session,
)

__all__ = [
    "Bad",
    "Case",
    "EngineRunner",
    "Integers",
    "Normal",
    "NumpyRunner",
    "Operation",
    "RefusedError",
    "Runner",
    "Session",
    "Share",
    "Uniform",
    "any_shape",
    "anything",
    "check",
    "check_gradient",
    "distinct",
    "exactly",
    "floats",
    "integers",
    "labels",
    "like",
    "probabilities",
    "result_of",
]
