# mypy: disable-error-code="misc"
"""Reading tables out of text files."""

from __future__ import annotations

from typing import Any

from caffe2.ops.arguments import Int, Ints, OperatorError, Str
from caffe2.ops.datatypes import DataType
from caffe2.ops.declaration import NO_GRADIENT, NativeOnly, OpView, operator

_IN_FILES = NativeOnly("it reads files")


@operator(
    "CreateTextFileReader",
    inputs="",
    outputs="handler",
    args={
        "filename": Str(required=True),
        "num_passes": Int(1, min=0),
        "field_types": Ints(required=True),
    },
    kind="io",
    touches=("files",),
)
class CreateTextFileReader:
    """Opens a text file with a table: a line per row, tabs between the fields.

    handler: a blob that holds no tensor.
    filename: a path, taken as it is.  num_passes: how often the file is read.
    field_types: numbers of data types, one per field: 1 (float) or 4 (string).
    An error for a file that is not there.
    """

    gradient = NO_GRADIENT
    reference = _IN_FILES

    def shape(op: OpView) -> None:
        types = op.args.field_types
        if not types or not set(types) <= {DataType.FLOAT, DataType.STRING}:
            problem = f"is {list(types)}; needed are numbers 1 (float) and 4 (string)"
            raise OperatorError("argument 'field_types'", problem)


@operator(
    "TextFileReaderRead",
    inputs="handler",
    outputs="field*",
    args={"batch_size": Int(1, min=1)},
    kind="io",
)
class TextFileReaderRead:
    """The next rows of a text file.

    handler: made by CreateTextFileReader; threads that share it get different rows.
    field: one per field of the file, (rows,); empty behind the last row.
    batch_size: how many rows; fewer where there are not so many left.
    An error for a row with another number of fields, and for a field that is no number where one
    is needed; no row is skipped then.
    """

    gradient = NO_GRADIENT
    reference = _IN_FILES

    def shape(handler: Any, op: OpView) -> tuple[None, ...]:
        return (None,) * len(op.outputs)
