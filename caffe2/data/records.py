"""Making records: from columns, types and values, and as blobs of nets and workspaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe2.graph.errors import UsageError
from caffe2.graph.records import (
    Field,
    List,
    ListWithEvicted,
    Metadata,
    Scalar,
    Struct,
    equal_schemas,
    normalized,
)
from caffe2.ops.datatypes import DataType, data_type_of, dtype_of
from caffe2.runtime import workspace


def Map(
    keys: Any,
    values: Any,
    keys_name: str = "keys",
    values_name: str = "values",
    lengths_blob: Any = None,
) -> List:
    """A List of keys and values."""
    return List(Struct((keys_name, keys), (values_name, values)), lengths_blob)


def MapWithEvicted(
    keys: Any,
    values: Any,
    keys_name: str = "keys",
    values_name: str = "values",
    lengths_blob: Any = None,
    evicted_values: Any = None,
) -> ListWithEvicted:
    """A Map with a column of the keys that have left it."""
    content = Struct((keys_name, keys), (values_name, values))
    return ListWithEvicted(content, lengths_blob, evicted_values)


def NamedTuple(name_prefix: str, *fields: Any) -> Struct:
    """A Struct of fields called `<name_prefix>_0`, `<name_prefix>_1`, ..."""
    return Struct(*((f"{name_prefix}_{index}", field) for index, field in enumerate(fields)))


def Tuple(*fields: Any) -> Struct:
    """A Struct of fields called field_0, field_1, ..."""
    return NamedTuple("field", *fields)


def RawTuple(num_fields: int, name_prefix: str = "field") -> Struct:
    """A Tuple of columns of unknown type."""
    return NamedTuple(name_prefix, *[np.void] * num_fields)


def attach_metadata_to_scalars(field: Field, metadata: Metadata) -> None:
    """Sets the metadata of every column of a field."""
    for scalar in field.all_scalars():
        scalar.set_metadata(metadata)


def schema_check(schema: Field, previous: Field | None = None) -> Field:
    """The schema as a record; UsageError when it is not that of `previous`."""
    record = as_record(schema)
    if previous is not None and not equal_schemas(record, previous):
        raise UsageError(f"expected the schema\n{previous}but got\n{record}")
    return record


def is_schema_subset(schema: Field, original_schema: Field) -> bool:
    """Whether all columns of `schema` are in `original_schema`, by name."""
    return set(schema.field_names()) <= set(original_schema.field_names())


def as_record(value: Any) -> Field:
    """A field itself; a Struct for a dict, or for a list or tuple of fields; else a Scalar."""
    if isinstance(value, Field):
        return value
    if isinstance(value, dict):
        return Struct(*value.items())
    if isinstance(value, (list, tuple)):
        return Tuple(*value)
    return normalized(value)


def from_dtype(dtype: Any, _outer_shape: tuple[int, ...] = ()) -> Field:
    """The schema of an array of a NumPy type: a Struct for one with fields."""
    dtype = np.dtype(dtype)
    base, shape = dtype.base, (*_outer_shape, *dtype.shape)
    if base.names is None:
        return Scalar((base, shape) if shape else base)
    assert base.fields is not None
    return Struct(*((name, from_dtype(base.fields[name][0], shape)) for name in base.names))


def from_blob_list(
    schema: Field, values: Sequence[Any], throw_on_type_mismatch: bool = False
) -> Field:
    """A copy of a schema with these blobs or arrays, one for each column."""
    if not isinstance(schema, Field):
        raise UsageError(f"Argument `schema` must be a Field, got {schema!r}")
    record: Field = schema.clone_schema()
    scalars = record.all_scalars()
    if len(scalars) != len(values):
        raise UsageError(f"Values must have {len(scalars)} elements, got {len(values)}.")
    for scalar, value in zip(scalars, values, strict=True):
        scalar.set_value(value, throw_on_type_mismatch, unsafe=True)
    return record


def data_type_for_dtype(dtype: Any) -> int:
    """The number (of DataType) of a NumPy type; shapes of rows do not count.

    TypeError for types that no tensor has.
    """
    base = np.dtype(dtype).base
    if base.kind in "SUO":
        return int(DataType.STRING)
    try:
        return int(data_type_of(base))
    except ValueError:
        raise TypeError(f"Unknown dtype: {base}") from None


def dtype_for_core_type(core_type: int) -> Any:
    """The NumPy or Python type of a number of DataType.  TypeError for an unknown one."""
    if core_type in (DataType.STRING, DataType.BOOL):
        return str if core_type == DataType.STRING else bool
    try:
        return dtype_of(core_type).type
    except ValueError:
        raise TypeError(f"Unknown core type: {core_type}") from None


def NewRecord(net: Any, schema: Any) -> Any:
    """A record of this schema whose columns are new blobs of a net, named after the columns in
    the current NameScope ("unnamed_scalar" for a column alone)."""
    record = as_record(schema).clone_schema()
    for name, scalar in record.named_scalars():
        scalar.set_value(net.NextScopedBlob(name or "unnamed_scalar"), unsafe=True)
    return record


def ConstRecord(net: Any, array_record: Field) -> Any:
    """A record of new blobs that a net fills with the arrays of a record."""
    record = NewRecord(net, array_record)
    for blob, array in zip(record.field_blobs(), array_record.field_blobs(), strict=True):
        net.Const(array, blob_out=blob)
    return record


def InitEmptyRecord(net: Any, schema_or_record: Any, enforce_types: bool = False) -> Any:
    """A record whose blobs a net makes with 0 rows; new blobs where it has none.

    A column of unknown type is float32, or TypeError with `enforce_types`.
    """
    given = as_record(schema_or_record)
    record = given if given.has_blobs() else NewRecord(net, given)
    for scalar in record.all_scalars():
        try:
            data_type = data_type_for_dtype(scalar.dtype)
        except TypeError:
            if enforce_types:
                raise
            data_type = int(DataType.FLOAT)
        net.ConstantFill([], scalar.get(), shape=[0, *scalar.dtype.shape], dtype=data_type)
    return record


def FeedRecord(blob_record: Field, arrays: Any, ws: Any = None) -> None:
    """Writes arrays (a record or a list of them) to the blobs of a record, in `ws` (default: the
    current workspace).  UsageError when there are more or fewer arrays than columns."""
    values = arrays.field_blobs() if isinstance(arrays, Field) else list(arrays)
    blobs = blob_record.field_blobs()
    if len(values) != len(blobs):
        raise UsageError(f"Values must contain exactly {len(blobs)} ndarrays, got {len(values)}.")
    for blob, value in zip(blobs, values, strict=True):
        if ws is None:
            workspace.FeedBlob(blob, value)
        else:
            ws.create_blob(str(blob)).feed(value)


def FetchRecord(blob_record: Field, ws: Any = None, throw_on_type_mismatch: bool = False) -> Any:
    """A record with copies of the blobs of a record, out of `ws` (default: the current workspace),
    of the types of its columns.  UsageError for other types with `throw_on_type_mismatch`."""
    fetch = workspace.FetchBlob if ws is None else ws.fetch_blob
    values = [fetch(str(blob)) for blob in blob_record.field_blobs()]
    return from_blob_list(blob_record, values, throw_on_type_mismatch)
