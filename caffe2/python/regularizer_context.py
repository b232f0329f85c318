"""Names of regularizers; see `caffe2.nn.modifiers`."""

from caffe2.nn.modifiers import (
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
