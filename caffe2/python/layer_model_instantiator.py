"""Nets out of models of layers; see `caffe2.layers.nets`."""

from caffe2.layers.nets import (
    generate_eval_net,
    generate_predict_net,
    generate_training_nets,
    generate_training_nets_forward_only,
    shrink_output_schema,
)

__all__ = [
    "generate_eval_net",
    "generate_predict_net",
    "generate_training_nets",
    "generate_training_nets_forward_only",
    "shrink_output_schema",
]
