"""Optimizers; see `caffe2.train`."""

from caffe2.train.optimizer import (
    AuxOptimizerParams,
    Optimizer,
    WeightDecayBuilder,
    add_weight_decay,
    get_param_device,
    reset_optimizer_instance_count,
)
from caffe2.train.sgd import SgdOptimizer, build_sgd

__all__ = [
    "AuxOptimizerParams",
    "Optimizer",
    "SgdOptimizer",
    "WeightDecayBuilder",
    "add_weight_decay",
    "build_sgd",
    "get_param_device",
    "reset_optimizer_instance_count",
]
