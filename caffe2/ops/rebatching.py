# mypy: disable-error-code="misc"
"""Queues of single examples, which come in one by one or in batches and go out in batches; blobs
that share memory; barriers and errors."""

from __future__ import annotations

from typing import Any

from caffe2.ops.arguments import INT64_MAX, Bool, Int, OperatorError
from caffe2.ops.datatypes import ANY, STRING
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    NativeOnly,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_same_types, size

_QUEUE = NativeOnly("a queue is no tensor")


@operator(
    "CreateRebatchingQueue",
    inputs="",
    outputs="queue",
    args={"num_blobs": Int(1, min=1), "capacity": Int(1, min=1)},
    kind="stateful",
)
class CreateRebatchingQueue:
    """Makes an empty queue of examples: first in, first out, for any number of nets and threads.

    queue: a blob that holds no tensor.
    num_blobs: how many tensors an example has.
    capacity: how many examples it holds at most; who brings more waits.
    """

    gradient = NO_GRADIENT
    reference = _QUEUE

    def shape() -> None:
        return None


@operator(
    "EnqueueRebatchingQueue",
    inputs="queue tensor*",
    outputs="",
    args={"enqueue_batch": Bool(False)},
    kind="stateful",
    blocks=True,
)
class EnqueueRebatchingQueue:
    """Copies an example into a queue, or each row of a batch; waits while the queue is full.

    queue: made by CreateRebatchingQueue.
    tensor: any types, as many as an example has.
    enqueue_batch: the tensors are batches, with an example in each row of all of them.
    An error when the queue is closed.
    """

    gradient = NO_GRADIENT
    reference = _QUEUE

    def shape(queue: Any, *tensor: Any) -> tuple[()]:
        return ()


@operator(
    "DequeueRebatchingQueue",
    inputs="queue",
    outputs="tensor*",
    args={"num_elements": Int(1, min=1, max=INT64_MAX)},
    kind="stateful",
    blocks=True,
)
class DequeueRebatchingQueue:
    """A batch of the oldest examples of a queue; waits until there are so many.

    queue: made by CreateRebatchingQueue.
    tensor: as many as an example has, with num_elements rows, or with those that a closed queue
    still has.  Examples of one batch have equal types and shapes.
    An error when the queue is closed and empty.
    """

    gradient = NO_GRADIENT
    reference = _QUEUE

    def shape(queue: Any, op: OpView) -> tuple[None, ...]:
        return (None,) * len(op.outputs)


@operator("CloseRebatchingQueue", inputs="queue", outputs="", kind="stateful")
class CloseRebatchingQueue:
    """Closes a queue: no example comes in any more, and nobody waits for it any longer.

    queue: made by CreateRebatchingQueue.  Examples that are in it can still be taken out.
    """

    gradient = NO_GRADIENT
    reference = _QUEUE

    def shape(queue: Any) -> tuple[()]:
        return ()


@operator(
    "UnsafeCoalesce",
    inputs="X*",
    outputs="Y*",
    types={"X": ANY - STRING},
    inplace=[(0, 0)],
    kind="stateful",
)
class UnsafeCoalesce:
    """Puts tensors into one piece of memory: what is written to or fed into one of the outputs is
    written to the last output, too, and the other way round, as long as it fits in there.

    X: tensors of one type, but no strings.
    Y: one for each input, equal to it, and one more, (sum of sizes,), which has all their values.
    """

    reference = NativeOnly("arrays of NumPy do not share memory from blob to blob")

    def shape(*X: Spec, op: OpView) -> tuple[Spec, ...]:
        if len(op.outputs) != len(X) + 1:
            problem = f"has {len(op.outputs)} outputs for {len(X)} inputs"
            raise OperatorError("", f"{problem}; one more is needed, for all values")
        require_same_types(X, op)
        return (*X, Spec((sum(map(size, X)),), X[0].dtype))


@operator(
    "AsyncNetBarrier",
    inputs="X*",
    outputs="Y*",
    args={"cross_device": Bool(False)},
    inplace=[(0, 0)],
)
class AsyncNetBarrier:
    """Y = X, once all X are there: operators that read Y wait for all of them.

    X, Y: tensors of any types, as many outputs as inputs.  cross_device: without effect here.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(*X: Spec, op: OpView) -> tuple[Spec, ...]:
        if len(op.outputs) != len(X):
            raise OperatorError("", f"has {len(op.outputs)} outputs for {len(X)} inputs")
        return X

    def reference(*X: Any) -> tuple[Any, ...]:
        return tuple(x.copy() for x in X)


@operator("ThrowException", inputs="", outputs="", kind="stateful")
class ThrowException:
    """Ends with an error: for tests of what happens then."""

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("it has nothing to compute")

    def shape() -> tuple[()]:
        return ()
