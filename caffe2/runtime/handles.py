"""Workspaces and what is in them, as objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from caffe2 import _native
from caffe2.ops.datatypes import dtype_of
from caffe2.proto import caffe2_pb2
from caffe2.runtime import workspaces
from caffe2.runtime.engine import new_workspace
from caffe2.runtime.feeding import feed
from caffe2.runtime.names import (
    GetNetName,
    StringifyBlobName,
    StringifyNetName,
    StringifyProto,
    site_of,
    sites_of,
)


class Tensor:
    """The tensor in a blob."""

    def __init__(self, workspace: _native.Workspace, name: str) -> None:
        self._workspace, self._name = workspace, name

    @property
    def data(self) -> npt.NDArray[Any]:
        """The values themselves: writing to the array writes to the blob.  Strings are a copy."""
        spec = self._workspace.tensor_spec(self._name)
        if spec is None or spec[1] == "object":
            return self.fetch()
        return self._workspace.view(self._name)  # type: ignore[return-value]

    @property
    def shape(self) -> tuple[int, ...]:
        spec = self._workspace.tensor_spec(self._name)
        return () if spec is None else tuple(spec[0])

    def init(self, shape: Any, data_type: int) -> None:
        """Makes it zeros of a shape and a number of DataType.  RuntimeError for strings."""
        dtype = dtype_of(data_type)
        if dtype == np.dtype(object):
            raise RuntimeError("a tensor of strings cannot be made empty; feed its values")
        self.feed(np.zeros(tuple(shape), dtype))

    def reshape(self, shape: Any) -> None:
        """Gives the values another shape of the same size."""
        self.feed(self.fetch().reshape(tuple(shape)))

    def feed(self, value: Any, device_option: Any = None) -> bool:
        feed(self._workspace, self._name, value)
        return True

    def fetch(self) -> npt.NDArray[Any]:
        return self._workspace.fetch(self._name)  # type: ignore[return-value]


class Blob:
    """A blob of a workspace."""

    def __init__(self, workspace: _native.Workspace, name: str) -> None:
        self._workspace, self._name = workspace, name

    def feed(self, value: Any, device_option: Any = None) -> bool:
        """Writes a copy of a value; see `workspace.FeedBlob`."""
        feed(self._workspace, self._name, value)
        return True

    def fetch(self) -> Any:
        """A copy of the value."""
        return self._workspace.fetch(self._name)

    def is_tensor(self) -> bool:
        """Whether the blob holds a tensor."""
        return self._workspace.tensor_spec(self._name) is not None

    def tensor(self) -> Tensor:
        """The tensor in it; TypeError for anything else."""
        if not self.is_tensor():
            kind = self._workspace.blob_kind(self._name)
            raise TypeError(f"blob '{self._name}' holds {kind}, not a tensor")
        return Tensor(self._workspace, self._name)

    def serialize(self, name: Any = None) -> bytes:
        """The bytes of a BlobProto, under the blob's own name."""
        return self._workspace.serialize(self._name)

    def deserialize(self, serialized: bytes) -> None:
        """Writes what `serialize` of any blob gave."""
        self._workspace.deserialize(self._name, serialized)


class CreatedNet:
    """A net that is ready to run in a workspace."""

    def __init__(self, workspace: _native.Workspace, name: str) -> None:
        self._workspace, self.name = workspace, name

    def run(self) -> bool:
        self._workspace.run_net(self.name)
        return True

    def cancel(self) -> None:
        """Ends the run that another thread is in, if there is one; it raises EngineError there."""
        self._workspace.cancel_net(self.name)


class _Current:
    def __get__(self, instance: Any, owner: type[Workspace]) -> Workspace:
        return owner.of(workspaces.current())


class Workspace:
    """Named blobs and the nets that run on them.

    name  of a workspace that `SwitchWorkspace` knows, made where it is missing; None makes one
          that nobody else sees

    In a `with` block the functions of `caffe2.python.workspace` work on it, in this thread:

        with workspace.Workspace("src"):
            workspace.FeedBlob("x", x)
    """

    current = _Current()

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        if name is None:
            self._workspace = new_workspace()
        else:
            if name not in workspaces.Workspaces():
                workspaces.CreateWorkspace(name)
            self._workspace = workspaces.resolve(name)

    @classmethod
    def of(cls, native: _native.Workspace) -> Workspace:
        """The handle of a workspace of the engine."""
        handle = cls.__new__(cls)
        handle.name, handle._workspace = None, native
        return handle

    @property
    def native(self) -> _native.Workspace:
        return self._workspace

    def allow_files(self, allowed: bool = True) -> None:
        """Whether operators of nets that are made here from now on may read and write files, as
        they may at first.  EngineError when a net with such an operator is made or run
        nevertheless."""
        self._workspace.allow_files(allowed)

    def __enter__(self) -> Workspace:
        workspaces.push(self._workspace, self.name or "")
        return self

    def __exit__(self, *exc_info: object) -> None:
        workspaces.pop()

    @property
    def blobs(self) -> dict[str, Blob]:
        return {name: Blob(self._workspace, name) for name in self._workspace.blobs()}

    @property
    def nets(self) -> dict[str, CreatedNet]:
        return {name: CreatedNet(self._workspace, name) for name in self._workspace.nets()}

    def create_blob(self, name: Any) -> Blob:
        """The blob of this name, made empty where it is missing."""
        self._workspace.create_blob(StringifyBlobName(name))
        return Blob(self._workspace, StringifyBlobName(name))

    def has_blob(self, name: Any) -> bool:
        return self._workspace.has_blob(StringifyBlobName(name))

    def remove_blob(self, name: Any) -> bool:
        return self._workspace.delete_blob(StringifyBlobName(name))

    def feed_blob(self, name: Any, value: Any, device_option: Any = None) -> bool:
        return self.create_blob(name).feed(value)

    def fetch_blob(self, name: Any) -> Any:
        return self._workspace.fetch(StringifyBlobName(name))

    def create_net(self, net: Any, overwrite: bool = False) -> CreatedNet:
        """Makes a Net or NetDef ready to run; see `workspace.CreateNet`."""
        if isinstance(net, str):
            raise TypeError(f"a Net, a NetDef or its bytes is needed, not {net!r:.200}")
        self._workspace.create_net(StringifyProto(net), sites_of(net), overwrite)
        if isinstance(net, bytes):
            net = caffe2_pb2.NetDef.FromString(net)
        return CreatedNet(self._workspace, GetNetName(net))

    def run(self, runnable: Any) -> bool:
        """Runs an operator, a net (once, without keeping it) or a plan."""
        from caffe2.plans.plan import Plan
        from caffe2.plans.step import ExecutionStep

        if isinstance(runnable, ExecutionStep):
            runnable = Plan(runnable)
        message = runnable.Proto() if hasattr(runnable, "Proto") else runnable
        if isinstance(message, caffe2_pb2.OperatorDef):
            self._workspace.run_operator(message.SerializeToString(), site_of(message))
        elif isinstance(message, caffe2_pb2.PlanDef):
            sites = runnable.network_sites if isinstance(runnable, Plan) else []
            self._workspace.run_plan(message.SerializeToString(), sites)
        else:
            self._workspace.run_net_once(StringifyProto(message), sites_of(runnable))
        return True

    def run_net(self, name: Any) -> bool:
        """Runs a net that `create_net` made."""
        self._workspace.run_net(StringifyNetName(name))
        return True
