# mypy: disable-error-code="misc, no-any-return"
"""Boxes around things in pictures: their regression and the choice of the best."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops.arguments import Argument, Bool, Float, Floats, Int, OperatorError, Str
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.overlaps import overlap
from caffe2.ops.shapes import require_rank

F4 = np.float32
# No box becomes more than 1000 / 16 times as large.
_MOST_GROWTH = F4(np.log(1000.0 / 16.0))

ANGLE_ARGS: dict[str, Argument] = {
    "angle_bound_on": Bool(True),
    "angle_bound_lo": Int(-90),
    "angle_bound_hi": Int(90),
    "clip_angle_thresh": Float(1.0),
}
PLUS_ONE: dict[str, Argument] = {"legacy_plus_one": Bool(True)}


def one_more(args: SimpleNamespace) -> np.float32:
    """What a box is wider than the distance of its corners."""
    return F4(1 if args.legacy_plus_one else 0)


def require_boxes(name: str, boxes: Spec, *columns: int) -> None:
    if len(boxes.shape) != 2 or boxes.shape[1] not in columns:
        wanted = " or ".join(f"(n, {count})" for count in columns)
        raise OperatorError(name, f"has shape {boxes.shape}; {wanted} is needed")


def transformed(boxes: Array, deltas: Array, weights: Any, args: SimpleNamespace) -> Array:
    """Boxes moved by deltas * size and grown by exp(deltas): corners, or with an angle centers."""
    shifts = [(deltas[:, i] / F4(weights[i])).astype(F4) for i in range(4)]
    grown = [np.exp(np.minimum(shift, _MOST_GROWTH), dtype=F4) for shift in shifts[2:]]
    if boxes.shape[1] == 5:
        x, y, width, height, angle = boxes.T
        angle = angle + np.rad2deg(deltas[:, 4], dtype=F4)
        if args.angle_bound_on:
            low, high = args.angle_bound_lo, args.angle_bound_hi
            period = F4(high - low)
            angle = np.where(angle < low, angle + period, angle)
            angle = np.where(angle > high, angle - period, angle)
        moved = [shifts[0] * width + x, shifts[1] * height + y]
        return np.stack([*moved, grown[0] * width, grown[1] * height, angle], axis=1)
    more = one_more(args)
    width, height = boxes[:, 2] - boxes[:, 0] + more, boxes[:, 3] - boxes[:, 1] + more
    x = shifts[0] * width + (boxes[:, 0] + F4(0.5) * width)
    y = shifts[1] * height + (boxes[:, 1] + F4(0.5) * height)
    half_width, half_height = F4(0.5) * grown[0] * width, F4(0.5) * grown[1] * height
    return np.stack(
        [x - half_width, y - half_height, x + half_width - more, y + half_height - more], axis=1
    )


def clipped(boxes: Array, height: Any, width: Any, args: SimpleNamespace) -> Array:
    """Boxes cut off at the edges of a picture; with an angle only those that are nearly upright."""
    more = one_more(args)
    right, bottom = max(F4(width) - more, F4(0)), max(F4(height) - more, F4(0))
    if boxes.shape[1] == 4:
        return np.clip(boxes, F4(0), np.array([right, bottom, right, bottom], F4))
    sides = (boxes[:, 2:4] - more) / F4(2)
    low = np.clip(boxes[:, :2] - sides, F4(0), np.array([right, bottom], F4))
    high = np.clip(boxes[:, :2] + sides, F4(0), np.array([right, bottom], F4))
    upright = np.concatenate([(low + high) / F4(2), high - low + more, boxes[:, 4:]], axis=1)
    return np.where(np.abs(boxes[:, 4:]) <= F4(args.clip_angle_thresh), upright, boxes)


def suppressed(boxes: Array, order: Array, threshold: float, args: SimpleNamespace) -> Array:
    """Non-maximum suppression: of `order`, those that overlap no better one by more."""
    kept = []
    while order.size:
        best, order = order[0], order[1:]
        kept.append(best)
        shares = overlap(boxes[best], boxes[order], one_more(args))
        order = order[shares <= F4(threshold)]  # NaN, of two without area, is too much
    return np.array(kept, np.int64)


def descending(scores: Array) -> Array:
    """The places of scores from the largest to the smallest; equal ones in their order."""
    return np.argsort(-scores, kind="stable")


@operator(
    "BBoxTransform",
    inputs="rois deltas im_info",
    outputs="box_out roi_batch_splits?",
    args={
        "weights": Floats((1.0, 1.0, 1.0, 1.0)),
        "apply_scale": Bool(True),
        "rotated": Bool(False),
        **ANGLE_ARGS,
        **PLUS_ONE,
    },
    types={"rois": FLOAT, "deltas": FLOAT, "im_info": FLOAT},
)
class BBoxTransform:
    """box_out = rois, moved and grown by deltas for each class, cut off at the picture's edges.

    rois: float (M, 4): x1, y1, x2, y2, in scaled pixels, or (M, 5) with the number of the picture
    before these, which does not fall.  With `rotated`: center x, y, width, height, angle in
    degrees (M, 5), or (M, 6).
    deltas: float (M, 4 * classes) (5 * classes with `rotated`): x and y in widths and heights, log
    of the growth of width and height, angle in radians.
    im_info: float (pictures, 3): height and width of the scaled picture, and its scale.
    box_out: float, shaped like deltas.  roi_batch_splits: float (pictures,), the rois of each.
    weights: four numbers that deltas are divided by.
    apply_scale: whether box_out is in scaled pixels, or in those of the picture itself.
    angle_bound_on: angles are brought between angle_bound_lo and angle_bound_hi.
    clip_angle_thresh: boxes turned by more degrees are not cut off.
    legacy_plus_one: a box is one wider than the distance of its corners.
    (Girshick et al., 2014, "Rich feature hierarchies", appendix C.)
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(rois: Spec, deltas: Spec, im_info: Spec, op: OpView) -> tuple[Spec, Spec]:
        size = 5 if op.args.rotated else 4
        require_boxes("rois", rois, size, size + 1)
        require_boxes("im_info", im_info, 3)
        require_rank("deltas", deltas, 2)
        if deltas.shape[0] != rois.shape[0] or deltas.shape[1] % size:
            problem = f"has shape {deltas.shape}; ({rois.shape[0]}, {size} * classes) is needed"
            raise OperatorError("deltas", problem)
        if rois.shape[1] == size and im_info.shape[0] != 1:
            problem = f"has shape {im_info.shape}; rois without a picture's number need (1, 3)"
            raise OperatorError("im_info", problem)
        if len(op.args.weights) != 4:
            problem = f"has {len(op.args.weights)} numbers; 4 are needed"
            raise OperatorError("argument 'weights'", problem)
        return deltas, Spec((im_info.shape[0],), deltas.dtype)

    def reference(rois: Array, deltas: Array, im_info: Array, op: OpView) -> tuple[Array, Array]:
        size = 5 if op.args.rotated else 4
        scaled = 4  # an angle has no scale
        pictures = np.zeros(len(rois), np.int64)
        if rois.shape[1] > size:
            pictures = _pictures("rois", rois[:, 0], len(im_info))
            rois = rois[:, 1:]
        y = np.empty_like(deltas)
        for picture, (height, width, scale) in enumerate(im_info):
            if not scale > 0:
                raise OperatorError("im_info", f"holds a scale of {scale}; it is above 0")
            rows = pictures == picture
            boxes = rois[rows].copy()
            boxes[:, :scaled] /= scale
            high, wide = (
                np.trunc(F4(height) / scale + F4(0.5)),
                np.trunc(F4(width) / scale + F4(0.5)),
            )
            for first in range(0, deltas.shape[1], size):
                columns = slice(first, first + size)
                found = transformed(boxes, deltas[rows, columns], op.args.weights, op.args)
                found = clipped(found, high, wide, op.args)
                if op.args.apply_scale:
                    found[:, :scaled] *= scale
                y[rows, columns] = found
        return y, np.bincount(pictures, minlength=len(im_info)).astype(F4)


def _pictures(name: str, numbers: Array, count: int) -> Array:
    for row, number in enumerate(numbers):
        if not (0 <= number < count and number == int(number)):
            raise OperatorError(name, f"holds picture {number} in row {row}; there are {count}")
        if row and number < numbers[row - 1]:
            problem = f"holds picture {number} in row {row}, behind {numbers[row - 1]}"
            raise OperatorError(name, f"{problem}; pictures come in their order")
    return numbers.astype(np.int64)


def _soft(boxes: Array, scores: Array, args: SimpleNamespace) -> tuple[Array, Array]:
    """Soft suppression (Bodla et al., 2017): scores fall with the overlap; kept places and all
    scores."""
    scores = scores.copy()
    kept: list[int] = []
    left = np.arange(len(scores))
    while left.size:
        place = int(np.argmax(scores[left]))
        best = left[place]
        kept.append(best)
        left[place] = left[0]  # which decides between equal scores later, as in the original
        left = left[1:]
        shares = overlap(boxes[best], boxes[left], one_more(args))
        if args.soft_nms_method == "gaussian":
            falls = np.exp(-shares * shares / F4(args.soft_nms_sigma), dtype=F4)
        else:
            falls = np.where(shares > F4(args.nms), F4(1) - shares, F4(1))
        scores[left] *= falls
        left = left[scores[left] >= F4(args.soft_nms_min_score_thres)]
    return np.array(kept, np.int64), scores


@operator(
    "BoxWithNMSLimit",
    inputs="scores boxes batch_splits?",
    outputs="scores boxes classes batch_splits? keeps? keeps_size?",
    args={
        "score_thresh": Float(0.05),
        "nms": Float(0.3),
        "detections_per_im": Int(100),
        "soft_nms_enabled": Bool(False),
        "soft_nms_method": Str("linear", choices=("linear", "gaussian")),
        "soft_nms_sigma": Float(0.5, min=1e-6),
        "soft_nms_min_score_thres": Float(0.001),
        "rotated": Bool(False),
        "cls_agnostic_bbox_reg": Bool(False),
        "input_boxes_include_bg_cls": Bool(True),
        "output_classes_include_bg_cls": Bool(True),
        **PLUS_ONE,
    },
    types={"scores": FLOAT, "boxes": FLOAT, "batch_splits": FLOAT},
)
class BoxWithNMSLimit:
    """The best boxes of each class and picture, without those that overlap better ones.

    Inputs: scores: float (M, classes), of which class 0 is the background.
    boxes: float (M, 4 * classes); one box less without input_boxes_include_bg_cls, one box alone
    with cls_agnostic_bbox_reg.  Five numbers a box with `rotated`.
    batch_splits: float (pictures,), how many rows each picture has; all are one picture's without.
    Outputs, for the n boxes that are left, ordered by picture, class and score:
    scores: float (n,); boxes: float (n, 4) or (n, 5); classes: float (n,); batch_splits: float
    (pictures,); keeps: int32 (n,), rows in the picture; keeps_size: int32 (pictures, classes).
    score_thresh: what a score must be above.  nms: the largest overlap (intersection over union).
    detections_per_im: most boxes of a picture; no limit when it is not positive.
    soft_nms_enabled: overlap lowers scores, by soft_nms_method with soft_nms_sigma, and boxes go
    whose score is below soft_nms_min_score_thres.
    output_classes_include_bg_cls: the first class after the background has number 1, else 0.
    legacy_plus_one: a box is one wider than the distance of its corners.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(scores: Spec, boxes: Spec, batch_splits: Spec | None, op: OpView) -> Any:
        require_rank("scores", scores, 2)
        size = 5 if op.args.rotated else 4
        rows, classes = scores.shape
        if classes < 1:
            raise OperatorError("scores", f"has shape {scores.shape}; it has a background class")
        given = 1 if op.args.cls_agnostic_bbox_reg else classes - _skipped(op.args)
        if boxes.shape != (rows, given * size):
            problem = f"has shape {boxes.shape}; ({rows}, {given * size}) is needed"
            raise OperatorError("boxes", problem)
        if batch_splits is not None:
            require_rank("batch_splits", batch_splits, 1)
        return (None,) * 6

    def reference(scores: Array, boxes: Array, batch_splits: Array | None, op: OpView) -> Any:
        args = op.args
        size, classes = 5 if args.rotated else 4, scores.shape[1]
        splits = np.array([len(scores)], F4) if batch_splits is None else batch_splits
        if not (np.all(splits >= 0) and np.all(splits == np.trunc(splits))):
            raise OperatorError("batch_splits", "holds a number that is no number of rows")
        if splits.sum() != len(scores):
            problem = f"holds {int(splits.sum())} rows in all; scores has {len(scores)}"
            raise OperatorError("batch_splits", problem)
        ends = np.cumsum(splits).astype(np.int64)
        found: list[tuple[Any, ...]] = []
        counts, sizes = [], np.zeros((len(splits), classes), np.int32)
        for picture, end in enumerate(ends):
            start = end - int(splits[picture])
            per_class = []
            for number in range(1, classes):
                column = number - _skipped(args)
                first = 0 if args.cls_agnostic_bbox_reg else column * size
                own = boxes[start:end, first : first + size]
                per_class.append(_best(scores[start:end, column], own, args))
            _limit(per_class, args.detections_per_im)
            first = 0 if args.output_classes_include_bg_cls else 1
            for number, (rows, values, chosen) in enumerate(per_class, 1):
                found += [
                    (value, box, number - first, row)
                    for row, value, box in zip(rows, values, chosen, strict=True)
                ]
                sizes[picture, number] = len(rows)
            counts.append(sum(len(rows) for rows, _, _ in per_class))
        return (
            np.array([each[0] for each in found], F4),
            np.array([each[1] for each in found], F4).reshape(-1, size),
            np.array([each[2] for each in found], F4),
            np.array(counts, F4),
            np.array([each[3] for each in found], np.int32),
            sizes,
        )


def _skipped(args: SimpleNamespace) -> int:
    return 0 if args.input_boxes_include_bg_cls else 1


def _best(scores: Array, boxes: Array, args: SimpleNamespace) -> tuple[Array, Array, Array]:
    """Rows, scores and boxes of one picture and class, the best first."""
    rows = np.flatnonzero(scores > F4(args.score_thresh))
    own, values = boxes[rows], scores[rows]
    if args.soft_nms_enabled:
        kept, values = _soft(own, values, args)
    else:
        kept = suppressed(own, descending(values), args.nms, args)
    return rows[kept], values[kept], own[kept]


def _limit(per_class: list[tuple[Array, Array, Array]], most: int) -> None:
    """Leaves the best `most` boxes of a picture."""
    values = np.concatenate([values for _, values, _ in per_class] or [np.empty(0, F4)])
    if most <= 0 or values.size <= most:
        return
    keep = np.zeros(values.size, bool)
    keep[descending(values)[:most]] = True
    first = 0
    for place, (rows, own, boxes) in enumerate(per_class):
        mask = keep[first : first + len(rows)]
        first += len(rows)
        per_class[place] = (rows[mask], own[mask], boxes[mask])
