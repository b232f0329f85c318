"""Saved nets of the original Caffe2 give its recorded answers."""

import numpy as np
import pytest
import zoo

from caffe2.proto import caffe2_pb2

NAMES = zoo.names()


@pytest.mark.skipif(not NAMES, reason=f"no saved nets in {zoo.FOLDER}")
@pytest.mark.parametrize("name", NAMES or ["none"])
def test_a_net_gives_its_recorded_answers(name):
    errors = zoo.errors(zoo.run(name))
    assert {key: value for key, value in errors.items() if not value <= 1} == {}


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (np.float32([0, 10]), 0),
        (np.float32([0, 10.0009]), 0.9),
        (np.float32([0, 10.002]), 2),
        (np.float64([0, 10]), np.inf),
        (np.float32([[0, 10]]), np.inf),
        (np.float32([0, np.nan]), np.inf),
        (None, np.inf),
    ],
)
def test_errors_are_measured_by_the_range(found, error):
    expected = np.float32([0, 10])
    answer = zoo.Answer({"y": found} if found is not None else {}, {"y": expected}, 1, 0.0)
    assert zoo.errors(answer)["y"] == pytest.approx(error, rel=0.01)


def test_detections_of_one_score_may_change_places():
    op = caffe2_pb2.OperatorDef(type="BoxWithNMSLimit", output=["s", "b", "c"])
    net = caffe2_pb2.NetDef(op=[op])
    boxes = np.float32([[0, 0, 9, 9], [50, 0, 59, 9], [80, 0, 89, 9]])
    expected = {"s": np.float32([1, 1, 0.5]), "b": boxes, "c": np.float32([1, 1, 1])}
    second = {"b": {0: (0, 0, 9, 11), 2: (80, 0, 89, 8)}}

    def right(*found):
        values = {**expected, "b": np.float32(found)}
        answer = zoo.Answer(values, zoo.settled(net, values, expected, second), 1, 0.0)
        return max(zoo.errors(answer).values()) <= 1

    assert right(*boxes[[1, 0, 2]])
    assert not right(*boxes[[0, 2, 1]])  # of another score
    assert right(boxes[1], [0, 0, 9, 11], [80, 0, 89, 8])  # the second answer
    assert not right(boxes[1], [0, 0, 9, 11], boxes[2])  # half of it
    assert not right(boxes[1], boxes[1], boxes[2])


def test_single_values_may_be_unstable():
    expected = np.float32([[0, 10], [5, 5]])
    found = np.float32([[0, 10], [5, 5.1]])
    for place, error in (((1, 1), 0.5), ((1, 0), 100)):
        answer = zoo.Answer({"y": found}, {"y": expected}, 1, 0.0, unstable={"y": {place: 0.02}})
        assert zoo.errors(answer)["y"] == pytest.approx(error, rel=0.01)


def test_quanta_and_distributions():
    draw = np.random.default_rng(3).normal(2, 0.5, 4000).astype(np.float32)
    expected = {"q": np.uint8([7, 0]), "f": np.float32([0.5]), "r": draw[::-1], "i": np.int32([1])}
    right = {"q": np.uint8([6, 1]), "f": np.float32([0.53]), "r": draw, "i": np.int32([1])}
    wrong = {"q": np.uint8([9, 0]), "f": np.float32([0.6]), "r": draw * 2, "i": np.int32([2])}
    kinds = {"quanta": {"q": 1.0, "f": 0.03}, "random": {"r": (2.0, 0.5)}}
    assert all(e <= 1 for e in zoo.errors(zoo.Answer(right, expected, 1, 0.0, **kinds)).values())
    assert all(e > 1 for e in zoo.errors(zoo.Answer(wrong, expected, 1, 0.0, **kinds)).values())
