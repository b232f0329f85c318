"""Gradients of If, While and Do; see `caffe2.graph.control_ops`."""

from caffe2.graph.control_ops import (
    disambiguate_grad_if_op_output,
    gen_do_gradient,
    gen_if_gradient,
    gen_while_gradient,
    getNetArgument,
)

__all__ = [
    "disambiguate_grad_if_op_output",
    "gen_do_gradient",
    "gen_if_gradient",
    "gen_while_gradient",
    "getNetArgument",
]
