"""The tensors of a workspace as a mapping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping

import numpy as np

from caffe2 import _native
from caffe2.passes.model import Array
from caffe2.runtime.feeding import feed


class WorkspaceValues(MutableMapping[str, Array]):
    """Those of the named blobs of a workspace that hold tensors; new ones become blobs."""

    def __init__(self, workspace: _native.Workspace, names: Iterable[str]) -> None:
        self._workspace = workspace
        self._names = {name for name in names if workspace.has_blob(name)}

    def __getitem__(self, name: str) -> Array:
        if name not in self._names or self._workspace.tensor_spec(name) is None:
            raise KeyError(name)
        return np.asarray(self._workspace.fetch(name))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __setitem__(self, name: str, value: Array) -> None:
        feed(self._workspace, name, value)
        self._names.add(name)

    def __delitem__(self, name: str) -> None:
        self._names.remove(name)
        self._workspace.delete_blob(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
