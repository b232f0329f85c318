"""What layers for sparse features compute, and layers that sample."""

import numpy as np
import pytest
from layer_testing import F, close, dense, feed, params, rows, run, value

from caffe2.graph.errors import UsageError
from caffe2.python import core, schema, workspace
from caffe2.python.helpers.arg_scope import arg_scope
from caffe2.python.layers.sparse_lookup import get_sparse_lookup_predictor_version

# -- sparse features --------------------------------------------------------------------------

LENGTHS, IDS = np.int32([2, 1, 3]), np.int64([4, 0, 1, 1, 2, 3])
SCORES = F([0.5, 1, 2, -1, 0.25, 3])


def limited(limit=5):
    return schema.Scalar(np.int64, metadata=schema.Metadata(categorical_limit=limit))


def ids(model):
    return feed(model, schema.List(limited()), LENGTHS, IDS)


def scored(model):
    return feed(model, schema.Map(limited(), F), LENGTHS, IDS, SCORES)


def segments(table, reduce, weights=None):
    values = table[IDS] if weights is None else table[IDS] * weights[:, None]
    return np.stack([reduce(part) for part in np.split(values, np.cumsum(LENGTHS)[:-1])])


REDUCERS = {
    "Sum": lambda x: x.sum(0),
    "Mean": lambda x: x.mean(0),
    "Sqrt": lambda x: x.sum(0) / np.sqrt(len(x)),
    "Max": lambda x: x.max(0),
    "LogSumExp": lambda x: np.log(np.exp(x).sum(0)),
    "LogMeanExp": lambda x: np.log(np.exp(x).mean(0)),
}


@pytest.mark.parametrize("reducer", REDUCERS)
def test_sparse_lookup(model, reducer):
    out = model.SparseLookup(ids(model), [4], reducer)
    run(model)
    table = params(model)[0]
    assert table.shape == (5, 4) and np.abs(table).max() <= np.sqrt(1 / 5)
    close(value(out), segments(table, REDUCERS[reducer]))


def test_sparse_lookup_of_scored_ids(model):
    plain = model.SparseLookup(scored(model), 4, "None")
    weighed = [
        model.SparseLookup(scored(model), 4, "PositionWeighted"),
        model.SparseLookup(scored(model), 4, "WeightedSum"),
        model.SparseLookup(scored(model), 4, "Sum", use_external_weights=True),
    ]
    run(model)
    tables = [workspace.FetchBlob(str(layer.w)) for layer in model.layers]
    np.testing.assert_array_equal(value(plain), tables[0][IDS])
    for out, table in zip(weighed, tables[1:], strict=True):
        close(value(out), segments(table, REDUCERS["Sum"], SCORES))
    for reducer, record, text in (
        ("PositionWeighted", ids(model), "only supports IdScoreList"),
        ("Max", scored(model), "Unsupported reducer: Max for ID_SCORE_LIST"),
        ("Foo", ids(model), "Unsupported reducer: Foo for ID_LIST"),
    ):
        with pytest.raises(UsageError, match=text):
            model.SparseLookup(record, 4, reducer)


# The size of a row, and how exact 16, 8 and 4 bits are for values below 0.45.
@pytest.mark.parametrize(
    ("version", "quantize", "exact"),
    [
        ("fp16", "FloatToHalf", 1e-3),
        ("fused_uint8rowwise", "FloatToFused8BitRowwiseQuantized", 1e-2),
        ("fused_uint4rowwise", "FloatToFused4BitRowwiseQuantized", 0.15),
    ],
)
@pytest.mark.parametrize("reducer", ["Sum", "Mean", "None", "Max"])
def test_sparse_lookup_in_fewer_bits(model, version, quantize, exact, reducer):
    out = model.SparseLookup(ids(model), [4], reducer)
    run(model)
    expected = value(out)
    (table,) = (str(p) for p in model.layers[0].get_fp16_compatible_parameters())
    workspace.RunOperatorOnce(core.CreateOperator(quantize, [table], ["packed"]))
    workspace.FeedBlob(table, workspace.FetchBlob("packed"))
    with arg_scope(
        [get_sparse_lookup_predictor_version],
        version=version,
        **({"min_blob_size_4bits": 10} if "4" in version else {}),
    ):
        run(model, "prediction", init=False)
    np.testing.assert_allclose(value(out), expected, atol=exact)


def test_versions_of_sparse_lookup():
    small = {"min_blob_size_4bits": 100, "embedding_dim": 8}
    four = "fused_uint4rowwise"
    assert get_sparse_lookup_predictor_version(four, blob_size=1000, **small) == four
    assert get_sparse_lookup_predictor_version(four, blob_size=10, **small) == "fused_uint8rowwise"
    odd = {**small, "embedding_dim": 7}
    assert get_sparse_lookup_predictor_version(four, blob_size=999, **odd) == "fused_uint8rowwise"
    with pytest.raises(ValueError, match="4 bit quantization"):
        get_sparse_lookup_predictor_version(four)
    with pytest.raises(UsageError, match="Unexpected version of sparse_lookup layer foo"):
        get_sparse_lookup_predictor_version("foo")


def test_weights_of_positions_and_buckets(model):
    positions = model.PositionWeighted(ids(model))
    buckets = model.BucketWeighted(scored(model), bucket_boundaries=[0.0, 1.5], hash_buckets=False)
    run(model)
    for layer, count in zip(model.layers, (5, 3), strict=True):
        workspace.FeedBlob(str(layer.params[0]), np.arange(count).astype(F))
    run(model, init=False)
    np.testing.assert_array_equal(value(positions.position_weights), [0, 1, 0, 0, 1, 2])
    np.testing.assert_array_equal(value(buckets.bucket_weights), [1, 1, 2, 0, 1, 2])


def test_sparse_feature_hash(model):
    hashed = model.SparseFeatureHash(ids(model), modulo=3)
    rest = model.SparseFeatureHash(scored(model), modulo=3, use_hashing=False)
    divided = model.SparseFeatureHash(
        ids(model), modulo=2, use_hashing=False, use_divide_mod=True, divisor=2
    )
    run(model)
    found = value(hashed["values"])
    assert found.shape == IDS.shape and ((found >= 0) & (found < 3)).all()
    np.testing.assert_array_equal(value(rest["values:keys"]), IDS % 3)
    np.testing.assert_array_equal(value(rest["values:values"]), SCORES)
    np.testing.assert_array_equal(value(divided["values"]), IDS // 2 % 2)
    np.testing.assert_array_equal(value(divided.lengths), LENGTHS)
    assert rest["values:keys"].metadata.categorical_limit == 3
    with pytest.raises(UsageError, match="divisor is None"):
        model.SparseFeatureHash(ids(model), use_hashing=False, use_divide_mod=True)


def test_map_to_range(model):
    record = feed(model, schema.Scalar(np.int32), np.int32([10, 3, 10]))
    out = model.MapToRange(record, max_index=5)
    run(model)
    assert value(out.indices).tolist() == [1, 2, 1]
    schema.FeedRecord(record, [np.int32([3, 99])])
    run(model, "prediction", init=False)
    assert value(out.indices).tolist() == [2, 0]


def test_feature_sparse_to_dense(model):
    record = schema.Struct(
        ("f", schema.Map(np.int32, F)), ("l", schema.Map(np.int32, schema.List(np.int64)))
    )
    given = feed(
        model,
        record,
        *(np.int32([2, 1]), np.int32([7, 8, 7]), F([1, 2, 3])),
        *(np.int32([1, 1]), np.int32([4, 5]), np.int32([2, 1]), np.int64([10, 11, 12])),
    )
    specs = [
        ("f", schema.FeatureSpec("FLOAT", ["a", "b"], [8, 7])),
        ("l", schema.FeatureSpec("ID_LIST", ["c", "d"], [4, 5])),
    ]
    out = model.FeatureSparseToDense(given, specs, default_dense_value=float("nan"))
    run(model)
    np.testing.assert_array_equal(value(out.f), [[2, 1], [np.nan, 3]])
    assert value(out.l.ranges).tolist() == [[[0, 2], [0, 0]], [[0, 0], [2, 1]]]
    assert value(out.l.values).tolist() == [10, 11, 12]
    assert model.layers[0].get_accessed_features()["l"][0].ids == {4, 5}
    assert model.layers[0].get_metadata()[0][0]["cardinality"] == 1
    with pytest.raises(UsageError, match=r"can only be 0\.0 or NaN, got 2\.5"):
        model.FeatureSparseToDense(given, specs, default_dense_value=2.5)
    with pytest.raises(TypeError, match="Unsupported input type: FOO"):
        model.FeatureSparseToDense(given, [("f", schema.FeatureSpec("FOO", [], []))])


# -- samples ----------------------------------------------------------------------------------


def test_sampling_train(model):
    x = rows(4, 3)
    chosen, q = np.int32([5, 1]), F([0.5, 0.25])
    record = schema.Struct(
        ("input", dense(model, x)),
        ("indices", feed(model, schema.Scalar(np.int32), chosen)),
        ("sampling_prob", feed(model, schema.Scalar(F), q)),
    )
    out = model.SamplingTrain(record, "FC", 10)
    run(model)
    w, b = params(model)
    close(value(out), x @ w[chosen].T + b[chosen] - np.log(q))
    run(model, "prediction", init=False)
    close(value(out), x @ w.T + b)
    assert len(model.layers) == 1
    with pytest.raises(UsageError, match="Dropout cannot be trained on a sample"):
        model.SamplingTrain(record, "Dropout", 10)
    with pytest.raises(UsageError, match="several parts"):
        model.SamplingTrain(record, "FC", 10, max_fc_size=15)


def test_uniform_sampling(model):
    given = np.int32([3, 7])
    out = model.UniformSampling(feed(model, schema.Scalar(np.int32), given), 6, 10)
    run(model)
    samples = value(out.samples)
    assert samples[:2].tolist() == [3, 7] and len(set(samples.tolist())) == 6
    assert samples.max() < 10
    close(value(out.sampling_prob), [0.6] * 6)
    with pytest.raises(UsageError, match="below num_elements, 10"):
        model.UniformSampling(feed(model, schema.Scalar(np.int32), given), 20, 10)
