"""Attention over the outputs of an encoder; see `caffe2.nn.recurrent_attention`."""

from caffe2.nn.recurrent_attention import (
    AttentionType,
    apply_dot_attention,
    apply_recurrent_attention,
    apply_regular_attention,
    apply_soft_coverage_attention,
    s,
)

__all__ = [
    "AttentionType",
    "apply_dot_attention",
    "apply_recurrent_attention",
    "apply_regular_attention",
    "apply_soft_coverage_attention",
    "s",
]
