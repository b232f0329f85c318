"""Looking for the operator that makes infinities, or what is no number, out of finite numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from caffe2 import _native
from caffe2.proto import caffe2_pb2

Told = Callable[[int, bool], None]
_enabled = False


def enable(wanted: bool) -> None:
    """Whether nets look for it.  They fetch all blobs of each operator then."""
    global _enabled  # noqa: PLW0603 -- a flag of the process
    _enabled = wanted


def enabled() -> bool:
    return _enabled


def watcher(workspace: _native.Workspace, ops: Sequence[caffe2_pb2.OperatorDef]) -> Told:
    """An observer of a net with these operators.  FloatingPointError ends its run."""
    clean: dict[int, bool] = {}

    def told(index: int, done: bool) -> None:
        if not done:
            clean[index] = _first(workspace, ops[index].input) is None
            return
        wrong = _first(workspace, ops[index].output)
        if clean.get(index) and wrong is not None:
            blob, value = wrong
            raise FloatingPointError(
                f"Operator {index} ({ops[index].type}): its output '{blob}' holds {value}, "
                f"but its inputs are finite: {', '.join(ops[index].input) or 'none'}"
            )

    return told


def _first(workspace: _native.Workspace, blobs: Iterable[str]) -> tuple[str, Any] | None:
    """The first blob with a number that is not finite, and this number."""
    for blob in blobs:
        spec = workspace.tensor_spec(blob) if workspace.has_blob(blob) else None
        if spec is None or not spec[1].startswith("float"):
            continue
        values = np.asarray(workspace.fetch(blob))
        wrong = values[~np.isfinite(values)]
        if wrong.size:
            return blob, wrong[0]
    return None
