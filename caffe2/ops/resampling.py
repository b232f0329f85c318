# mypy: disable-error-code="misc, no-any-return"
"""Operators whose output picks elements of a picture: padding, resizing, moving channels and
blocks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from caffe2.ops import geometry
from caffe2.ops.arguments import INT32_MAX, Argument, Float, Int, Ints, OperatorError, Str
from caffe2.ops.batch_norm import ORDER
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_rank

Maps: TypeAlias = tuple[Array, ...]
# Sizes stay far from what overflows.
_LARGEST = INT32_MAX


def _gather(X: Array, maps: Maps, value: float, args: SimpleNamespace) -> Array:
    """The elements of X at maps[axis] along each spatial axis; `value` where a map has -1."""
    first = geometry.channels_first(args, X)
    if not first.size:  # nothing can be indexed, not even to be left out
        spatial = [max(size, 1) for size in first.shape[2:]]
        first = np.full((*first.shape[:2], *spatial), value, X.dtype)
    grids = np.ix_(*maps)
    places: tuple[Any, ...] = (..., *(np.maximum(grid, 0) for grid in grids))
    found = first[places]
    inside = np.all(np.broadcast_arrays(*(grid >= 0 for grid in grids)), axis=0)
    y = np.where(inside, found, X.dtype.type(value))
    return np.ascontiguousarray(geometry.ordered(args, y))


def _scatter(dY: Array, maps: Maps, spatial: tuple[int, ...], args: SimpleNamespace) -> Array:
    """The gradient of `_gather`: every element receives the sum of what was made of it."""
    dy = geometry.channels_first(args, dY).astype(np.float64)
    for axis, (map, size) in enumerate(zip(maps, spatial, strict=True)):
        rows = np.moveaxis(dy, 2 + axis, 0)
        total = np.zeros((size, *rows.shape[1:]))
        np.add.at(total, map[map >= 0], rows[map >= 0])
        dy = np.moveaxis(total, 0, 2 + axis)
    return np.ascontiguousarray(geometry.ordered(args, dy)).astype(dY.dtype)


# Padding

_ANY_PAD = Int(min=-_LARGEST)
_PAD_ARGS: dict[str, Argument] = {
    "mode": Str("constant", choices=("constant", "reflect", "edge")),
    "value": Float(0.0),
    "order": ORDER,
    "pad": Int(0, min=-_LARGEST),
    "pad_t": _ANY_PAD,
    "pad_l": _ANY_PAD,
    "pad_b": _ANY_PAD,
    "pad_r": _ANY_PAD,
    "pads": Ints(min=-_LARGEST),
}


def _pad_map(size: int, head: int, tail: int, mode: str, axis: int) -> Array:
    """Which element each padded one is."""
    if size + head + tail < 0:
        problem = f"has size {size} along spatial axis {axis}; pads of {head} and {tail} leave none"
        raise OperatorError("X", problem)
    places = np.arange(size + head + tail) - head
    if mode == "constant":
        return np.where((places >= 0) & (places < size), places, -1)
    most = size - 1 if mode == "reflect" else _LARGEST
    if max(head, tail) > most or (size == 0 and places.size):
        problem = f"has size {size} along spatial axis {axis}, too few for pads of {head} and "
        raise OperatorError("X", f"{problem}{tail} with mode='{mode}'")
    if mode == "edge":
        return np.clip(places, 0, max(size - 1, 0))
    places = np.abs(places)
    return np.where(places >= size, 2 * (size - 1) - places, places)


def _pad_maps(args: SimpleNamespace, spatial: tuple[int, ...]) -> Maps:
    heads, tails = geometry.pads(args, 2)
    sides = zip(spatial, heads, tails, range(2), strict=True)
    return tuple(_pad_map(size, head, tail, args.mode, axis) for size, head, tail, axis in sides)


def _spatial(name: str, X: Spec, args: SimpleNamespace) -> tuple[int, ...]:
    require_rank(name, X, 4)
    return X.shape[1:-1] if geometry.channels_last(args) else X.shape[2:]


def _resized(X: Spec, args: SimpleNamespace, spatial: tuple[int, ...]) -> Spec:
    channels = geometry.channels(args, X)
    return Spec(geometry.with_channels(args, X.shape[0], channels, spatial), X.dtype)


@operator("PadImage", inputs="X", outputs="Y", args=_PAD_ARGS, types={"X": FLOAT})
class PadImage:
    """Y = X with pads around each picture.

    X, Y: float (N, C, H, W), or (N, H, W, C) with order="NHWC".
    pad, or pads=[top, left, bottom, right], or pad_t, pad_l, pad_b, pad_r: elements that are
    added; a negative number takes some away.
    mode: "constant" adds `value`; "reflect" what lies opposite of the edge, at most H - 1 or W - 1
    elements; "edge" what lies at the edge.
    """

    def shape(X: Spec, op: OpView) -> Spec:
        maps = _pad_maps(op.args, _spatial("X", X, op.args))
        return _resized(X, op.args, (maps[0].size, maps[1].size))

    def reference(X: Array, op: OpView) -> Array:
        maps = _pad_maps(op.args, _spatial("X", Spec(X.shape, X.dtype), op.args))
        return _gather(X, maps, op.args.value, op.args)

    def gradient(op: GradientContext) -> Any:
        return op.make("PadImageGradient", [op.grad(0)], [op.input_grad(0)])


@operator("PadImageGradient", inputs="dY", outputs="dX", args=_PAD_ARGS, types={"dY": FLOAT})
class PadImageGradient:
    """dX = for each element the sum of dY where PadImage put it.

    dY: float with the shape that PadImage gives with these arguments; dX: float without the pads.
    """

    def shape(dY: Spec, op: OpView) -> Spec:
        spatial = _unpadded(dY, op.args)
        _pad_maps(op.args, spatial)
        return _resized(dY, op.args, spatial)

    def reference(dY: Array, op: OpView) -> Array:
        spatial = _unpadded(Spec(dY.shape, dY.dtype), op.args)
        return _scatter(dY, _pad_maps(op.args, spatial), spatial, op.args)


def _unpadded(dY: Spec, args: SimpleNamespace) -> tuple[int, ...]:
    heads, tails = geometry.pads(args, 2)
    sides = zip(_spatial("dY", dY, args), heads, tails, strict=True)
    sizes = tuple(size - head - tail for size, head, tail in sides)
    if min(sizes) < 0:
        problem = f"has shape {dY.shape}; there are pads of {heads[0]}, {heads[1]} before and "
        raise OperatorError("dY", f"{problem}{tails[0]}, {tails[1]} behind the data")
    return sizes


# Resizing

_SCALE = Float(1.0, min=1e-6, max=1e6)
_NEAREST_ARGS: dict[str, Argument] = {
    "width_scale": _SCALE,
    "height_scale": _SCALE,
    "order": ORDER,
}
_BILINEAR_ARGS: dict[str, Argument] = {"width_scale": _SCALE, "height_scale": _SCALE}
_FIRST = SimpleNamespace(order="NCHW")


def _scaled(size: int, scale: float) -> int:
    """int(size * scale), computed in float32 as in the original."""
    length = float(np.float32(size) * np.float32(scale))
    if length >= _LARGEST:
        raise OperatorError("", f"makes {length:.0f} of {size} elements; less is allowed")
    return int(length)


def _scales(args: SimpleNamespace, scales: Array | None) -> tuple[float, float]:
    """Of height and width."""
    if scales is None:
        return args.height_scale, args.width_scale
    for value in scales:
        if not 1e-6 <= value <= 1e6:
            raise OperatorError("scales", f"holds {value}; allowed is 1e-6 <= scale <= 1e6")
    return float(scales[0]), float(scales[1])


def _require_scales(scales: Spec | None) -> None:
    if scales is not None and scales.shape != (2,):
        raise OperatorError("scales", f"has shape {scales.shape}; (2,) is needed: height, width")


def _nearest_map(size: int, scale: float) -> Array:
    places = (np.arange(_scaled(size, scale), dtype=np.float32) / np.float32(scale)).astype(
        np.int64
    )
    return np.minimum(places, size - 1)


def _require_scaled(dY: Spec, X: Spec, args: SimpleNamespace, scales: tuple[float, ...]) -> None:
    sizes = zip(geometry.spatial_shape(args, X), scales, strict=True)
    expected = _resized(X, args, tuple(_scaled(size, scale) for size, scale in sizes))
    if dY.shape != expected.shape:
        problem = f"has shape {dY.shape}; {expected.shape} is needed, X has shape {X.shape}"
        raise OperatorError("dY", problem)


def _upsampling_gradient(op: GradientContext) -> Any:
    inputs = [op.grad(0), *op.inputs]
    return op.make(f"{op.type}Gradient", inputs, [op.input_grad(0)])


@operator(
    "ResizeNearest",
    inputs="X scales?",
    outputs="Y",
    args=_NEAREST_ARGS,
    types={"X": FLOAT, "scales": FLOAT},
)
class ResizeNearest:
    """Y[i, j] = X[int(i / height_scale), int(j / width_scale)], picture by picture.

    X: float (N, C, H, W), or (N, H, W, C) with order="NHWC", of which only N may be 0.
    Y: as X, with int(H * height_scale) and int(W * width_scale) elements.
    scales: float (2,), height_scale and width_scale in place of the arguments.
    """

    gradient = _upsampling_gradient

    def shape(X: Spec, scales: Spec | None, op: OpView) -> Spec | None:
        require_rank("X", X, 4)
        spatial = geometry.spatial_shape(op.args, X)
        _require_scales(scales)
        if scales is not None:
            return None
        factors = _scales(op.args, None)
        sizes = zip(spatial, factors, strict=True)
        return _resized(X, op.args, tuple(_scaled(size, scale) for size, scale in sizes))

    def reference(X: Array, scales: Array | None, op: OpView) -> Array:
        spatial = geometry.spatial_shape(op.args, Spec(X.shape, X.dtype))
        factors = _scales(op.args, scales)
        maps = tuple(_nearest_map(*each) for each in zip(spatial, factors, strict=True))
        return _gather(X, maps, 0, op.args)


@operator(
    "ResizeNearestGradient",
    inputs="dY X scales?",
    outputs="dX",
    args=_NEAREST_ARGS,
    types={"dY": FLOAT, "X": FLOAT, "scales": FLOAT},
)
class ResizeNearestGradient:
    """dX = for each element the sum of dY where ResizeNearest put it.

    X, scales: as for ResizeNearest (of X only the shape matters); dY: float with the shape of its
    Y; dX: float with the shape of X.
    """

    def shape(dY: Spec, X: Spec, scales: Spec | None, op: OpView) -> Spec:
        require_rank("X", X, 4)
        geometry.spatial_shape(op.args, X)
        _require_scales(scales)
        if scales is None:
            _require_scaled(dY, X, op.args, _scales(op.args, None))
        return X

    def reference(dY: Array, X: Array, scales: Array | None, op: OpView) -> Array:
        spec = Spec(X.shape, X.dtype)
        spatial = geometry.spatial_shape(op.args, spec)
        factors = _scales(op.args, scales)
        _require_scaled(Spec(dY.shape, dY.dtype), spec, op.args, factors)
        maps = tuple(_nearest_map(*each) for each in zip(spatial, factors, strict=True))
        return _scatter(dY, maps, spatial, op.args)


_NEAREST_3D_ARGS: dict[str, Argument] = {
    "temporal_scale": _SCALE,
    "width_scale": _SCALE,
    "height_scale": _SCALE,
    "order": Str("NCHW", choices=("NCHW", "nchw")),
}


def _scales_3d(args: SimpleNamespace) -> tuple[float, float, float]:
    return args.temporal_scale, args.height_scale, args.width_scale


@operator("ResizeNearest3D", inputs="X", outputs="Y", args=_NEAREST_3D_ARGS, types={"X": FLOAT})
class ResizeNearest3D:
    """Y[t, i, j] = X[int(t / temporal_scale), int(i / height_scale), int(j / width_scale)].

    X: float (N, C, T, H, W), of which only N may be 0; Y: sizes times scales, rounded down.
    (The original knows a height and width scale of 2 alone.)
    """

    gradient = _upsampling_gradient

    def shape(X: Spec, op: OpView) -> Spec:
        require_rank("X", X, 5)
        sizes = zip(geometry.spatial_shape(op.args, X), _scales_3d(op.args), strict=True)
        return _resized(X, op.args, tuple(_scaled(size, scale) for size, scale in sizes))

    def reference(X: Array, op: OpView) -> Array:
        each = zip(X.shape[2:], _scales_3d(op.args), strict=True)
        return _gather(X, tuple(_nearest_map(*pair) for pair in each), 0, op.args)


@operator(
    "ResizeNearest3DGradient",
    inputs="dY X",
    outputs="dX",
    args=_NEAREST_3D_ARGS,
    types={"dY": FLOAT, "X": FLOAT},
)
class ResizeNearest3DGradient:
    """dX = for each element the sum of dY where ResizeNearest3D put it.

    X: as for ResizeNearest3D (only its shape matters); dY: float with the shape of its Y.
    dX: float with the shape of X.
    """

    def shape(dY: Spec, X: Spec, op: OpView) -> Spec:
        require_rank("X", X, 5)
        _require_scaled(dY, X, op.args, _scales_3d(op.args))
        return X

    def reference(dY: Array, X: Array, op: OpView) -> Array:
        each = zip(X.shape[2:], _scales_3d(op.args), strict=True)
        maps = tuple(_nearest_map(*pair) for pair in each)
        return _scatter(dY, maps, X.shape[2:], op.args)


_UPSAMPLE_ARGS: dict[str, Argument] = {"scale": Int(2, min=1, max=1 << 20)}


def _upsampled(X: Spec, args: SimpleNamespace) -> Spec:
    require_rank("X", X, 4)
    sizes = tuple(size * args.scale for size in geometry.spatial_shape(_FIRST, X))
    return _resized(X, _FIRST, sizes)


@operator("UpsampleNearest", inputs="X", outputs="Y", args=_UPSAMPLE_ARGS, types={"X": FLOAT})
class UpsampleNearest:
    """Y[i, j] = X[i // scale, j // scale], picture by picture, in feature pyramids of Detectron.

    X: float (N, C, H, W), of which only N may be 0; Y: float (N, C, H * scale, W * scale).
    """

    def shape(X: Spec, op: OpView) -> Spec:
        return _upsampled(X, op.args)

    def reference(X: Array, op: OpView) -> Array:
        return X.repeat(op.args.scale, axis=2).repeat(op.args.scale, axis=3)

    def gradient(op: GradientContext) -> Any:
        inputs = [*op.inputs, op.grad(0)]
        return op.make("UpsampleNearestGradient", inputs, [op.input_grad(0)])


@operator(
    "UpsampleNearestGradient",
    inputs="X dY",
    outputs="dX",
    args=_UPSAMPLE_ARGS,
    types={"X": FLOAT, "dY": FLOAT},
)
class UpsampleNearestGradient:
    """dX = for each element the sum of dY where UpsampleNearest put it.

    X: as for UpsampleNearest (only its shape matters); dY: float with the shape of its Y.
    dX: float with the shape of X.
    """

    def shape(X: Spec, dY: Spec, op: OpView) -> Spec:
        needed = _upsampled(X, op.args).shape
        if dY.shape != needed:
            problem = f"has shape {dY.shape}; {needed} is needed, X has shape {X.shape}"
            raise OperatorError("dY", problem)
        return X

    def reference(X: Array, dY: Array, op: OpView) -> Array:
        n, c, h, w = X.shape
        blocks = dY.reshape(n, c, h, op.args.scale, w, op.args.scale)
        return blocks.sum(axis=(3, 5), dtype=np.float64).astype(np.float32)


def _mixing(size: int, length: int) -> Array:
    """(length, size): how much each input adds to each output; the corners coincide."""
    matrix = np.zeros((length, size))
    step = (size - 1) / (length - 1) if length > 1 else 0.0
    places = np.arange(length) * step
    lower = np.minimum(places.astype(np.int64), size - 1)
    upper = np.minimum(lower + 1, size - 1)
    rows, share = np.arange(length), places - lower
    np.add.at(matrix, (rows, lower), 1 - share)
    np.add.at(matrix, (rows, upper), share)
    return matrix


def _mixings(X: Array, factors: tuple[float, float]) -> list[Array]:
    each = zip(X.shape[2:], factors, strict=True)
    return [_mixing(size, _scaled(size, scale)) for size, scale in each]


@operator(
    "UpsampleBilinear",
    inputs="X scales?",
    outputs="Y",
    args=_BILINEAR_ARGS,
    types={"X": FLOAT, "scales": FLOAT},
)
class UpsampleBilinear:
    """Y = X, resized with the four nearest elements mixed by their distance, so that the corners
    of Y are those of X.

    X: float (N, C, H, W), of which only N may be 0.
    Y: float (N, C, int(H * height_scale), int(W * width_scale)).
    scales: float (2,), height_scale and width_scale in place of the arguments.
    """

    gradient = _upsampling_gradient

    def shape(X: Spec, scales: Spec | None, op: OpView) -> Spec | None:
        require_rank("X", X, 4)
        spatial = geometry.spatial_shape(_FIRST, X)
        _require_scales(scales)
        if scales is not None:
            return None
        sizes = zip(spatial, _scales(op.args, None), strict=True)
        return _resized(X, _FIRST, tuple(_scaled(size, scale) for size, scale in sizes))

    def reference(X: Array, scales: Array | None, op: OpView) -> Array:
        rows, columns = _mixings(X, _scales(op.args, scales))
        y = np.einsum("ih,jw,nchw->ncij", rows, columns, X, optimize=True)
        return np.asarray(y, dtype=X.dtype)


@operator(
    "UpsampleBilinearGradient",
    inputs="dY X scales?",
    outputs="dX",
    args=_BILINEAR_ARGS,
    types={"dY": FLOAT, "X": FLOAT, "scales": FLOAT},
)
class UpsampleBilinearGradient:
    """dX = for each element the sum of dY with the shares UpsampleBilinear mixed it in with.

    X, scales: as for UpsampleBilinear (of X only the shape matters); dY: float with the shape of
    its Y; dX: float with the shape of X.
    """

    def shape(dY: Spec, X: Spec, scales: Spec | None, op: OpView) -> Spec:
        require_rank("X", X, 4)
        geometry.spatial_shape(_FIRST, X)
        _require_scales(scales)
        if scales is None:
            _require_scaled(dY, X, _FIRST, _scales(op.args, None))
        return X

    def reference(dY: Array, X: Array, scales: Array | None, op: OpView) -> Array:
        factors = _scales(op.args, scales)
        _require_scaled(Spec(dY.shape, dY.dtype), Spec(X.shape, X.dtype), _FIRST, factors)
        rows, columns = _mixings(X, factors)
        dx = np.einsum("ih,jw,ncij->nchw", rows, columns, dY, optimize=True)
        return np.asarray(dx, dtype=X.dtype)
