"""Tensors and arguments of messages as NumPy arrays and Python values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe2.graph.errors import UsageError
from caffe2.ops.datatypes import DataType, data_type_of, dtype_of
from caffe2.proto import caffe2_pb2

_FIELDS = {
    DataType.FLOAT: "float_data",
    DataType.DOUBLE: "double_data",
    DataType.INT64: "int64_data",
    DataType.STRING: "string_data",
}
_SMALL = "int32_data"  # integers of up to 32 bits, bool, and the bits of float16


def NumpyArrayToCaffe2Tensor(arr: npt.NDArray[Any], name: str | None = None) -> Any:
    """A TensorProto that holds an array of any element type tensors have.

    Strings are kept as UTF-8 bytes.
    """
    array = np.asarray(arr)
    if array.dtype.kind in "SU":
        array = array.astype(object)
    try:
        data_type = data_type_of(array.dtype)
    except ValueError as error:
        raise UsageError(str(error)) from None
    tensor = caffe2_pb2.TensorProto(dims=array.shape)
    tensor.data_type = int(data_type)  # type: ignore[assignment]
    if name:
        tensor.name = name
    values: npt.NDArray[Any] = array.reshape(-1)
    if array.dtype == np.float16:
        values = values.view(np.uint16)
    elif array.dtype == np.bool_:
        values = values.view(np.uint8)
    elements = values.tolist()
    if data_type == DataType.STRING:
        elements = [item.encode() if isinstance(item, str) else item for item in elements]
    getattr(tensor, _FIELDS.get(data_type, _SMALL)).extend(elements)
    return tensor


def Caffe2TensorToNumpyArray(tensor: Any) -> npt.NDArray[Any]:
    """The array that a TensorProto holds; strings are an object array of bytes.

    UsageError when the tensor does not hold as many values as its shape says.
    """
    dtype = dtype_of(tensor.data_type)
    values: npt.NDArray[Any]
    if tensor.raw_data or (tensor.byte_data and dtype.itemsize == 1):
        values = np.frombuffer(tensor.raw_data or tensor.byte_data, dtype)
    else:
        held = getattr(tensor, _FIELDS.get(tensor.data_type, _SMALL))
        if tensor.data_type == DataType.FLOAT16:
            values = np.array(held, np.uint16).view(np.float16)
        else:
            values = np.array(held, dtype)
    shape = tuple(tensor.dims)
    if values.size != np.prod(shape, dtype=np.int64):
        raise UsageError(
            f"tensor '{tensor.name}' holds {values.size} values; its shape {shape} needs "
            f"{np.prod(shape, dtype=np.int64)}"
        )
    return np.array(values.reshape(shape))


def ArgsToDict(args: Iterable[Any]) -> dict[str, Any]:
    """Argument messages as a dict from name to value; nothing given is an empty list."""
    return {arg.name: argument_value(arg) for arg in args}


def argument_value(arg: Any) -> Any:
    """The value that an Argument message holds."""
    for field in ("f", "i", "s", "n", "t"):
        if arg.HasField(field):
            return getattr(arg, field)
    for field in ("floats", "ints", "strings", "nets", "tensors"):
        if getattr(arg, field):
            return list(getattr(arg, field))
    return []


def NCHW2NHWC(tensor: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Channels moved from the second axis to the last, for any number of spatial axes >= 1."""
    return np.moveaxis(_with_channels(tensor), 1, -1)


def NHWC2NCHW(tensor: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Channels moved from the last axis to the second, for any number of spatial axes >= 1."""
    return np.moveaxis(_with_channels(tensor), -1, 1)


def _with_channels(tensor: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if tensor.ndim < 3:
        raise UsageError(
            f"a batch, a channel and at least one spatial axis are needed, got shape {tensor.shape}"
        )
    return tensor
