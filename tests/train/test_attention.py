"""Attention that knows what it has covered, against a loop in NumPy."""

import numpy as np

from caffe2.python import core, rnn_cell, workspace
from caffe2.python.attention import AttentionType
from caffe2.python.model_helper import ModelHelper

T, S, N, D, E = 3, 4, 2, 3, 5


def test_soft_coverage():
    workspace.ResetWorkspace()
    rng = np.random.default_rng(0)
    model = ModelHelper(name="external")
    shapes = {
        "encoder": (S, N, E),
        "inputs": (T, N, D),
        "hidden": (1, N, D),
        "cell": (1, N, D),
        "context": (1, N, E),
    }
    blobs = {name: model.net.AddExternalInput(name) for name in (*shapes, "lengths")}
    for name, shape in shapes.items():
        workspace.FeedBlob(name, rng.uniform(-1, 1, shape).astype(np.float32))
    workspace.FeedBlob("lengths", np.full(N, T, np.int32))
    outputs = rnn_cell.LSTMWithAttention(
        model, blobs["inputs"], blobs["lengths"], blobs["hidden"], blobs["cell"],
        blobs["context"], E, blobs["encoder"], None, D, D, "decoder",
        attention_type=AttentionType.SoftCoverage, outputs_with_grads=[4],
    )  # fmt: skip
    loss = model.net.AveragedLoss(outputs[4], "loss")
    gradients = model.net.AddGradientOperators([loss])
    workspace.RunNetOnce(model.param_init_net)
    weights = rng.uniform(-1, 1, E).astype(np.float32)
    workspace.FeedBlob("decoder/coverage_weights", weights)
    workspace.RunNetOnce(model.net)

    hidden, context, coverage = (workspace.FetchBlob(outputs[k]) for k in (0, 4, 6))
    names = [f"decoder/weighted_decoder_hidden_state_{what}" for what in "wb"]
    u, b, v = workspace.FetchBlobs([*names, "decoder/attention_logits_w"])
    encoder, part = workspace.FetchBlobs(["encoder", "decoder/weighted_encoder_outputs"])
    covered = np.zeros((S, N))
    for t in range(T):
        sums = part + hidden[t] @ u.T + b + covered[..., None] * weights
        powers = np.exp(np.tanh(sums) @ v[0])
        share = powers / powers.sum(axis=0)
        covered = covered + share
        expected = (encoder * share[..., None]).sum(axis=0)
        np.testing.assert_allclose(context[t], expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(coverage[t], covered.T, rtol=1e-4, atol=1e-6)
    gradient = workspace.FetchBlob(gradients[core.BlobReference("decoder/coverage_weights")])
    assert gradient.shape == (E,) and np.abs(gradient).max() > 0
