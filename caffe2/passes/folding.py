"""Passes that move arithmetic on constants out of the runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from caffe2 import ops
from caffe2.ops.arguments import OperatorError
from caffe2.passes.model import Array, InferenceModel

# A folded constant is kept in memory, and written to files.
MAX_CONSTANT_BYTES = 1 << 20

Affine = tuple[Array | None, Array | None]  # y = x * first + second, for each channel


def fold_affine(model: InferenceModel) -> list[str]:
    """Moves scales and shifts of channels into the weights of the layer before them.

    SpatialBN (is_test), AffineChannel, and Mul, Add and Sub with one constant per channel, behind
    Conv, ConvTranspose or FC:  W' = W * a and b' = b * a + s, where y * a + s is what the operator
    computes; for SpatialBN a = scale / sqrt(var + epsilon) and s = bias - mean * a.
    """
    notes = []
    index = 0
    while index < len(model.op):
        note = _fold_one(model, index)
        if note:
            notes.append(note)
            del model.op[index]
        else:
            index += 1
    return notes


def _fold_one(model: InferenceModel, index: int) -> str | None:
    op = model.op[index]
    if op.type not in _AFFINE or not op.input or op.engine == "REFERENCE":
        return None
    at = model.writer(index, op.input[0])
    if at is None or not model.writes_into(at, index, op.output[0]):
        return None
    layer = model.op[at]
    if layer.type not in _LAYERS or layer.input[0] in layer.output:
        return None
    layer_view, view = model.view(at), model.view(index)
    if layer_view is None or view is None or layer_view.args.__dict__.get("no_bias"):
        return None
    weights = model.constant(layer.input[1])
    axis = _channel_axis(layer.type, layer_view.args, weights)
    has_bias = len(layer.input) > 2
    bias = model.constant(layer.input[2]) if has_bias else None
    if weights is None or axis is None or (has_bias and bias is None):
        return None
    channels = weights.shape[axis]
    affine = _AFFINE[op.type](model, index, layer_view.args.__dict__.get("order", "NCHW"), channels)
    if affine is None:
        return None
    scale = np.ones(channels) if affine[0] is None else affine[0].astype(np.float64)
    shift = np.zeros(channels) if affine[1] is None else affine[1].astype(np.float64)
    shape = [1] * weights.ndim
    shape[axis] = channels
    replaced = list(layer.input[1:])
    if affine[0] is not None:
        layer.input[1] = model.add_param(
            layer.input[1], (weights * scale.reshape(shape)).astype(weights.dtype)
        )
    moved = shift if bias is None else bias * scale + shift
    name = layer.input[2] if has_bias else f"{layer.output[0]}_b"
    name = model.add_param(name, moved.astype(weights.dtype))
    if has_bias:
        layer.input[2] = name
    else:
        layer.input.append(name)
    for old in replaced:
        model.let_go(old)
    note = f"{op.type} '{op.output[0]}' folded into {layer.type} '{layer.output[0]}'"
    layer.output[0] = op.output[0]
    return note


def _channel_axis(type: str, args: object, weights: Array | None) -> int | None:
    """The axis of the weights that counts output channels."""
    options = vars(args)
    if weights is None or weights.ndim < 2:
        return None
    if type == "ConvTranspose":
        if options.get("group", 1) != 1:
            return None
        return 1 if options.get("order", "NCHW") == "NCHW" else weights.ndim - 1
    if type == "FC":
        return 0 if options.get("axis", 1) == 1 and options.get("axis_w", 1) == 1 else None
    return 0


def _batch_norm(model: InferenceModel, index: int, order: str, channels: int) -> Affine | None:
    op, view = model.op[index], model.view(index)
    values = [model.constant(name) for name in op.input[1:5]]
    if view is None or not view.args.is_test or len(op.output) != 1 or len(op.input) != 5:
        return None
    if view.args.order != order or any(v is None or v.size != channels for v in values):
        return None
    gamma, beta, mean, var = (np.asarray(v, np.float64).ravel() for v in values)
    scale = gamma / np.sqrt(var + view.args.epsilon)
    return scale, beta - mean * scale


def _affine_channel(model: InferenceModel, index: int, order: str, channels: int) -> Affine | None:
    op, view = model.op[index], model.view(index)
    values = [model.constant(name) for name in op.input[1:3]]
    if view is None or view.args.order != order:
        return None
    if any(v is None or v.size != channels for v in values):
        return None
    scale, shift = (np.asarray(v, np.float64).ravel() for v in values)
    return scale, shift


def _per_channel(model: InferenceModel, index: int, order: str, channels: int) -> Array | None:
    """Input 1 of a binary operator, when it has one value for each channel of input 0."""
    op, view = model.op[index], model.view(index)
    value = model.constant(op.input[1])
    if view is None or value is None or value.size != channels or order != "NCHW":
        return None
    if getattr(view.args, "broadcast", 0):
        fits = value.ndim == 1 and view.args.axis == 1 and not view.args.axis_str
    else:
        # NumPy's rule, for (N, C, H, W): (C, 1, 1) or (1, C, 1, 1).
        fits = value.shape[-2:] == (1, 1) and value.ndim in (3, 4) and value.shape[-3] == channels
    return value.astype(np.float64).ravel() if fits and value.dtype == np.float32 else None


def _mul(model: InferenceModel, index: int, order: str, channels: int) -> Affine | None:
    value = _per_channel(model, index, order, channels)
    return None if value is None else (value, None)


def _add(model: InferenceModel, index: int, order: str, channels: int) -> Affine | None:
    value = _per_channel(model, index, order, channels)
    return None if value is None else (None, value)


def _sub(model: InferenceModel, index: int, order: str, channels: int) -> Affine | None:
    value = _per_channel(model, index, order, channels)
    return None if value is None else (None, -value)


_LAYERS = {"Conv", "ConvTranspose", "FC"}
_AFFINE: dict[str, Callable[[InferenceModel, int, str, int], Affine | None]] = {
    "SpatialBN": _batch_norm,
    "AffineChannel": _affine_channel,
    "Mul": _mul,
    "Add": _add,
    "Sub": _sub,
}


def fold_constants(model: InferenceModel) -> list[str]:
    """Computes what depends on constants alone, with the NumPy bodies."""
    notes = []
    index = 0
    while index < len(model.op):
        values = _constant_outputs(model, index)
        if values is None:
            index += 1
            continue
        op = model.op[index]
        notes.append(f"{op.type} '{op.output[0]}' computed beforehand")
        names = list(op.output)
        del model.op[index]
        for name, value in zip(names, values, strict=True):
            model.params[name] = value
            model.net.external_input.append(name)
    return notes


def _constant_outputs(model: InferenceModel, index: int) -> tuple[Array, ...] | None:
    op = model.op[index]
    if not ops.declared(op.type) or ops.find(op.type).kind != "pure" or op.control_input:
        return None
    others = [other for i, other in enumerate(model.op) if i != index]
    if any(name in other.output for name in op.output for other in others):
        return None
    if any(name in model.outputs or name in op.input for name in op.output):
        return None
    inputs = [model.constant(name) for name in op.input]
    if any(value is None for value in inputs):
        return None
    try:
        values = ops.find(op.type).run(ops.find(op.type).view_of(op), inputs)  # type: ignore[arg-type]
    except OperatorError:
        return None  # the run will say what is wrong with it
    return values if sum(value.nbytes for value in values) <= MAX_CONSTANT_BYTES else None
