"""Values of Python as blobs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from caffe2 import _native
from caffe2.proto import caffe2_pb2

_PLAIN_TYPES = frozenset(map(np.dtype, "?bhilqBHefd"))


def feed(workspace: _native.Workspace, blob: str, value: Any) -> None:
    """Writes a copy of `value` to a blob, which is made where missing.

    value: an array of bool, (u)int8, (u)int16, int32, int64, float16, float32, float64, str or
    bytes (str as UTF-8); a number or list (floats become float32, integers int64); a TensorProto;
    or a str or bytes, which is kept as one string.  TypeError or EngineError for other element
    types, ValueError for lists of lists of several lengths and for text that is no Unicode.
    """
    if type(value) is np.ndarray and value.dtype in _PLAIN_TYPES:
        workspace.feed(blob, value)
    elif isinstance(value, (str, bytes)):
        workspace.feed_text(blob, _encoded(value, blob))
    elif isinstance(value, caffe2_pb2.TensorProto):
        message = caffe2_pb2.BlobProto(name=blob, type="Tensor", tensor=value)
        workspace.deserialize(blob, message.SerializeToString())
    else:
        array = _as_array(value, blob)
        if array.dtype.hasobject:
            workspace.feed_strings(blob, array)
        else:
            try:
                workspace.feed(blob, array)
            except _native.EngineError as error:
                kind = f"{type(value).__name__} of element type {array.dtype}"
                raise _native.EngineError(f"blob '{blob}' was fed {kind}: {error}") from error


def _as_array(value: Any, blob: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"blob '{blob}' was fed {type(value).__name__}: {error}") from error
    if not isinstance(value, (np.ndarray, np.generic)) and array.dtype == np.float64:
        array = array.astype(np.float32)
    if array.dtype.kind in "SU" or (array.dtype.hasobject and array.size):
        items = [_encoded(item, blob) for item in array.flat]
        if all(isinstance(item, bytes) for item in items):
            strings = np.empty(array.shape, dtype=object)
            strings.reshape(-1)[:] = items
            return strings
    elif array.dtype.kind in "biuf" and array.dtype.itemsize <= 8:  # no long double
        return array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
    raise TypeError(
        f"blob '{blob}' was fed {type(value).__name__} of element type {array.dtype}; "
        "arrays of numbers, bool, str or bytes, a str or bytes are allowed"
    )


def _encoded(item: Any, blob: str) -> Any:
    """Text as UTF-8; anything else as it is."""
    if not isinstance(item, str):
        return item
    try:
        return item.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"blob '{blob}' was fed text that is no Unicode: {item[:80]!a} ({error.reason})"
        ) from None
