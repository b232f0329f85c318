"""Conversions between Python, NumPy and messages; see `caffe2.graph`."""

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
    "MakeArgument",
    "NumpyArrayToCaffe2Tensor",
]

if __name__ == "__main__":
    import sys

    from caffe2.runtime.inference import main

    sys.exit(main())
