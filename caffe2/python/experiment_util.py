"""The log of a training run; see `caffe2.train.trainer_log`."""

from caffe2.train.trainer_log import ExternalLogger, ModelTrainerLog

__all__ = ["ExternalLogger", "ModelTrainerLog"]
