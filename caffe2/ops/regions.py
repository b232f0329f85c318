# mypy: disable-error-code="misc, no-any-return"
"""Operators on regions of feature maps: their pooling, key points, orders."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from caffe2.ops import geometry
from caffe2.ops.arguments import Argument, Bool, Float, Int, OperatorError, Str
from caffe2.ops.batch_norm import ORDER
from caffe2.ops.boxes import require_boxes
from caffe2.ops.datatypes import FLOAT, INT32
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_rank, require_same_shape

F4 = np.float32
_MOST = 4096
_MOST_SAMPLES = 2**23  # of a region
_POOLED: dict[str, Argument] = {
    "spatial_scale": Float(1.0),
    "pooled_h": Int(1, min=1, max=_MOST),
    "pooled_w": Int(1, min=1, max=_MOST),
}
ALIGN_ARGS: dict[str, Argument] = {
    **_POOLED,
    "sampling_ratio": Int(-1, max=_MOST),
    "aligned": Bool(False),
    "order": ORDER,
}


def _picture_numbers(RoIs: Array, pictures: int, size: int = 4) -> Array:
    if RoIs.shape[1] == size:
        numbers = np.zeros(len(RoIs))
        if pictures != 1 and len(RoIs):
            problem = f"has no pictures' numbers, and X has {pictures} pictures"
            raise OperatorError("RoIs", problem)
    else:
        numbers = RoIs[:, 0]
    for row, number in enumerate(numbers):
        if not (0 <= number < pictures):
            raise OperatorError("RoIs", f"holds picture {number} in row {row}; X has {pictures}")
    return numbers.astype(np.int64)


class _Sample(NamedTuple):
    """The four elements that a point lies between, and the share of each."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    shares: Array


def _point(place: np.float32, size: int) -> tuple[int, int, np.float32] | None:
    """The two elements around a point along an axis, and the share of the second."""
    if not -1 <= place <= size:
        return None
    place = max(place, F4(0))
    low = int(place)
    if low >= size - 1:
        return size - 1, size - 1, F4(0)
    return low, low + 1, place - F4(low)


def _grid(roi: Array, args: SimpleNamespace) -> list[tuple[int, F4, F4, int]]:
    """For height and width: samples per bin, the start (with an angle from the center), the size
    of a bin, the number of bins."""
    offset = F4(0.5 if args.aligned else 0)
    found = []
    for axis, bins in ((1, args.pooled_h), (0, args.pooled_w)):
        start = roi[axis] * F4(args.spatial_scale) - offset
        length = roi[axis + 2] * F4(args.spatial_scale)
        if len(roi) == 4:
            length = length - offset - start
        if args.aligned:
            if not length >= 0:
                raise OperatorError("RoIs", f"holds a box of length {length}; it is not negative")
        else:
            length = max(length, F4(1))
        size = F4(length / F4(bins))
        if not np.isfinite(size) or size > _MOST:
            raise OperatorError("RoIs", f"holds a box of length {length}; less is allowed")
        if len(roi) == 5:
            start = -length / F4(2)
        samples = args.sampling_ratio if args.sampling_ratio > 0 else int(np.ceil(size))
        found.append((samples, start, size, bins))
    samples = np.prod([float(count * bins) for count, _, _, bins in found])
    if samples > _MOST_SAMPLES:
        raise OperatorError("RoIs", f"holds a box that needs {samples} samples; less is allowed")
    return found


def _turned(y: F4, x: F4, roi: Array, args: SimpleNamespace) -> tuple[F4, F4]:
    """A point of a box that lies around 0, in the map."""
    turn, offset = np.deg2rad(roi[4]), F4(0.5 if args.aligned else 0)
    center_x, center_y = roi[:2] * F4(args.spatial_scale) - offset
    sine, cosine = np.sin(turn), np.cos(turn)
    return y * cosine - x * sine + center_y, x * cosine + y * sine + center_x


def _samples(roi: Array, spatial: tuple[int, ...], args: SimpleNamespace) -> Any:
    """(bin row, bin column, sample, number of samples of the bin) of each sample in the map."""
    (rows, top, height, bins_h), (columns, left, width, bins_w) = _grid(roi, args)
    for i in range(bins_h):
        for j in range(bins_w):
            for a in range(rows):
                place_y = top + F4(i) * height + (F4(a) + F4(0.5)) * height / F4(rows)
                for b in range(columns):
                    place_x = left + F4(j) * width + (F4(b) + F4(0.5)) * width / F4(columns)
                    place = (place_y, place_x)
                    if len(roi) == 5:
                        place = _turned(*place, roi, args)
                    y, x = _point(place[0], spatial[0]), _point(place[1], spatial[1])
                    if x is None or y is None:
                        continue
                    shares = np.outer([1 - y[2], y[2]], [1 - x[2], x[2]])
                    yield i, j, _Sample(y[:2], x[:2], shares), rows * columns


def _pooled_shape(X: Spec, RoIs: Spec, args: SimpleNamespace, size: int = 4) -> tuple[int, ...]:
    require_rank("X", X, 4)
    geometry.spatial_shape(args, X)
    require_boxes("RoIs", RoIs, size, size + 1)
    spatial = (args.pooled_h, args.pooled_w)
    return geometry.with_channels(args, RoIs.shape[0], geometry.channels(args, X), spatial)


def _aligned(X: Array, RoIs: Array, size: int, args: SimpleNamespace) -> Array:
    first = geometry.channels_first(args, X)
    pictures = _picture_numbers(RoIs, len(X), size)
    y = np.zeros((len(RoIs), first.shape[1], args.pooled_h, args.pooled_w))
    for r, picture in enumerate(pictures):
        for i, j, sample, count in _samples(RoIs[r, -size:], first.shape[2:], args):
            corners = first[picture][:, sample.rows][:, :, sample.columns]
            y[r, :, i, j] += np.sum(corners * sample.shares, axis=(1, 2)) / count
    return np.ascontiguousarray(geometry.ordered(args, y)).astype(X.dtype)


@operator(
    "RoIAlign",
    inputs="X RoIs",
    outputs="Y",
    args=ALIGN_ARGS,
    types={"X": FLOAT, "RoIs": FLOAT},
)
class RoIAlign:
    """Y = each region of X as pooled_h x pooled_w averages of samples between its elements.

    X: float (N, C, H, W), or (N, H, W, C) with order="NHWC", of which only N may be 0.
    RoIs: float (R, 5): the number of the picture, x1, y1, x2, y2; or (R, 4) for a single picture.
    Y: float (R, C, pooled_h, pooled_w), or (R, pooled_h, pooled_w, C).
    spatial_scale: what the boxes are multiplied with.
    sampling_ratio: samples per bin along each axis; when not positive as many as the bin is long,
    rounded up.
    aligned: boxes lie half an element further left and up, so that the center of the first element
    is at 0.5; they are not enlarged to 1 element, and one without area is 0.
    (He et al., 2017, "Mask R-CNN", arXiv 1703.06870.)
    """

    def shape(X: Spec, RoIs: Spec, op: OpView) -> Spec:
        return Spec(_pooled_shape(X, RoIs, op.args), X.dtype)

    def reference(X: Array, RoIs: Array, op: OpView) -> Array:
        return _aligned(X, RoIs, 4, op.args)

    def gradient(op: GradientContext) -> Any:
        return op.make("RoIAlignGradient", [*op.inputs, op.grad(0)], [op.input_grad(0)])


@operator(
    "RoIAlignRotated",
    inputs="X RoIs",
    outputs="Y",
    args=ALIGN_ARGS,
    types={"X": FLOAT, "RoIs": FLOAT},
)
class RoIAlignRotated:
    """RoIAlign of boxes that are turned.

    X, Y, arguments: as for RoIAlign.
    RoIs: float (R, 6): the number of the picture, center x, y, width, height, angle in degrees
    (counterclockwise); or (R, 5) for a single picture.
    """

    def shape(X: Spec, RoIs: Spec, op: OpView) -> Spec:
        return Spec(_pooled_shape(X, RoIs, op.args, 5), X.dtype)

    def reference(X: Array, RoIs: Array, op: OpView) -> Array:
        return _aligned(X, RoIs, 5, op.args)

    def gradient(op: GradientContext) -> Any:
        inputs = [*op.inputs, op.grad(0)]
        return op.make("RoIAlignRotatedGradient", inputs, [op.input_grad(0)])


def _aligned_gradient(X: Array, RoIs: Array, dY: Array, size: int, args: SimpleNamespace) -> Array:
    first, dy = geometry.channels_first(args, X), geometry.channels_first(args, dY)
    pictures = _picture_numbers(RoIs, len(X), size)
    dx = np.zeros(first.shape)
    for r, picture in enumerate(pictures):
        for i, j, sample, count in _samples(RoIs[r, -size:], first.shape[2:], args):
            for a, row in enumerate(sample.rows):
                for b, column in enumerate(sample.columns):
                    share = sample.shares[a, b] / count
                    dx[picture, :, row, column] += dy[r, :, i, j] * share
    return np.ascontiguousarray(geometry.ordered(args, dx)).astype(X.dtype)


def _require_pooled(name: str, dY: Spec, shape: tuple[int, ...]) -> None:
    if dY.shape != shape:
        raise OperatorError(name, f"has shape {dY.shape}; {shape} is needed")


@operator(
    "RoIAlignGradient",
    inputs="X RoIs dY",
    outputs="dX",
    args=ALIGN_ARGS,
    types={"X": FLOAT, "RoIs": FLOAT, "dY": FLOAT},
)
class RoIAlignGradient:
    """dX = for each element the sum of dY with the shares that RoIAlign took it with.

    X, RoIs: the inputs of RoIAlign (of X only the shape matters).  dY: float, as its output.
    dX: float, shaped like X.
    """

    def shape(X: Spec, RoIs: Spec, dY: Spec, op: OpView) -> Spec:
        _require_pooled("dY", dY, _pooled_shape(X, RoIs, op.args))
        return X

    def reference(X: Array, RoIs: Array, dY: Array, op: OpView) -> Array:
        return _aligned_gradient(X, RoIs, dY, 4, op.args)


@operator(
    "RoIAlignRotatedGradient",
    inputs="X RoIs dY",
    outputs="dX",
    args=ALIGN_ARGS,
    types={"X": FLOAT, "RoIs": FLOAT, "dY": FLOAT},
)
class RoIAlignRotatedGradient:
    """dX = for each element the sum of dY with the shares that RoIAlignRotated took it with.

    X, RoIs: the inputs of RoIAlignRotated (of X only the shape matters).  dY: float, as its output.
    dX: float, shaped like X.
    """

    def shape(X: Spec, RoIs: Spec, dY: Spec, op: OpView) -> Spec:
        _require_pooled("dY", dY, _pooled_shape(X, RoIs, op.args, 5))
        return X

    def reference(X: Array, RoIs: Array, dY: Array, op: OpView) -> Array:
        return _aligned_gradient(X, RoIs, dY, 5, op.args)


_POOL_ARGS: dict[str, Argument] = {
    **_POOLED,
    "is_test": Bool(False),
    "order": Str("NCHW", choices=("NCHW", "nchw")),
}


@operator(
    "RoIPool",
    inputs="X rois",
    outputs="Y argmaxes?",
    helpers=[1],
    args=_POOL_ARGS,
    types={"X": FLOAT, "rois": FLOAT},
)
class RoIPool:
    """Y = the largest elements of pooled_h x pooled_w parts of each region of X.

    X: float (N, C, H, W), of which only N may be 0.
    rois: float (R, 5): the number of the picture, x1, y1, x2, y2, which are rounded.
    Y: float (R, C, pooled_h, pooled_w), 0 where a part is empty.
    argmaxes: int32, shaped like Y: where in H * W the element was; -1 for none.  The gradient
    needs it; with is_test it may be left out.
    spatial_scale: what the boxes are multiplied with.  (Girshick, 2015, "Fast R-CNN".)
    """

    def shape(X: Spec, rois: Spec, op: OpView) -> tuple[Spec, Spec]:
        require_boxes("rois", rois, 5)
        shape = _pooled_shape(X, rois, op.args)
        return Spec(shape, X.dtype), Spec(shape, np.dtype(np.int32))

    def reference(X: Array, rois: Array, op: OpView) -> tuple[Array, Array]:
        args = op.args
        pictures = _picture_numbers(rois, len(X))
        y = np.zeros((len(rois), X.shape[1], args.pooled_h, args.pooled_w), X.dtype)
        places = np.full(y.shape, -1, np.int32)
        for r, picture in enumerate(pictures):
            rows = _parts(rois[r, [2, 4]], args.pooled_h, X.shape[2], args)
            columns = _parts(rois[r, [1, 3]], args.pooled_w, X.shape[3], args)
            for i, (top, bottom) in enumerate(rows):
                for j, (left, right) in enumerate(columns):
                    if top >= bottom or left >= right:
                        continue
                    part = X[picture, :, top:bottom, left:right].reshape(X.shape[1], -1)
                    best = np.argmax(part, axis=1)
                    y[r, :, i, j] = part[np.arange(len(part)), best]
                    row, column = np.divmod(best, right - left)
                    places[r, :, i, j] = (top + row) * X.shape[3] + left + column
        return y, places

    def gradient(op: GradientContext) -> Any:
        if len(op.outputs) < 2:
            raise OperatorError("argmaxes", "is needed for the gradient")
        inputs = [op.input(0), op.input(1), op.output(1), op.grad(0)]
        return op.make("RoIPoolGradient", inputs, [op.input_grad(0)])


def _parts(ends: Array, bins: int, size: int, args: SimpleNamespace) -> list[tuple[int, int]]:
    """Where the bins of a region lie along an axis."""
    scaled = ends * F4(args.spatial_scale)
    if not np.all(np.abs(scaled) < 2**24):
        raise OperatorError("rois", f"holds a box from {scaled[0]} to {scaled[1]}; less is allowed")
    # Halves away from 0.
    start, end = (int(np.trunc(place + np.copysign(F4(0.5), place))) for place in scaled)
    length = F4(max(end - start + 1, 1)) / F4(bins)
    found = []
    for i in range(bins):
        low, high = int(np.floor(F4(i) * length)), int(np.ceil(F4(i + 1) * length))
        found.append((min(max(low + start, 0), size), min(max(high + start, 0), size)))
    return found


@operator(
    "RoIPoolGradient",
    inputs="X rois argmaxes dY",
    outputs="dX",
    args=_POOL_ARGS,
    types={"X": FLOAT, "rois": FLOAT, "argmaxes": INT32, "dY": FLOAT},
)
class RoIPoolGradient:
    """dX = for each element the sum of dY where RoIPool took it.

    X, rois: the inputs of RoIPool (of X only the shape matters).  argmaxes: its second output.
    dY: float, as its output.  dX: float, shaped like X.
    """

    def shape(X: Spec, rois: Spec, argmaxes: Spec, dY: Spec, op: OpView) -> Spec:
        require_boxes("rois", rois, 5)
        _require_pooled("dY", dY, _pooled_shape(X, rois, op.args))
        require_same_shape("argmaxes", argmaxes, "dY", dY)
        return X

    def reference(X: Array, rois: Array, argmaxes: Array, dY: Array, op: OpView) -> Array:
        n, channels, height, width = X.shape
        dx = np.zeros((n, channels, height * width))
        for r, picture in enumerate(_picture_numbers(rois, n)):
            for c in range(channels):
                places = argmaxes[r, c]
                if places.size and not (places.min() >= -1 and places.max() < height * width):
                    problem = f"holds a place outside of [-1, {height * width})"
                    raise OperatorError("argmaxes", problem)
                taken = places >= 0
                np.add.at(dx[picture, c], places[taken], dY[r, c][taken])
        return dx.reshape(X.shape).astype(X.dtype)


@operator(
    "HeatmapMaxKeypoint",
    inputs="heatmaps bboxes_in",
    outputs="keypoints",
    args={"should_output_softmax": Bool(False)},
    types={"heatmaps": FLOAT, "bboxes_in": FLOAT},
)
class HeatmapMaxKeypoint:
    """keypoints = where in its box each heat map is largest, between its elements.

    heatmaps: float (R, K, S, S), S >= 2.  bboxes_in: float (R, 4 or more): x1, y1, x2, y2.
    keypoints: float (R, 4, K): x, y, the value there, and with should_output_softmax the largest
    probability of the map's softmax, else 0.
    The place is the maximum of the second-order expansion around the largest element (Brown and
    Lowe, 2002, "Invariant features from interest point groups").
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(heatmaps: Spec, bboxes_in: Spec) -> Spec:
        require_rank("heatmaps", heatmaps, 4)
        require_rank("bboxes_in", bboxes_in, 2)
        rows, count, height, width = heatmaps.shape
        if height != width or height < 2:
            raise OperatorError("heatmaps", f"has shape {heatmaps.shape}; maps are S x S, S >= 2")
        if bboxes_in.shape[0] != rows or bboxes_in.shape[1] < 4:
            problem = f"has shape {bboxes_in.shape}; ({rows}, 4) is needed"
            raise OperatorError("bboxes_in", problem)
        return Spec((rows, 4, count), heatmaps.dtype)

    def reference(heatmaps: Array, bboxes_in: Array, op: OpView) -> Array:
        rows, count, size, _ = heatmaps.shape
        y = np.zeros((rows, 4, count), F4)
        for r in range(rows):
            x0, y0, x1, y1 = bboxes_in[r, :4]
            for k in range(count):
                map = heatmaps[r, k]
                column, row, value = _peak(map)
                y[r, 0, k] = x0 + column * max(x1 - x0, F4(1)) / F4(size)
                y[r, 1, k] = y0 + row * max(y1 - y0, F4(1)) / F4(size)
                y[r, 2, k] = value
                if op.args.should_output_softmax:
                    y[r, 3, k] = F4(1) / np.sum(np.exp(map - np.max(map), dtype=F4))
        return y


def _peak(map: Array) -> tuple[float, float, float]:
    size = len(map)
    top = int(np.argmax(map))
    row, column = divmod(top, size)
    near = np.pad(map, 1, mode="reflect")[row : row + 3, column : column + 3].astype(np.float64)
    slope = np.array([near[1, 2] - near[1, 0], near[2, 1] - near[0, 1]]) / 2
    mixed = (near[2, 2] - near[2, 0] - near[0, 2] + near[0, 0]) / 4
    bend = np.array(
        [
            [near[1, 2] - 2 * near[1, 1] + near[1, 0], mixed],
            [mixed, near[2, 1] - 2 * near[1, 1] + near[0, 1]],
        ]
    )
    determinant = bend[0, 0] * bend[1, 1] - bend[0, 1] * bend[1, 0]
    shift = np.zeros(2)
    if abs(determinant) > 1e-4:
        shift = -np.linalg.solve(bend, slope)
        largest = np.max(np.abs(shift))
        if largest > 1.5:
            shift *= 1.5 / largest
    value = near[1, 1] + slope @ shift + 0.5 * shift @ bend @ shift
    return column + 0.5 + shift[0], row + 0.5 + shift[1], float(value)
