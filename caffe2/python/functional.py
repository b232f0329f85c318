"""Operators as functions of arrays; see `caffe2.runtime.functional`."""

from caffe2.runtime.functional import Functional, namedtupledict

__all__ = ["Functional", "namedtupledict"]
