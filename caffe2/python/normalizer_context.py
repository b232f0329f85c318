"""Names of normalizers; see `caffe2.train.modifiers`."""

from caffe2.train.modifiers import (
    ModifierContext,
    NormalizerContext,
    UseModifierBase,
    UseNormalizer,
)

__all__ = [
    "ModifierContext",
    "NormalizerContext",
    "UseModifierBase",
    "UseNormalizer",
]
