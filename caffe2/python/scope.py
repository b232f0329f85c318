"""Name and device scopes; see `caffe2.graph.scope`."""

from caffe2.graph.scope import (
    SEPARATOR as _NAMESCOPE_SEPARATOR,
)
from caffe2.graph.scope import (
    CurrentDeviceScope,
    CurrentNameScope,
    DeviceScope,
    EmptyDeviceScope,
    EmptyNameScope,
    NameScope,
)

__all__ = [
    "_NAMESCOPE_SEPARATOR",
    "CurrentDeviceScope",
    "CurrentNameScope",
    "DeviceScope",
    "EmptyDeviceScope",
    "EmptyNameScope",
    "NameScope",
]
