"""Schemas: the names, types and blobs of the columns that make up a record.

A record is a tree.  Its leaves are `Scalar` columns, which may hold a blob or an array; a `Struct`
has fields by name; a `List` has rows of several lengths, stored as one column of all values and
one of the lengths.  Columns have flat names, with ":" between the levels:

    Struct(("uid", np.int64), ("clicks", List(Struct(("id", np.int64), ("dwell", np.float32)))))
    uid, clicks:lengths, clicks:values:id, clicks:values:dwell

Fields become part of a record as copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError

FIELD_SEPARATOR = ":"
_LENGTHS, _VALUES, _EVICTED = "lengths", "values", "_evicted_values"

Type: TypeAlias = "np.dtype[Any]"


class Metadata(NamedTuple):
    """What is known of the values of a column.

    categorical_limit  integers in it are below this
    expected_value     of its distribution, for regression
    feature_specs      a FeatureSpec
    """

    categorical_limit: int | None = None
    expected_value: Any = None
    feature_specs: Any = None


class FeatureSpec(NamedTuple):
    """The features that a column holds."""

    feature_type: Any = None
    feature_names: Any = None
    feature_ids: Any = None
    feature_is_request_only: Any = None
    desired_hash_size: Any = None
    feature_to_index: Any = None


class Field:
    """A part of a record; see Scalar, Struct and List."""

    def __init__(self, children: Iterable[Field] = ()) -> None:
        self._parent: Field | None = None
        for child in children:
            child._parent = self

    def named_scalars(self) -> list[tuple[str, Scalar]]:
        """The columns in order, each with its flat name."""
        raise NotImplementedError

    def clone(self, keep_blobs: bool = True) -> Any:
        """A copy, with the same blobs or without."""
        raise NotImplementedError

    def _describe(self, indent: int) -> str:
        raise NotImplementedError

    def clone_schema(self) -> Any:
        """A copy without blobs."""
        return self.clone(keep_blobs=False)

    def all_scalars(self) -> list[Scalar]:
        return [scalar for _, scalar in self.named_scalars()]

    def field_names(self) -> list[str]:
        """The flat names of the columns."""
        return [name for name, _ in self.named_scalars()]

    def field_types(self) -> list[Type]:
        return [scalar.dtype for scalar in self.all_scalars()]

    def field_metadata(self) -> list[Metadata | None]:
        return [scalar.metadata for scalar in self.all_scalars()]

    def field_blobs(self) -> list[Any]:
        """The blobs or arrays of the columns.  UsageError when one has none."""
        return [scalar.get() for scalar in self.all_scalars()]

    def has_blobs(self) -> bool:
        """Whether every column has a blob or an array."""
        return all(scalar.has_blobs() for scalar in self.all_scalars())

    def slice(self) -> slice:
        """Where the columns of this field are among those of the record that it is part of."""
        root: Field = self
        while root._parent is not None:
            root = root._parent
        every, own = root.all_scalars(), self.all_scalars()
        if not own:
            return slice(0, 0)
        start = next(index for index, scalar in enumerate(every) if scalar is own[0])
        return slice(start, start + len(own))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and equal_schemas(self, other)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self._describe(0) + "\n"


class Scalar(Field):
    """A column: of any NumPy type, `(type, shape)` for rows that are arrays, or of a type that is
    not known (`dtype=None`, which is the type `V`).

    blob      a BlobReference, or values: an array, or what makes one of the column's type
    metadata  a Metadata
    """

    def __init__(self, dtype: Any = None, blob: Any = None, metadata: Any = None) -> None:
        super().__init__()
        self._metadata: Metadata | None = None
        self.dtype: Type
        self._blob: Any = None
        self.set(dtype, blob, metadata, unsafe=True)

    @property
    def metadata(self) -> Metadata | None:
        return self._metadata

    def named_scalars(self) -> list[tuple[str, Scalar]]:
        return [("", self)]

    def field_type(self) -> Type:
        return self.dtype

    def has_blobs(self) -> bool:
        return self._blob is not None

    def get(self) -> Any:
        """The blob or array.  UsageError when there is none."""
        if self._blob is None:
            raise UsageError("Value is not set for this field.")
        return self._blob

    __call__ = get

    def id(self) -> int:
        """The position of the column in the record that it is part of."""
        return int(self.slice().start)

    def clone(self, keep_blobs: bool = True) -> Scalar:
        copy = Scalar(self.dtype, metadata=self.metadata)
        copy._blob = self._blob if keep_blobs else None
        return copy

    def set(
        self, dtype: Any = None, blob: Any = None, metadata: Any = None, unsafe: bool = False
    ) -> None:
        """Sets type and value anew; a type that is not given is not known.

        `unsafe` says that a blob may be replaced by another one, whose type nobody checks.
        """
        self.dtype = np.dtype(np.void) if dtype is None else np.dtype(dtype)
        if blob is not None:
            self._blob = self._value(blob, known=dtype is not None)
        if metadata is not None:
            self.set_metadata(metadata)
        self._check_metadata(self._metadata)

    def set_value(
        self, blob: Any, throw_on_type_mismatch: bool = False, unsafe: bool = False
    ) -> None:
        """Sets the value and keeps the type, which arrays are converted to; but the shape of rows
        is that of an array of several axes.

        UsageError for an array of another type with `throw_on_type_mismatch`.
        """
        known = self.dtype.base != np.dtype(np.void)
        checked = throw_on_type_mismatch and known and isinstance(blob, np.ndarray)
        if checked and self.dtype.base != blob.dtype:
            raise UsageError(f"Expected {self.dtype.base}, got {blob.dtype}")
        self._blob = self._value(blob, known)

    def set_type(self, dtype: Any) -> None:
        """Sets the type and keeps the value."""
        self.dtype = np.dtype(np.void) if dtype is None else np.dtype(dtype)
        self._check_metadata(self._metadata)

    def set_metadata(self, value: Metadata) -> None:
        """UsageError for what is no Metadata, and a limit where the values are no integers."""
        if not isinstance(value, Metadata):
            raise UsageError(f"metadata must be Metadata, got {type(value)}")
        self._check_metadata(value)
        self._metadata = value

    def _check_metadata(self, metadata: Metadata | None) -> None:
        limit = metadata.categorical_limit if metadata is not None else None
        if limit is not None and not np.issubdtype(self.dtype.base, np.integer):
            raise UsageError(
                "`categorical_limit` can be specified only in integral fields "
                f"but got {self.dtype.base}"
            )

    def _value(self, blob: Any, known: bool) -> Any:
        if isinstance(blob, BlobReference):
            return blob
        if isinstance(blob, (str, bytes)):
            raise UsageError(
                f"Passing str blob {blob!r} to Scalar.set() is ambiguous. Do either "
                "set(blob=np.array(blob)) or set(blob=BlobReference(blob))"
            )
        if known:
            array = np.asarray(blob, dtype=self.dtype.base)
            if isinstance(blob, (list, tuple)) and not blob:
                array = array.reshape(0, *self.dtype.shape)  # no rows, of the shape they have
            if array.ndim > 1:
                self.dtype = np.dtype((self.dtype.base, array.shape[1:]))
            return array.reshape(1) if array.ndim == 0 else array
        if not isinstance(blob, np.ndarray):
            raise UsageError(f"Invalid blob type: {type(blob)}")
        return blob

    def _describe(self, indent: int) -> str:
        return f"{' ' * indent}Scalar({self.dtype!r}, {self._blob!r}, {self.metadata!r})"


class Struct(Field):
    """Fields by name, in order: `Struct(("a", np.int32), ("b", Scalar(np.float32, blob)))`.

    A field is given as a Field, a type or an array.  A name "a:b" puts field b into the Struct
    called a.  The fields are attributes and items, `record.a`, `record["a:b"]`, `record[0]`;
    `record[["a", "b"]]` is a Struct of a few.  They cannot be replaced.

    UsageError for an empty name, "lengths", and two fields of one name.
    """

    fields: dict[str, Field]

    def __init__(self, *fields: tuple[str, Any]) -> None:
        found: dict[str, Field] = {}
        for name, value in fields:
            if not isinstance(name, str):
                raise TypeError(f"a field's name is a str, got {name!r}")
            outer, _, inner = name.partition(FIELD_SEPARATOR)
            if not outer or name.endswith(FIELD_SEPARATOR):
                raise UsageError(f"Field names cannot be empty: {name!r}")
            if outer == _LENGTHS:
                raise UsageError(f"Struct cannot contain a field named `{_LENGTHS}`.")
            field = Struct((inner, value)) if inner else normalized(value)
            known = found.get(outer)
            if known is not None:
                if not inner and not isinstance(known, Struct):
                    raise UsageError(f"Duplicate field name: {outer}")
                field = _merged(outer, known, field)
            found[outer] = field
        super().__init__(found.values())
        self.__dict__["fields"] = found

    def __setattr__(self, name: str, value: Any) -> None:
        if "fields" in self.__dict__ and name != "_parent":
            raise TypeError("Struct.__setattr__() is disabled after __init__()")
        super().__setattr__(name, value)

    def get_children(self) -> list[tuple[str, Field]]:
        return list(self.fields.items())

    def named_scalars(self) -> list[tuple[str, Scalar]]:
        return [
            (f"{name}{FIELD_SEPARATOR}{inner}" if inner else name, scalar)
            for name, field in self.fields.items()
            for inner, scalar in field.named_scalars()
        ]

    def clone(self, keep_blobs: bool = True) -> Struct:
        return Struct(*((name, field.clone(keep_blobs)) for name, field in self.fields.items()))

    def _nested(self, name: str) -> Field | None:
        outer, _, inner = name.partition(FIELD_SEPARATOR)
        field = self.fields.get(outer)
        if not inner or field is None:
            return field
        if isinstance(field, Struct):
            return field._nested(inner)
        try:
            return field[inner] if isinstance(field, List) else None
        except KeyError:
            return None

    def __contains__(self, item: str) -> bool:
        return self._nested(item) is not None

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, item: Any) -> Any:
        """The field of a (nested) name or a position; a Struct for a list of them."""
        if isinstance(item, (list, tuple)):
            keys = [list(self.fields)[key] if isinstance(key, int) else key for key in item]
            return Struct(*((key, self[key]) for key in keys))
        if isinstance(item, int):
            return list(self.fields.values())[item]
        found = self._nested(item)
        if found is None:
            raise KeyError(f'field "{item}" not found')
        return found

    def get(self, item: str, default_value: Any = None) -> Any:
        """The field of a (nested) name, or else the default."""
        found = self._nested(item)
        return default_value if found is None else found

    def __getattr__(self, item: str) -> Any:
        try:
            return self.__dict__["fields"][item]
        except KeyError:
            raise AttributeError(item) from None

    def __add__(self, other: Any) -> Struct:
        """The fields of both; Structs of one name are merged, which TypeError says of others."""
        if not isinstance(other, Struct):
            return NotImplemented
        fields = dict(self.fields)
        for name, field in other.fields.items():
            fields[name] = _merged(name, fields[name], field) if name in fields else field
        return Struct(*fields.items())

    def __sub__(self, other: Any) -> Struct:
        """The fields that `other` does not have; Structs of one name lose the fields of both."""
        if not isinstance(other, Struct):
            return NotImplemented
        fields = {}
        for name, field in self.fields.items():
            removed = other.fields.get(name)
            if removed is None:
                fields[name] = field
            elif isinstance(field, Struct) and isinstance(removed, Struct):
                left = field - removed
                if left.fields:
                    fields[name] = left
        return Struct(*fields.items())

    def _describe(self, indent: int) -> str:
        pad = " " * indent
        inner = "".join(
            f"{pad}  {name}=\n{field._describe(indent + 4)}\n"
            for name, field in self.fields.items()
        )
        return f"{pad}Struct( \n{inner}{pad}) "


class List(Field):
    """Rows of several lengths: the column `lengths` (int32), and the field `items` of all values.

    values        the field of the values, or a type or array
    lengths_blob  the blob or array of the lengths

    Attributes and items are those of the values; `items` (or "values") is all of them.
    """

    def __init__(self, values: Any, lengths_blob: Any = None) -> None:
        lengths = lengths_blob.clone() if isinstance(lengths_blob, Field) else None
        self.lengths: Scalar = lengths or Scalar(np.int32, lengths_blob)
        self._items: Field = normalized(values)
        super().__init__(field for _, field in self._parts())

    def _parts(self) -> list[tuple[str, Field]]:
        return [(_LENGTHS, self.lengths), (_VALUES, self._items)]

    def named_scalars(self) -> list[tuple[str, Scalar]]:
        return [
            (f"{name}{FIELD_SEPARATOR}{inner}" if inner else name, scalar)
            for name, field in self._parts()
            for inner, scalar in field.named_scalars()
        ]

    def clone(self, keep_blobs: bool = True) -> List:
        return type(self)(*(field.clone(keep_blobs) for field in self._constructor_arguments()))

    def _constructor_arguments(self) -> list[Field]:
        return [self._items, self.lengths]

    def __getattr__(self, item: str) -> Any:
        if item.startswith("__") or "_items" not in self.__dict__:
            raise AttributeError(item)
        return self._items if item == "items" else getattr(self._items, item)

    def __getitem__(self, item: str) -> Any:
        outer, _, inner = item.partition(FIELD_SEPARATOR)
        part = dict(self._parts()).get(outer)
        if part is None or (inner and not isinstance(part, (Struct, List))):
            raise KeyError(f"Field not found in list: {item}.")
        return part[inner] if inner and isinstance(part, (Struct, List)) else part

    def _describe(self, indent: int) -> str:
        pad = " " * indent
        shown = {_VALUES: "_items"}
        inner = "".join(
            f"{pad}  {shown.get(name, name)}=\n{field._describe(indent + 4)}\n"
            for name, field in self._parts()
        )
        return f"{pad}{type(self).__name__}(\n{inner}{pad})"


class ListWithEvicted(List):
    """A List with a further column of values that have left it (int64)."""

    def __init__(self, values: Any, lengths_blob: Any = None, evicted_values: Any = None) -> None:
        evicted = evicted_values.clone() if isinstance(evicted_values, Field) else None
        self._evicted_values: Scalar = evicted or Scalar(np.int64, evicted_values)
        super().__init__(values, lengths_blob)

    def _parts(self) -> list[tuple[str, Field]]:
        return [*super()._parts(), (_EVICTED, self._evicted_values)]

    def _constructor_arguments(self) -> list[Field]:
        return [self._items, self.lengths, self._evicted_values]


def equal_schemas(
    schema: Field,
    original_schema: Field,
    check_field_names: bool = True,
    check_field_types: bool = True,
    check_field_metas: bool = False,
) -> bool:
    """Whether the columns of both have the same names, types and (if asked for) metadata."""
    for field in (schema, original_schema):
        if not isinstance(field, Field):
            raise UsageError(f"a schema is needed, got {field!r}")
    checks: list[tuple[bool, Callable[[Field], list[Any]]]] = [
        (check_field_names, Field.field_names),
        (check_field_types, Field.field_types),
        (check_field_metas, Field.field_metadata),
    ]
    if len(schema.all_scalars()) != len(original_schema.all_scalars()):
        return False
    return all(get(schema) == get(original_schema) for wanted, get in checks if wanted)


def normalized(value: Any) -> Field:
    """A copy of a field; a Scalar for a type (or None, one that is not known) or an array."""
    if isinstance(value, Field):
        return value.clone()  # type: ignore[no-any-return]
    if value is None or isinstance(value, (type, np.dtype, tuple)):
        return Scalar(value)
    return Scalar(blob=value)


def _merged(name: str, left: Field, right: Field) -> Field:
    if isinstance(left, Struct) and isinstance(right, Struct):
        return left + right
    raise TypeError(
        f"Type of left_field, {type(left)}, and type of right_field, {type(right)}, must both "
        f"the Struct to allow merging of the field, {name}"
    )


def from_column_list(
    col_names: Sequence[str],
    col_types: Sequence[Any] | None = None,
    col_blobs: Sequence[Any] | None = None,
    col_metadata: Sequence[Any] | None = None,
) -> Field:
    """The schema whose columns have these flat names, in this order.

    UsageError when the lists differ in length, for two columns of one name and for `lengths`
    without values.
    """
    columns: list[list[Any]] = []
    given = (("col_types", col_types), ("col_blobs", col_blobs), ("col_metadata", col_metadata))
    for what, values in given:
        if values is not None and len(values) != len(col_names):
            raise UsageError(f"col_names and {what} must have the same length.")
        columns.append(list(values) if values is not None else [None] * len(col_names))
    return _field_of(
        [(name, Scalar(*rest)) for name, *rest in zip(col_names, *columns, strict=True)]
    )


def _field_of(columns: list[tuple[str, Scalar]]) -> Field:
    groups: dict[str, list[tuple[str, Scalar]]] = {}
    for name, scalar in columns:
        outer, _, inner = name.partition(FIELD_SEPARATOR)
        groups.setdefault(outer, []).append((inner, scalar))
    parts: dict[str, Field] = {}
    for name, group in groups.items():
        if len(group) > 1 and any(not inner for inner, _ in group):
            raise UsageError(f"Duplicate field name: {name}")
        parts[name] = _field_of(group) if group[0][0] else group[0][1]
    if list(parts) == [_LENGTHS, _VALUES]:
        return List(parts[_VALUES], parts[_LENGTHS])
    if list(parts) == [_LENGTHS, _VALUES, _EVICTED]:
        return ListWithEvicted(parts[_VALUES], parts[_LENGTHS], parts[_EVICTED])
    return Struct(*parts.items())
