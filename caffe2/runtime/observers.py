"""Observers of nets that the engine runs."""

from __future__ import annotations

from typing import Any

from caffe2 import _native
from caffe2.graph.net import Net
from caffe2.graph.observer import tell
from caffe2.proto import caffe2_pb2
from caffe2.runtime import finite
from caffe2.runtime.names import StringifyNetName


def connect_observers(workspace: _native.Workspace, net: Any) -> None:
    """Has a created net tell the observers that are attached to `net`, a Net, if there are any,
    and the one that looks for numbers that are not finite, if that is wanted."""
    observers = net.observers if isinstance(net, Net) else []
    if not observers and not finite.enabled():
        return
    name = StringifyNetName(net)
    operators = caffe2_pb2.NetDef.FromString(workspace.net_def(name)).op
    attached = list(net.Proto().op) if observers else []
    watch = finite.watcher(workspace, operators)

    def told(index: int, done: bool) -> None:
        if observers:
            tell(observers, attached[index], done)
        if finite.enabled():
            watch(index, done)

    workspace.observe_net(name, told)
