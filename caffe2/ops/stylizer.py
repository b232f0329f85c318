# mypy: disable-error-code="misc, no-any-return"
"""What stands before and behind a net that restyles pictures of a camera."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import Float, Int, OperatorError
from caffe2.ops.datatypes import FLOAT, UINT8
from caffe2.ops.declaration import Array, OpView, Spec, operator
from caffe2.ops.shapes import require_rank, size


def _require(X: Spec, mean: Spec, axis: int, channels: int) -> None:
    require_rank("X", X, 4)
    if X.shape[axis] != channels:
        raise OperatorError("X", f"has shape {X.shape}; axis {axis} needs {channels} channels")
    if size(mean) != 3:
        raise OperatorError("mean", f"has shape {mean.shape}; 3 elements are needed")


@operator(
    "PackedInt8BGRANHWCToNCHWCStylizerPreprocess",
    inputs="X mean",
    outputs="Y",
    args={"noise_std": Float(10.0, min=0), "noise_size": Int(1964, min=1)},
    types={"X": UINT8, "mean": FLOAT},
    kind="random",
)
class PackedInt8BGRANHWCToNCHWCStylizerPreprocess:
    """Y[n, c, h, w] = X[n, h, w, c] - mean[c] + noise, for the channels blue, green and red.

    X: uint8 (N, H, W, 4), whose last channel is not looked at.  mean: float, 3 elements.
    Y: float (N, 3, H, W).
    noise: normal with standard deviation noise_std, drawn anew in every run (the original draws
    noise_size numbers once for each workspace and repeats them; here noise_size means nothing).
    """

    def shape(X: Spec, mean: Spec) -> Spec:
        _require(X, mean, 3, 4)
        n, height, width, _ = X.shape
        return Spec((n, 3, height, width), np.dtype(np.float32))

    def reference(X: Array, mean: Array, op: OpView) -> Array:
        colors = np.moveaxis(X[..., :3].astype(np.float32), 3, 1) - mean.reshape(3, 1, 1)
        noise = op.rng.normal(0, op.args.noise_std, colors.shape)
        return np.asarray(colors + noise, dtype=np.float32)


@operator(
    "BRGNCHWCToPackedInt8BGRAStylizerDeprocess",
    inputs="X mean",
    outputs="Y",
    types={"X": FLOAT, "mean": FLOAT},
)
class BRGNCHWCToPackedInt8BGRAStylizerDeprocess:
    """Y[n, h, w, c] = X[n, c, h, w] + mean[c], limited to 0 ... 255, the fraction cut off.

    X: float (N, 3, H, W); a NaN counts as 0.  mean: float, 3 elements.
    Y: uint8 (N, H, W, 4), whose last channel is 255.
    """

    def shape(X: Spec, mean: Spec) -> Spec:
        _require(X, mean, 1, 3)
        n, _, height, width = X.shape
        return Spec((n, height, width, 4), np.dtype(np.uint8))

    def reference(X: Array, mean: Array) -> Array:
        colors = np.moveaxis(X + mean.reshape(3, 1, 1), 1, 3)
        limited = np.clip(np.nan_to_num(colors, nan=0, posinf=255, neginf=0), 0, 255)
        opaque = np.full((*colors.shape[:3], 1), 255, np.uint8)
        return np.concatenate([limited.astype(np.uint8), opaque], axis=3)
