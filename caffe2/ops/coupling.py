# mypy: disable-error-code="misc"
"""Blobs that belong together."""

from __future__ import annotations

from caffe2.ops.arguments import OperatorError
from caffe2.ops.declaration import Array, OpView, Spec, operator


def _as_they_are(*blob: Spec, op: OpView) -> tuple[Spec, ...]:
    if len(op.outputs) != len(blob):
        raise OperatorError("", f"has {len(op.outputs)} outputs for {len(blob)} inputs")
    return blob


@operator(
    "DataCouple",
    inputs="blob*",
    outputs="blob*",
    enforced_inplace=[(0, 0)],
    shape=_as_they_are,
)
class DataCouple:
    """Leaves its blobs as they are: what uses one of them runs after all of them are written.

    blob: tensors of any type, each input also the output at its place.
    """

    def reference(*blob: Array) -> tuple[Array, ...]:
        return blob
