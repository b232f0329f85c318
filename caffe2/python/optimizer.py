"""Optimizers; see `caffe2.train`."""

from caffe2.train.adaptive import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    DecayAdagradOptimizer,
    RmsPropOptimizer,
    StormOptimizer,
    WngradOptimizer,
    YellowFinOptimizer,
)
from caffe2.train.building import (
    build_adadelta,
    build_adagrad,
    build_adam,
    build_adam_sgd,
    build_decay_adagrad,
    build_fp16_sgd,
    build_ftrl,
    build_gftrl,
    build_multi_precision_sgd,
    build_optimizer,
    build_rms_prop,
    build_sgd,
    build_storm,
    build_wngrad,
    build_yellowfin,
    register_optimizer,
)
from caffe2.train.clipping import add_clip_gradient_norm, get_lr_injection, set_lr_injection
from caffe2.train.devices import get_param_device
from caffe2.train.devices import get_param_to_device as _get_param_to_device
from caffe2.train.ftrl import FtrlOptimizer, GFtrlOptimizer
from caffe2.train.lion import LionOptimizer
from caffe2.train.optimizer import (
    AuxOptimizerParams,
    Optimizer,
    WeightDecayBuilder,
    _optimizer_instance_count,
    add_weight_decay,
    reset_optimizer_instance_count,
)
from caffe2.train.sgd import FP16SgdOptimizer, MultiPrecisionSgdOptimizer, SgdOptimizer

__all__ = [
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "AuxOptimizerParams",
    "DecayAdagradOptimizer",
    "FP16SgdOptimizer",
    "FtrlOptimizer",
    "GFtrlOptimizer",
    "LionOptimizer",
    "MultiPrecisionSgdOptimizer",
    "Optimizer",
    "RmsPropOptimizer",
    "SgdOptimizer",
    "StormOptimizer",
    "WeightDecayBuilder",
    "WngradOptimizer",
    "YellowFinOptimizer",
    "_get_param_to_device",
    "_optimizer_instance_count",
    "add_clip_gradient_norm",
    "add_weight_decay",
    "build_adadelta",
    "build_adagrad",
    "build_adam",
    "build_adam_sgd",
    "build_decay_adagrad",
    "build_fp16_sgd",
    "build_ftrl",
    "build_gftrl",
    "build_multi_precision_sgd",
    "build_optimizer",
    "build_rms_prop",
    "build_sgd",
    "build_storm",
    "build_wngrad",
    "build_yellowfin",
    "get_lr_injection",
    "get_param_device",
    "register_optimizer",
    "reset_optimizer_instance_count",
    "set_lr_injection",
]
