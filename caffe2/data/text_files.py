"""Tables in text files."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.data.io import Reader
from caffe2.graph.errors import UsageError
from caffe2.graph.records import Scalar, Struct
from caffe2.ops.datatypes import DataType


class TextFileReader(Reader):
    """Reads a text file: a line for each record, tabs between the fields.

    init_net    gets the operator that opens the file
    schema      a Struct of scalars, of texts or float32, one for each field
    num_passes  how often the file is read
    batch_size  records at a time
    """

    def __init__(
        self, init_net: Any, filename: str, schema: Struct, num_passes: int = 1, batch_size: int = 1
    ) -> None:
        if not isinstance(schema, Struct):
            raise UsageError(f"the schema of a text file is a Struct, not {schema!r:.200}")
        for name, field in schema.fields.items():
            if not isinstance(field, Scalar):
                raise UsageError(f"field '{name}' of a text file is not a scalar")
        super().__init__(schema)
        names = schema.field_names()
        types = [_type(*field) for field in zip(names, schema.field_types(), strict=True)]
        self._reader = init_net.CreateTextFileReader(
            [], filename=str(filename), num_passes=num_passes, field_types=types
        )
        self._batch_size, self._fields = batch_size, len(names)

    def read(self, read_net: Any) -> tuple[Any, Any]:
        """Appends the reading to a net; the blob that says to stop, and the fields."""
        fields = read_net.TextFileReaderRead(
            [self._reader], self._fields, batch_size=self._batch_size
        )
        fields = fields if isinstance(fields, tuple) else (fields,)
        return read_net.IsEmpty([fields[0]], read_net.NextScopedBlob("should_stop")), fields


def _type(name: str, dtype: Any) -> int:
    if dtype.base == np.float32:
        return DataType.FLOAT
    if dtype.base.kind in "SUO":
        return DataType.STRING
    raise UsageError(f"field '{name}' of a text file is {dtype}; texts and float32 can be read")
