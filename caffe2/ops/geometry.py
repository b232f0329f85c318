"""How convolution and pooling windows lie over the data; shared by shape rules and bodies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from caffe2.ops.arguments import INT32_MAX, Argument, Bool, Int, Ints, OperatorError, Str
from caffe2.ops.declaration import Array, Spec

Index: TypeAlias = tuple[Any, ...]
NOT_SET, VALID, SAME, CAFFE_POOLING = range(4)
# A single number for all axes that is as good as none.
_USUAL = {"stride": 1, "dilation": 1, "adj": 0}


def window_arguments(max_dilation: int = INT32_MAX) -> dict[str, Argument]:
    """The arguments of every operator with windows.

    kernels, strides, dilations   one value for each spatial axis
    pads                          all pads before the data, then all behind it
    kernel, stride, dilation, pad the same for all axes
    kernel_h, kernel_w, ..., pad_t, pad_l, pad_b, pad_r   for two spatial axes, all of a kind
    legacy_pad                    0: the pads given; 1 VALID: none; 2 SAME: output = input / stride,
                                  rounded up; 3: the pads given, output size rounded up as in Caffe
    global_pooling                one window over everything
    order                         NCHW (channels first) or NHWC (channels last)
    """
    return {
        "order": Str("NCHW", choices=("NCHW", "NHWC", "nchw", "nhwc")),
        "kernel": Int(min=0),
        "kernel_h": Int(min=1),
        "kernel_w": Int(min=1),
        "kernels": Ints(min=1),
        "stride": Int(1, min=1),
        "stride_h": Int(min=1),
        "stride_w": Int(min=1),
        "strides": Ints(min=1),
        "dilation": Int(1, min=1, max=max_dilation),
        "dilation_h": Int(min=1, max=max_dilation),
        "dilation_w": Int(min=1, max=max_dilation),
        "dilations": Ints(min=1, max=max_dilation),
        "pad": Int(0, min=0),
        "pad_t": Int(min=0),
        "pad_l": Int(min=0),
        "pad_b": Int(min=0),
        "pad_r": Int(min=0),
        "pads": Ints(min=0),
        "legacy_pad": Int(NOT_SET, min=NOT_SET, max=CAFFE_POOLING),
        "global_pooling": Bool(False),
    }


@dataclass(frozen=True)
class Window:
    """A resolved window: one number for each spatial axis in every field."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pad_head: tuple[int, ...]
    pad_tail: tuple[int, ...]
    output: tuple[int, ...]

    def padded(self, X: Array, value: float) -> Array:
        """X (N, C, spatial...) in float64 with `value` around it, as far as windows reach."""
        widths = [(0, 0), (0, 0)]
        for axis, size in enumerate(X.shape[2:]):
            span = (self.kernel[axis] - 1) * self.dilation[axis] + 1
            reach = (self.output[axis] - 1) * self.stride[axis] + span
            widths.append((self.pad_head[axis], max(reach - size - self.pad_head[axis], 0)))
        return np.pad(X.astype(np.float64), widths, constant_values=value)

    def cropped(self, padded: Array, spatial: tuple[int, ...]) -> Array:
        """The part of a padded array that is data."""
        heads = zip(self.pad_head, spatial, strict=True)
        data: Index = (..., *(slice(head, head + size) for head, size in heads))
        return padded[data]

    def positions(self) -> Iterator[tuple[Index, Index]]:
        """For each element of the kernel: its index in the filter, and the index of the elements
        of the padded array that it meets, one for each output."""
        for place in itertools.product(*map(range, self.kernel)):
            starts = [i * d for i, d in zip(place, self.dilation, strict=True)]
            slices = (
                slice(start, start + (size - 1) * stride + 1, stride)
                for start, size, stride in zip(starts, self.output, self.stride, strict=True)
            )
            yield (..., *place), (..., *slices)


def channels_last(args: SimpleNamespace) -> bool:
    return bool(args.order.upper() == "NHWC")


def spatial_shape(args: SimpleNamespace, X: Spec) -> tuple[int, ...]:
    """The spatial sizes of X; OperatorError when X has no channels or an empty axis."""
    if len(X.shape) < 2:
        raise OperatorError("X", f"has shape {X.shape}; a batch and a channel axis are needed")
    if 0 in X.shape[1:]:
        raise OperatorError("X", f"has shape {X.shape}; only the batch may be empty")
    return X.shape[1:-1] if channels_last(args) else X.shape[2:]


def channels(args: SimpleNamespace, X: Spec) -> int:
    return X.shape[-1] if channels_last(args) else X.shape[1]


def with_channels(
    args: SimpleNamespace, batch: int, channels: int, spatial: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape of activations in the operator's order."""
    return (batch, *spatial, channels) if channels_last(args) else (batch, channels, *spatial)


def channels_first(args: SimpleNamespace, X: Array) -> Array:
    """X as (N, C, spatial...)."""
    return np.moveaxis(X, -1, 1) if channels_last(args) else X


def ordered(args: SimpleNamespace, X: Array) -> Array:
    """X, which is (N, C, spatial...), in the operator's order."""
    return np.moveaxis(X, 1, -1) if channels_last(args) else X


def resolve_window(args: SimpleNamespace, spatial: tuple[int, ...]) -> Window:
    """The window for data of these spatial sizes; OperatorError when it does not fit."""
    rank = len(spatial)
    stride = per_axis(args, "stride", rank)
    dilation = per_axis(args, "dilation", rank)
    head, tail = pads(args, rank)
    if args.global_pooling:
        if {*stride, *dilation} - {1} or any(head + tail):
            problem = "is 1; stride, dilation and pad cannot be set as well"
            raise OperatorError("argument 'global_pooling'", problem)
        ones, zeros = (1,) * rank, (0,) * rank
        return Window(spatial, ones, ones, zeros, zeros, ones)
    if rank == 0:
        raise OperatorError("X", "has no spatial axis")
    kernel = per_axis(args, "kernel", rank)
    if args.legacy_pad in (VALID, SAME) and any(head + tail):
        problem = f"is {args.legacy_pad} (VALID or SAME); pads cannot be given as well"
        raise OperatorError("argument 'legacy_pad'", problem)
    if args.legacy_pad == SAME:
        if {*dilation} - {1}:
            raise OperatorError("argument 'legacy_pad'", "is 2 (SAME); dilation cannot be used")
        needed = [
            max((-(-size // s) - 1) * s + k - size, 0)
            for size, s, k in zip(spatial, stride, kernel, strict=True)
        ]
        head = tuple(pad // 2 for pad in needed)
        tail = tuple(pad - pad // 2 for pad in needed)
    output = []
    for axis, size in enumerate(spatial):
        span = (kernel[axis] - 1) * dilation[axis] + 1
        room = size + head[axis] + tail[axis] - span
        rounded_up = args.legacy_pad == CAFFE_POOLING
        if room < 0 and not (rounded_up and -room < stride[axis]):
            raise OperatorError(
                "X",
                f"has size {size} along spatial axis {axis}, with pads "
                f"{size + head[axis] + tail[axis]}; the kernel spans {span}",
            )
        count = (-(-room // stride[axis]) if rounded_up else room // stride[axis]) + 1
        # Caffe drops a last window that begins behind the data, but only where there are pads.
        if rounded_up and head[axis] and (count - 1) * stride[axis] >= size + head[axis]:
            count -= 1
        output.append(count)
    return Window(kernel, stride, dilation, head, tail, tuple(output))


def require_data_in_windows(window: Window, spatial: tuple[int, ...]) -> None:
    """OperatorError when a pooling window would meet nothing but padding."""
    for axis, size in enumerate(spatial):
        kernel, pads = window.kernel[axis], (window.pad_head[axis], window.pad_tail[axis])
        if max(pads) >= kernel:
            raise OperatorError(
                "",
                f"has pads {pads} along spatial axis {axis}; less than the kernel ({kernel}) "
                "is allowed",
            )
        start = (window.output[axis] - 1) * window.stride[axis] - window.pad_head[axis]
        if start >= size:
            raise OperatorError(
                "argument 'legacy_pad'",
                f"is {CAFFE_POOLING} and the last window along spatial axis {axis} would begin at "
                f"{start}; X has size {size} there",
            )


def per_axis(args: SimpleNamespace, name: str, rank: int) -> tuple[int, ...]:
    """kernels, or kernel for all axes, or kernel_h and kernel_w; so for stride and dilation."""
    listed: tuple[int, ...] = getattr(args, f"{name}s")
    if listed:
        if len(listed) != rank:
            problem = f"has {len(listed)} values; X has {rank} spatial axes"
            raise OperatorError(f"argument '{name}s'", problem)
        return listed
    sides = _sides(args, [f"{name}_h", f"{name}_w"], rank)
    single: int | None = getattr(args, name)
    if name == "kernel" and single == 0:  # as nets with global_pooling have it
        single = None
    if sides and single == _USUAL.get(name):
        return sides
    if single is None:
        problem = "is missing" if getattr(args, name) is None else "is 0; it is at least 1"
        raise OperatorError(f"argument '{name}'", problem)
    return (single,) * rank


def pads(args: SimpleNamespace, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if args.pads:
        if len(args.pads) != 2 * rank:
            problem = (
                f"has {len(args.pads)} values; {2 * rank} are needed, X has {rank} spatial axes"
            )
            raise OperatorError("argument 'pads'", problem)
        return args.pads[:rank], args.pads[rank:]
    sides = _sides(args, ["pad_t", "pad_l", "pad_b", "pad_r"], rank)
    if sides and args.pad == 0:
        return sides[:2], sides[2:]
    return (args.pad,) * rank, (args.pad,) * rank


def _sides(args: SimpleNamespace, names: list[str], rank: int) -> tuple[int, ...]:
    """The values of arguments that are given together or not at all; () when they are not."""
    values = tuple(getattr(args, name) for name in names)
    if all(value is None for value in values):
        return ()
    if None in values:
        raise OperatorError("arguments " + ", ".join(names), "are given together or not at all")
    if rank != 2:
        raise OperatorError(
            "arguments " + ", ".join(names), f"are for two spatial axes; X has {rank}"
        )
    return values
