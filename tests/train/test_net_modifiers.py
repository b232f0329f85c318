"""Measurements of blobs and clipped gradients, added to nets as the original adds them."""

import pytest

from caffe2.graph.printer import operator_line
from caffe2.python import brew, model_helper
from caffe2.python.modeling.get_entry_from_blobs import GetEntryFromBlobs
from caffe2.python.modeling.gradient_clipping import GradientClipping


def added(modifier, **kwargs):
    model = model_helper.ModelHelper(name="model")
    brew.fc(model, "x", "f", 3, 4)
    model.SoftmaxWithLoss(["f", "label"], ["softmax", "loss"])
    grads = model.AddGradientOperators(["loss"])
    start = len(model.net.Proto().op)
    modifier(model.net, init_net=model.param_init_net, grad_map=grads, **kwargs)
    lines = [operator_line(op) for op in model.net.Proto().op[start:]]
    return [line.partition(" device")[0] for line in lines], model.net


def test_gradients_by_value():
    clip = GradientClipping("by_value", clip_max=0.5, clip_min=-0.5, blobs_to_include=["f_w"])
    lines, _ = added(clip)
    assert lines == ["f_w_grad = Clip(f_w_grad, max=0.5, min=-0.5)"]
    lines, _ = added(GradientClipping("by_value", blobs_to_exclude=["x", "f", "loss"]))
    assert [line.partition(" ")[0] for line in lines] == ["f_w_grad", "f_b_grad"]
    with pytest.raises(AssertionError, match="zz is not defined"):
        added(GradientClipping("by_value", blobs_to_include=["zz"]))
    with pytest.raises(AssertionError, match="grad_clip_method is 'nope'"):
        GradientClipping("nope")


def test_entries():
    lines, net = added(GetEntryFromBlobs(["f_w"], -1, 1, 2), modify_output_record=True)
    row = lines[0].partition(" ")[0]
    assert lines == [
        f"{row} = Slice(f_w, starts=[1, 0], ends=[2, -1])",
        f"f_w_1_2 = Slice({row}, starts=[0, 2], ends=[-1, 3])",
    ]
    assert net.output_record().field_names() == ["f_w_1_2"]
    lines, _ = added(GetEntryFromBlobs(["f_w"], -1, 1, -1))
    assert lines == ["f_w_1_all = Slice(f_w, starts=[1, 0], ends=[2, -1])"]
    with pytest.raises(AssertionError, match="zz is not defined"):
        added(GetEntryFromBlobs(["zz"], -1))
