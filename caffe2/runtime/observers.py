"""Observers of nets that the engine runs."""

from __future__ import annotations

from typing import Any

from caffe2 import _native
from caffe2.graph.net import Net
from caffe2.graph.observer import tell


def connect_observers(workspace: _native.Workspace, net: Any) -> None:
    """Has a created net tell the observers that are attached to `net`, a Net, if there are any."""
    if not isinstance(net, Net) or not net.observers:
        return
    operators = list(net.Proto().op)
    observers = net.observers

    def told(index: int, done: bool) -> None:
        tell(observers, operators[index], done)

    workspace.observe_net(net.Name(), told)
