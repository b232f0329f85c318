"""Errors of the engine."""

from caffe2._native import EngineError

__all__ = ["EngineError"]
