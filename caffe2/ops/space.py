# mypy: disable-error-code="misc, no-any-return"
"""Operators that move whole channels or blocks of a picture."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops import geometry
from caffe2.ops.arguments import Argument, Int, OperatorError, Str
from caffe2.ops.batch_norm import ORDER, channel_count
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_rank

_SHUFFLE_ARGS: dict[str, Argument] = {"group": Int(1, min=1), "order": ORDER}


def _require_groups(name: str, X: Spec, op: OpView) -> None:
    channels = channel_count(name, X, op.args)
    if channels % op.args.group:
        problem = f"is {op.args.group}; {name} has {channels} channels, which must be a multiple"
        raise OperatorError("argument 'group'", problem)


def _shuffled(X: Array, rows: int, args: SimpleNamespace) -> Array:
    """X, its channels seen as a matrix with this many rows and transposed."""
    first = geometry.channels_first(args, X)
    columns = first.shape[1] // max(rows, 1)
    blocks = first.reshape(X.shape[0], rows, columns, math.prod(first.shape[2:]))
    moved = blocks.swapaxes(1, 2).reshape(first.shape)
    return np.ascontiguousarray(geometry.ordered(args, moved))


@operator(
    "ChannelShuffle",
    inputs="X",
    outputs="Y",
    args=_SHUFFLE_ARGS,
    types={"X": FLOAT},
)
class ChannelShuffle:
    """Y = X with the channels of `group` groups interleaved: first the first of each group, then
    the second ones, ... (Zhang et al., 2017: ShuffleNet, arXiv 1707.01083).

    X, Y: float (N, C, ...), or (N, ..., C) with order="NHWC"; group divides C.
    """

    def shape(X: Spec, op: OpView) -> Spec:
        _require_groups("X", X, op)
        return X

    def reference(X: Array, op: OpView) -> Array:
        return _shuffled(X, op.args.group, op.args)

    def gradient(op: GradientContext) -> Any:
        return op.make("ChannelShuffleGradient", [op.grad(0)], [op.input_grad(0)])


@operator(
    "ChannelShuffleGradient",
    inputs="dY",
    outputs="dX",
    args=_SHUFFLE_ARGS,
    types={"dY": FLOAT},
)
class ChannelShuffleGradient:
    """dX = dY with its channels back in the order before ChannelShuffle.

    dY, dX: float (N, C, ...), or (N, ..., C) with order="NHWC"; group divides C.
    """

    def shape(dY: Spec, op: OpView) -> Spec:
        _require_groups("dY", dY, op)
        return dY

    def reference(dY: Array, op: OpView) -> Array:
        channels = geometry.channels(op.args, Spec(dY.shape, dY.dtype))
        return _shuffled(dY, channels // op.args.group, op.args)


_BLOCK_ARGS: dict[str, Argument] = {
    "block_size": Int(2, min=1, max=2**15),
    "order": Str("NCHW", choices=("NCHW", "nchw")),
    "pad": Int(0, min=0),
    "pad_t": Int(min=0),
    "pad_l": Int(min=0),
    "pad_b": Int(min=0),
    "pad_r": Int(min=0),
}


def _sides(args: SimpleNamespace) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return geometry.pads(SimpleNamespace(**{**vars(args), "pads": ()}), 2)


def _padded_size(X: Spec, args: SimpleNamespace) -> tuple[int, int]:
    heads, tails = _sides(args)
    height, width = (
        size + head + tail for size, head, tail in zip(X.shape[2:], heads, tails, strict=True)
    )
    return height, width


@operator("SpaceToBatch", inputs="X", outputs="Y", args=_BLOCK_ARGS, types={"X": FLOAT})
class SpaceToBatch:
    """Y[(i * block_size + j) * N + n, c, h, w] = X'[n, c, h * block_size + i, w * block_size + j],
    where X' is X with zeros around it.

    X: float (N, C, H, W).  pad, or pad_t, pad_l, pad_b, pad_r: how many zeros; the padded sizes
    are multiples of block_size.  Y: float (N * block_size^2, C, H' / block_size, W' / block_size).
    """

    def shape(X: Spec, op: OpView) -> Spec:
        require_rank("X", X, 4)
        block = op.args.block_size
        height, width = _padded_size(X, op.args)
        if height % block or width % block:
            problem = f"has shape {X.shape}, with pads {height} x {width}; multiples of"
            raise OperatorError("X", f"{problem} block_size={block} are needed")
        shape = (X.shape[0] * block**2, X.shape[1], height // block, width // block)
        return Spec(shape, X.dtype)

    def reference(X: Array, op: OpView) -> Array:
        block = op.args.block_size
        (top, left), (bottom, right) = _sides(op.args)
        padded = np.pad(X, [(0, 0), (0, 0), (top, bottom), (left, right)])
        n, c, height, width = padded.shape
        blocks = padded.reshape(n, c, height // block, block, width // block, block)
        moved = blocks.transpose(3, 5, 0, 1, 2, 4)
        shape = (n * block**2, c, height // block, width // block)
        return np.ascontiguousarray(moved).reshape(shape)

    def gradient(op: GradientContext) -> Any:
        return op.make("BatchToSpace", [op.grad(0)], [op.input_grad(0)])


@operator("BatchToSpace", inputs="X", outputs="Y", args=_BLOCK_ARGS, types={"X": FLOAT})
class BatchToSpace:
    """The inverse of SpaceToBatch with the same arguments: pads are cut off.

    X: float (N * block_size^2, C, H, W).
    Y: float (N, C, H * block_size - pads, W * block_size - pads).
    """

    def shape(X: Spec, op: OpView) -> Spec:
        require_rank("X", X, 4)
        block = op.args.block_size
        if X.shape[0] % block**2:
            problem = f"has shape {X.shape}; the batch must be a multiple of {block**2}"
            raise OperatorError("X", f"{problem}, block_size is {block}")
        heads, tails = _sides(op.args)
        sides = zip(X.shape[2:], heads, tails, strict=True)
        height, width = (size * block - head - tail for size, head, tail in sides)
        if min(height, width) < 0:
            raise OperatorError("X", f"has shape {X.shape}; the pads cut off more than there is")
        return Spec((X.shape[0] // block**2, X.shape[1], height, width), X.dtype)

    def reference(X: Array, op: OpView) -> Array:
        block = op.args.block_size
        count, c, height, width = X.shape
        n = count // block**2
        blocks = X.reshape(block, block, n, c, height, width).transpose(2, 3, 4, 0, 5, 1)
        whole = blocks.reshape(n, c, height * block, width * block)
        (top, left), (bottom, right) = _sides(op.args)
        return np.ascontiguousarray(
            whole[:, :, top : height * block - bottom, left : width * block - right]
        )

    def gradient(op: GradientContext) -> Any:
        return op.make("SpaceToBatch", [op.grad(0)], [op.input_grad(0)])
