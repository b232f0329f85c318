# mypy: disable-error-code="misc, no-any-return"
"""Operators that show what is in blobs, and others that say something about a workspace."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, INT64_MIN, Bool, Int, OperatorError, Str
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    NativeOnly,
    OpView,
    Spec,
    operator,
)


@operator(
    "Print",
    inputs="tensor",
    outputs="",
    args={
        "to_file": Bool(False),
        "limit": Int(1000, min=INT64_MIN, max=INT64_MAX),
        "every_n": Int(1, min=1),
    },
    kind="io",
    touches=("files",),
    touches_if="to_file",
)
class Print:
    """Shows a blob: its name, type, dimensions and elements, on one line.

    tensor: of any shape and type; of other blobs their kind is shown.
    to_file: adds the line to <root folder of the workspace>/<name of the blob>.log, which begins
    anew when a net is made; otherwise it goes to standard error.
    limit: how many elements are shown; 0 or less: all.
    every_n: show it at the first of n runs.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("it computes nothing")

    def shape(tensor: Any) -> tuple[()]:
        return ()


@operator(
    "Summarize",
    inputs="data",
    outputs="output?",
    args={"to_file": Bool(False)},
    types={"data": FLOAT},
    kind="io",
    touches=("files",),
    touches_if="to_file",
)
class Summarize:
    """Minimum, maximum, mean and standard deviation of a tensor.

    data: float tensor of any shape, with at least one element.
    output: float (4,).  The deviation is that of a sample (n - 1), 0 for one element.
    to_file: adds the four numbers to <root folder of the workspace>/<name of the blob>.summary,
    which begins anew when a net is made.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(data: Spec) -> Spec:
        if 0 in data.shape:
            raise OperatorError("data", "has no elements")
        return Spec((4,), data.dtype)

    def reference(data: Array, op: OpView) -> Array:
        wide = data.astype(np.float64)
        deviation = wide.std(ddof=1) if data.size > 1 else 0.0
        return np.array([data.min(), data.max(), wide.mean(), deviation], data.dtype)


class _Fail:
    """An error, always: for tests of what happens then."""

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape() -> tuple[()]:
        return ()

    def reference() -> tuple[()]:
        raise OperatorError("", "is there to fail")


for _name in ("Fail", "LogFatal"):
    operator(_name, inputs="", outputs="")(_Fail)


@operator("FeedBlob", inputs="", outputs="Y", args={"value": Str("")}, kind="io")
class FeedBlob:
    """Y = a text.

    value: the text.  Y: a blob that holds it, which is fetched as bytes.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("a text is no tensor")

    def shape() -> None:
        return None


@operator(
    "GetAllBlobNames",
    inputs="",
    outputs="blob_names",
    args={"include_shared": Bool(True)},
    kind="io",
)
class GetAllBlobNames:
    """The names of all blobs of the workspace.

    blob_names: strings (n,).
    include_shared: also those of the workspace around this one.
    """

    reference = NativeOnly("no workspace is known to a NumPy body")

    def shape() -> None:
        return None


@operator("Free", inputs="blob*", outputs="empty*", enforced_inplace=[(0, 0)], kind="stateful")
class Free:
    """Empties blobs; their memory goes back.

    blob: any.  empty: the same blobs.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("an empty blob is no tensor")

    def shape(*blob: Any, op: OpView) -> tuple[None, ...]:
        if len(op.outputs) != len(blob):
            raise OperatorError("", f"has {len(op.outputs)} outputs for {len(blob)} inputs")
        return (None,) * len(blob)
