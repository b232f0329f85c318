"""A workspace of its own with the functions of the module `workspace` as methods."""

from __future__ import annotations

import functools
from typing import Any

from caffe2.runtime import workspace
from caffe2.runtime.handles import Workspace as Handle


class Workspace:
    """`Workspace().FeedBlob("x", x)`: functions of `caffe2.runtime.workspace`, in this one."""

    def __init__(self) -> None:
        self._handle = Handle()

    def __getattr__(self, attr: str) -> Any:
        found = getattr(workspace, attr)
        if not callable(found):
            return found

        @functools.wraps(found)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self._handle:
                return found(*args, **kwargs)

        return inside
