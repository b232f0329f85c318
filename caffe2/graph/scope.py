"""Scopes for names and devices.  Each thread has its own; they nest and survive exceptions.

with NameScope("tower"), DeviceScope(DeviceOption(CUDA, 1)):
    net.Relu("x", "y")  # Relu tower/x -> tower/y on the second GPU
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from caffe2.graph.errors import UsageError
from caffe2.proto import caffe2_pb2

SEPARATOR = "/"


class _Scopes(threading.local):
    names: str = ""
    device: caffe2_pb2.DeviceOption | None = None


_scopes = _Scopes()


def CurrentNameScope() -> str:
    """What is put in front of names: "" or a prefix that ends in "/"."""
    return _scopes.names


def CurrentDeviceScope() -> caffe2_pb2.DeviceOption | None:
    """The device that new operators get, or None."""
    return _scopes.device


@contextmanager
def NameScope(prefix: str | None, reset: bool = False) -> Iterator[None]:
    """Puts `prefix` and "/" in front of names; `reset` forgets the outer scopes.

    An empty prefix adds nothing.
    """
    if not isinstance(prefix, (str, type(None))):
        raise UsageError(f"NameScope takes in a string as its argument, got {prefix!r}")
    outer = _scopes.names
    _scopes.names = ("" if reset else outer) + (prefix + SEPARATOR if prefix else "")
    try:
        yield
    finally:
        _scopes.names = outer


def EmptyNameScope() -> AbstractContextManager[None]:
    """A scope in which names stand for themselves."""
    return NameScope("", reset=True)


@contextmanager
def DeviceScope(
    scope: caffe2_pb2.DeviceOption | None, node_name: str | None = None
) -> Iterator[None]:
    """Gives operators made inside the device `scope`, on the node `node_name`.

    The node of the outer scope holds unless a new one is named; `extra_info` adds up.
    """
    device = caffe2_pb2.DeviceOption()
    if scope:  # scripts say 0 for the CPU
        if not isinstance(scope, caffe2_pb2.DeviceOption):
            raise UsageError(
                f"DeviceScope takes in a caffe2_pb2.DeviceOption as its argument, got {scope!r}"
            )
        device.CopyFrom(scope)
    elif scope is None and node_name is None:
        raise UsageError("DeviceScope needs a device or a node name")
    outer = _scopes.device
    if node_name:
        device.node_name = node_name
    elif outer is not None and outer.node_name and not device.node_name:
        device.node_name = outer.node_name
    if outer is not None and scope and outer.extra_info:
        device.extra_info[:] = [*outer.extra_info, *device.extra_info]
    _scopes.device = device
    try:
        yield
    finally:
        _scopes.device = outer


@contextmanager
def EmptyDeviceScope() -> Iterator[None]:
    """A scope in which operators get no device."""
    outer = _scopes.device
    _scopes.device = None
    try:
        yield
    finally:
        _scopes.device = outer


def SetDeviceOption(device: caffe2_pb2.DeviceOption | None) -> None:
    """The device of operators made from here on in this thread, up to the end of the enclosing
    DeviceScope, if there is one."""
    if not isinstance(device, (caffe2_pb2.DeviceOption, type(None))):
        raise UsageError(f"SetDeviceOption takes in a caffe2_pb2.DeviceOption, got {device!r}")
    if device is not None:
        copy = caffe2_pb2.DeviceOption()
        copy.CopyFrom(device)
        device = copy
    _scopes.device = device
