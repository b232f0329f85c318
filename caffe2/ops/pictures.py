# mypy: disable-error-code="misc, no-any-return"
"""Sums, regions and positions in pictures and sequences: integral images, regions of interest in a
grid, normalization by channel, encoded positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.ops.arguments import Float, Int, OperatorError
from caffe2.ops.datatypes import FLOAT, INTS
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_rank

_FLOAT = np.dtype(np.float32)


@operator("IntegralImage", inputs="X", outputs="Y", types={"X": FLOAT})
class IntegralImage:
    """Y[..., i, j] = sum of X[..., :i, :j]: an integral image (Crow, 1984).

    X: float (N, C, H, W).  Y: float (N, C, H + 1, W + 1).
    """

    def shape(X: Spec) -> Spec:
        require_rank("X", X, 4)
        n, c, h, w = X.shape
        return Spec((n, c, h + 1, w + 1), X.dtype)

    def reference(X: Array) -> Array:
        sums = X.astype(np.float64).cumsum(axis=2).cumsum(axis=3)
        return np.pad(sums, [(0, 0), (0, 0), (1, 0), (1, 0)]).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make("IntegralImageGradient", [op.input(0), op.grad(0)], [op.input_grad(0)])


@operator(
    "IntegralImageGradient",
    inputs="X dY",
    outputs="dX",
    types={"X": FLOAT, "dY": FLOAT},
)
class IntegralImageGradient:
    """dX[..., i, j] = sum of dY[..., :i + 1, :j + 1].

    That is what the original computes, and what nets were trained with; the gradient would sum
    over dY[..., i + 1:, j + 1:].

    X: float (N, C, H, W), of which the shape counts.  dY: float (N, C, H + 1, W + 1).
    """

    def shape(X: Spec, dY: Spec) -> Spec:
        require_rank("X", X, 4)
        n, c, h, w = X.shape
        if dY.shape != (n, c, h + 1, w + 1):
            raise OperatorError("dY", f"has shape {dY.shape}; {(n, c, h + 1, w + 1)} is needed")
        return X

    def reference(X: Array, dY: Array) -> Array:
        sums = dY.astype(np.float64).cumsum(axis=2).cumsum(axis=3)
        return sums[:, :, : X.shape[2], : X.shape[3]].astype(X.dtype)


@operator(
    "RMACRegions",
    inputs="X",
    outputs="RMAC_REGIONS",
    args={"scales": Int(3, min=1, max=1000), "overlap": Float(0.4)},
    types={"X": FLOAT},
)
class RMACRegions:
    """Square regions at several scales that cover a picture (Tolias, Sicre and Jegou, 2015, arXiv
    1511.05879).

    X: float (N, C, H, W), of which the shape counts.
    scales: at scale l squares are 2 * min(H, W) / (l + 1) wide.
    overlap: about how much neighbours along the longer side overlap.
    RMAC_REGIONS: float (regions, 5): picture, left, top, right, bottom (both included).
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(X: Spec) -> None:
        require_rank("X", X, 4)
        if 0 in X.shape[2:]:
            raise OperatorError("X", f"has shape {X.shape}; a picture has pixels")

    def reference(X: Array, op: OpView) -> Array:
        n, _, h, w = X.shape
        least = min(h, w)
        # How many more squares the longer side gets: 1 to 6, whose overlap is the nearest.
        gaps = [(max(h, w) - least) / steps for steps in range(1, 7)]
        errors = [abs((least - gap) / least - op.args.overlap) for gap in gaps]
        more = 1 + errors.index(min(errors))
        more_w, more_h = more if h < w else 0, more if h > w else 0
        found = []
        for scale in range(1, op.args.scales + 1):
            side = 2 * least // (scale + 1)
            if side == 0:
                continue
            lefts = _starts(w, side, scale + more_w)
            tops = _starts(h, side, scale + more_h)
            found += [(x, y, x + side - 1, y + side - 1) for x in lefts for y in tops]
        rows = [(image, *region) for image in range(n) for region in found]
        return np.asarray(rows, np.float32).reshape(len(rows), 5)


def _starts(length: int, side: int, count: int) -> list[int]:
    """Where `count` squares begin that are spread over a length."""
    gap = (length - side) / (count - 1) if count > 1 else 0.0
    return [min(math.floor(gap * k), length - side) for k in range(count)]


@operator(
    "NormalizePlanarYUV",
    inputs="X mean std",
    outputs="Y",
    types={"X": FLOAT, "mean": FLOAT, "std": FLOAT},
    inplace=[(0, 0)],
)
class NormalizePlanarYUV:
    """Y = (X - mean) / std, channel by channel.

    X, Y: float (N, C, H, W).  mean, std: float with a row of C elements for each of N examples, or
    one row for all.
    """

    def shape(X: Spec, mean: Spec, std: Spec) -> Spec:
        require_rank("X", X, 4)
        for name, spec in (("mean", mean), ("std", std)):
            if spec.shape not in ((X.shape[0], X.shape[1]), (1, X.shape[1])):
                raise OperatorError(name, f"has shape {spec.shape}; X has shape {X.shape}")
        return X

    def reference(X: Array, mean: Array, std: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return ((X - mean[:, :, None, None]) / std[:, :, None, None]).astype(X.dtype)


@operator(
    "SinusoidPositionEncoding",
    inputs="positions",
    outputs="output",
    args={"embedding_size": Int(100, min=1), "alpha": Float(10000.0), "amplitude": Float(1.0)},
    types={"positions": INTS},
)
class SinusoidPositionEncoding:
    """Positions as waves (Vaswani et al., 2017, arXiv 1706.03762): for even k the sine, for odd k
    the cosine of position / alpha^(k / embedding_size), times amplitude.

    positions: int32 or int64 (steps, N); the positions of the first column count for all.
    output: float (steps, N, embedding_size).
    """

    def shape(positions: Spec, op: OpView) -> Spec:
        require_rank("positions", positions, 2)
        return Spec((*positions.shape, op.args.embedding_size), _FLOAT)

    def reference(positions: Array, op: OpView) -> Array:
        count = op.args.embedding_size
        powers = float(np.float32(op.args.alpha)) ** (np.arange(count) / count)
        first = positions[:, :1] if positions.shape[1] else np.zeros((len(positions), 1))
        angles = first[:, :, None] / powers
        waves = np.where(np.arange(count) % 2 == 0, np.sin(angles), np.cos(angles))
        found = np.broadcast_to(waves, (*positions.shape, count))
        return (found * np.float32(op.args.amplitude)).astype(np.float32)
