"""Conversions between Python, NumPy and messages; see `caffe2.graph`."""

import importlib
from typing import Any

from caffe2.graph.legacy_messages import (
    CaffeBlobToNumpyArray,
    ConvertProtoToBinary,
    EnumClassKeyVals,
    GetContentFromProto,
    GetContentFromProtoString,
    OpAlmostEqual,
    TryReadProtoWithClass,
    raiseIfNotEqual,
)
from caffe2.graph.operator import MakeArgument
from caffe2.graph.tensors import (
    NCHW2NHWC,
    NHWC2NCHW,
    ArgsToDict,
    Caffe2TensorToNumpyArray,
    NumpyArrayToCaffe2Tensor,
)
from caffe2.train.iteration import (
    ITERATION_MUTEX_NAME,
    OPTIMIZER_ITERATION_NAME,
    BuildUniqueMutexIter,
)

__all__ = [
    "ITERATION_MUTEX_NAME",
    "NCHW2NHWC",
    "NHWC2NCHW",
    "OPTIMIZER_ITERATION_NAME",
    "ArgsToDict",
    "BuildUniqueMutexIter",
    "Caffe2TensorToNumpyArray",
    "CaffeBlobToNumpyArray",
    "ConvertProtoToBinary",
    "EnumClassKeyVals",
    "GetContentFromProto",
    "GetContentFromProtoString",
    "MakeArgument",
    "NumpyArrayToCaffe2Tensor",
    "OpAlmostEqual",
    "TryReadProtoWithClass",
    "integer_types",
    "raiseIfNotEqual",
    "string_types",
]

string_types, integer_types = (str,), (int,)


def __getattr__(name: str) -> Any:
    # These load the engine.
    if name in ("DebugMode", "GetGPUMemoryUsageStats", "ResetBlobs", "debug"):
        return getattr(importlib.import_module("caffe2.runtime.debugging"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")


if __name__ == "__main__":
    import sys

    from caffe2.commands.utils import main

    sys.exit(main())
