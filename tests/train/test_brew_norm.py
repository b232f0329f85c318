"""Layers of brew that normalize, drop out and convolve otherwise, as torch 1.10.2 makes them."""

import pytest
from test_brew import layer, model

from caffe2.python import brew, core

ALL = 'order="NCHW", use_cudnn=1, cudnn_exhaustive_search=0'
SCALE = ["y_s = ConstantFill(shape=[3], value=1)", "y_b = ConstantFill(shape=[3], value=0)"]
RUNNING = ["y_rm = ConstantFill(shape=[3], value=0)", "y_riv = ConstantFill(shape=[3], value=1)"]
WEIGHT = "y_w = XavierFill(shape=[{}])"
BIAS = "y_b = ConstantFill(shape=[4])"

LAYERS = [
    (("spatial_bn", "x", "y", 3), {"is_test": False},
     f"y, y_rm, y_riv, y_sm, y_siv = SpatialBN(x, y_s, y_b, y_rm, y_riv, {ALL}, is_test=0)",
     SCALE + RUNNING),
    (("spatial_bn", "x", "y", 3), {"is_test": True, "init_scale": 2.0},
     f"y = SpatialBN(x, y_s, y_b, y_rm, y_riv, {ALL}, is_test=1)",
     ["y_s = ConstantFill(shape=[3], value=2)", *SCALE[1:], *RUNNING]),
    (("instance_norm", "x", "y", 3), {},
     f"y, y_sm, y_siv = InstanceNorm(x, y_s, y_b, {ALL})", SCALE),
    (("instance_norm", "x", "y", 3), {"is_test": True},
     f"y = InstanceNorm(x, y_s, y_b, {ALL}, is_test=1)", SCALE),
    # The original loses the order here.
    (("spatial_gn", "x", "y", 3), {"group": 3},
     f"y, y_mean, y_std = GroupNorm(x, y_s, y_b, {ALL}, group=3)", SCALE),
    (("layer_norm", "x", "y", [3, 4]), {"initial_bias": 1.0},
     "y, y_mean, y_std = LayerNorm(x, y_scale, y_bias, axis=1, epsilon=0.0001, "
     "elementwise_affine=1)",
     ["y_scale = ConstantFill(shape=[3, 4], value=1)",
      "y_bias = ConstantFill(shape=[3, 4], value=1)"]),
    (("lrn", "x", "y"), {"size": 3},
     'y, _y_scale = LRN(x, order="NCHW", cudnn_exhaustive_search=0, size=3)', []),
    (("dropout", "x", "y"), {"ratio": 0.5, "is_test": 1},
     'y, _y_mask = Dropout(x, order="NCHW", cudnn_exhaustive_search=0, ratio=0.5, is_test=1) '
     "engine=CUDNN", []),
    (("conv_nd", "x", "y", 3, 4, [2, 3, 3]), {"strides": [1, 1, 2]},
     'y = Conv(x, y_w, y_b, kernels=[2, 3, 3], order="NCHW", strides=[1, 1, 2], '
     "exhaustive_search=0) engine=CUDNN",
     [WEIGHT.format("4, 3, 2, 3, 3"), BIAS]),
    (("group_conv", "x", "y", 4, 4, 3), {"group": 2},
     'y = Conv(x, y_w, y_b, kernel=3, order="NCHW", exhaustive_search=0, group=2) engine=CUDNN',
     [WEIGHT.format("4, 2, 3, 3"), BIAS]),
    (("conv_transpose", "x", "y", 3, 4, 2), {"stride": 2},
     'y = ConvTranspose(x, y_w, y_b, kernel=2, order="NCHW", stride=2, exhaustive_search=0) '
     "engine=CUDNN",
     [WEIGHT.format("3, 4, 2, 2"), BIAS]),
    (("conv_transpose", "x", "y", 3, 4, 2), {"order": "NHWC", "use_cudnn": False},
     'y = ConvTranspose(x, y_w, y_b, kernel=2, order="NHWC")',
     [WEIGHT.format("3, 2, 2, 4"), BIAS]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kwargs", "line", "fills"), LAYERS)
def test_layers_are_those_of_the_original(call, kwargs, line, fills):
    assert layer(*call, **kwargs) == ([line], fills)


def test_convolutions_side_by_side():
    made, fills = layer("group_conv_deprecated", "x", "y", 4, 4, 3, group=2, use_cudnn=False)
    assert made == [
        '_y_gconv_split_0, _y_gconv_split_1 = DepthSplit(x, dimensions=[2, 2], order="NCHW")',
        *(f"y_gconv_{i} = Conv(_y_gconv_split_{i}, y_gconv_{i}_w, y_gconv_{i}_b, kernel=3, "
          'order="NCHW")' for i in (0, 1)),
        'y, _y_concat_dims = Concat(y_gconv_0, y_gconv_1, order="NCHW")',
    ]  # fmt: skip
    assert fills[0] == "y_gconv_0_w = XavierFill(shape=[2, 2, 3, 3])"


def test_running_moments_are_not_learned():
    made = model()
    brew.spatial_bn(made, "x", "y", 3, is_test=False)
    assert made.params == ["y_s", "y_b"]
    assert (made.weights, made.biases) == (["y_s"], ["y_b"])
    assert made.GetComputedParams() == ["y_rm", "y_riv"]


def test_dropout_must_know_whether_it_is_a_test():
    with pytest.raises(AssertionError, match="'is_test' is required"):
        brew.dropout(model(), "x", "y")


IN_SCOPES = [
    ("spatial_bn", (3,), {"is_test": False}),
    ("instance_norm", (3,), {}),
    ("spatial_gn", (3,), {"group": 3}),
    ("moments_with_running_stats", (3,), {}),
    ("lrn", (), {"size": 3}),
    ("dropout", (), {"is_test": 0}),
    ("concat", (), {}),
    ("prelu", (), {}),
    ("elementwise_linear", (3,), {}),
    ("fc", (3, 4), {}),
    ("conv", (3, 4, 3), {}),
    ("conv_transpose", (3, 4, 3), {}),
    ("group_conv_deprecated", (4, 4, 3), {"group": 2}),
]


def written_in_scope(name, blob_out, args, kwargs):
    made = model()
    with core.NameScope("s"):
        inputs = ["a", "b"] if name == "concat" else "a"
        getattr(brew, name)(made, inputs, blob_out, *args, **kwargs)
    operators = [*made.param_init_net.Proto().op, *made.net.Proto().op]
    return {blob for op in operators for blob in op.output}


@pytest.mark.parametrize(("name", "args", "kwargs"), IN_SCOPES)
def test_names_are_scoped_once(name, args, kwargs):
    """All blobs of a layer lie in the scope; those of a BlobReference lie beside that."""
    plain = written_in_scope(name, "y", args, kwargs)
    assert all(blob.startswith(("s/y", "s/_y")) for blob in plain), plain
    reference = written_in_scope(name, core.BlobReference("q/y"), args, kwargs)
    assert all(blob.startswith(("q/y", "_q/y")) for blob in reference), reference
    assert len(reference) == len(plain)


def test_parameters_of_layer_norm_are_scoped_again():
    """As in saved nets: those of a BlobReference lie in the current scope, too."""
    assert written_in_scope("layer_norm", "y", (3,), {}) == {
        *("s/y", "s/y_mean", "s/y_std", "s/y_scale", "s/y_bias")
    }
    assert written_in_scope("layer_norm", core.BlobReference("q/y"), (3,), {}) == {
        *("q/y", "q/y_mean", "q/y_std", "s/q/y_scale", "s/q/y_bias")
    }


@pytest.mark.parametrize(("name", "args", "kwargs"), IN_SCOPES)
def test_a_layer_without_a_name_gets_one(name, args, kwargs):
    unnamed = written_in_scope(name, None, args, kwargs)
    assert all(blob.startswith("s/") and "_blob_0" in blob for blob in unnamed), unnamed
    assert len(unnamed) == len(written_in_scope(name, "y", args, kwargs))
