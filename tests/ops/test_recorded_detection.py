"""Answers of the original Caffe2 (torch 1.10.2, CPU) for detection, asked once."""

import numpy as np
import pytest

from caffe2.python import core, workspace

F4 = np.float32
X = (np.arange(32, dtype=F4) * 7 % 13).reshape(1, 2, 4, 4)
ROIS = F4([[0, 0, 0, 3, 3], [0, -1, -2, 5.5, 3.2], [0, 1, 1, 1, 1], [0, 3, 3, 1, 1],
           [0, -9, -9, -6, -5]])  # fmt: skip
POOL = {"pooled_h": 2, "pooled_w": 2, "spatial_scale": 0.5}
BOXES = F4([[0, 0, 9, 9], [2, 3, 7, 13], [5, 5, 5, 5], [0, 0, 29, 19]])
DELTAS = F4([[0.1, 0.2, 0.3, 0.4], [0, 0, 0, 0], [0.1, 0.1, 0.1, 0.1], [-0.5, 0.5, 0.2, 0.1]])
INFO = F4([[20, 30, 0.5]])
TURNED = np.hstack([BOXES, F4([[10], [-40], [90], [179]])])
TURNS = np.hstack([DELTAS, F4([[0.1], [3], [-2], [0]])])
CHOICE = [F4([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]]),
          F4([[0, 0, 9, 9, 100, 100, 109, 109, 200, 200, 209, 209],
              [20, 20, 29, 29, 120, 120, 129, 129, 220, 220, 229, 229],
              [40, 40, 49, 49, 140, 140, 149, 149, 240, 240, 249, 249]])]  # fmt: skip

# (type, inputs, arguments, outputs)
RECORDED = [
    ("RoIAlign", [X, ROIS], POOL, [
        [[[[3.375, 7], [4.875, 8.5]], [[6.5, 3.625], [8, 4.921875]]],
         [[[2.515625, 3.609375], [4.4156246, 5.5093746]],
          [[5.84375, 6.328125], [7.7437496, 7.166797]]],
         [[[6.75, 7], [7.75, 8]], [[5, 5.25], [6, 5.4375]]],
         [[[6, 6.25], [6.1875, 6.4375]], [[3.4375, 3.6875], [2, 2.25]]],
         [[[0, 0], [0, 0]], [[0, 0], [0, 0]]]]]),
    ("RoIAlign", [X, ROIS[:2]], {**POOL, "sampling_ratio": 2, "aligned": 1}, [
        [[[[0.28125, 4.4375], [1.46875, 5.625]], [[7.875, 4.3125], [9.0625, 5.5]]],
         [[[0.3828125, 2.1875], [1.6656249, 5.2749996]],
          [[3.671875, 2.53125], [8.24375, 5.9624996]]]]]),
    # The original has NaN here: no samples, of which it takes the mean.
    ("RoIAlign", [X, ROIS[2:3]], {**POOL, "aligned": 1}, [np.zeros((1, 2, 2, 2))]),
    ("RoIPool", [X, ROIS[[0, 1, 2, 4]]], POOL, [
        [[[[9, 9], [11, 11]], [[10, 11], [12, 11]]], [[[7, 8], [11, 12]], [[8, 9], [12, 11]]],
         [[[9, 9], [9, 9]], [[4, 4], [4, 4]]], [[[0, 0], [0, 0]], [[0, 0], [0, 0]]]],
        [[[[5, 5], [9, 9]], [[4, 6], [8, 6]]], [[[1, 3], [9, 11]], [[0, 2], [8, 6]]],
         [[[5, 5], [5, 5]], [[5, 5], [5, 5]]], [[[-1, -1], [-1, -1]], [[-1, -1], [-1, -1]]]]]),
    ("BBoxTransform", [BOXES, DELTAS, INFO], {}, [
        [[0, 0, 11.61183, 13.236168], [2, 3, 7, 13], [5.0237074, 5.0237074, 5.076293, 5.076293],
         [0, 8.724583, 17.51569, 19.5]], [4]]),
    ("BBoxTransform", [BOXES, DELTAS, INFO], {"legacy_plus_one": 0}, [
        [[0, 0, 11.474365, 13.013212], [2, 3, 7, 13], [5, 5, 5, 5], [0, 8.500875, 17.71034, 20]],
        [4]]),
    ("BBoxTransform", [BOXES, DELTAS, INFO], {"apply_scale": 0}, [
        [[0, 0, 23.22366, 26.472336], [4, 6, 14, 26],
         [10.047415, 10.047415, 10.152586, 10.152586], [0, 17.449165, 35.03138, 39]], [4]]),
    ("BBoxTransform", [TURNED, TURNS, INFO], {"rotated": 1}, [
        [[0.9, 1.8, 12.14873, 13.426423, 15.729578], [2, 3, 7, 13, -48.11267],
         [5.5, 5.5, 5.525855, 5.525855, -24.591553], [1.4801702, 9.75, 3.4603405, 20, -1]], [4]]),
    ("BoxWithNMSLimit", CHOICE, {}, [
        [0.8, 0.5, 0.2, 0.9, 0.6, 0.3],
        [[140, 140, 149, 149], [120, 120, 129, 129], [100, 100, 109, 109], [240, 240, 249, 249],
         [220, 220, 229, 229], [200, 200, 209, 209]],
        [1, 1, 1, 2, 2, 2], [6], [2, 1, 0, 2, 1, 0], [[0, 3, 3]]]),
    # Without a background in the boxes the first scores are those of class 1.
    ("BoxWithNMSLimit", [CHOICE[0], CHOICE[1][:, :8]], {"input_boxes_include_bg_cls": 0}, [
        [0.7, 0.4, 0.1, 0.8, 0.5, 0.2],
        [[40, 40, 49, 49], [20, 20, 29, 29], [0, 0, 9, 9], [140, 140, 149, 149],
         [120, 120, 129, 129], [100, 100, 109, 109]],
        [1, 1, 1, 2, 2, 2], [6], [2, 1, 0, 2, 1, 0], [[0, 3, 3]]]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "args", "expected"), RECORDED)
def test_recorded(run, type, inputs, args, expected):
    answers = map(np.asarray, expected)
    for found, right in zip(run(type, inputs, len(expected), **args), answers, strict=True):
        assert found.shape == right.shape
        # Coordinates are differences of larger ones.
        np.testing.assert_allclose(found, right, rtol=2e-5, atol=2e-5)


# Rows of each class that are left of 20 boxes apart from each other, all of one score.
ONE_SCORE = [
    (100, [[10, *range(19, 10, -1), 0, *range(9, 0, -1)]]),
    (5, [[10, 19, 18, 17, 16]]),
    (10, [[], range(10, 20)]),
    (30, [[0, *range(19, 10, -1)], [0, *range(19, 0, -1)]]),
]


@pytest.mark.parametrize(("most", "rows"), ONE_SCORE)
def test_the_engine_sorts_equal_scores_as_the_original_does(most, rows):
    starts = np.arange(20, dtype=F4) * 20
    box = np.stack([starts, starts * 0, starts + 5, starts * 0 + 5], axis=1)
    scores = np.full((20, len(rows) + 1), 0.5, F4)
    boxes = np.tile(box, (1, len(rows) + 1))
    args = {"nms": 0.5, "detections_per_im": most}
    workspace.FeedBlob("scores", scores)
    workspace.FeedBlob("boxes", boxes)
    workspace.RunOperatorOnce(
        core.CreateOperator("BoxWithNMSLimit", ["scores", "boxes"], ["s", "b", "c"], **args)
    )
    left, classes = workspace.FetchBlob("b"), workspace.FetchBlob("c")
    assert (left[:, 0] / 20).tolist() == [row for own in rows for row in own]
    assert classes.tolist() == [k for k, own in enumerate(rows, 1) for _ in own]


@pytest.mark.parametrize("method", ["linear", "gaussian"])
def test_soft_suppression_puts_the_first_box_where_the_chosen_one_was(run, method):
    starts = np.arange(6, dtype=F4) * 20
    box = np.stack([starts, starts * 0, starts + 5, starts * 0 + 5], axis=1)
    scores = F4([0.5, 0.5, 0.5, 0.75, 0.5, 0.5])
    inputs = [np.stack([1 - scores, scores], axis=1), np.tile(box, (1, 2))]
    args = {"soft_nms_enabled": 1, "soft_nms_method": method}
    _, left, _ = run("BoxWithNMSLimit", inputs, 3, **args)
    assert (left[:, 0] / 20).tolist() == [3, 1, 2, 0, 4, 5]


def test_proposals_of_equal_scores_go_by_anchor_then_place(run):
    deltas, info = np.zeros((1, 12, 2, 2), F4), F4([[1000, 1000, 1]])
    anchors = F4([[0, 0, 8, 8], [0, 0, 9, 8], [0, 0, 10, 8]])
    inputs = [np.full((1, 3, 2, 2), 0.5, F4), deltas, info, anchors]
    args = {"spatial_scale": 1 / 16, "nms_thresh": 1.0, "min_size": 0.0}
    rois, _ = run("GenerateProposals", inputs, 2, **args)
    places = [[0, 0], [16, 0], [0, 16], [16, 16]]
    assert rois[:, 1:3].tolist() == places * 3
    assert (rois[:, 3] - rois[:, 1]).tolist() == [8] * 4 + [9] * 4 + [10] * 4
