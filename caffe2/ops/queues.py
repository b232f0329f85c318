# mypy: disable-error-code="misc"
"""Queues of records, through which nets that run at the same time hand blobs to each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Float, Floats, Int, OperatorError, Strs
from caffe2.ops.declaration import NO_GRADIENT, NativeOnly, OpView, Spec, operator

_NO_TENSOR = NativeOnly("a queue is no tensor")
_STATUS = Spec((), np.dtype(np.bool_))


@operator(
    "CreateBlobsQueue",
    inputs="",
    outputs="queue",
    args={
        "capacity": Int(1, min=1),
        "num_blobs": Int(1, min=1),
        "enforce_unique_name": Bool(False),
        "field_names": Strs(),
    },
    kind="stateful",
)
class CreateBlobsQueue:
    """Makes an empty queue of records: first in, first out, for any number of nets and threads.

    queue: a blob that holds no tensor.  A queue that was there before is replaced: operators that
    wait for it end with an error.
    capacity: how many records it holds at most; who brings more waits.
    num_blobs: how many blobs a record has, of any type and shape.
    enforce_unique_name: refuse to replace a queue.
    field_names: one name per blob, for error texts.
    """

    gradient = NO_GRADIENT
    reference = _NO_TENSOR

    def shape(op: OpView) -> None:
        names = len(op.args.field_names)
        if names not in (0, op.args.num_blobs):
            problem = f"has {names} names; num_blobs is {op.args.num_blobs}"
            raise OperatorError("argument 'field_names'", problem)


@operator(
    "EnqueueBlobs",
    inputs="queue blob*",
    outputs="blob*",
    enforced_inplace=[(1, 0)],
    kind="stateful",
    blocks=True,
)
class EnqueueBlobs:
    """Moves blobs into a queue, as one record; waits while the queue is full.

    queue: made by CreateBlobsQueue.  The other inputs: as many blobs as its records have; each is
    also the output at its place, and empty afterwards, as its value is now in the queue.
    An error when the queue is closed, also while this waits; the blobs keep their values then.
    (The original takes records into a closed queue as long as there is room.)
    """

    gradient = NO_GRADIENT
    reference = _NO_TENSOR

    def shape(queue: Any, *blob: Any, op: OpView) -> tuple[None, ...]:
        if len(op.outputs) != len(blob):
            raise OperatorError("", f"has {len(op.outputs)} outputs for {len(blob)} blobs")
        return (None,) * len(blob)


@operator(
    "SafeEnqueueBlobs",
    inputs="queue blob*",
    outputs="blob_or_status*",
    enforced_inplace=[(1, 0)],
    kind="stateful",
    blocks=True,
)
class SafeEnqueueBlobs:
    """EnqueueBlobs that says by its status whether the queue is closed.

    Inputs and outputs are those of EnqueueBlobs, and one output more, the last:
    status: bool (), true when the queue is closed; the blobs keep their values then.
    (The original takes records into a closed queue as long as there is room.)
    """

    gradient = NO_GRADIENT
    reference = _NO_TENSOR

    def shape(queue: Any, *blob: Any, op: OpView) -> tuple[Spec | None, ...]:
        if len(op.outputs) != len(blob) + 1:
            problem = f"has {len(op.outputs)} outputs for {len(blob)} blobs and the status"
            raise OperatorError("", problem)
        return (*(None,) * len(blob), _STATUS)


@operator(
    "DequeueBlobs",
    inputs="queue",
    outputs="blob*",
    args={"timeout_secs": Float(0.0)},
    kind="stateful",
    blocks=True,
)
class DequeueBlobs:
    """Moves the oldest record of a queue into blobs; waits while the queue is empty.

    queue: made by CreateBlobsQueue.  blob: as many as a record has.
    timeout_secs: an error when no record comes within so many seconds; 0 or less: wait on.
    An error when the queue is closed and empty; what is left in a closed queue still comes.
    """

    gradient = NO_GRADIENT
    reference = _NO_TENSOR

    def shape(queue: Any, op: OpView) -> tuple[None, ...]:
        return (None,) * len(op.outputs)


@operator(
    "SafeDequeueBlobs",
    inputs="queue",
    outputs="blob blob_or_status*",
    args={"num_records": Int(1, min=1)},
    kind="stateful",
    blocks=True,
)
class SafeDequeueBlobs:
    """DequeueBlobs that says by its status whether the queue is closed and empty.

    queue: made by CreateBlobsQueue.  The outputs: as many blobs as a record has, and
    status: bool (), true when the queue is closed and empty; the other outputs are untouched then.
    num_records: wait for so many records, or for all that a closed queue still has.  With more
    than 1 the blobs are tensors, and those of equal place are concatenated along their first
    dimension; their types and other dimensions must be equal.  Records that cannot be are back in
    the queue after the error.
    """

    gradient = NO_GRADIENT
    reference = _NO_TENSOR

    def shape(queue: Any, op: OpView) -> tuple[Spec | None, ...]:
        return (*(None,) * (len(op.outputs) - 1), _STATUS)


@operator(
    "WeightedSampleDequeueBlobs",
    inputs="queue*",
    outputs="blob blob_or_status*",
    args={"weights": Floats(min=0), "table_idx_blob": Int(-1)},
    kind="stateful",
    blocks=True,
)
class WeightedSampleDequeueBlobs:
    """SafeDequeueBlobs from one of several queues, drawn at random.

    queue: made by CreateBlobsQueue, all with equally many blobs to a record.  The outputs: as many
    blobs as a record has, and
    status: bool (), true when the drawn queue is closed and empty; the other outputs are untouched.
    weights: one per queue, not negative; a queue is drawn with the probability weight / sum.  All
    are equal when left out.
    table_idx_blob: the output that gets the number of the drawn queue, int32 (1,), in place of
    what the record has there; none when negative.
    """

    gradient = NO_GRADIENT
    reference = _NO_TENSOR

    def shape(*queue: Any, op: OpView) -> tuple[Spec | None, ...]:
        weights, index = op.args.weights, op.args.table_idx_blob
        if weights and len(weights) != len(queue):
            problem = f"has {len(weights)} numbers for {len(queue)} queues"
            raise OperatorError("argument 'weights'", problem)
        if weights and not 0 < sum(weights) < math.inf:
            raise OperatorError("argument 'weights'", f"has the sum {sum(weights)}")
        if index >= len(op.outputs) - 1:
            problem = f"is {index}; the last blob is output {len(op.outputs) - 2}"
            raise OperatorError("argument 'table_idx_blob'", problem)
        blobs: list[Spec | None] = [None] * (len(op.outputs) - 1)
        if index >= 0:
            blobs[index] = Spec((1,), np.dtype(np.int32))
        return (*blobs, _STATUS)


@operator("CloseBlobsQueue", inputs="queue", outputs="", kind="stateful")
class CloseBlobsQueue:
    """Closes a queue: no record comes in any more, and nobody waits for it any longer.

    queue: made by CreateBlobsQueue.  Records that are in it can still be taken out.
    """

    gradient = NO_GRADIENT
    reference = _NO_TENSOR

    def shape(queue: Any) -> tuple[()]:
        return ()
