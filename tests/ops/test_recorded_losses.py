"""Answers of the original Caffe2 (torch 1.10.2) for losses and measures, asked once and written
down."""

import math

import numpy as np
import pytest

from caffe2.python import core, workspace

F4, F8, I4, I8 = np.float32, np.float64, np.int32, np.int64
LOGITS = F4([[1, -2, 0], [1, -1, 3]])
MAP = (np.arange(12, dtype=F4).reshape(1, 3, 2, 2)) % 5
POINTS, WEIGHTS = I4([[[0, 2], [-1, 1]]]), F4([[[1, 2], [3, 4]]])
SHARES = F4([[[[0.013212887, 0.04661262], [0.66524094, 0.66524094]],
              [[0.7213991, 0.017147826], [0.24472848, 0.24472848]],
              [[0.26538792, 0.93623954], [0.09003057, 0.09003057]]]])  # fmt: skip
SCORES, RANKS, SESSIONS = F4([0.5, 0.2, 0.9, 0.1, 0.3]), F4([1, 0, 2, 1, 0]), I4([3, 2])
X, LABEL = F4([0.5, 0.2, 0.9, 0.1]), F4([1, 0, 0, 1])
SAMPLES = F4([[1, 0.1], [2, 0.5], [3, 0.9], [2, 0.2], [5, 0.6]])
A, B = F4([[1, 2, 3, 4], [5, 6, 7, 8]]), F4([[1, 2], [3, 4]])
LP = F4([[[[-3, -2, -1, 0], [1, 2, 3, 4]]]])
BISECT = {
    "percentile_raw": [1.0, 2.0, 2.0, 2.0, 5.0],
    "percentile_mapping": [0.1, 0.5, 0.9, 0.92, 0.96],
    "percentile_lower": [0.05, 0.4, 0.8, 0.91, 0.95],
    "percentile_upper": [0.2, 0.6, 0.9, 0.93, 0.97],
    "lengths": [5],
}

# (type, inputs, arguments, outputs)
VALUES = [
    ("FCTransposed", [F4([[1, 2]]), F4([[3, 4, 5], [5, 6, 7]]), F4([1, 2, 3])], {},
     [F4([[14, 18, 22]])]),
    ("FCTransposed", [np.ones((1, 2, 2), F4), np.ones((2, 2, 3), F4), F4([1, 2, 3])],
     {"axis_w": 2}, [F4([[5, 6, 7]])]),
    ("FCTransposedGradient", [F4([[1, 2]]), F4([[3, 4, 5], [5, 6, 7]]), F4([[1, 2, 3]])], {},
     [F4([[1, 2, 3], [2, 4, 6]]), F4([1, 2, 3]), F4([[26, 38]])]),
    ("SoftmaxWithLossGradient",
     [LOGITS, F4([[0.5, 0.5, 0], [0, 0, 1]]), F4([2, 1]), LOGITS, F4(1)],
     {"label_prob": 1, "average_by_batch_size": 1}, [F4([[0.5, -2.5, 0], [0.5, -0.5, 1]])]),
    ("SpatialSoftmaxWithLoss", [MAP, POINTS], {}, [SHARES, F4(1.933351)]),
    ("SpatialSoftmaxWithLoss", [MAP, POINTS, WEIGHTS], {}, [SHARES, F4(1.4412507)]),
    ("SpatialSoftmaxWithLoss", [MAP, 0 * POINTS - 1], {}, [SHARES, F4(0)]),
    ("SpatialSoftmaxWithLossGradient", [MAP, POINTS, WEIGHTS, SHARES, F4(2)], {"scale": 2.0},
     [F4([[[[-0.5638784, 0.05327157], [0, 1.5205508]], [[0.41222808, 0.019597515], [0, -1.726335]],
           [[0.15165025, -0.0728691], [0, 0.20578417]]]])]),
    ("MarginRankingCriterion", [F4([1, 2, 0]), F4([0.5, 2, 1]), I4([1, -1, 1])], {"margin": 0.5},
     [F4([0, 0.5, 1.5])]),
    ("MarginRankingCriterion", [F4([[1, 2]]), F4([1, 1]), I4([1, 1])], {}, [F4([[1, 0]])]),
    ("MarginRankingCriterionGradient",
     [F4([1, 2, 0, 1]), F4([0.5, 2, 1, 0]), I4([1, -1, 1, 1]), F4([1, 2, 3, 4])], {"margin": 0.5},
     [F4([-1, 2, -3, 0]), F4([1, -2, 3, 0])]),
    ("CosineEmbeddingCriterion", [F4([0.5, 0.2, -1, 0.1]), I4([1, 0, -1, -1])], {},
     [F4([0.5, 0.2, 0, 0.1])]),
    ("CosineEmbeddingCriterionGradient",
     [F4([0.5, 0.2, -1, 0.1]), I4([1, 0, -1, -1]), F4([1, 2, 3, 4])], {"margin": 0.2},
     [F4([-1, 2, 0, 0])]),
    ("PairWiseLoss", [X, LABEL], {}, [F4([0.84571695])]),
    ("PairWiseLoss", [X[:, None], LABEL[:, None], I4([3, 0, 1])], {}, [F4([0.73368526, 0, 0])]),
    ("PairWiseLoss", [F4([]), F4([])], {}, [F4([])]),
    ("PairWiseLossGradient", [X, LABEL, F4([1, 2]), I4([3, 1])], {},
     [F4([-0.51212257, 0.21277875, 0.29934382, 0])]),
    ("LambdaRankNdcg", [SCORES, RANKS, SESSIONS], {},
     [F4([0.3665616, 0.2239279]),
      F4([0.04174117, 0.09605171, -0.13779288, -0.07713143, 0.07713143])]),
    ("LambdaRankNdcg", [SCORES, RANKS, SESSIONS], {"use_exp_gain": 0, "use_idcg_normalization": 0},
     [F4([2.1120763, 0.58913857]), F4([0.24050675, 0.55343646, -0.79394324, -0.20292737,
                                       0.20292737])]),
    ("LambdaRankNdcg", [SCORES, RANKS, SESSIONS], {"use_exp_gain": 0, "use_ndcg_as_loss": 1},
     [F4([0, 0.36907023]), F4([0.0351185, 0.14729789, -0.18241638, -0.20292737, 0.20292737])]),
    ("LambdaRankNdcg", [F4([0.5] * 3), F4([1, 0, 2]), I4([3])], {},
     [F4([0.4239006]), F4([0.054750536, 0.066112295, -0.12086284])]),
    ("LambdaRankNdcgGradient", [SCORES, SESSIONS, F4([1, 2, 3, 4, 5]), F4([1, 2])], {},
     [F4([1, 2, 3, 8, 10])]),
    ("MultiClassAccuracy", [F4([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]), I4([1, 1, 0])], {},
     [F4([0, 0.5]), I4([1, 2])]),
    ("MultiClassAccuracy", [F4([[0.5, 0.5]]), I4([1])], {}, [F4([0, 0]), I4([0, 1])]),
    ("DotProductWithPadding", [A, B], {"pad_value": 2.0}, [F4([19, 69])]),
    ("DotProductWithPadding", [B, A], {"replicate": 1}, [F4([16, 92])]),
    ("DotProductWithPaddingGradient", [B, A, F4([1, 2])], {"pad_value": 2.0},
     [F4([[1, 2], [10, 12]]), F4([[1, 2, 2, 2], [6, 8, 4, 4]])]),
    ("DotProductWithPaddingGradient", [A, B, F4([1, 2])], {"replicate": 1},
     [F4([[1, 2, 1, 2], [6, 8, 6, 8]]), F4([[4, 6], [24, 28]])]),
    ("BernoulliJSD", [F4([0.2, 0.5, 0, 1, 1.5, -0.2]), F4([0.1, 0.5, 0, 0, 0.1, 0.1])], {},
     [F4([0.009966403, 0, 0, 0.6931472, 0.33786088, -0.1625415])]),
    ("BernoulliJSDGradient", [F4([1] * 5), F4([0.2, 0.5, 0, 1e-30, 0]), F4([0.1, 0.5, 0, 0.5, 1])],
     {}, [F4([0.17415333, 0, 0, -22.476543, -23.02585])]),
    ("Perplexity", [F4([0.2, 0.5, 0.5])], {}, [F4(2.7144177)]),
    ("Perplexity", [F4([])], {}, [F4(1)]),
    ("Perplexity", [F4([0, 0.5])], {}, [F4(math.inf)]),
    ("APMeter", [F4([[0.5], [0.5]]), I4([[0], [1]])], {}, [F4([0.5])]),
    ("APMeter", [F4([[0.1], [0.9], [0.3], [0.95], [0.2]]), I4([[1], [0], [1], [0], [1]])],
     {"buffer_size": 3}, [F4([7 / 12])]),
    ("Histogram", [F4([0, 1, 2, 3.5, math.nan]), F4([[0.5, 9]])],
     {"bin_edges": [0.0, 1.0, 2.0, 3.5]}, [I8([2, 1, 1])]),
    ("AccumulateHistogram", [F4([-1, 0, 0.5, 1, 2])], {"num_buckets": 4},
     [I8([1, 1, 0, 1, 0, 2])] * 2),
    ("AccumulateHistogram", [F4([0.1, 0.7])], {"upper_bound": 0.3, "num_buckets": 3},
     [I8([0, 0, 1, 0, 1])] * 2),
    ("AccumulateHistogram", [F4([0.1, 0.7])], {"lower_bound": 1.0, "upper_bound": 0.0},
     [I8([2, 0, 0])] * 2),
    ("Quantile", [F4([1, 2, 3, 4])], {"quantile": 0.5}, [F4([2.5])]),
    ("Quantile", [F4([1, 2, 3, 4])], {"quantile": 0.0}, [F4([1])]),
    ("Quantile", [F4([1, 2]), F4([3, -9])], {"quantile": 0.99}, [F4([9])]),
    ("Quantile", [F4([1, 2, 3, -9])], {"quantile": 0.5, "abs": 0}, [F4([1.5])]),
    ("Quantile", [F4([1, 2, 3, 4, 100])], {"quantile": 0.3, "tol": 1e-6}, [F4([2.546875])]),
    ("Quantile", [F4([0, 2, 2, 2, 9])], {"quantile": 0.4}, [F4([2.001708984375])]),
    ("Quantile", [F4([0, 2, 2, 2, 9])], {"quantile": 0.4, "tol": 2.0}, [F4([9])]),
    ("Quantile", [F4([0.2, 1, 0.6, 0.6, 0.6, 0.6])], {"quantile": 0.5}, [F4([0.6])]),
    ("Quantile", [F4(range(1, 11))], {"quantile": 0.7}, [F4([7.75])]),
    ("Quantile", [F8([1, 2, 3])], {"quantile": 0.5}, [F8([2])]),
    ("Percentile", [F4([[1, 5], [2, 3], [0, 9], [1.5, math.nan]]), SAMPLES, I4([3, 2])], {},
     [F4([[0.1, 0.6], [0.5, 1 / 3], [0, 1], [0.3, 0]])]),
    ("Percentile", [F4([[1, 2]]), F4([[1, 0.1], [1, 0.3]]), I4([2, 0])], {}, [F4([[0.1, 1]])]),
    ("BisectPercentile", [F4([[1], [2], [1.5], [3], [5], [6], [0.5], [math.nan]])], BISECT,
     [F4([[0.1], [0.92], [0.3], [0.9366666], [0.96], [1], [0], [math.nan]])]),
    ("Range", [I4(3)], {}, [I4([0, 1, 2])]),
    ("Range", [I4(9), I4(2), I4(-3)], {}, [I4([9, 6, 3])]),
    ("Range", [F4(1), F4(2), F4(0.3)], {}, [F4([1, 1.3, 1.6, 1.9])]),
    ("Range", [I8(1), I8(9), I8(4)], {}, [I8([1, 5])]),
    ("Range", [F8(1), F8(3)], {}, [F8([1, 2])]),
    ("LpPool", [LP], {"kernel": 2, "stride": 2, "p": 0.5}, [F4([[[[30.918913, 22.392305]]]])]),
    ("LpPool", [LP], {"kernel": 2, "pad": 1},
     [F4([[[[3, 3.6055513, 2.236068, 1, 0], [3.1622777, 4.2426405, 4.2426405, 5.0990195, 4],
            [1, 2.236068, 3.6055513, 5, 4]]]])]),
    ("LpPoolGradient", [LP, F4([[[[2, 3]]]]), F4([[[[1, 2]]]])],
     {"kernel": 2, "stride": 2, "p": 3.0},
     [F4([[[[-2.25, -1, -2 / 9, 0], [0.25, 1, 2, 32 / 9]]]])]),
    ("MaxPool1D", [np.arange(8, dtype=F4).reshape(1, 1, 8)], {"kernel": 2, "stride": 2},
     [F4([[[1, 3, 5, 7]]])]),
    ("AveragePool1D", [np.arange(8, dtype=F4).reshape(1, 1, 2, 4)], {"kernel": 2, "stride": 2},
     [F4([[[[2.5, 4.5]]]])]),
    ("MaxPool3D", [np.arange(8, dtype=F4).reshape(1, 1, 2, 2, 2)], {"kernels": [2, 2, 1]},
     [F4([[[[[6, 7]]]]])]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "args", "expected"), VALUES)
def test_value(run, type, inputs, args, expected):
    found = run(type, inputs, outputs=len(expected), **args)
    for value, right in zip(found, expected, strict=True):
        assert value.dtype == right.dtype
        assert value.shape == right.shape
        np.testing.assert_allclose(value, right, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("args", "loss"), [({}, 0.0), ({"average_by_batch_size": 1}, 0.0), ({"label_prob": 1}, 0.0)]
)
def test_softmax_loss_of_no_weight(run, args, loss):
    labels = F4([[0.5, 0.5, 0], [0, 0, 1]]) if args.get("label_prob") else I4([2, 0])
    _, found = run("SoftmaxWithLoss", [LOGITS, labels, F4([0, 0])], outputs=2, **args)
    assert found == loss


def test_average_by_batch_size(run):
    inputs = [F4([[1, -2, 0], [100, -100, 3]]), I4([2, 0]), F4([2, 1])]
    _, loss = run("SoftmaxWithLoss", inputs, outputs=2, average_by_batch_size=1)
    assert loss == pytest.approx(1.3490121)
    inputs[1] = F4([[0.5, 0.5, 0], [0, 0, 1]])
    inputs[0] = LOGITS
    _, loss = run("SoftmaxWithLoss", inputs, outputs=2, average_by_batch_size=1, label_prob=1)
    assert loss == pytest.approx(1.920478)


def ended(net, output, **feeds):
    """What `output` holds after each run of the net, for the values of each run."""
    workspace.ResetWorkspace()
    for name, values in feeds.items():
        workspace.FeedBlob(name, values[0])
    workspace.CreateNet(net)
    found = []
    for values in zip(*feeds.values(), strict=True):
        for name, value in zip(feeds, values, strict=True):
            workspace.FeedBlob(name, value)
        workspace.RunNet(net)
        found.append(workspace.FetchBlob(output).tolist())
    return found


def test_runs_of_a_histogram_add_up():
    net = core.Net("histogram")
    net.AccumulateHistogram("x", ["now", "all"], num_buckets=2)
    assert ended(net, "all", x=[F4([0.1, 0.7]), F4([0.2, -1])]) == [[0, 1, 1, 0], [1, 2, 1, 0]]
    assert workspace.FetchBlob("now").tolist() == [1, 1, 0, 0]


def test_first_run_accumulates_nothing(run):
    """Where the original adds to memory that nobody has set, here is 0."""
    (found,) = run("Accumulate", [F4([1, 2])], gamma=0.5)
    assert found.tolist() == [1, 2]


def test_runs_accumulate():
    net = core.Net("accumulate")
    net.Accumulate("x", "y", gamma=0.5)
    values = [F4([1, 2]), F4([1, 2]), F4([1, 2, 3]), F4([1, 2, 3])]
    assert ended(net, "y", x=values) == [[1, 2], [1.5, 3], [1, 2, 3], [1.5, 3, 4.5]]


def test_average_precision_of_the_last_rows():
    """The original loses track of which row is the oldest once its buffer is full."""
    net = core.Net("average precision")
    net.APMeter(["p", "l"], "ap", buffer_size=3)
    scores = [F4([[value]]) for value in (0.1, 0.9, 0.3, 0.95, 0.2)]
    labels = [I4([[value]]) for value in (1, 0, 1, 0, 1)]
    found = ended(net, "ap", p=scores, l=labels)
    assert np.ravel(found) == pytest.approx([1, 0.5, 7 / 12, 1 / 3, 7 / 12])


def test_average_precision_wants_the_same_classes():
    net = core.Net("average precision")
    net.APMeter(["p", "l"], "ap")
    with pytest.raises(RuntimeError, match="it had 1 in earlier runs"):
        ended(net, "ap", p=[F4([[1]]), F4([[1, 2]])], l=[I4([[1]]), I4([[1, 0]])])


def test_pairs_of_empty_lists(run):
    """A loss for each list; the original gives none."""
    (found,) = run("PairWiseLoss", [F4([]), F4([]), I4([0, 0])])
    assert found.tolist() == [0, 0]


def test_p_norm_of_nothing(run):
    """0 where the original divides 0 by 0."""
    zero = np.zeros((1, 1, 2, 2), F4)
    inputs = [zero, np.zeros((1, 1, 1, 1), F4), np.ones((1, 1, 1, 1), F4)]
    (found,) = run("LpPoolGradient", inputs, kernel=2)
    assert not found.any()


def test_scale_is_of_the_loss_as_well(run):
    """The original scales only the gradient."""
    _, loss = run("SpatialSoftmaxWithLoss", [MAP, POINTS], outputs=2, scale=2.0)
    assert loss == pytest.approx(2 * 1.933351)
