"""Names of optimizers, regularizers, ...; see `caffe2.train.modifiers`."""

from caffe2.train.modifiers import DEFAULT_MODIFIER, ModifierContext, UseModifierBase

__all__ = ["DEFAULT_MODIFIER", "ModifierContext", "UseModifierBase"]
