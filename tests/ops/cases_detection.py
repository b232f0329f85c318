"""Harness cases of operators that find things in pictures."""

import math

import numpy as np

from caffe2.testing import Bad, Case, exactly, floats, result_of
from caffe2.testing.cases import Maker

F4 = np.float32
ROWS = {"N": (5, 1, 0)}


def boxes(*rows, pictures=0, angle=False, each=1):
    """Boxes in a picture of 60 x 60, each with the number of its picture before it, if wanted."""

    def make(draw, dims):
        n = dims[0]
        start = draw.rng.uniform(0, 40, (n, each, 2))
        size = draw.rng.uniform(1, 20, (n, each, 2))
        turns = [draw.rng.uniform(-90, 90, (n, each, 1))] if angle else []
        second = size if angle else start + size
        width = each * (5 if angle else 4)
        values = np.concatenate([start, second, *turns], axis=2).reshape(n, width)
        if pictures:
            numbers = np.sort(draw.rng.integers(0, pictures, n))
            values = np.insert(values, 0, numbers, axis=1)
        return values.astype(F4)

    return Maker(rows, make)


def scores(*dims):
    """Between 0 and 1, some of them equal."""
    return Maker(dims, lambda draw, shape: (draw.rng.integers(0, 10, shape) / 10).astype(F4))


def distinct(*dims):
    """Between 0 and 1, no two equal: which of equal ones comes first is a matter of the sort."""

    def make(draw, shape):
        return (draw.rng.permutation(math.prod(shape)) / 100).reshape(shape).astype(F4)

    return Maker(dims, make)


ONE = exactly([[40.5, 60, 0.5]], "f4")
TWO = exactly([[40.5, 60, 0.5], [30, 50, 2]], "f4")


def transform(title, rois, size, info, mismatch=None, **args):
    return Case(
        "BBoxTransform",
        title=title,
        args=args,
        sizes=ROWS,
        outputs=2,
        mismatch={"rois": 0, **(mismatch or {})},
        rois=rois,
        deltas=floats("N", 2 * size),
        im_info=info,
    )


BOXES = [
    transform("corners", boxes("N"), 4, ONE, weights=[10.0, 10.0, 5.0, 5.0]),
    transform("pictures", boxes("N", pictures=2), 4, TWO, apply_scale=0, legacy_plus_one=0),
    transform("angles", boxes("N", pictures=2, angle=True), 5, TWO, rotated=1,
              clip_angle_thresh=30.0),
    transform("free angles", boxes("N", angle=True), 5, ONE, rotated=1, angle_bound_on=0),
]  # fmt: skip
BOXES[0].bad += (
    Bad("three weights", args={"weights": [1.0, 1.0, 1.0]}),
    Bad("two pictures without numbers", {"im_info": F4([[9, 9, 1], [9, 9, 1]])}),
    Bad("a scale of 0", {"im_info": F4([[9, 9, 0]])}),
)
BOXES[1].bad += (
    Bad("an unknown picture", {"rois": F4([[2, 0, 0, 1, 1]] * 5)}),
    Bad("no picture", {"rois": F4([[np.nan, 0, 0, 1, 1]] * 5)}),
    Bad("falling pictures", {"rois": F4([[1, 0, 0, 1, 1]] * 4 + [[0, 0, 0, 1, 1]])}),
)


def limit(title, each=3, size=4, **args):
    return Case(
        "BoxWithNMSLimit",
        title=title,
        args=args,
        sizes={"N": (12, 1, 0)},
        outputs=6,
        mismatch={"scores": 0},
        scores=scores("N", 3),
        boxes=boxes("N", each=each, angle=size == 5),
    )


CHOICE = [
    limit("plain", nms=0.3),
    limit("few", detections_per_im=4, score_thresh=0.2, legacy_plus_one=0),
    limit("linear", soft_nms_enabled=1, nms=0.2, detections_per_im=0),
    limit("gaussian", soft_nms_enabled=1, soft_nms_method="gaussian", soft_nms_sigma=0.2,
          soft_nms_min_score_thres=0.1),
    limit("one box", each=1, cls_agnostic_bbox_reg=1, output_classes_include_bg_cls=0),
    limit("no background", each=2, input_boxes_include_bg_cls=0),
    limit("angles", size=5, rotated=1, nms=0.2),
    Case("BoxWithNMSLimit", title="pictures", outputs=6, mismatch={"batch_splits": None},
         scores=scores(6, 3), boxes=boxes(6, each=3), batch_splits=exactly([2, 0, 4], "f4"),
         bad=[Bad("too few rows", {"batch_splits": F4([2, 3])}),
              Bad("half a row", {"batch_splits": F4([2.5, 3.5])}),
              Bad("less than none", {"batch_splits": F4([7, -1])}),
              Bad("no number", {"batch_splits": F4([6, np.nan])})]),
]  # fmt: skip


def propose(title, size=4, type="GenerateProposals", info=TWO, **args):
    return Case(
        type,
        title=title,
        args=args,
        mismatch={"anchors": 0},
        scores=distinct(2, 3, 3, 4),
        bbox_deltas=floats(2, 3 * size, 3, 4),
        im_info=info,
        anchors=boxes(3, angle=size == 5),
    )


LEVELS = {"rpn_min_level": 2, "rpn_max_level": 3}
ROIS = {"roi_min_level": 2, "roi_max_level": 4, "roi_canonical_scale": 12}
PYRAMID = {
    "first": boxes("N", pictures=2),
    "second": boxes(3, pictures=2),
    "others": [scores("N"), scores(3)],
}
PROPOSALS = [
    propose("plain", spatial_scale=0.125, min_size=2.0),
    propose("few", spatial_scale=0.25, pre_nms_topN=20, post_nms_topN=3, min_size=0.0,
            legacy_plus_one=0),
    propose("angles", 5, spatial_scale=0.125, nms_thresh=0.3, min_size=2.0,
            clip_angle_thresh=40.0),
    propose("CPP", type="GenerateProposalsCPP", pre_nms_topN=0, post_nms_topN=0),
    Case("CollectRpnProposals", args={**LEVELS, "rpn_post_nms_topN": 4}, sizes=ROWS, **PYRAMID,
         bad=[Bad("one level more", args={"rpn_max_level": 4}),
              Bad("no level", args={"rpn_max_level": 1})]),
    Case("DistributeFpnProposals", args=ROIS, sizes=ROWS, outputs=4, rois=boxes("N", pictures=2),
         bad=[Bad("a level too few", args={"roi_max_level": 3}),
              Bad("no level", args={"roi_max_level": 1})]),
    Case("CollectAndDistributeFpnRpnProposals", args={**LEVELS, **ROIS, "legacy_plus_one": 0},
         sizes=ROWS, outputs=5, **PYRAMID,
         bad=[Bad("one level more", args={"rpn_max_level": 4}),
              Bad("a level too few", args={"roi_max_level": 3})]),
]  # fmt: skip


def pooled(title, shape, rois, type="RoIAlign", **args):
    common = {"title": title, "args": args, "sizes": {"N": (4, 1, 0)}}
    found = [Case(type, **common, no_gradient=("RoIs",), mismatch={"X": None, "RoIs": 1},
                  X=floats(*shape), RoIs=rois)]  # fmt: skip
    found.append(Case(f"{type}Gradient", **common, mismatch={"X": None, "RoIs": 1},
                      X=floats(*shape), RoIs=rois,
                      dY=result_of(type, "X", "RoIs", **args)))  # fmt: skip
    return found


PICKED = {"pooled_h": 2, "pooled_w": 3}
ALIGN = [
    *pooled("plain", (2, 3, 7, 9), boxes("N", pictures=2), **PICKED, spatial_scale=0.25),
    *pooled("ratio", (2, 3, 7, 9), boxes("N", pictures=2), **PICKED, spatial_scale=0.125,
            sampling_ratio=2, aligned=1),
    *pooled("NHWC", (2, 7, 9, 3), boxes("N", pictures=2), **PICKED, spatial_scale=0.25,
            sampling_ratio=1, order="NHWC"),
    *pooled("angles", (2, 3, 7, 9), boxes("N", pictures=2, angle=True), "RoIAlignRotated",
            **PICKED, spatial_scale=0.25),
    *pooled("aligned angles", (2, 7, 9, 3), boxes("N", pictures=2, angle=True), "RoIAlignRotated",
            **PICKED, spatial_scale=0.25, sampling_ratio=2, aligned=1, order="NHWC"),
]  # fmt: skip
ALIGN[0].bad += (
    Bad("an unknown picture", {"RoIs": F4([[2, 0, 0, 1, 1]])}),
    Bad("no picture", {"RoIs": F4([[np.nan, 0, 0, 1, 1]])}),
    Bad("pictures without numbers", {"RoIs": F4([[0, 0, 1, 1]])}),
    Bad("an endless box", {"RoIs": F4([[0, 0, 0, np.inf, 1]])}),
    Bad("too many samples", {"RoIs": F4([[0, 0, 0, 3e4, 3e4]])}),
)
ALIGN[2].bad += (Bad("a box turned over", {"RoIs": F4([[0, 3, 3, 1, 1]])}, {"aligned": 1}),)
POOL = {"X": floats(2, 3, 7, 9), "rois": boxes("N", pictures=2)}
POOL_ARGS = {**PICKED, "spatial_scale": 0.25}
REGIONS = [
    *ALIGN,
    Case("RoIPool", args=POOL_ARGS, sizes={"N": (4, 1, 0)}, outputs=2, mismatch={"X": None},
         no_gradient=("rois",), **POOL,
         bad=[Bad("an unknown picture", {"rois": F4([[2, 0, 0, 1, 1]])}),
              Bad("an endless box", {"rois": F4([[0, 0, 0, np.inf, 1]])})]),
    Case("RoIPoolGradient", args=POOL_ARGS, sizes={"N": (4, 1, 0)}, mismatch={"X": 1}, **POOL,
         argmaxes=result_of("RoIPool", "X", "rois", output=1, **POOL_ARGS),
         dY=result_of("RoIPool", "X", "rois", **POOL_ARGS),
         bad=[Bad("a place behind the map", {"argmaxes": np.full((4, 3, 2, 3), 63, np.int32)}),
              Bad("a place before it", {"argmaxes": np.full((4, 3, 2, 3), -2, np.int32)})]),
    *(Case("HeatmapMaxKeypoint", title=f"S{size}", args={"should_output_softmax": size % 2},
           sizes=ROWS, mismatch={"bboxes_in": 0}, heatmaps=floats("N", 2, size, size),
           bboxes_in=boxes("N"))
      for size in (2, 3, 8)),
]  # fmt: skip
REGIONS[-1].bad += (Bad("one element", {"heatmaps": np.ones((5, 2, 1, 1), F4)}),)

CASES = BOXES + CHOICE + PROPOSALS + REGIONS
