"""What a training net measures and counts."""

from __future__ import annotations

from typing import Any

from caffe2.graph.blob import blob_references
from caffe2.graph.datatype import DataType
from caffe2.graph.device import DeviceOption
from caffe2.nn.engine import plain_arguments
from caffe2.nn.model_helper import ModelHelper
from caffe2.proto import caffe2_pb2


def accuracy(model: ModelHelper, blob_in: Any, blob_out: Any, **kwargs: Any) -> Any:
    """The operator Accuracy of [predictions, labels]; `top_k` (default: 1)."""
    return model.net.Accuracy(blob_in, blob_out, **plain_arguments(kwargs))


def iter(model: ModelHelper, blob_out: Any, **kwargs: Any) -> Any:
    """A count of the runs of the net: int64, shape (1,), 0 at first, on the CPU."""
    (counter,) = blob_references(blob_out)
    cpu = DeviceOption(caffe2_pb2.PROTO_CPU)
    fill = {"shape": [1], "value": 0, "dtype": DataType.INT64, **kwargs, "device_option": cpu}
    model.param_init_net.ConstantFill([], counter, **fill)
    return model.net.Iter(counter, counter, **kwargs)


def add_weight_decay(model: ModelHelper, weight_decay: float) -> None:
    """Adds weight_decay * weight to the gradient of each weight; biases are left alone.

    To be called after AddGradientOperators.  Nothing for weight_decay <= 0.
    """
    if weight_decay <= 0.0:
        return
    decay = model.param_init_net.ConstantFill([], "wd", shape=[1], value=float(weight_decay))
    one = model.param_init_net.ConstantFill([], "ONE", shape=[1], value=1.0)
    grads = model.get_param_to_grad(model.weights)
    for weight, grad in grads.items():
        model.net.WeightedSum([grad, one, weight, decay], grad)


HELPERS = [accuracy, add_weight_decay, iter]
