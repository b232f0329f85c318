# mypy: disable-error-code="misc"
"""Maps from integers to integers."""

from __future__ import annotations

from typing import Any

from caffe2.ops.arguments import Int, OperatorError
from caffe2.ops.datatypes import INTS, DataType
from caffe2.ops.declaration import NativeOnly, OpView, Spec, operator
from caffe2.ops.shapes import require_same_size

_MAP = NativeOnly("a map is no tensor")
_KINDS = (DataType.INT32, DataType.INT64)


@operator(
    "CreateMap",
    inputs="",
    outputs="map",
    args={"key_dtype": Int(DataType.INT32), "value_dtype": Int(DataType.INT32)},
    kind="stateful",
)
class CreateMap:
    """Makes an empty map.

    map: a blob that holds no tensor.
    key_dtype, value_dtype: numbers of data types: 2 (int32) or 10 (int64).
    """

    reference = _MAP

    def shape(op: OpView) -> None:
        for name in ("key_dtype", "value_dtype"):
            if getattr(op.args, name) not in _KINDS:
                problem = f"is {getattr(op.args, name)}; allowed are 2 (int32) and 10 (int64)"
                raise OperatorError(f"argument '{name}'", problem)


@operator(
    "KeyValueToMap",
    inputs="keys values",
    outputs="map",
    types={"keys": INTS, "values": INTS},
    kind="stateful",
)
class KeyValueToMap:
    """Makes a map of keys and values.

    keys, values: equally many.  Of a key that is there twice the first value counts.
    map: a blob that holds no tensor; Save and Load take it.
    """

    reference = _MAP

    def shape(keys: Spec, values: Spec) -> None:
        require_same_size("values", values, "keys", keys)


@operator("MapToKeyValue", inputs="map", outputs="keys values", kind="stateful")
class MapToKeyValue:
    """The keys of a map, and their values, in the order of the keys.

    map: made by KeyValueToMap or CreateMap.  keys, values: 1-d, of the types of the map.
    (The original has them in any order.)
    """

    reference = _MAP

    def shape(map: Any) -> tuple[None, ...]:
        return (None, None)
