# mypy: disable-error-code="misc"
"""Operators that run nets given as arguments: If, While, Do, and the scopes that Do leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Ints, Net, Strs
from caffe2.ops.datatypes import BOOL
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    NativeOnly,
    OpView,
    Spec,
    operator,
)

_RUNS_NETS = NativeOnly("it runs nets, on blobs that a NumPy body does not see")


def _written_inside(condition: Spec, *blobs: Spec, op: OpView) -> tuple[None, ...]:
    return (None,) * len(op.outputs)


def _declare_if(name: str, more: str) -> None:
    class If:
        reference = _RUNS_NETS
        shape = _written_inside

    If.__doc__ = f"""Runs then_net where the condition holds, else_net where it does not.

    condition: bool with one element.  The other inputs and the outputs name the blobs that the
    nets read and write; the nets find them by name, in the same workspace.
    then_net, else_net: nets; one that is not given does nothing.{more}
    """
    operator(
        name,
        inputs="condition blobs*?",
        outputs="written*?",
        args={"then_net": Net(), "else_net": Net()},
        types={"condition": BOOL},
        inplace="any",
        kind="control",
    )(If)


_declare_if("If", "")
_declare_if(
    "AsyncIf", "\n    The same as If: a net of a parallel type runs it beside other operators."
)


@operator(
    "While",
    inputs="condition blobs*?",
    outputs="written*?",
    args={"loop_net": Net(required=True), "cond_net": Net()},
    types={"condition": BOOL},
    inplace="any",
    kind="control",
    shape=_written_inside,
)
class While:
    """Runs loop_net as long as the condition holds.

    condition: bool with one element, looked at before each turn, after cond_net where it is given
    (cond_net writes it).  The other inputs and the outputs name the blobs that the nets read and
    write; the nets find them by name, in the same workspace.
    """

    reference = _RUNS_NETS


@operator(
    "ONNXWhile",
    inputs="max_trip_count first_iter_condition carried*?",
    outputs="results*?",
    args={
        "body": Net(required=True),
        "has_trip_count": Bool(False),
        "has_cond": Bool(False),
        "save_scopes": Bool(False),
        "disable_scopes": Bool(False),
    },
    inplace="any",
    kind="control",
)
class ONNXWhile:
    """The loop of ONNX (operator Loop): runs body max_trip_count times, or until its condition is
    false.

    max_trip_count: int64, one value, which counts with has_trip_count.
    first_iter_condition: bool, one value, which counts with has_cond.
    carried: values of the first turn, any tensors.
    body: a net.  Its external_inputs are the number of the turn (int64), the condition (bool) and
    the carried values; its external_outputs the next condition, the next carried values and what is
    collected.
    results: the carried values after the last turn, then what was collected, one turn after the
    other along the first dimension; after no turn int32 (0,).
    What the body writes is its own; with disable_scopes it is in the workspace around it.
    save_scopes: without effect.
    """

    reference = _RUNS_NETS

    def shape(
        max_trip_count: Spec, first_iter_condition: Spec, *carried: Spec, op: OpView
    ) -> tuple[None, ...]:
        return (None,) * len(op.outputs)


@operator("CreateScope", inputs="", outputs="scope", kind="control")
class CreateScope:
    """Makes a scope, which keeps the workspaces that Do operators leave.

    scope: a blob that holds no tensor.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("a scope is no tensor")

    def shape() -> None:
        return None


@operator("HasScope", inputs="scope", outputs="has", kind="control")
class HasScope:
    """has = whether a Do operator has left a workspace in the scope.

    scope: made by CreateScope.  has: bool (1,).
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("a scope is no tensor")

    def shape(scope: Any) -> Spec:
        return Spec((1,), np.dtype(np.bool_))


@operator(
    "Do",
    inputs="blobs*",
    outputs="written*",
    helpers=[-1],
    args={
        "net": Net(required=True),
        "inner_blobs": Strs(),
        "outer_blobs_idx": Ints(min=0),
        "reuse_workspace": Bool(False),
        "saved_fwd_blobs": Strs(),
        "copy_external_blobs": Bool(False),
    },
    inplace="any",
    kind="control",
)
class Do:
    """Runs a net in a workspace of its own, in which some names stand for blobs outside.

    The last input and the last output are one scope, made by CreateScope; it keeps the workspace.
    inner_blobs[k], a name inside, is the outer blob number outer_blobs_idx[k]: the inputs are
    counted first, then the outputs, without the scope.  What has no such name lives inside only.
    reuse_workspace: a run takes the workspace that is in the scope already instead of a new one.
    copy_external_blobs: afterwards the workspace keeps the named blobs as the run left them, for a
    gradient that runs when they have changed outside.

    The gradient is a Do as well, marked as a gradient operator: it runs its net in the workspace
    that the forward operator left last in the scope, and takes it away (reuse_workspace: leaves
    it).  saved_fwd_blobs are what its net needs of that workspace.
    """

    reference = _RUNS_NETS

    def shape(*blobs: Spec, op: OpView) -> tuple[None, ...]:
        return (None,) * len(op.outputs)
