"""Every operator against its contract: the NumPy bodies, and the engine's kernels."""

import pytest
from operator_cases import CASES

from caffe2.testing import EngineRunner, NumpyRunner, check

needs_engine = pytest.mark.skipif(
    EngineRunner.unavailable() is not None, reason=str(EngineRunner.unavailable())
)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_numpy_body(case):
    check(case, NumpyRunner())


@needs_engine
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_engine(case):
    check(case, EngineRunner())
