"""Schedules of learning rates; see `caffe2.train.schedule`."""

from caffe2.train.schedule import ExponentialLR, LearningRateSchedule, StepLR, plot

__all__ = ["ExponentialLR", "LearningRateSchedule", "StepLR", "plot"]
