"""One model on several devices; see `caffe2.train.data_parallel`."""

from caffe2.train.data_parallel import (
    AddBlobSync,
    AddDistributedBlobSync,
    CreateNet,
    ExtractPredictorNet,
    FinalizeAfterCheckpoint,
    GetCheckpointParams,
    GetLearningRateBlobNames,
    OptimizeGradientMemory,
    Parallelize,
    Parallelize_CPU,
    Parallelize_GPU,
    Parallelize_iDeep,
    RunInitNet,
    RunNet,
    Synchronize,
)
from caffe2.train.replicas import ConvertNetForDevice, stripBlobName

__all__ = [
    "AddBlobSync",
    "AddDistributedBlobSync",
    "ConvertNetForDevice",
    "CreateNet",
    "ExtractPredictorNet",
    "FinalizeAfterCheckpoint",
    "GetCheckpointParams",
    "GetLearningRateBlobNames",
    "OptimizeGradientMemory",
    "Parallelize",
    "Parallelize_CPU",
    "Parallelize_GPU",
    "Parallelize_iDeep",
    "RunInitNet",
    "RunNet",
    "Synchronize",
    "stripBlobName",
]
