# mypy: disable-error-code="misc"
"""Records with nested lists, kept as one tensor per field, and the cursors that read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, Bool, Int, OperatorError, Strs
from caffe2.ops.datatypes import INT64, STRING
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    NativeOnly,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_rank

_CURSOR = NativeOnly("a cursor is no tensor")
_PACKED = NativeOnly("records are packed as messages, which the engine writes and reads")
_RECORDS = NativeOnly("what it reads hangs on values of many fields")
_FIELDS = {"fields": Strs()}
_BATCH = {"batch_size": Int(1, min=1), "enforce_batch_size": Bool(False)}
_INT64 = np.dtype(np.int64)


@operator("CreateTreeCursor", inputs="", outputs="cursor", args=_FIELDS, kind="stateful")
class CreateTreeCursor:
    """Makes a cursor, a place in records that several threads may read from.

    fields: the names of the fields, parts separated by ":".  A field "a:lengths" (int32) counts for
    each element of what is around it the elements of all fields whose names begin with "a:"; the
    others have one row per record.  So "clicks:lengths", "clicks:values:id" are a list of ids.
    cursor: a blob that holds no tensor, at the first record.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _CURSOR

    def shape() -> None:
        return None


@operator("ResetCursor", inputs="cursor", outputs="", kind="stateful")
class ResetCursor:
    """Puts a cursor back to the first record.

    cursor: made by CreateTreeCursor.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _CURSOR

    def shape(cursor: Any) -> tuple[()]:
        return ()


@operator("GetCursorOffset", inputs="cursor", outputs="offsets", kind="stateful")
class GetCursorOffset:
    """offsets = where a cursor stands.

    cursor: made by CreateTreeCursor.
    offsets: int32, the next record, then the next row below each field of lengths; empty before
    the first read.
    """

    reference = _CURSOR

    def shape(cursor: Any) -> None:
        return None


@operator(
    "ReadNextBatch",
    inputs="cursor dataset_field*?",
    outputs="field*",
    args=_BATCH,
    kind="stateful",
)
class ReadNextBatch:
    """The next batch_size records, or those that are left: the rows of each field.

    cursor: made by CreateTreeCursor; it goes on behind these records.
    dataset_field: tensors of any type with one row per element, as many as the cursor has fields.
    field: the rows of each; none when there is no record left.
    enforce_batch_size: fewer than batch_size records are none.
    An error when lengths go beyond the rows there are.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _RECORDS

    def shape(cursor: Any, *dataset_field: Any, op: OpView) -> tuple[None, ...]:
        return (None,) * len(op.outputs)


@operator(
    "ComputeOffset",
    inputs="cursor dataset_field*?",
    outputs="offsets",
    kind="stateful",
)
class ComputeOffset:
    """offsets = where each record begins: what ReadRandomBatch needs.

    cursor, dataset_field: as for ReadNextBatch; the cursor stays where it is.
    offsets: int64 (records + 1, 1 + fields of lengths), from the place of the cursor on: in each
    row the number of the record, then the rows below each field of lengths.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _RECORDS

    def shape(cursor: Any, *dataset_field: Any) -> None:
        return None


@operator(
    "ReadRandomBatch",
    inputs="cursor idx offsets dataset_field*?",
    outputs="field*",
    args={**_BATCH, "loop_over": Bool(False)},
    types={"idx": INT64, "offsets": INT64},
    kind="stateful",
)
class ReadRandomBatch:
    """The records whose numbers are the next batch_size of idx.

    cursor: made by CreateTreeCursor; its first offset is the place in idx.
    idx: int64 (n,), numbers of records.  offsets: int64, made by ComputeOffset.
    dataset_field, field, enforce_batch_size: as for ReadNextBatch.
    loop_over: begin with idx anew when no whole batch (with enforce_batch_size), or nothing, is
    left.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _RECORDS

    def shape(
        cursor: Any, idx: Any, offsets: Any, *dataset_field: Any, op: OpView
    ) -> tuple[None, ...]:
        return (None,) * len(op.outputs)


@operator(
    "SortAndShuffle",
    inputs="cursor dataset_field*?",
    outputs="indices",
    args={
        "sort_by_field_idx": Int(1, min=-1),
        "batch_size": Int(1, min=1, max=INT64_MAX),
        "shuffle_size": Int(1, min=1, max=INT64_MAX),
    },
    kind="stateful",
)
class SortAndShuffle:
    """indices = numbers of all records, sorted by a field and then shuffled within limits, so that
    a batch has records alike: chunks of batch_size * shuffle_size records are shuffled (but not
    the last one), and then the batches of batch_size.

    cursor, dataset_field: as for ReadNextBatch.
    sort_by_field_idx: number of an int32 field with one element per record; -1: not sorted.
    indices: int64 (records,).  The same order at each run, for one C++ library.
    """

    reference = _RECORDS

    def shape(cursor: Any, *dataset_field: Any) -> None:
        return None


@operator("CheckDatasetConsistency", inputs="field*", outputs="", args=_FIELDS, kind="stateful")
class CheckDatasetConsistency:
    """An error unless the fields fit together: equally many rows in each list, as many as its
    lengths sum to.

    field: tensors of any type, one row per element.  fields: as for CreateTreeCursor.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _RECORDS

    def shape(*field: Any) -> tuple[()]:
        return ()


@operator(
    "TrimDataset",
    inputs="field*",
    outputs="field*",
    args={**_FIELDS, "multiple_of": Int(1, min=1, max=INT64_MAX)},
    enforced_inplace=[(0, 0)],
    kind="stateful",
)
class TrimDataset:
    """Drops the last records, so that their number is a multiple of multiple_of; in place.

    field: tensors of any type, one row per element.  fields: as for CreateTreeCursor.
    """

    reference = _RECORDS

    def shape(*field: Any, op: OpView) -> tuple[None, ...]:
        return (None,) * len(op.outputs)


@operator(
    "PackRecords",
    inputs="field*",
    outputs="packed",
    args={**_FIELDS, "pack_to_single_shared_ptr": Bool(False)},
)
class PackRecords:
    """Each record as one element of a tensor, so that records can be gathered, split and queued.

    field: tensors of any type, one row per element.  fields: as for CreateTreeCursor.
    packed: strings (records,), or with pack_to_single_shared_ptr (1,): all records in one element.
    An element is a TensorProtos message with the part of each field.  (In the original elements are
    pointers, which no file can hold.)
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _PACKED

    def shape(*field: Any, op: OpView) -> Spec | None:
        single = op.args.pack_to_single_shared_ptr
        return Spec((1,), np.dtype(object)) if single else None


@operator(
    "UnPackRecords",
    inputs="packed prototype*?",
    outputs="field*",
    args=_FIELDS,
    types={"packed": STRING},
)
class UnPackRecords:
    """The fields of records that PackRecords has packed.

    packed: 1-d, elements made by PackRecords.  field: one tensor per name in `fields`.
    prototype: none, or tensors like the fields, which say types and shapes where packed has no
    element.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _PACKED

    def shape(packed: Spec, *prototype: Any, op: OpView) -> tuple[None, ...]:
        require_rank("packed", packed, 1)
        return (None,) * len(op.outputs)


@operator(
    "Append",
    inputs="A B",
    outputs="A",
    enforced_inplace=[(0, 0)],
)
class Append:
    """A = the rows of A and then those of B, in place; repeated, it takes linear time in all.

    A, B: tensors of one type whose dimensions but the first are the same; an A without elements
    may be of any type and shape.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(A: Spec, B: Spec) -> Spec:
        if not B.shape:
            raise OperatorError("B", "is a scalar; rows are needed")
        if 0 in A.shape:
            return B
        if A.dtype != B.dtype:
            raise OperatorError("B", f"is {B.dtype}; A is {A.dtype}")
        if A.shape[1:] != B.shape[1:] or not A.shape:
            raise OperatorError("B", f"has shape {B.shape}; A has {A.shape}")
        return Spec((A.shape[0] + B.shape[0], *A.shape[1:]), A.dtype)

    def reference(A: Any, B: Any) -> Any:
        return B.copy() if A.size == 0 else np.concatenate([A, B])


@operator(
    "AtomicAppend",
    inputs="mutex A_or_B*",
    outputs="A*",
    inplace=[(1, 0)],
    kind="stateful",
)
class AtomicAppend:
    """Append for several pairs, under a mutex: other threads see all of it or nothing.

    mutex: made by CreateMutex.  The other inputs: all A, then as many B, as for Append.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("a mutex is no tensor")

    def shape(mutex: Any, *A_or_B: Any, op: OpView) -> tuple[None, ...]:
        if len(A_or_B) != 2 * len(op.outputs):
            raise OperatorError(
                "",
                f"has {len(op.inputs)} inputs and {len(op.outputs)} outputs; a mutex and two"
                " inputs per output are needed",
            )
        return (None,) * len(op.outputs)


_VECTOR = NativeOnly("a vector of tensors is no tensor")


@operator("CreateTensorVector", inputs="", outputs="tensor_vector", kind="stateful")
class CreateTensorVector:
    """Makes an empty vector of tensors, a blob that holds no tensor, for CollectTensor."""

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _VECTOR

    def shape() -> None:
        return None


@operator("TensorVectorSize", inputs="tensor_vector", outputs="size", kind="stateful")
class TensorVectorSize:
    """size = how many tensors are in a vector.

    tensor_vector: made by CreateTensorVector.  size: int32 ().
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _VECTOR

    def shape(tensor_vector: Any) -> Spec:
        return Spec((), np.dtype(np.int32))


@operator("ConcatTensorVector", inputs="tensor_vector", outputs="tensor", kind="stateful")
class ConcatTensorVector:
    """tensor = all tensors of a vector, joined along their first dimension.

    tensor_vector: of CreateTensorVector, with one tensor at least; their types and dimensions but
    the first must be the same.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _VECTOR

    def shape(tensor_vector: Any) -> None:
        return None


@operator(
    "CollectTensor",
    inputs="tensor_vector_or_tensor*",
    outputs="tensor_vector*",
    args={"num_to_collect": Int(min=1, required=True)},
    enforced_inplace=[(0, 0)],
    kind="stateful",
)
class CollectTensor:
    """Keeps num_to_collect of all tensors it has seen, each equally likely (Vitter, 1985, "Random
    sampling with a reservoir"); the same ones in each vector.

    The inputs: all vectors, of CreateTensorVector, then as many tensors, of which copies are kept.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _VECTOR

    def shape(*tensor_vector_or_tensor: Any, op: OpView) -> tuple[None, ...]:
        if len(op.inputs) != 2 * len(op.outputs):
            problem = f"has {len(op.inputs)} inputs and {len(op.outputs)} outputs"
            raise OperatorError("", f"{problem}; two inputs per output are needed")
        return (None,) * len(op.outputs)


@operator(
    "LastNWindowCollector",
    inputs="last_n next DATA mutex? num_visited?",
    outputs="last_n next num_visited?",
    args={"num_to_collect": Int(min=1, required=True)},
    enforced_inplace=[(0, 0), (1, 1), (4, 2)],
    kind="stateful",
)
class LastNWindowCollector:
    """Keeps the last num_to_collect rows it has seen, in a ring.

    last_n: nothing at first, or a tensor with rows like those of DATA; the ring afterwards.
    next: int32, one element: the row of the ring that is written next.
    DATA: any type, (n, ...).
    mutex: made by CreateMutex; held while the ring changes.
    num_visited: int64, one element, to which n is added; given as the fifth input it is the third
    output.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("the ring may be empty at first, and a mutex is no tensor")

    def shape(
        last_n: Any, next: Any, DATA: Spec, mutex: Any, num_visited: Any, op: OpView
    ) -> tuple[Spec | None, ...]:
        if (len(op.inputs) == 5) != (len(op.outputs) == 3):
            raise OperatorError("", f"has {len(op.inputs)} inputs, {len(op.outputs)} outputs")
        if not DATA.shape:
            raise OperatorError("DATA", "is a scalar; rows are needed")
        # Fewer rows while the ring is not full yet.
        ring = Spec((op.args.num_to_collect, *DATA.shape[1:]), DATA.dtype)
        return ring, Spec((), np.dtype(np.int32)), Spec((1,), _INT64)


@operator("HasElements", inputs="X*", outputs="has_elements")
class HasElements:
    """has_elements = whether any of the tensors has an element.

    X: tensors of any types and shapes.  has_elements: bool ().
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(*X: Spec) -> Spec:
        return Spec((), np.dtype(np.bool_))

    def reference(*X: Any) -> Any:
        return np.asarray(any(x.size for x in X))
