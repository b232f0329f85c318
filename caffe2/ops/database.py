# mypy: disable-error-code="misc"
"""Operators that read data sets and keep blobs in databases."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, INT64_MIN, Bool, Float, Int, OperatorError, Str, Strs
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    NativeOnly,
    OpView,
    Spec,
    operator,
)

_IN_FILES = NativeOnly("it reads or writes files")
_SAVE_ARGS = {
    "db": Str(required=True),
    "db_type": Str(required=True),
    "absolute_path": Bool(False),
    "strip_prefix": Str(""),
    "blob_name_overrides": Strs(),
    "chunk_size": Int(-1, min=INT64_MIN, max=INT64_MAX),
    "options": Str(""),
}


@operator(
    "CreateDB",
    inputs="",
    outputs="reader",
    args={
        "db": Str(required=True),
        "db_type": Str("minidb"),
        "num_shards": Int(1, min=1),
        "shard_id": Int(0, min=0),
    },
    kind="io",
    touches=("files",),
)
class CreateDB:
    """Opens a database for reading.

    reader: a blob that holds no tensor: a place in the database, which operators that read move on.
    db: path of the database, taken as it is.  db_type: "minidb", or "lmdb" where Python has the
    package lmdb.
    num_shards, shard_id: the reader gives every num_shards-th record, from number shard_id on.
    """

    gradient = NO_GRADIENT
    reference = _IN_FILES

    def shape(op: OpView) -> None:
        if op.args.shard_id >= op.args.num_shards:
            problem = f"is {op.args.shard_id}; num_shards is {op.args.num_shards}"
            raise OperatorError("argument 'shard_id'", problem)


@operator(
    "TensorProtosDBInput",
    inputs="data",
    outputs="output*",
    args={"batch_size": Int(0, min=0)},
    kind="io",
    blocks=True,
)
class TensorProtosDBInput:
    """The next records of a database of TensorProtos messages, as tensors.

    data: made by CreateDB; after the last record comes the first.  Or by CreateBlobsQueueDB.
    output: as many as a record has tensors.  With batch_size = n > 0, n records one after the other
    along a new first dimension; with 0 the tensors of one record.  Bytes become uint8.
    One batch is read ahead, and lost with the operator, as in the original: a net that is made once
    and run often gives all records, one that is made for each run every second batch.
    An error for records of several shapes or types in one batch.
    """

    gradient = NO_GRADIENT
    reference = _IN_FILES

    def shape(data: Any, op: OpView) -> tuple[None, ...]:
        return (None,) * len(op.outputs)


@operator(
    "CreateBlobsQueueDB",
    inputs="queue",
    outputs="reader",
    args={
        "key_blob_index": Int(-1, min=-1),
        "value_blob_index": Int(0, min=0),
        "timeout_secs": Float(0.0),
    },
    kind="stateful",
)
class CreateBlobsQueueDB:
    """A reader, as of a database, that takes records out of a queue; they do not come back.

    queue: made by CreateBlobsQueue.  reader: a blob that holds no tensor, for TensorProtosDBInput.
    key_blob_index, value_blob_index: which blobs of a record are key and value of what is read:
    texts, or tensors with one string.  Without the former keys are empty.
    timeout_secs: reading ends with an error when no record comes within so many seconds; 0 or less:
    it waits on.  A queue that is closed and empty is an error, too.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("a queue is no tensor")

    def shape(queue: Any) -> None:
        return None


@operator(
    "DBExists",
    inputs="",
    outputs="exists",
    args={"db_name": Str(required=True), "db_type": Str(""), "absolute_path": Bool(False)},
    kind="io",
    touches=("files",),
)
class DBExists:
    """Whether there is a file or folder of the name of a database.

    exists: bool scalar.
    db_name: a path in the root folder of the workspace, or with absolute_path as it is.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _IN_FILES

    def shape(op: OpView) -> Spec:
        return Spec((), np.dtype(np.bool_))


@operator(
    "Load",
    inputs="reader*?",
    outputs="blob*?",
    args={
        "db": Str(""),
        "dbs": Strs(),
        "db_type": Str(""),
        "absolute_path": Bool(False),
        "add_prefix": Str(""),
        "strip_prefix": Str(""),
        "source_blob_names": Strs(),
        "load_all": Bool(False),
        "allow_incomplete": Bool(False),
        "keep_device": Bool(False),
    },
    kind="io",
    touches=("files",),
)
class Load:
    """Blobs out of databases that Save wrote.

    reader: made by CreateDB; without one, `dbs` (or `db`) of the type db_type are read: paths in
    the root folder of the workspace, or with absolute_path as they are.
    blob: what to load, by name: the name in the database without strip_prefix at its beginning,
    with add_prefix before that; source_blob_names has other names in the place of those of the
    outputs.
    load_all: load everything, also blobs that no output names.
    allow_incomplete: leave alone the outputs that are not there, of which no new blob comes to be;
    otherwise they are an error.
    keep_device: without effect.

    An error for a blob of which a part is missing, and for one that is there twice.  No blob is
    changed by a load that fails.
    """

    gradient = NO_GRADIENT
    reference = _IN_FILES

    def shape(*reader: Any, op: OpView) -> tuple[None, ...]:
        names = op.args.source_blob_names
        if names and len(names) != len(op.outputs):
            problem = f"has {len(names)} names for {len(op.outputs)} outputs"
            raise OperatorError("argument 'source_blob_names'", problem)
        return (None,) * len(op.outputs)


@operator(
    "Save",
    inputs="blob*",
    outputs="",
    args=_SAVE_ARGS,
    kind="io",
    touches=("files",),
)
class Save:
    """Writes blobs to a new database, which replaces one that is there.

    blob: tensors of any type, texts, counters; each is saved under its name without strip_prefix at
    its beginning, or under the one in blob_name_overrides.
    db: a path in the root folder of the workspace, or with absolute_path as it is.
    db_type: see CreateDB.
    chunk_size: tensors are saved in parts of so many elements; 0: in one; negative: 1000000.
    options: a SerializationOptions message.  Of its options, the first whose blob_name_regex fits
    the whole name of a blob says its chunk_size (negative: in one) and whether floats are written
    as bfloat16, rounded: in half the bytes.

    What is there is replaced only when the new one is written whole.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _IN_FILES

    def shape(*blob: Any, op: OpView) -> tuple[()]:
        names = op.args.blob_name_overrides
        if names and len(names) != len(op.inputs):
            problem = f"has {len(names)} names for {len(op.inputs)} inputs"
            raise OperatorError("argument 'blob_name_overrides'", problem)
        return ()


@operator(
    "EstimateAllBlobSizes",
    inputs="",
    outputs="blob_names blob_sizes",
    args={"include_shared": Bool(True), "options": Str("")},
    kind="io",
)
class EstimateAllBlobSizes:
    """The names of all blobs of the workspace, and about how many bytes each takes when saved.

    blob_names: strings (n,).  blob_sizes: int64 (n,); 0 for what is neither tensor nor text.
    include_shared: also those of the workspace around this one.  options: as for Save.
    """

    reference = NativeOnly("no workspace is known to a NumPy body")

    def shape() -> tuple[None, None]:
        return None, None


def _checkpoint(name: str) -> None:
    @operator(
        name,
        inputs="iteration blob*?",
        outputs="",
        args={**_SAVE_ARGS, "every": Int(1, min=1, max=INT64_MAX)},
        kind="io",
        touches=("files",),
    )
    class Checkpoint:
        """Save, when the number of the iteration is a multiple of `every`.

        iteration: int64 tensor of one element, which is saved, too.  blob: see Save.
        db: like that of Save; %d or %06d in it becomes the number of the iteration.
        """

        gradient = SHOULD_NOT_DO_GRADIENT
        reference = _IN_FILES

        def shape(iteration: Any, *blob: Any) -> tuple[()]:
            return ()


_checkpoint("Checkpoint")
_checkpoint("Snapshot")
