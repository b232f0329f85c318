"""Pictures of images and filters, drawn with matplotlib (an extra)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def ChannelFirst(arr: Array) -> Array:
    """Channels moved from the last axis to the one before height and width."""
    return np.moveaxis(arr, -1, -3)


def ChannelLast(arr: Array) -> Array:
    """Channels moved from the axis before height and width to the last one."""
    return np.moveaxis(arr, -3, -1)


class PatchVisualizer:
    """Shows images side by side.

    gap: pixels between them
    """

    def __init__(self, gap: int = 1) -> None:
        self.gap = gap

    def get_patch_shape(self, patch: Array) -> tuple[int, int]:
        """Height and width of an image (height, width[, 3]).  ValueError for other shapes."""
        if patch.ndim != 2 and (patch.ndim != 3 or patch.shape[-1] != 3):
            raise ValueError(f"an image is (height, width) or (height, width, 3): {patch.shape}")
        return patch.shape[0], patch.shape[1]

    def ShowSingle(self, patch: Array, cmap: Any = None) -> Array:
        """Shows an image; values are scaled to 0 to 1."""
        return self.ShowMultiple([patch], 1, cmap)

    def ShowMultiple(
        self,
        patches: Array | Sequence[Array],
        ncols: int | None = None,
        cmap: Any = None,
        bg_func: Callable[[Array], Any] = np.mean,
    ) -> Array:
        """Shows images of one shape in rows of `ncols`, and gives the picture, scaled to 0 to 1.

        bg_func: gives the color between them from their values
        """
        from matplotlib import pyplot

        images = np.asarray(patches, np.float32)
        height, width = self.get_patch_shape(images[0])
        columns = ncols or int(np.ceil(np.sqrt(len(images))))
        rows = -(-len(images) // columns)
        down, right = height + self.gap, width + self.gap
        shape = (rows * down - self.gap, columns * right - self.gap, *images.shape[3:])
        picture = np.full(shape, bg_func(images), np.float32)
        for index, image in enumerate(images):
            top, left = index // columns * down, index % columns * right
            picture[top : top + height, left : left + width] = image
        picture -= picture.min()
        picture /= max(float(picture.max()), np.finfo(np.float32).eps)
        pyplot.imshow(picture, cmap=cmap or pyplot.cm.gray, interpolation="nearest")
        pyplot.axis("off")
        return picture

    def ShowImages(self, patches: Array | Sequence[Array], *args: Any, **kwargs: Any) -> Array:
        """Shows images whose values are 0 to 255 or 0 to 1."""
        images = np.asarray(patches, np.float32)
        return self.ShowMultiple(images / 255 if images.max() > 1 else images, *args, **kwargs)

    def ShowChannels(
        self, patch: Array, cmap: Any = None, bg_func: Callable[[Array], Any] = np.mean
    ) -> Array:
        """Shows each channel of an image (height, width, channels)."""
        if patch.ndim != 3:
            raise ValueError(f"an image is (height, width, channels) here: {patch.shape}")
        return self.ShowMultiple(np.moveaxis(patch, -1, 0), cmap=cmap, bg_func=bg_func)


_visualizer = PatchVisualizer()


class NHWC:
    """PatchVisualizer for images with channels last."""

    ShowSingle = staticmethod(_visualizer.ShowSingle)
    ShowMultiple = staticmethod(_visualizer.ShowMultiple)
    ShowImages = staticmethod(_visualizer.ShowImages)
    ShowChannels = staticmethod(_visualizer.ShowChannels)


class NCHW:
    """PatchVisualizer for images with channels first."""

    @staticmethod
    def ShowSingle(patch: Array, *args: Any, **kwargs: Any) -> Array:
        return _visualizer.ShowSingle(ChannelLast(patch), *args, **kwargs)

    @staticmethod
    def ShowMultiple(patch: Array, *args: Any, **kwargs: Any) -> Array:
        return _visualizer.ShowMultiple(ChannelLast(patch), *args, **kwargs)

    @staticmethod
    def ShowImages(patch: Array, *args: Any, **kwargs: Any) -> Array:
        return _visualizer.ShowImages(ChannelLast(patch), *args, **kwargs)

    @staticmethod
    def ShowChannels(patch: Array, *args: Any, **kwargs: Any) -> Array:
        return _visualizer.ShowChannels(ChannelLast(patch), *args, **kwargs)
