"""What layers compute, in nets for training, evaluation and prediction."""

import numpy as np
import pytest
from layer_testing import F, close, dense, feed, net_of, params, rows, run, value

from caffe2.graph.errors import UsageError
from caffe2.python import schema, workspace
from caffe2.python.helpers.arg_scope import arg_scope
from caffe2.python.layers.fc import FC, get_fc_predictor_version

# -- dense layers -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"transposed": True}, {"clip_param": [-0.1, 0.1]}])
def test_fc(model, options):
    x = rows(4, 5)
    out = model.FC(dense(model, x), 3, **options)
    run(model)
    w, b = params(model)
    if "clip_param" in options:
        w, b = np.clip(w, -0.1, 0.1), np.clip(b, -0.1, 0.1)
    close(value(out), x @ (w if options.get("transposed") else w.T) + b)


def test_fc_in_parts(model):
    x = rows(2, 4, 5)
    out = model.FC(dense(model, x), 7, axis=2, max_fc_size=15)
    run(model)
    parts = params(model)
    assert [w.shape for w in parts[::2]] == [(3, 5), (3, 5), (1, 5)]
    close(value(out), x @ np.concatenate(parts[::2]).T + np.concatenate(parts[1::2]))
    assert out.field_type().shape == (4, 7)
    assert FC.calculate_fc_output_dims(639, 32, 20) == [19, 1]
    with pytest.raises(UsageError, match="max_fc_size: 10, input_dim: 32"):
        FC.calculate_fc_output_dims(10, 32, 20)


def test_fc_of_rows_that_are_not_known(model):
    with pytest.raises(UsageError, match="limited dimensions"):
        model.FC(schema.NewRecord(model.net, schema.Scalar(F)), 3)
    x = dense(model, rows(4, 5))
    with pytest.raises(UsageError, match="axis 2 should"):
        model.FC(x, 3, axis=2)
    with arg_scope([get_fc_predictor_version], fc_version="int8"):
        model.FC(x, 3)
        with pytest.raises(UsageError, match="FC precision is int8"):
            net_of(model, "prediction")


def test_fc_without_bias_and_bias_alone(model):
    x = rows(4, 5)
    product = model.FCWithoutBias(dense(model, x), 3)
    shifted = model.AddBias(dense(model, rows(2, 3, 2)), bias_init=("ConstantFill", {"value": 2.0}))
    run(model)
    close(value(product), x @ params(model)[0].T)
    close(value(shifted), rows(2, 3, 2) + 2)


def test_fc_with_bootstrap(model):
    x = rows(6, 5)
    out = model.FCWithBootstrap(dense(model, x), 2, num_bootstrap=2)
    run(model)
    weights = params(model)
    for index in range(2):
        drawn, found = (value(out[2 * index + part]) for part in (0, 1))
        assert drawn.dtype == np.int32 and ((drawn >= 0) & (drawn < 6)).all()
        close(found, x[drawn] @ weights[2 * index].T + weights[2 * index + 1])
    run(model, "eval", init=False)
    close(value(out[1]), x @ weights[0].T + weights[1])


def test_conv(model):
    x = rows(2, 6, 7, 3)
    out = model.Conv(dense(model, x), 4, kernel_h=3, kernel_w=1, stride_h=1, stride_w=2)
    run(model)
    w, _ = params(model)
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))[:, :, ::2]
    expected = sum(padded[:, k : k + 6] @ w[:, k, 0].T for k in range(3))
    close(value(out), expected)
    with pytest.raises(UsageError, match="order should"):
        model.Conv(dense(model, x), 4, 3, 3, 1, 1, order="CHWN")
    with pytest.raises(UsageError, match="pad_t should be int >= 0, got -1"):
        model.Conv(dense(model, x), 4, 3, 3, 1, 1, pad_t=-1)


# -- normalization ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "shape"), [("NCHW", (8, 3)), ("NHWC", (8, 3)), ("NHWC", (4, 2, 2, 3))]
)
def test_batch_normalization(model, order, shape):
    x = rows(*shape)
    out = model.BatchNormalization(dense(model, x), order=order)
    run(model)
    axes = tuple(range(len(shape) - 1))
    mean, var = x.mean(axes), x.var(axes)
    close(value(out), (x - mean) / np.sqrt(var + 1e-5))
    running_mean, running_var = params(model)[2:]
    close(running_mean, 0.1 * mean)
    run(model, "prediction", init=False)
    close(value(out), (x - running_mean) / np.sqrt(running_var + 1e-5))


@pytest.mark.parametrize(
    ("shape", "axis", "by_op"), [((4, 5), 1, True), ((4, 5), 1, False), ((2, 3, 5), 2, True)]
)
def test_layer_normalization(model, shape, axis, by_op):
    x = rows(*shape)
    out = model.LayerNormalization(
        dense(model, x), axis=axis, use_layer_norm_op=by_op, scale_init_value=2.0
    )
    run(model)
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    close(value(out), 2 * (x - mean) / np.sqrt(var + 1e-4))
    with pytest.raises(UsageError, match="only be 2D"):
        model.LayerNormalization(dense(model, rows(2, 3, 5)), use_layer_norm_op=False)


def test_dropout(model):
    x = np.ones((1, 1000), F)
    out = model.Dropout(dense(model, x), ratio=0.25)
    run(model)
    kept = value(out)
    assert set(np.unique(kept).tolist()) == {0.0, float(F(1 / 0.75))}
    assert 0.6 < (kept > 0).mean() < 0.9
    run(model, "eval")
    np.testing.assert_array_equal(value(out), x)
    with pytest.raises(UsageError, match="ratio of 1"):
        model.Dropout(dense(model, x), ratio=1)


# -- columns ----------------------------------------------------------------------------------


def test_concat_and_split(model):
    a, b = rows(2, 3, 4), rows(2, 3, 4, seed=1)
    both = schema.Struct(("a", dense(model, a)), ("b", dense(model, b)))
    for options, expected in (
        ({}, np.concatenate([a, b], 1)),
        ({"axis": 2}, np.concatenate([a, b], 2)),
        ({"axis": 1, "add_axis": 1}, np.stack([a, b], 1)),
        ({"axis": 3, "add_axis": 1}, np.stack([a, b], 3)),
    ):
        out = model.Concat(both, **options)
        run(model)
        np.testing.assert_array_equal(value(out), expected)
        assert out.field_type().shape == expected.shape[1:]
    parts = model.Split(dense(model, a), axis=2, split=[1, 3])
    run(model)
    np.testing.assert_array_equal(value(parts.field_1), a[:, :, 1:])
    assert parts.field_0.field_type().shape == (3, 1)
    with pytest.raises(UsageError, match="not compatible"):
        model.Concat(schema.Struct(("a", dense(model, a)), ("b", dense(model, rows(2, 3, 5)))))
    with pytest.raises(UsageError, match=r"\[1, 2\] do not make up 4"):
        model.Split(dense(model, a), axis=2, split=[1, 2])
    with pytest.raises(UsageError, match="4 cannot be split into 3"):
        model.Split(dense(model, a), axis=2, num_splits=3)


def test_where_features_are_in_a_concatenation(model):
    columns = []
    for index in range(2):
        column = dense(model, rows(2, 3))
        specs = schema.FeatureSpec(feature_to_index={10 + index: [0, 2]})
        column.set_metadata(schema.Metadata(feature_specs=specs))
        columns.append(column)
    out = model.Concat(schema.Tuple(*columns))
    assert out.metadata.feature_specs.feature_to_index == {10: [0, 2], 11: [3, 5]}


def test_pairwise_similarity(model):
    x, y = rows(2, 3, 4), rows(2, 5, 4, seed=1)
    record = schema.Struct(("x_embeddings", dense(model, x)), ("y_embeddings", dense(model, y)))
    all_pairs = model.PairwiseSimilarity(record, 15)
    indices = feed(model, schema.Scalar(np.int32), np.int32([7, 0]))
    wanted = schema.Struct(("indices_to_gather", indices))
    some = model.PairwiseSimilarity(record + wanted, 2)
    run(model)
    expected = (x @ y.transpose(0, 2, 1)).reshape(2, 15)
    close(value(all_pairs), expected)
    close(value(some), expected[:, [7, 0]])
    with pytest.raises(UsageError, match="have no products"):
        model.PairwiseSimilarity(schema.Struct(("all_embeddings", dense(model, rows(2, 3)))), 9)


def test_gather_record(model):
    lengths, ids = np.int32([1, 0, 2]), np.int64([5, 6, 7])
    record = schema.Struct(("a", schema.Scalar(F)), ("b", schema.List(np.int64)))
    given = feed(model, record, F([1, 2, 3]), lengths, ids)
    chosen = feed(model, schema.Scalar(np.int32), np.int32([2, 0]))
    out = model.GatherRecord(schema.Struct(("indices", chosen), ("record", given)))
    run(model)
    found = schema.FetchRecord(out)
    assert [field.tolist() for field in found.field_blobs()] == [[3, 1], [2, 1], [6, 7, 5]]


def test_select_record_by_context(model):
    one, two = dense(model, rows(2, 3)), dense(model, rows(2, 3, seed=1))
    choice = schema.Struct(("training", one), ("prediction", two))
    out = model.SelectRecordByContext(choice, use_copy=True, default_output_record_field="training")
    for context, seed in (("training", 0), ("prediction", 1), ("eval", 0)):
        run(model, context)
        np.testing.assert_array_equal(value(out), rows(2, 3, seed=seed))
    with pytest.raises(UsageError, match="records differ"):
        other = dense(model, rows(2, 4))
        model.SelectRecordByContext(schema.Struct(("training", one), ("eval", other)))


def test_types_of_functions(model):
    x = dense(model, rows(2, 8))
    assert model.Relu(x, 1).field_type() == np.dtype((F, (8,)))
    assert model.FloatToHalf(x, 1).field_type() == np.dtype((np.float16, (8,)))
    assert model.SumElements(x, 1).field_type() == F
    assert model.TopK(x, ["v", "i"], k=3).v.field_type().shape == (3,)
    assert model.ReduceFrontMean(x, 1).field_type().base == np.void  # no batch any more
    typed = model.Relu(x, 1, output_dtypes=(np.int32, (5,)))
    assert typed.field_type() == np.dtype((np.int32, (5,)))
    with pytest.raises(UsageError, match="has 1 types for 2 outputs"):
        model.TopK(x, 2, k=3, output_dtypes=[F])
    mine = model.Functional(x, 1, lambda net, i, o: net.Scale(i(), o(), scale=2.0), name="mine")
    run(model)
    np.testing.assert_array_equal(workspace.FetchBlob("mine/field_0"), 2 * rows(2, 8))
    assert mine() == "mine/field_0"


# -- random features --------------------------------------------------------------------------


def test_random_fourier_features(model):
    x = rows(4, 3)
    out = model.RandomFourierFeatures(dense(model, x), 2000, sigma=2.0)
    run(model)
    w, b = params(model)
    close(value(out), np.sqrt(2 / 2000) * np.cos(x @ w.T + b))
    kernel = np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) / (2 * 2.0**2))
    # The error of an estimate from 2000 features is about 1 / sqrt(2000).
    np.testing.assert_allclose(value(out) @ value(out).T, kernel, atol=0.1)
    assert [p.optimizer for p in model.layers[0].params] == [model.NoOptim] * 2


@pytest.mark.parametrize("s", [0, 1, 3])
def test_arc_cosine_features(model, s):
    x = rows(4, 3)
    out = model.ArcCosineFeatureMap(dense(model, x), 5, s=s, set_weight_as_global_constant=True)
    run(model)
    w, b = (workspace.FetchBlob(f"arc_cosine_feature_map_fixed_rand_{p}") for p in "Wb")
    z = x @ w.T + b
    expected = np.maximum(z, 0) / (1 + np.abs(z)) if s == 0 else (z > 0) * z**s
    close(value(out), expected)
    with pytest.raises(UsageError, match="Expected s >= 0"):
        model.ArcCosineFeatureMap(dense(model, x), 5, s=-1)


def test_semi_random_features(model):
    x = rows(4, 3)
    out = model.SemiRandomFeatures(dense(model, x), 5, s=2)
    run(model)
    random_w, random_b, learned_w, learned_b = params(model)
    z = x @ random_w.T + random_b
    close(value(out.random), (z > 0) * z**2)
    close(value(out.full), (z > 0) * z**2 * (x @ learned_w.T + learned_b))
    optimizers = [p.optimizer for p in model.layers[0].params]
    assert optimizers == [model.NoOptim, model.NoOptim, None, None]


# -- losses -----------------------------------------------------------------------------------

LABEL, LOGIT, WEIGHT = np.array([0.0, 1.0, 1.0]), rows(3, 1), np.array([1.0, 2.0, 3.0])
P = 1 / (1 + np.exp(-LOGIT[:, 0].astype(np.float64)))


def lr_record(model, **more):
    columns = {"label": LABEL, "logit": LOGIT, **more}
    fields = [(n, schema.Scalar((a.dtype.type, a.shape[1:] or (1,)))) for n, a in columns.items()]
    return feed(model, schema.Struct(*fields), *columns.values())


def entropy(label=LABEL):
    return -(label * np.log(P) + (1 - label) * np.log(1 - P))


def divergence(p, q):
    def kl(a, b):
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [np.where(x > 0, x * np.log(x / y), 0) for x, y in ((a, b), (1 - a, 1 - b))]
        return sum(terms)

    return (kl(p, (p + q) / 2) + kl(q, (p + q) / 2)) / 2


@pytest.mark.parametrize(
    ("options", "columns", "expected"),
    [
        ({}, {}, entropy().mean()),
        ({}, {"weight": WEIGHT}, (entropy() * WEIGHT).mean()),
        ({"average_loss": False}, {"weight": WEIGHT}, (entropy() * WEIGHT).sum()),
        (
            {"pos_label_target": 0.9, "neg_label_target": 0.2},
            {},
            entropy(np.array([0.2, 0.9, 0.9])).mean(),
        ),
        (
            {"jsd_weight": 0.3},
            {"prediction": P[:, None].astype(F)},
            (0.7 * entropy() + 0.3 * divergence(P, LABEL)).mean(),
        ),
        (
            {"focal_gamma": 2.0},
            {"prediction": P[:, None].astype(F)},
            (entropy() * (LABEL - P) ** 2).mean(),
        ),
        ({"task_gamma": 0.5}, {}, 0.5 * entropy().mean()),
        (
            {"uncertainty_penalty": 0.5},
            {"log_variance": np.array([0.1, 0.2, 0.3])},
            ((np.exp([-0.1, -0.2, -0.3]) * entropy() + 0.5 * np.array([0.1, 0.2, 0.3])) / 2).mean(),
        ),
    ],
)
def test_batch_lr_loss(model, options, columns, expected):
    loss = model.BatchLRLoss(lr_record(model, **columns), **options)
    run(model)
    close(value(loss), expected)
    assert loss.field_type() == F and "exclude_from_prediction" in model.layers[0].tags


def test_batch_lr_loss_that_makes_no_sense(model):
    for options, text in (
        ({"jsd_weight": 0.3}, "no field 'prediction'"),
        ({"log_D_trick": True, "unjoined_lr_loss": True}, "exclude each other"),
        ({"pos_label_target": 0.1, "neg_label_target": 0.9}, "label targets are 0.9 and 0.1"),
    ):
        with pytest.raises(UsageError, match=text):
            model.BatchLRLoss(lr_record(model), **options)


def prediction_record(model, label, prediction, **more):
    columns = {"label": label, "prediction": prediction, **more}
    fields = [(n, schema.Scalar((a.dtype.type, a.shape[1:]))) for n, a in columns.items()]
    return feed(model, schema.Struct(*fields), *columns.values())


def test_losses_of_numbers(model):
    label, prediction = np.array([0.5, -3.0, 1.0]), rows(3, 1)
    error = np.abs(label - prediction[:, 0])
    mse = model.BatchMSELoss(prediction_record(model, label, prediction, weight=WEIGHT))
    huber = model.BatchHuberLoss(prediction_record(model, label, prediction), delta=0.5)
    run(model)
    close(value(mse), (error**2 / 2 * WEIGHT).mean())
    close(value(huber), np.where(error < 0.5, error**2 / 2, 0.5 * (error - 0.25)).mean())
    with pytest.raises(UsageError, match="no field 'label'; it has a"):
        model.BatchMSELoss(schema.Struct(("a", dense(model, prediction))))


def test_losses_of_classes(model):
    label, prediction = np.int64([2, 0]), rows(2, 3)
    log_p = prediction - np.log(np.exp(prediction).sum(1, keepdims=True))
    plain = model.BatchSoftmaxLoss(prediction_record(model, label, prediction))
    smooth = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    smoothed = model.BatchSoftmaxLoss(
        prediction_record(model, label, prediction), label_smoothing_matrix=smooth
    )
    many = model.BatchSigmoidCrossEntropyLoss(
        prediction_record(model, np.float32([[0, 1, 0], [1, 1, 0]]), prediction)
    )
    run(model)
    close(value(plain.loss), -(log_p[0, 2] + log_p[1, 0]) / 2)
    close(value(plain.softmax), np.exp(log_p))
    close(value(smoothed.loss), -(smooth[label] * log_p).sum(1).mean())
    p = 1 / (1 + np.exp(-prediction))
    target = np.array([[0, 1, 0], [1, 1, 0]])
    close(value(many), -(target * np.log(p) + (1 - target) * np.log(1 - p)).mean())
    with pytest.raises(UsageError, match="same shape"):
        model.BatchSigmoidCrossEntropyLoss(prediction_record(model, label, prediction))


def test_losses_of_pairs(model):
    record = schema.Struct(
        ("pos_prediction", schema.Scalar((F, (1,)))), ("neg_prediction", schema.List(F))
    )
    given = feed(model, record, F([0.8, 0.9]), np.int32([1, 2]), F([0.1, 0.2, 1.3]))
    margin = model.MarginRankLoss(given, margin=0.65)
    ranking = model.BPRLoss(given)
    run(model)
    gaps = np.array([0.1 - 0.8, 0.2 - 0.9, 1.3 - 0.9])
    close(value(margin), np.maximum(0, 0.65 + gaps).sum())
    close(value(ranking), np.log1p(np.exp(gaps)).sum())


# -- weights ----------------------------------------------------------------------------------


def losses(model, *values):
    return feed(model, schema.RawTuple(len(values)), *(F(v) for v in values))


@pytest.mark.parametrize("method", ["log_std", "inv_var"])
def test_adaptive_weight(model, method):
    weights, data = np.array([0.3, 0.9]), np.array([2.0, 5.0])
    out = model.AdaptiveWeight(
        losses(model, *data), weights=weights, estimation_method=method, enable_diagnose=True
    )
    run(model)
    close(value(out), (weights * data + 0.5 * np.log(1 / (2 * weights))).sum())
    close(np.concatenate([workspace.FetchBlob(b) for b in model.ad_hoc_plot_blobs]), weights)
    with pytest.raises(UsageError, match="must be positive"):
        model.AdaptiveWeight(losses(model, 1, 2), weights=[0.1, -1])


def test_constant_weight(model):
    out = model.ConstantWeight(losses(model, 2, 5), weights=[0.5, 2])
    mean = model.ConstantWeight(losses(model, 2, 5))
    run(model)
    close(value(out), 11)
    close(value(mean), 3.5)


def test_homotopy_weight(model):
    out = model.HomotopyWeight(
        losses(model, 1, 100), min_weight=0.2, max_weight=0.8, half_life=4, quad_life=20
    )
    workspace.RunNetOnce(model.create_init_net("constants"))
    workspace.RunNetOnce(model.param_init_net)
    net = net_of(model, "training")
    workspace.CreateNet(net)
    for runs, alpha in ((4, 0.5), (16, 0.35)):
        workspace.RunNet(net, num_iter=runs)
        close(value(out), alpha * 1 + (1 - alpha) * 100)
    assert model.layers[0].solve_inv_lr_params(1, 3) == (1.0, 1.0)
    with pytest.raises(UsageError, match="quad_life > 2"):
        model.HomotopyWeight(losses(model, 1, 2), half_life=4, quad_life=8)


def test_blob_weighted_sum(model):
    record = schema.Tuple(dense(model, rows(2, 3)), dense(model, rows(2, 3, seed=1)))
    out = model.BlobWeightedSum(record, init_weights=[2.0, -1.0])
    run(model)
    close(value(out), 2 * rows(2, 3) - rows(2, 3, seed=1))
    with pytest.raises(UsageError, match="expects 2, got 1"):
        model.BlobWeightedSum(record, init_weights=[1.0])


def test_label_smooth(model):
    label = feed(model, schema.Scalar(np.int32), np.int32([2, 0, 1]))
    matrix = np.arange(9).reshape(3, 3)
    rows_of = model.LabelSmooth(label, matrix)
    two = model.LabelSmooth(feed(model, schema.Scalar(F), F([0, 1])), [0.1, 0.8])
    run(model)
    np.testing.assert_array_equal(value(rows_of), matrix[[2, 0, 1]])
    close(value(two), [0.1, 0.8])
    with pytest.raises(UsageError, match=r"its shape is \(2, 3\)"):
        model.LabelSmooth(label, np.ones((2, 3)))
