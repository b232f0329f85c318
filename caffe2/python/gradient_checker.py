"""Gradients against numeric ones; see `caffe2.testing.numeric_gradients`."""

from caffe2.testing.numeric_gradients import (
    GradientChecker,
    NetGradientChecker,
    getGradientForOp,
)

__all__ = ["GradientChecker", "NetGradientChecker", "getGradientForOp"]
