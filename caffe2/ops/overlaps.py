# mypy: disable-error-code="no-any-return"
"""How much boxes overlap: intersection over union."""

from __future__ import annotations

import numpy as np

from caffe2.ops.declaration import Array

F4 = np.float32


def overlap(box: Array, others: Array, more: np.float32) -> Array:
    """Intersection over union of one box with each of the others.

    Boxes are x1, y1, x2, y2, one wider than the distance of their corners with `more` = 1, or
    center x, y, width, height and angle in degrees.
    """
    if len(box) == 5:
        return np.array([_rotated(box, other) for other in others], F4)
    with np.errstate(invalid="ignore", divide="ignore"):
        width = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0]) + more
        height = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1]) + more
        common = np.maximum(width, F4(0)) * np.maximum(height, F4(0))
        area = (box[2] - box[0] + more) * (box[3] - box[1] + more)
        areas = (others[:, 2] - others[:, 0] + more) * (others[:, 3] - others[:, 1] + more)
        return common / (area + areas - common)


def _rotated(a: Array, b: Array) -> float:
    area = float(a[2]) * float(a[3]), float(b[2]) * float(b[3])
    if min(area) <= 0:
        return 0.0
    polygon = _corners(a)
    corners = _corners(b)
    # Of one polygon, what is left of each edge of the other (Sutherland and Hodgman, 1974).
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        polygon = _cut(polygon, start, end - start)
        if len(polygon) == 0:
            return 0.0
    common = _area(polygon)
    return common / (area[0] + area[1] - common)


def _corners(box: Array) -> Array:
    """Counterclockwise, where y grows upwards, as doubles."""
    x, y, width, height, angle = box.astype(np.float64)
    turn = np.deg2rad(angle)
    along = np.array([np.cos(turn), -np.sin(turn)]) * width / 2
    across = np.array([np.sin(turn), np.cos(turn)]) * height / 2
    center = np.array([x, y])
    signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    return np.array([center + i * along + j * across for i, j in signs])


def _cut(polygon: Array, start: Array, edge: Array) -> Array:
    sides = edge[0] * (polygon[:, 1] - start[1]) - edge[1] * (polygon[:, 0] - start[0])
    left = []
    for i, side in enumerate(sides):
        before, last = sides[i - 1], polygon[i - 1]
        if (side < 0) != (before < 0):
            left.append(last + (polygon[i] - last) * (before / (before - side)))
        if side >= 0:
            left.append(polygon[i])
    return np.array(left).reshape(-1, 2)


def _area(polygon: Array) -> float:
    following = np.roll(polygon, -1, axis=0)
    return float(np.sum(polygon[:, 0] * following[:, 1] - polygon[:, 1] * following[:, 0])) / 2
