# mypy: disable-error-code="misc, no-any-return"
"""Regions that may hold something: made from anchors, collected from and dealt out to the levels
of a feature pyramid."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from caffe2.ops.arguments import Argument, Float, Int, OperatorError
from caffe2.ops.boxes import (
    ANGLE_ARGS,
    F4,
    PLUS_ONE,
    clipped,
    descending,
    one_more,
    require_boxes,
    suppressed,
    transformed,
)
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_rank

_ONES = (1.0, 1.0, 1.0, 1.0)


class _GenerateProposals:
    """The boxes that anchors become, the best ones that overlap little.

    scores: float (N, A, H, W), how likely there is something at each anchor and place.
    bbox_deltas: float (N, 4 * A, H, W), or (N, 5 * A, H, W) for anchors with angles, as those of
    BBoxTransform.
    im_info: float (N, 3): height and width of the scaled picture, of which fractions are left out,
    and its scale.
    anchors: float (A, 4): x1, y1, x2, y2 around the first place, or (A, 5): center x, y, width,
    height, angle in degrees.  The one of place (i, j) is j / spatial_scale further right and
    i / spatial_scale further down.
    rois: float (n, 5) or (n, 6), the number of the picture before each box, sorted by picture and
    score.  rois_probs: float (n,), their scores.
    pre_nms_topN: how many scores of a picture are looked at; all when it is not positive.
    post_nms_topN: most boxes of a picture; no limit when it is not positive.
    nms_thresh: the largest overlap (intersection over union).
    min_size: in pixels before scaling; boxes that are lower or narrower go, as do those whose
    center is outside of the picture.
    angle_bound_on, angle_bound_lo, angle_bound_hi, clip_angle_thresh, legacy_plus_one: as for
    BBoxTransform.
    (Ren et al., 2015, "Faster R-CNN", arXiv 1506.01497.)
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(scores: Spec, bbox_deltas: Spec, im_info: Spec, anchors: Spec) -> tuple[None, None]:
        require_rank("scores", scores, 4)
        require_boxes("anchors", anchors, 4, 5)
        count, size = anchors.shape
        n, channels, height, width = scores.shape
        if channels != count:
            problem = f"has shape {scores.shape}; there are {count} anchors"
            raise OperatorError("scores", problem)
        if bbox_deltas.shape != (n, count * size, height, width):
            problem = f"has shape {bbox_deltas.shape}; {(n, count * size, height, width)} is needed"
            raise OperatorError("bbox_deltas", problem)
        if im_info.shape != (n, 3):
            raise OperatorError("im_info", f"has shape {im_info.shape}; ({n}, 3) is needed")
        return None, None

    def reference(
        scores: Array, bbox_deltas: Array, im_info: Array, anchors: Array, op: OpView
    ) -> tuple[Array, Array]:
        count, size = anchors.shape
        rois, probs = [np.empty((0, size + 1), F4)], [np.empty(0, F4)]
        places = _all_anchors(anchors, scores.shape[2:], op.args)
        for picture, info in enumerate(im_info):
            deltas = bbox_deltas[picture].reshape(count, size, -1)
            deltas = deltas.transpose(0, 2, 1).reshape(-1, size)
            own = scores[picture].reshape(-1)
            boxes, values = _proposals(own, deltas, info, places, op.args)
            rois.append(np.insert(boxes, 0, F4(picture), axis=1))
            probs.append(values)
        return np.concatenate(rois), np.concatenate(probs)


def _all_anchors(anchors: Array, places: tuple[int, ...], args: SimpleNamespace) -> Array:
    """(A * H * W, 4 or 5)."""
    step = F4(1) / F4(args.spatial_scale)
    height, width = places
    y, x = np.meshgrid(np.arange(height, dtype=F4) * step, np.arange(width, dtype=F4) * step,
                       indexing="ij")  # fmt: skip
    size = anchors.shape[1]
    shifts = [x, y, x, y] if size == 4 else [x, y] + [np.zeros_like(x)] * 3
    moved = np.stack(shifts, axis=-1).reshape(1, -1, size).astype(F4) + anchors[:, None]
    return moved.reshape(-1, size)


def _proposals(
    scores: Array, deltas: Array, info: Array, anchors: Array, args: SimpleNamespace
) -> tuple[Array, Array]:
    order = descending(scores)
    if args.pre_nms_topN > 0:
        order = order[: args.pre_nms_topN]
    boxes = transformed(anchors[order], deltas[order], _ONES, args)
    height, width = np.trunc(info[:2])
    boxes = clipped(boxes, height, width, args)
    values = scores[order]
    large = _large(boxes, height, width, F4(args.min_size) * info[2], args)
    kept = suppressed(boxes, np.flatnonzero(large), args.nms_thresh, args)
    if args.post_nms_topN > 0:
        kept = kept[: args.post_nms_topN]
    return boxes[kept], values[kept]


def _large(
    boxes: Array, height: np.float32, width: np.float32, least: np.float32, args: SimpleNamespace
) -> Array:
    """Which boxes have sides of at least `least`, and their center in the picture."""
    if boxes.shape[1] == 5:
        x, y, wide, high = boxes.T[:4]
    else:
        more = one_more(args)
        wide, high = boxes[:, 2] - boxes[:, 0] + more, boxes[:, 3] - boxes[:, 1] + more
        x, y = boxes[:, 0] + wide / F4(2), boxes[:, 1] + high / F4(2)
    return (wide >= least) & (high >= least) & (x < width) & (y < height)


for _name in ("GenerateProposals", "GenerateProposalsCPP"):
    operator(
        _name,
        inputs="scores bbox_deltas im_info anchors",
        outputs="rois rois_probs",
        args={
            "spatial_scale": Float(1.0 / 16, min=1e-6),
            "pre_nms_topN": Int(6000),
            "post_nms_topN": Int(300),
            "nms_thresh": Float(0.7),
            "min_size": Float(16.0),
            **ANGLE_ARGS,
            **PLUS_ONE,
        },
        types=dict.fromkeys(("scores", "bbox_deltas", "im_info", "anchors"), FLOAT),
    )(_GenerateProposals)


# Feature pyramids (Lin et al., 2017, arXiv 1612.03144)

_LEVEL = 30
_COLLECT_ARGS: dict[str, Argument] = {
    "rpn_max_level": Int(6, min=0, max=_LEVEL),
    "rpn_min_level": Int(2, min=0, max=_LEVEL),
    "rpn_post_nms_topN": Int(2000, min=0),
}
_DISTRIBUTE_ARGS: dict[str, Argument] = {
    "roi_canonical_scale": Int(224, min=1),
    "roi_canonical_level": Int(4),
    "roi_max_level": Int(5, min=0, max=_LEVEL),
    "roi_min_level": Int(2, min=0, max=_LEVEL),
    **PLUS_ONE,
}


def _levels(args: SimpleNamespace, kind: str) -> int:
    low, high = getattr(args, f"{kind}_min_level"), getattr(args, f"{kind}_max_level")
    if low > high:
        raise OperatorError(f"argument '{kind}_min_level'", f"is {low}, above the maximum {high}")
    return high - low + 1


def _require_pyramid(inputs: tuple[Spec, ...], op: OpView) -> int:
    """How many rois are collected."""
    levels = _levels(op.args, "rpn")
    if len(inputs) != 2 * levels:
        problem = f"has {len(inputs)} inputs; {levels} levels need {2 * levels}: rois, then scores"
        raise OperatorError("", problem)
    for rois, scores in zip(inputs[:levels], inputs[levels:], strict=True):
        require_boxes("inputs", rois, 5)
        if scores.shape != (rois.shape[0],):
            problem = f"has scores of shape {scores.shape} for rois of shape {rois.shape}"
            raise OperatorError("inputs", problem)
    rows = sum(rois.shape[0] for rois in inputs[:levels])
    return min(rows, op.args.rpn_post_nms_topN)


def _collected(inputs: tuple[Array, ...], args: SimpleNamespace) -> Array:
    levels = len(inputs) // 2
    rois, scores = np.concatenate(inputs[:levels]), np.concatenate(inputs[levels:])
    return rois[descending(scores)[: args.rpn_post_nms_topN]]


def _distributed(rois: Array, args: SimpleNamespace) -> tuple[Array, ...]:
    """Rois of each level, and where the rows of the original lie in all of these."""
    more = one_more(args)
    sides = np.maximum(rois[:, 3:5] - rois[:, 1:3] + more, F4(0))
    area = sides[:, 0] * sides[:, 1]
    scale = np.sqrt(area) / F4(args.roi_canonical_scale) + F4(1e-6)
    level = np.floor(np.log2(scale, dtype=F4) + F4(args.roi_canonical_level))
    low, high = args.roi_min_level, args.roi_max_level
    level = np.clip(level, low, high)
    order = np.concatenate([np.flatnonzero(level == each) for each in range(low, high + 1)])
    restore = np.empty(len(rois), np.int32)
    restore[order] = np.arange(len(rois))
    return (*(rois[level == each] for each in range(low, high + 1)), restore)


@operator(
    "CollectRpnProposals",
    inputs="first second others*?",
    outputs="rois",
    args=_COLLECT_ARGS,
    types={"first": FLOAT, "second": FLOAT, "others": FLOAT},
)
class CollectRpnProposals:
    """rois = those of all levels with the best scores, the best first.

    Inputs: for each level from rpn_min_level to rpn_max_level float (n, 5), the number of the
    picture and a box; then for each level float (n,), the scores.
    rois: float (m, 5), rpn_post_nms_topN rows at most.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(first: Spec, second: Spec, *others: Spec, op: OpView) -> Spec:
        rows = _require_pyramid((first, second, *others), op)
        return Spec((rows, 5), np.dtype(F4))

    def reference(first: Array, second: Array, *others: Array, op: OpView) -> Array:
        return _collected((first, second, *others), op.args)


def _require_outputs(op: OpView, others: int) -> int:
    levels = _levels(op.args, "roi")
    if len(op.outputs) != levels + others:
        problem = f"has {len(op.outputs)} outputs; {levels} levels need {levels + others}"
        raise OperatorError("", problem)
    return levels


@operator(
    "DistributeFpnProposals",
    inputs="rois",
    outputs="rois_fpn rois_idx_restore others*?",
    args=_DISTRIBUTE_ARGS,
    types={"rois": FLOAT},
)
class DistributeFpnProposals:
    """Deals rois out to the levels of a feature pyramid, the larger to the higher.

    rois: float (n, 5), the number of the picture and a box.
    Outputs: for each level from roi_min_level to roi_max_level its rois, float (m, 5), in their
    order; the last one, int32 (n,): which row of all these each of the rois is.
    The level is floor(roi_canonical_level + log2(sqrt(area) / roi_canonical_scale)).
    legacy_plus_one: a box is one wider than the distance of its corners.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(rois: Spec, op: OpView) -> tuple[Spec | None, ...]:
        require_boxes("rois", rois, 5)
        levels = _require_outputs(op, 1)
        return (*[None] * levels, Spec((rois.shape[0],), np.dtype(np.int32)))

    def reference(rois: Array, op: OpView) -> tuple[Array, ...]:
        return _distributed(rois, op.args)


@operator(
    "CollectAndDistributeFpnRpnProposals",
    inputs="first second others*?",
    outputs="rois rois_fpn rois_idx_restore others*?",
    args=_COLLECT_ARGS | _DISTRIBUTE_ARGS,
    types={"first": FLOAT, "second": FLOAT, "others": FLOAT},
)
class CollectAndDistributeFpnRpnProposals:
    """CollectRpnProposals, whose rois are the first output, and DistributeFpnProposals of them.

    Inputs, outputs and arguments are those of the two operators.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(first: Spec, second: Spec, *others: Spec, op: OpView) -> tuple[Spec | None, ...]:
        rows = _require_pyramid((first, second, *others), op)
        levels = _require_outputs(op, 2)
        rois, restore = Spec((rows, 5), np.dtype(F4)), Spec((rows,), np.dtype(np.int32))
        return (rois, *[None] * levels, restore)

    def reference(first: Array, second: Array, *others: Array, op: OpView) -> tuple[Array, ...]:
        rois = _collected((first, second, *others), op.args)
        return (rois, *_distributed(rois, op.args))
