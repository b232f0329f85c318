"""Names of optimizers; see `caffe2.nn.modifiers`."""

from caffe2.nn.modifiers import (
    DEFAULT_MODIFIER as DEFAULT_OPTIM,
)
from caffe2.nn.modifiers import (
    ModifierContext,
    OptimizerContext,
    UseModifierBase,
    UseOptimizer,
)

__all__ = [
    "DEFAULT_OPTIM",
    "ModifierContext",
    "OptimizerContext",
    "UseModifierBase",
    "UseOptimizer",
]
