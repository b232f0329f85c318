# mypy: disable-error-code="misc"
"""A sample of all rows that came along."""

from __future__ import annotations

from typing import Any

from caffe2.ops.arguments import Int, OperatorError
from caffe2.ops.datatypes import INT64
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, NativeOnly, OpView, Spec, operator
from caffe2.ops.shapes import require_dimensions, require_rank, require_single


@operator(
    "ReservoirSampling",
    inputs="RESERVOIR NUM_VISITED DATA MUTEX OBJECT_ID? OBJECT_TO_POS_MAP_IN? POS_TO_OBJECT_IN?",
    outputs="RESERVOIR NUM_VISITED OBJECT_TO_POS_MAP? POS_TO_OBJECT?",
    args={"num_to_collect": Int(min=1, required=True)},
    types={"NUM_VISITED": INT64, "OBJECT_ID": INT64, "POS_TO_OBJECT_IN": INT64},
    enforced_inplace=[(0, 0), (1, 1), (5, 2), (6, 3)],
    kind="stateful",
)
class ReservoirSampling:
    """Keeps a sample of the rows that come along: each is kept with the same probability
    (Vitter, 1985, ACM TOMS 11(1), algorithm R).

    RESERVOIR: the rows kept, at first an empty blob or a tensor without rows; in place.
    NUM_VISITED: int64 with one element, the rows seen so far, at first 0; in place.
    DATA: rows, of one type and one shape each time.  MUTEX: made by CreateMutex.
    OBJECT_ID: int64, one per row of DATA: rows whose object is kept already are left out, and not
    counted.
    OBJECT_TO_POS_MAP, POS_TO_OBJECT: where the row of an object is, a map from int64 to int32 (made
    by CreateMap), and the object of each row, int64; in place.  These three go together.
    num_to_collect: how many rows are kept.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("a reservoir is an empty blob at first")

    def shape(
        RESERVOIR: Any,
        NUM_VISITED: Spec,
        DATA: Spec,
        MUTEX: Any,
        OBJECT_ID: Spec | None,
        OBJECT_TO_POS_MAP_IN: Any,
        POS_TO_OBJECT_IN: Spec | None,
        *,
        op: OpView,
    ) -> tuple[Spec | None, ...]:
        require_single("NUM_VISITED", NUM_VISITED)
        require_dimensions("DATA", DATA, 1)
        if (len(op.inputs), len(op.outputs)) not in ((4, 2), (7, 4)):
            problem = f"has {len(op.inputs)} inputs and {len(op.outputs)} outputs; allowed are"
            raise OperatorError("", f"{problem} 4 and 2, or with objects 7 and 4")
        if OBJECT_ID is not None:
            require_rank("OBJECT_ID", OBJECT_ID, 1)
            if OBJECT_ID.shape != DATA.shape[:1]:
                problem = f"has shape {OBJECT_ID.shape}; DATA has {DATA.shape[0]} rows"
                raise OperatorError("OBJECT_ID", problem)
        return (None, NUM_VISITED, None, None)
