"""Immediate mode: each operator that a net gets runs at once, in a workspace apart.

For trying things out by hand; nets are built as always meanwhile.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from typing import Any

from caffe2.graph.net import Net
from caffe2.runtime import workspace
from caffe2.runtime.handles import Workspace

_workspace: Workspace | None = None
root_folder = ""


def IsImmediate() -> bool:
    """Whether immediate mode is on."""
    return _workspace is not None


def StartImmediate(i_know: bool = False) -> None:
    """Turns immediate mode on, with an empty workspace.  It is one for all threads.

    i_know: no warning that this is for experiments
    """
    global _workspace, root_folder
    if not i_know:
        warnings.warn("immediate mode runs every operator as it is created", stacklevel=2)
    if _workspace is not None:
        StopImmediate()
    _workspace, root_folder = Workspace(), tempfile.mkdtemp(prefix="caffe2-immediate-")
    Net.on_create = RunOperatorImmediate


def StopImmediate() -> None:
    """Turns immediate mode off and forgets its workspace.  Nothing when it is off."""
    global _workspace, root_folder
    if _workspace is not None:
        shutil.rmtree(root_folder, ignore_errors=True)
        _workspace, root_folder, Net.on_create = None, "", None


def _required() -> Workspace:
    if _workspace is None:
        raise RuntimeError("immediate mode is off; StartImmediate() turns it on")
    return _workspace


def ImmediateBlobs() -> list[str]:
    """The blobs of immediate mode.  RuntimeError when it is off; so for those below."""
    return list(_required().blobs)


def RunOperatorImmediate(op: Any) -> None:
    """Runs an operator."""
    _required().run(op)


def FetchImmediate(name: Any) -> Any:
    """A copy of a blob."""
    return _required().fetch_blob(name)


def FeedImmediate(name: Any, arr: Any, device_option: Any = None) -> bool:
    """Writes a copy of a value; see `workspace.FeedBlob`."""
    return workspace.FeedBlob(name, arr, device_option, ws=_required())
