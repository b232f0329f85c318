"""Operators that hold a constant tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.datatypes import dtype_of

_FILLS = {
    "float32": "GivenTensorFill",
    "float64": "GivenTensorDoubleFill",
    "uint8": "GivenTensorByteStringToUInt8Fill",
    "int16": "GivenTensorInt16Fill",
    "int32": "GivenTensorIntFill",
    "int64": "GivenTensorInt64Fill",
    "bool": "GivenTensorBoolFill",
    "object": "GivenTensorStringFill",
}


def given_tensor(array: Any, dtype: Any = None) -> tuple[str, dict[str, Any]]:
    """The operator type and the arguments that make a tensor equal to `array`.

    array  an array, number, string, or lists of them; Python floats become float32
    dtype  the element type to convert to: a NumPy type or a number of `DataType`

    ValueError for element types that no operator can hold.
    """
    if dtype is not None:
        array = np.asarray(array, dtype_of(dtype) if isinstance(dtype, int) else dtype)
    elif isinstance(array, (np.ndarray, np.generic)):
        array = np.asarray(array)
    else:
        array = np.asarray(array)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
    if array.dtype.kind in "SU":
        array = array.astype(object)
    try:
        op_type = _FILLS[array.dtype.name]
    except KeyError:
        allowed = ", ".join(_FILLS)
        raise ValueError(f"no operator holds {array.dtype} values; allowed are {allowed}") from None
    values: Any = [array.tobytes()] if array.dtype == np.uint8 else array
    return op_type, {"shape": list(array.shape), "values": values}


def given_int8(data: Any, scale: float, zero_point: int) -> tuple[str, dict[str, Any]]:
    """The same for an Int8 tensor: data (uint8, or int32 for biases), its scale and zero point."""
    args = {"shape": list(data.shape), "Y_scale": float(scale), "Y_zero_point": zero_point}
    if data.dtype == np.uint8:
        return "Int8GivenTensorFill", {**args, "values": data.tobytes()}
    return "Int8GivenIntTensorFill", {**args, "values": data.ravel()}
