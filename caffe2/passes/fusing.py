"""Passes that make one operator of several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from caffe2.graph.upgrade import HINTS
from caffe2.ops import geometry
from caffe2.ops.arguments import OperatorError
from caffe2.ops.declaration import OpView
from caffe2.passes.model import InferenceModel
from caffe2.proto import caffe2_pb2

# What Conv has and ExpandDepthwise has not.
_LEFT_OUT = {"group", "no_bias", "order"}
# Bounds that count where a Conv follows.
_FILTERED = ("filtered_min", "filtered_max")


def fuse_depthwise(model: InferenceModel) -> list[str]:
    """Makes one ExpandDepthwise of a 1x1 Conv, Relu or Clip, and a depthwise Conv; and of the Relu
    or Clip and 1x1 Conv after them."""
    notes = []
    # Nets without groups, most of them, need no closer look.
    grouped = any(arg.name == "group" and arg.i > 1 for op in model.op for arg in op.arg)
    index = 0
    while grouped and index < len(model.op):
        note = _expanded(model, index) or _projected(model, index)
        if note is None:
            index += 1
        else:
            notes.append(note)
    return notes


def _expanded(model: InferenceModel, index: int) -> str | None:
    if not _is_pointwise(model, index):
        return None
    found = _next_layer(model, index)
    if found is None or not _is_depthwise(model, found.last):
        return None
    args = [arg for arg in model.op[found.last].arg if arg.name not in _LEFT_OUT]
    return _put(model, index, found, args, ("min", "max"))


def _projected(model: InferenceModel, index: int) -> str | None:
    depthwise = model.op[index]
    if depthwise.type != "ExpandDepthwise" or len(depthwise.input) != 5:
        return None
    if depthwise.control_input or depthwise.engine:
        return None
    found = _next_layer(model, index)
    if found is None or not _is_pointwise(model, found.last):
        return None
    args = [arg for arg in depthwise.arg if arg.name not in _FILTERED]
    return _put(model, index, found, args, _FILTERED)


class _Next(NamedTuple):
    """What alone reads an operator, with the Relu or Clip before it, if there is one."""

    clip: int | None
    bounds: tuple[float | None, float | None]
    last: int


def _next_layer(model: InferenceModel, index: int) -> _Next | None:
    clip: int | None = None
    bounds: tuple[float | None, float | None] = (None, None)
    last = _only_reader(model, index)
    if last is not None and model.op[last].type in ("Relu", "Clip"):
        clip, view = last, model.view(last)
        if view is None or model.op[clip].control_input:
            return None
        bounds = (0.0, None) if view.type == "Relu" else (view.args.min, view.args.max)
        last = _only_reader(model, clip)
    if last is None or any(np.isnan(b) for b in bounds if b is not None):
        return None
    # What is read has to last until then, and is not written in place.
    read = model.op[index].input
    if any(name in op.output for name in read for op in model.op[index + 1 : last + 1]):
        return None
    return _Next(clip, bounds, last)


def _put(
    model: InferenceModel,
    index: int,
    found: _Next,
    args: Iterable[caffe2_pb2.Argument],
    bounds: tuple[str, str],
) -> str:
    what, last = model.op[index], model.op[found.last]
    note = f"{what.type} '{what.output[0]}' computed within {last.type} '{last.output[0]}'"
    fused = caffe2_pb2.OperatorDef()
    fused.CopyFrom(last)  # with its name and device
    fused.type = "ExpandDepthwise"
    fused.ClearField("engine")
    fused.input[:] = [*what.input, *last.input[1:]]
    del fused.arg[:]
    fused.arg.extend(args)
    for name, bound in zip(bounds, found.bounds, strict=True):
        if bound is not None:
            fused.arg.add(name=name, f=bound)
    last.CopyFrom(fused)
    for i in (found.clip, index):
        if i is not None:
            del model.op[i]
    return note


def _conv(model: InferenceModel, index: int) -> OpView | None:
    """A Conv with a bias, of two dimensions, whose weights do not change."""
    op, view = model.op[index], model.view(index)
    if view is None or op.type != "Conv" or len(op.input) != 3 or op.control_input:
        return None
    if op.engine and op.engine not in HINTS:
        return None
    filter = model.constant(op.input[1])
    if filter is None or filter.ndim != 4 or model.constant(op.input[2]) is None:
        return None
    return view if view.args.order == "NCHW" and not view.args.global_pooling else None


def _is_pointwise(model: InferenceModel, index: int) -> bool:
    view = _conv(model, index)
    filter = model.constant(model.op[index].input[1]) if view else None
    if view is None or filter is None or view.args.group != 1 or filter.shape[2:] != (1, 1):
        return False
    try:
        strides, pads = geometry.per_axis(view.args, "stride", 2), geometry.pads(view.args, 2)
    except OperatorError:
        return False  # the run will say what is wrong with it
    return strides == (1, 1) and pads == ((0, 0), (0, 0))


def _is_depthwise(model: InferenceModel, index: int) -> bool:
    view = _conv(model, index)
    filter = model.constant(model.op[index].input[1]) if view else None
    return view is not None and filter is not None and filter.shape[:2] == (view.args.group, 1)


def _only_reader(model: InferenceModel, index: int) -> int | None:
    """What alone reads the only output of an operator, as one of its inputs."""
    op = model.op[index]
    readers = model.readers(index, op.output[0])
    if len(op.output) != 1 or len(readers) != 1 or readers[0] == len(model.op):
        return None
    return readers[0] if list(model.op[readers[0]].input).count(op.output[0]) == 1 else None
