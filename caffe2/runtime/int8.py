"""Int8 tensors in Python: integers that stand for (data - zero_point) * scale."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from caffe2.runtime.names import StringifyBlobName
from caffe2.runtime.workspaces import resolve


class Int8Tensor(NamedTuple):
    """data: uint8, or int32 for biases."""

    data: npt.NDArray[Any]
    scale: float
    zero_point: int

    def __repr__(self) -> str:
        return f"Int8Tensor(scale={self.scale}, zero_point={self.zero_point}, data={self.data})"


def FetchInt8Blob(name: Any, *, ws: Any = None) -> Int8Tensor:
    """A copy of a blob that holds an Int8 tensor.  EngineError when it holds none."""
    return Int8Tensor(*resolve(ws).fetch_int8(StringifyBlobName(name)))


def FetchInt8BlobRealVal(name: Any, *, ws: Any = None) -> npt.NDArray[Any]:
    """The numbers that an Int8 tensor stands for.  EngineError when the blob holds none."""
    data, scale, zero_point = FetchInt8Blob(name, ws=ws)
    real: npt.NDArray[Any] = (data.astype(np.int64) - zero_point) * np.float32(scale)
    return real.astype(np.float32)


def FeedInt8Blob(name: Any, tensor: Int8Tensor, *, ws: Any = None) -> bool:
    """Writes a copy of an Int8 tensor to a blob, which is made where missing.

    EngineError for elements that are neither uint8 nor int32, and a scale that is not above 0.
    """
    data, scale, zero_point = tensor
    resolve(ws).feed_int8(StringifyBlobName(name), np.ascontiguousarray(data), scale, zero_point)
    return True
