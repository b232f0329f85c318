"""Nodes that work element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.interop.onnx.node import Converter, Node, data_type

_SAME = """
    Abs Acos Asin Atan Ceil Cos Cosh Erf Exp Floor Log Not Reciprocal Relu Sigmoid Sign Sin Sinh
    Softplus Softsign Sqrt Tan Tanh
"""
# ONNX type: our type, and for each attribute its name here and its default.
_UNARY: dict[str, tuple[str, dict[str, tuple[str, float]]]] = {
    **{name: (name, {}) for name in _SAME.split()},
    "Neg": ("Negative", {}),
    "Identity": ("Copy", {}),
    "Elu": ("Elu", {"alpha": ("alpha", 1.0)}),
    "HardSigmoid": ("HardSigmoid", {"alpha": ("alpha", 0.2), "beta": ("beta", 0.5)}),
    "LeakyRelu": ("LeakyRelu", {"alpha": ("alpha", 0.01)}),
    "Scale": ("Scale", {"scale": ("scale", 1.0)}),
    "Selu": ("Selu", {"alpha": ("alpha", 1.67326319), "gamma": ("scale", 1.05070102)}),
    "ThresholdedRelu": ("ThresholdedRelu", {"alpha": ("alpha", 1.0)}),
}
_BINARY = {
    "Add": "Add",
    "And": "And",
    "Div": "Div",
    "Equal": "EQ",
    "Greater": "GT",
    "GreaterOrEqual": "GE",
    "Less": "LT",
    "LessOrEqual": "LE",
    "Mul": "Mul",
    "Or": "Or",
    "Sub": "Sub",
    "Xor": "Xor",
}


def _unary(node: Node) -> None:
    op_type, attributes = _UNARY[node.type]
    arguments: dict[str, Any] = {
        ours: float(node.take(name, value)) for name, (ours, value) in attributes.items()
    }
    node.emit(op_type, **arguments)
    node.ignore("consumed_inputs")


def _binary(node: Node) -> None:
    # Before version 7 broadcasting was asked for, and along an axis.
    legacy = {}
    if node.opset < 7:
        legacy = {name: node.take(name) for name in ("broadcast", "axis")}
        node.ignore("consumed_inputs")
    node.emit(_BINARY[node.type], **legacy)


def _pow(node: Node) -> None:
    exponent = node.graph.constants.get(node.inputs[1])
    if exponent is not None and exponent.size == 1:
        node.emit("Pow", node.inputs[:1], exponent=float(exponent.reshape(())))
        node.ignore("broadcast", "axis")
    elif node.opset < 7:
        node.emit("Pow", broadcast=node.take("broadcast"), axis=node.take("axis"))
    else:
        node.emit("Pow", broadcast=1 if node.shape(0) != node.shape(1) else None)


def _several(node: Node) -> None:
    """Sum, Mean, Max, Min, of inputs that may have to be broadcast."""
    shapes = [node.shape(index) for index in range(len(node.inputs))]
    node.ignore("consumed_inputs")
    if len(node.inputs) == 1:
        node.emit("Copy")
    elif all(shape == shapes[0] for shape in shapes):
        node.emit(node.type)
    elif node.type in ("Sum", "Mean"):
        total = node.inputs[0]
        for name in node.inputs[1:]:
            total = node.step("Add", [total, name])
        node.emit("Scale", [total], scale=1 / len(node.inputs) if node.type == "Mean" else 1.0)
    else:
        node.refuse(f"inputs of different shapes ({shapes}) have no counterpart")


def _clip(node: Node) -> None:
    limits = {}
    for index, name in ((1, "min"), (2, "max")):
        value = node.take(name)
        given = node.constant_input(index) if node.opset >= 11 else None
        if given is not None:
            value = float(np.asarray(given).reshape(()))
        limits[name] = value
    node.ignore("consumed_inputs")
    node.emit("Clip", node.inputs[:1], **limits)


def _cast(node: Node) -> None:
    to = node.take("to")
    node.ignore("saturate", "round_mode")
    number = to if isinstance(to, int) else None
    if number is None:
        import onnx

        number = onnx.TensorProto.DataType.Value(to.upper())
    node.emit("Cast", to=data_type(number))


def _prelu(node: Node) -> None:
    slope = node.inputs[1]
    shape = node.shape(1)
    if shape is None or len(shape) > 1:
        slope = node.emit(
            "Reshape", [slope], [node.new("slope"), node.new("slope_shape")], shape=[-1]
        )
    node.ignore("consumed_inputs")
    node.emit("PRelu", [node.inputs[0], slope])


def _hard_swish(node: Node) -> None:
    gate = node.step("HardSigmoid", node.inputs, alpha=1 / 6, beta=0.5)
    node.emit("Mul", [node.inputs[0], gate])


def _gelu(node: Node) -> None:
    node.emit("Gelu", fast_gelu=int(node.take("approximate", "none") == "tanh"))


def _where(node: Node) -> None:
    shapes = [node.shape(index) for index in range(3)]
    if any(shape != shapes[0] for shape in shapes):
        node.refuse("its three inputs have to have one shape that is known")
    node.emit("Where")


CONVERTERS: dict[str, Converter] = {
    **dict.fromkeys(_UNARY, _unary),
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _several),
    "Cast": _cast,
    "Clip": _clip,
    "Gelu": _gelu,
    "HardSwish": _hard_swish,
    "PRelu": _prelu,
    "Pow": _pow,
    "Where": _where,
}
