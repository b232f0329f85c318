"""The workspaces of the process, by name, and which of them is the current one.

The current workspace is one per process, as scripts expect.  A thread that is inside a
`with Workspace(name)` block has its own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from caffe2 import _native
from caffe2.runtime.engine import new_workspace
from caffe2.runtime.names import StringifyBlobName, workspace_name

DEFAULT = "default"

_lock = threading.Lock()
_workspaces: dict[str, _native.Workspace] = {}
_current = DEFAULT
_active: _native.Workspace | None = None  # that of _current, once it was needed


class _Blocks(threading.local):
    """The `with` blocks around the present point of a thread, the innermost last."""

    def __init__(self) -> None:
        self.entered: list[tuple[_native.Workspace, str]] = []


_blocks = _Blocks()


def current() -> _native.Workspace:
    """The native workspace that functions without `ws=` work on."""
    global _active  # noqa: PLW0603 - see SwitchWorkspace
    if _blocks.entered:
        return _blocks.entered[-1][0]
    if _active is None:
        with _lock:
            if _current not in _workspaces:
                _workspaces[_current] = new_workspace()
            _active = _workspaces[_current]
    return _active


def resolve(ws: Any) -> _native.Workspace:
    """The native workspace that `ws=` means: None the current one, a name, or a Workspace.

    RuntimeError for a name that nobody has made.
    """
    if ws is None:
        return current()
    if isinstance(ws, _native.Workspace):
        return ws
    if not isinstance(ws, (str, bytes)):
        return ws.native  # type: ignore[no-any-return]
    ws = workspace_name(ws)
    with _lock:
        if ws == DEFAULT and ws not in _workspaces:
            _workspaces[ws] = new_workspace()
        if ws not in _workspaces:
            raise RuntimeError(f"there is no workspace '{ws}'; there are: {', '.join(_names())}")
        return _workspaces[ws]


def push(workspace: _native.Workspace, name: str) -> None:
    """Makes a workspace the current one of this thread; `pop` undoes it."""
    _blocks.entered.append((workspace, name))


def pop() -> None:
    _blocks.entered.pop()


def SwitchWorkspace(name: str | bytes, create_if_missing: bool = False) -> None:
    """Makes `name` the current workspace.  RuntimeError when there is none and none is wanted."""
    global _active, _current
    name = workspace_name(name)
    with _lock:
        if name not in _workspaces and name != DEFAULT:
            if not create_if_missing:
                raise RuntimeError(
                    f"there is no workspace '{name}'; there are: {', '.join(_names())}. "
                    "create_if_missing=True makes it."
                )
            _workspaces[name] = new_workspace()
        _current, _active = name, _workspaces.get(name)


def CreateWorkspace(name: str | bytes, reuse: bool = False, parent: Any = None) -> None:
    """Makes an empty workspace.  `SwitchWorkspace` and `ws=` find it by its name.

    reuse   one that exists already is fine; otherwise it is a RuntimeError
    parent  a workspace around it: its blobs are read and written here as well, new ones are the
            new workspace's own
    """
    name = workspace_name(name)
    outer = None if parent is None else resolve(parent)
    with _lock:
        if name in _workspaces or name == DEFAULT:
            if reuse and parent is None:
                return
            raise RuntimeError(f"there is a workspace '{name}' already; reuse=True takes it")
        _workspaces[name] = new_workspace(parent=outer)


def DeleteWorkspace(name: str | bytes) -> None:
    """Forgets a workspace; the memory of its nets and blobs goes back at once.

    When it is the current one, "default" is current afterwards.  RuntimeError for a name that
    nobody has made, ValueError for "default", which ResetWorkspace empties.
    """
    global _active, _current
    name = workspace_name(name)
    if name == DEFAULT:
        raise ValueError("the workspace 'default' stays; ResetWorkspace() empties it")
    workspace = resolve(name)
    with _lock:
        _workspaces.pop(name, None)
        if _current == name:
            _current, _active = DEFAULT, _workspaces.get(DEFAULT)
    workspace.reset()


def ShareWorkspace(src: Any, dst: Any = None, blobs: Any = None) -> None:
    """Lets a workspace see blobs of another one without a copy: both read and write the same.

    src    a workspace or its name
    dst    where they appear under the same names; default: the current workspace
    blobs  which; default: all that `src` has.  EngineError for one that it does not have
    """
    source, target = resolve(src), resolve(dst)
    names = source.blobs() if blobs is None else [StringifyBlobName(blob) for blob in blobs]
    for name in names:
        target.share_blob(source, name)


def _names() -> list[str]:
    return sorted({DEFAULT, *_workspaces})


def CurrentWorkspace() -> str:
    """The name of the current workspace; "" inside a block of one that has none."""
    return _blocks.entered[-1][1] if _blocks.entered else _current


def Workspaces() -> list[str]:
    """The names of all workspaces."""
    with _lock:
        return _names()


@contextlib.contextmanager
def WorkspaceGuard(workspace_name: str | bytes) -> Iterator[None]:
    """Switches to a workspace, made where missing, and back at the end of the `with` block."""
    before = _current
    SwitchWorkspace(workspace_name, True)
    try:
        yield
    finally:
        SwitchWorkspace(before)
