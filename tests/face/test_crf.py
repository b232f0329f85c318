"""Conditional random fields against all paths, one by one."""

import itertools

import numpy as np
import pytest

from caffe2.python import brew, crf, workspace
from caffe2.python.crf_predict import crf_update_predictions
from caffe2.python.model_helper import ModelHelper

WORDS, CLASSES = 4, 3
LABELS = np.array([2, 0, 0, 1])


@pytest.fixture
def scores():
    workspace.ResetWorkspace()
    random = np.random.default_rng(0)
    predictions = random.normal(size=(WORDS, CLASSES)).astype(np.float32)
    transitions = random.uniform(-1, 1, (CLASSES + 2, CLASSES + 2)).astype(np.float32)
    workspace.FeedBlob("predictions", predictions)
    workspace.FeedBlob("transitions", transitions)
    workspace.FeedBlob("labels", LABELS)
    return predictions, transitions


def field():
    model = ModelHelper("field")
    blobs = model.net.AddExternalInputs("predictions", "labels", "transitions")
    return model, crf.CRFWithLoss(model, CLASSES, blobs[2]), blobs


def path_score(path, predictions, transitions):
    whole = [CLASSES, *path, CLASSES + 1]
    steps = sum(transitions[a, b] for a, b in itertools.pairwise(whole))
    return steps + sum(predictions[word, label] for word, label in enumerate(path))


def every_path():
    return list(itertools.product(range(CLASSES), repeat=WORDS))


def loss_of(predictions, transitions):
    scores = [path_score(path, predictions, transitions) for path in every_path()]
    return np.log(np.exp(scores).sum()) - path_score(LABELS, predictions, transitions)


def test_loss_and_gradient(scores):
    predictions, transitions = (array.astype(np.float64) for array in scores)
    model, layer, blobs = field()
    loss = layer.crf_loss(*blobs[:2])
    gradients = model.net.AddGradientOperators([loss])
    workspace.RunNetOnce(model.param_init_net)
    workspace.RunNetOnce(model.net)
    np.testing.assert_allclose(
        workspace.FetchBlob(str(loss)), loss_of(predictions, transitions), rtol=1e-4
    )
    for blob, array in ((blobs[0], predictions), (blobs[2], transitions)):
        expected = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            kept = array[place]
            array[place] = kept + 1e-4
            expected[place] = loss_of(predictions, transitions)
            array[place] = kept - 1e-4
            expected[place] = (expected[place] - loss_of(predictions, transitions)) / 2e-4
            array[place] = kept
        found = workspace.FetchBlob(str(gradients[str(blob)]))
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_best_path(scores):
    predictions, transitions = scores
    model, layer, blobs = field()
    found = crf_update_predictions(model, layer, blobs[0])
    other = layer.update_predictions(blobs[0])
    assert other == "post_crf_classes"
    workspace.RunNetOnce(model.param_init_net)
    workspace.RunNetOnce(model.net)
    best = max(every_path(), key=lambda path: path_score(path, predictions, transitions))
    updated = workspace.FetchBlob(str(found))
    assert updated.argmax(1).tolist() == list(best)
    np.testing.assert_array_equal(np.sort(updated, 1), np.sort(predictions, 1))
    np.testing.assert_array_equal(workspace.FetchBlob(str(other)), updated)


def test_transitions_of_its_own():
    workspace.ResetWorkspace()
    model = ModelHelper("own")
    layer = crf.CRFWithLoss(model, CLASSES)
    assert [str(param) for param in model.params] == ["crf_transitions"]
    workspace.RunNetOnce(model.param_init_net)
    found = workspace.FetchBlob(str(layer.transitions))
    assert found.shape == (5, 5) and np.abs(found).max() <= 1


def test_initializers_with_more_than_two_parts():
    model = ModelHelper("old")
    brew.fc(model, "x", "y", 2, 3, ("UniformFill", {"min": -1.0}, {"max": 1.0}))
    arguments = {arg.name: arg.f for arg in model.param_init_net.Proto().op[0].arg}
    assert arguments["min"] == -1.0 and "max" not in arguments
