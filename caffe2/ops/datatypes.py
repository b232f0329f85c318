"""Element types of tensors: their numbers on the wire, their NumPy types, and sets of them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np

DType: TypeAlias = "np.dtype[Any]"
TypeSet: TypeAlias = frozenset[DType]


class DataType(IntEnum):
    """The numbers of `TensorProto.DataType`; arguments such as `dtype` and `to` hold them."""

    FLOAT = 1
    INT32 = 2
    STRING = 4
    BOOL = 5
    UINT8 = 6
    INT8 = 7
    UINT16 = 8
    INT16 = 9
    INT64 = 10
    FLOAT16 = 12
    DOUBLE = 13


_DTYPES: dict[DataType, DType] = {
    DataType.FLOAT: np.dtype(np.float32),
    DataType.INT32: np.dtype(np.int32),
    DataType.STRING: np.dtype(object),  # elements are bytes
    DataType.BOOL: np.dtype(np.bool_),
    DataType.UINT8: np.dtype(np.uint8),
    DataType.INT8: np.dtype(np.int8),
    DataType.UINT16: np.dtype(np.uint16),
    DataType.INT16: np.dtype(np.int16),
    DataType.INT64: np.dtype(np.int64),
    DataType.FLOAT16: np.dtype(np.float16),
    DataType.DOUBLE: np.dtype(np.float64),
}
_NUMBERS = {dtype: number for number, dtype in _DTYPES.items()}


def dtype_of(number: int) -> DType:
    """The NumPy type of a data type number; ValueError names the numbers that exist."""
    try:
        return _DTYPES[DataType(number)]
    except ValueError:
        known = ", ".join(f"{kind.value} {kind.name}" for kind in DataType)
        raise ValueError(f"{number} is no data type; there are {known}") from None


def data_type_of(dtype: DType) -> DataType:
    """The data type of a NumPy type; ValueError when tensors cannot hold it."""
    try:
        return _NUMBERS[dtype]
    except KeyError:
        raise ValueError(f"tensors cannot hold elements of type {dtype}") from None


def type_mask(types: Iterable[DType]) -> int:
    """One bit per allowed data type, numbered as `DataType`."""
    return sum(1 << data_type_of(dtype) for dtype in set(types))


def type_names(types: Iterable[DType]) -> str:
    """ "FLOAT, INT32", for messages."""
    return ", ".join(kind.name for kind in sorted(data_type_of(dtype) for dtype in types))


def _set(*kinds: DataType) -> TypeSet:
    return frozenset(_DTYPES[kind] for kind in kinds)


FLOAT = _set(DataType.FLOAT)
DOUBLE = _set(DataType.DOUBLE)
FLOAT16 = _set(DataType.FLOAT16)
INT32 = _set(DataType.INT32)
INT64 = _set(DataType.INT64)
INTS = INT32 | INT64
BOOL = _set(DataType.BOOL)
UINT8 = _set(DataType.UINT8)
STRING = _set(DataType.STRING)
ANY = frozenset(_NUMBERS)
NUMBERS = ANY - STRING
