"""Names of regularizers; see `caffe2.train.modifiers`."""

from caffe2.train.modifiers import (
    ModifierContext,
    RegularizerContext,
    UseModifierBase,
    UseRegularizer,
)

__all__ = [
    "ModifierContext",
    "RegularizerContext",
    "UseModifierBase",
    "UseRegularizer",
]
