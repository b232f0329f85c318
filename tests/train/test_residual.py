"""Residual nets have the operators that trained ones have."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from caffe2.python import model_helper, workspace
from caffe2.python.models import resnet


def digest(model):
    """Types, blobs and arguments of all operators."""
    ops = [
        [
            op.type,
            list(op.input),
            list(op.output),
            sorted([arg.name, round(arg.f, 6) or arg.i or arg.s.decode()] for arg in op.arg),
        ]
        for op in model.net.Proto().op
    ]
    return len(ops), hashlib.sha256(json.dumps(ops).encode()).hexdigest()[:16]


BUILDERS = {
    "resnet50": lambda m: resnet.create_resnet50(m, "data", 3, 10, label="label"),
    "resnet50 that predicts": lambda m: resnet.create_resnet50(m, "data", 3, 10, is_test=True),
    "resnet20": lambda m: resnet.create_resnet_32x32(m, "data", 3, 1, 10),
    "resnext": lambda m: resnet.create_resnext(m, "data", 3, 10, 50, 32, 4, "label", True),
}
# Recorded from the original.
RECORDED = {
    "resnet50": (175, "56a9e1af31dea03e"),
    "resnet50 that predicts": (175, "3c4a1679681e5695"),
    "resnet20": (52, "2773680576befc30"),
    "resnext": (175, "02440a5d6a6d090b"),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_operators_are_those_of_the_original(name):
    model = model_helper.ModelHelper(name=name)
    BUILDERS[name](model)
    assert digest(model) == RECORDED[name]


def test_outputs():
    model = model_helper.ModelHelper(name="outputs")
    softmax, loss = resnet.create_resnet50(model, "data", 3, 10, label="label")
    assert (softmax, loss) == ("softmax", "loss")
    model = model_helper.ModelHelper(name="no_loss")
    last = resnet.create_resnext(model, "data", 3, 7, 18, 1, 64, no_loss=True, is_test=True)
    assert last == "last_out_L7"
    assert [op.type for op in model.net.Proto().op].count("Conv") == 1 + 2 * 8 + 3
    with pytest.raises(ValueError, match="19 layers; there are"):
        resnet.create_resnext(model, "data", 3, 7, 19, 1, 64)


def test_a_small_net_runs():
    workspace.ResetWorkspace()
    model = model_helper.ModelHelper(name="small")
    resnet.create_resnet_32x32(model, "data", 3, 1, 5)
    workspace.FeedBlob("data", np.ones((2, 3, 34, 34), np.float32))
    workspace.RunNetOnce(model.param_init_net)
    workspace.RunNetOnce(model.net)
    np.testing.assert_allclose(workspace.FetchBlob("softmax").sum(axis=1), 1, rtol=1e-5)
    workspace.ResetWorkspace()
