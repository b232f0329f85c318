"""Caffe2 for today: static nets as protobuf data, trained and served by one small engine."""

__version__ = "0.1.0"
