"""Small helpers of scripts: blobs emptied, a debugger at the first error, memory of GPUs."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from caffe2.runtime.workspace import ResetBlob


def ResetBlobs(blobs: Iterable[Any]) -> None:
    """Empties blobs, which stay."""
    for blob in blobs:
        ResetBlob(blob)


def GetGPUMemoryUsageStats() -> dict[str, Any]:
    """Bytes in use and the most there were, in all and by GPU: none, as there is no GPU."""
    empty = np.zeros(0, np.int64)
    return {"total_by_gpu": empty, "max_by_gpu": empty.copy(), "total": 0, "max_total": 0}


class DebugMode:
    """`DebugMode.run(f)` calls f, and opens the debugger where an exception was raised."""

    @classmethod
    def run(cls, func: Callable[[], Any]) -> Any:
        try:
            return func()
        except KeyboardInterrupt:
            raise
        except Exception:
            import pdb
            import traceback

            traceback.print_exc()
            pdb.post_mortem(sys.exc_info()[2])
            raise


def debug(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that runs a function in DebugMode."""

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return DebugMode.run(lambda: f(*args, **kwargs))

    return wrapper
