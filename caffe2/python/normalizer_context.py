"""Names of normalizers; see `caffe2.nn.modifiers`."""

from caffe2.nn.modifiers import (
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
