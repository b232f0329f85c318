"""The same on several devices; see `caffe2.testing.devices`."""

from caffe2.testing.devices import DeviceChecker

__all__ = ["DeviceChecker"]
