"""Nets out of a model of layers: for training, evaluation and prediction.

`include_tags` of each function leaves only layers that have one of these tags.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from caffe2.graph.net import Net
from caffe2.graph.records import Field, Scalar, Struct, from_column_list
from caffe2.layers.layer import InstantiationContext, ModelLayer
from caffe2.layers.tags import Tags

TagList = Iterable[str] | None


def generate_predict_net(model: Any, include_tags: TagList = None) -> Net:
    """The net that predicts.  It puts out what of the output schema the net computes."""
    net = Net("predict_net")
    for layer in _layers(model, Tags.EXCLUDE_FROM_PREDICTION, include_tags):
        layer.add_operators(net, context=InstantiationContext.PREDICTION)
    net.set_input_record(model.input_feature_schema.clone())
    net.set_output_record(shrink_output_schema(net, model.output_schema))
    return net


def generate_eval_net(model: Any, include_tags: TagList = None) -> Net:
    """The net that evaluates: it puts out the metrics, too."""
    net = Net("eval_net")
    for layer in _layers(model, Tags.EXCLUDE_FROM_EVAL, include_tags):
        layer.add_operators(net, context=InstantiationContext.EVAL)
    _set_records(model, net)
    return net


def generate_training_nets_forward_only(
    model: Any, include_tags: TagList = None
) -> tuple[Net, Net]:
    """The net that fills parameters and constants, and the training net without gradients and
    updates."""
    return _forward(model, include_tags)


def generate_training_nets(model: Any, include_tags: TagList = None) -> tuple[Net, Net]:
    """The net that fills parameters and constants, and the training net: the layers, the
    regularizers' part of the loss, the gradients of the loss, the modifiers, the updates."""
    init_net, net = _forward(model, include_tags)
    model.apply_regularizers_on_loss(net, init_net)
    if model.has_loss():
        grad_map = net.AddGradientOperators(model.loss.field_blobs())
        model.apply_post_grad_net_modifiers(net, init_net, grad_map, modify_output_record=True)
        model.apply_optimizers(net, init_net, grad_map)
        model.apply_regularizers_after_optimizer(net, init_net, grad_map)
        model.apply_final_net_modifiers(net, init_net, grad_map, modify_output_record=True)
    return init_net, net


def shrink_output_schema(net: Net, out_schema: Field) -> Field:
    """The columns of a schema whose blobs a net computes or reads."""
    if isinstance(out_schema, Scalar):
        return out_schema if net.BlobIsDefined(out_schema()) else Struct()
    kept = [(n, s) for n, s in out_schema.named_scalars() if net.BlobIsDefined(s())]
    return from_column_list(
        [name for name, _ in kept],
        [scalar.field_type() for _, scalar in kept],
        [scalar() for _, scalar in kept],
        [scalar.metadata for _, scalar in kept],
    )


def _layers(model: Any, excluded: str, include_tags: TagList) -> list[ModelLayer]:
    wanted = set(include_tags) if include_tags else None
    return [
        layer
        for layer in model.layers
        if excluded not in layer.tags and (wanted is None or wanted & layer.tags)
    ]


def _forward(model: Any, include_tags: TagList) -> tuple[Net, Net]:
    net = Net("train_net")
    init_net = model.create_init_net("train_init_net")
    for layer in _layers(model, Tags.EXCLUDE_FROM_TRAIN, include_tags):
        layer.add_operators(net, init_net)
    _set_records(model, net)
    return init_net, net


def _set_records(model: Any, net: Net) -> None:
    net.set_input_record(model.input_feature_schema + model.trainer_extra_schema)
    output = model.output_schema
    metrics = model.metrics_schema
    net.set_output_record(output + metrics if metrics.fields else output)
