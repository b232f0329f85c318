"""Names of optimizers, regularizers, ...; see `caffe2.nn.modifiers`."""

from caffe2.nn.modifiers import DEFAULT_MODIFIER, ModifierContext, UseModifierBase

__all__ = ["DEFAULT_MODIFIER", "ModifierContext", "UseModifierBase"]
