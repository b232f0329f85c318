"""The layers of brew: what the original makes of them, argument scopes, own layers."""

from __future__ import annotations

import threading

import pytest

from caffe2.graph.printer import operator_line
from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, model_helper
from caffe2.python.modeling.initializers import ExternalInitializer, Initializer


def model(**arg_scope):
    return model_helper.ModelHelper(name="model", arg_scope=arg_scope)


def lines(net):
    return [operator_line(op) for op in net.Proto().op]


def layer(name, *args, scope=None, **kwargs):
    """The operators of one layer, and those that fill its parameters."""
    made = model(**(scope or {}))
    getattr(brew, name)(made, *args, **kwargs)
    return lines(made.net), lines(made.param_init_net)


# As torch 1.10.2 makes them.
LAYERS = [
    (
        ("conv", "x", "y", 1, 2, 3), {"stride": 2, "pad": 1},
        'y = Conv(x, y_w, y_b, kernel=3, order="NCHW", stride=2, pad=1, exhaustive_search=0) '
        "engine=CUDNN",
        ["y_w = XavierFill(shape=[2, 1, 3, 3])", "y_b = ConstantFill(shape=[2])"],
    ),
    (
        ("conv", "x", "y", 4, 8, [3, 5]), {"order": "NHWC", "group": 2, "ws_nbytes_limit": 9},
        'y = Conv(x, y_w, y_b, kernel_h=3, kernel_w=5, order="NHWC", exhaustive_search=0, '
        "ws_nbytes_limit=9, group=2) engine=CUDNN",
        ["y_w = XavierFill(shape=[8, 3, 5, 2])", "y_b = ConstantFill(shape=[8])"],
    ),
    (
        ("conv", "x", "y", 3, 8, 3), {"no_bias": True, "use_cudnn": False},
        'y = Conv(x, y_w, kernel=3, order="NCHW")',
        ["y_w = XavierFill(shape=[8, 3, 3, 3])"],
    ),
    (
        ("conv", "x", "y", 3, 8, 1),
        {"cudnn_exhaustive_search": True, "weight_init": ("GaussianFill", {"std": 0.1}),
         "bias_init": ("ConstantFill", {"value": 0.5})},
        'y = Conv(x, y_w, y_b, kernel=1, order="NCHW", exhaustive_search=1) engine=CUDNN',
        ["y_w = GaussianFill(shape=[8, 3, 1, 1], std=0.1)",
         "y_b = ConstantFill(shape=[8], value=0.5)"],
    ),
    (
        ("fc", "x", "y", 3, 4), {"axis": 2, "weight_init": ("UniformFill", {"min": 0.0})},
        'y = FC(x, y_w, y_b, order="NCHW", use_cudnn=1, cudnn_exhaustive_search=0, axis=2)',
        ["y_w = UniformFill(shape=[4, 3], min=0)", "y_b = ConstantFill(shape=[4])"],
    ),
    (
        ("fc", "x", "y", 3, 4),
        {"WeightInitializer": ExternalInitializer, "BiasInitializer": Initializer},
        'y = FC(x, y_w, y_b, order="NCHW", use_cudnn=1, cudnn_exhaustive_search=0)',
        ["y_b = ConstantFill(shape=[4])"],
    ),
    (
        ("max_pool", "x", "y"), {"kernel": 2, "order": "NHWC"},
        'y = MaxPool(x, order="NHWC", cudnn_exhaustive_search=0, kernel=2) engine=CUDNN', [],
    ),
    (
        ("average_pool", "x", "y"), {"kernel": 2, "use_cudnn": False},
        'y = AveragePool(x, order="NCHW", cudnn_exhaustive_search=0, kernel=2)', [],
    ),
    (
        ("relu", "x", "y"), {},
        'y = Relu(x, order="NCHW", cudnn_exhaustive_search=0) engine=CUDNN', [],
    ),
    (
        ("tanh", "x", "y"), {},
        'y = Tanh(x, order="NCHW", cudnn_exhaustive_search=0) engine=CUDNN', [],
    ),
    (
        ("prelu", "x", "y", 3), {},
        "y = PRelu(x, y_slope)", ["y_slope = ConstantFill(shape=[3], value=0.25)"],
    ),
    (
        ("prelu", "x", "y"), {"slope_init": ("GaussianFill", {"std": 0.1}), "order": "NHWC"},
        'y = PRelu(x, y_slope, order="NHWC")', ["y_slope = GaussianFill(shape=[1], std=0.1)"],
    ),
    (
        ("elementwise_linear", "x", "y", 5), {},
        'y = ElementwiseLinear(x, y_w, y_b, order="NCHW", use_cudnn=1, cudnn_exhaustive_search=0)',
        ["y_w = ConstantFill(shape=[5], value=1)", "y_b = ConstantFill(shape=[5], value=0)"],
    ),
    (
        ("softmax", "x", "y"), {"axis": 1},
        'y = Softmax(x, order="NCHW", cudnn_exhaustive_search=0, axis=1) engine=CUDNN', [],
    ),
    (
        ("sum", ["x", "y"], "z"), {},
        'z = Sum(x, y, order="NCHW", use_cudnn=1, cudnn_exhaustive_search=0)', [],
    ),
    *(
        ((name, ["x", "y"], "z"), kwargs,
         f"z, _z_concat_dims = Concat(x, y, {order}use_cudnn=1, cudnn_exhaustive_search=0{axis})",
         [])
        # depth_concat is broken in the original; it was written to be concat.
        for name in ("concat", "depth_concat")
        for kwargs, order, axis in (({}, 'order="NCHW", ', ""), ({"axis": 2}, "", ", axis=2"))
    ),
    (
        ("transpose", "x", "y"), {"axes": [1, 0]},
        'y = Transpose(x, order="NCHW", cudnn_exhaustive_search=0, axes=[1, 0]) engine=CUDNN', [],
    ),
    (("accuracy", ["x", "l"], "acc"), {"top_k": 5}, "acc = Accuracy(x, l, top_k=5)", []),
    (
        ("iter", "it"), {},
        'it = Iter(it, order="NCHW", use_cudnn=1, cudnn_exhaustive_search=0)',
        ['it = ConstantFill(shape=[1], value=0, dtype=10, order="NCHW", use_cudnn=1, '
         "cudnn_exhaustive_search=0) device={device_type: 0 device_id: 0}"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kwargs", "line", "fills"), LAYERS)
def test_row_B6_layers_are_those_of_the_original(call, kwargs, line, fills):
    assert layer(*call, **kwargs) == ([line], fills)


def test_row_B6_flatten():
    assert layer("flatten", "x", "y", axis=2) == (["y = Flatten(x, axis=2)"], [])


def test_layers_give_their_output():
    made = model()
    with core.NameScope("s"):
        outputs = [
            brew.conv(made, "x", "c", 1, 1, 1),
            brew.max_pool(made, "c", "p", kernel=2),
            brew.fc(made, "p", "f", 1, 1),
            brew.accuracy(made, ["f", "l"], "acc"),
            brew.iter(made, "it"),
            brew.fc(made, core.BlobReference("q"), core.BlobReference("g"), 1, 1),
        ]
    assert outputs == ["s/c", "s/p", "s/f", "s/acc", "s/it", "g"]
    assert made.params[-2:] == ["g_w", "g_b"]


def test_softmax_names_its_output():
    made = model()
    assert brew.softmax(made, "x") == f"{made.net}/Softmax"


def test_counts_run_on_the_cpu():
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, 1)):
        operators, fills = layer("iter", "it")
    assert "device={device_type: 1 device_id: 1}" in operators[0]
    assert "device={device_type: 0 device_id: 0}" in fills[0]


@pytest.mark.parametrize(
    ("use_cudnn", "engine"), [(True, "MKLDNN"), (True, ""), (False, "CUDNN"), (None, "CUDNN")]
)
def test_engines_that_contradict_use_cudnn(use_cudnn, engine):
    with pytest.raises(ValueError, match=f"engine='CUDNN', got {engine!r}"):
        layer("conv", "x", "y", 1, 2, 3, use_cudnn=use_cudnn, engine=engine)


def test_an_engine_can_be_named():
    assert layer("conv", "x", "y", 1, 2, 3, use_cudnn=False, engine="DIRECT")[0][0].endswith(
        'order="NCHW") engine=DIRECT'
    )
    assert layer("relu", "x", "y", engine="SIMPLE")[0][0].endswith(" engine=SIMPLE")


def test_groups_divide_the_channels():
    with pytest.raises(ValueError, match="dim_in should be divisible by group, got 3 and 5"):
        layer("conv", "x", "y", 3, 5, 3, group=5)


def test_inputs_can_be_transformed():
    def transform(made, blob_out, inputs):
        inputs[0] = made.net.Relu(inputs[0], f"{blob_out}_in")

    operators, _ = layer("conv", "x", "y", 1, 2, 3, transform_inputs=transform)
    assert operators[0] == "y_in = Relu(x)"
    assert operators[1].startswith("y = Conv(y_in, y_w, y_b,")


def test_weight_decay_is_added_to_the_gradients_of_weights():
    made = model()
    brew.fc(made, "x", "f", 3, 4)
    made.AddGradientOperators(["f"])
    before = len(made.net.Proto().op)
    brew.add_weight_decay(made, 0.0)
    brew.add_weight_decay(made, 0.5)
    assert lines(made.net)[before:] == ["f_w_grad = WeightedSum(f_w_grad, ONE, f_w, wd)"]
    assert lines(made.param_init_net)[2:] == [
        "wd = ConstantFill(shape=[1], value=0.5)",
        "ONE = ConstantFill(shape=[1], value=1)",
    ]


# -- arguments by scope, own layers --------------------------------------------------------


@pytest.fixture
def probe():
    """A layer that gives back its arguments."""

    def probe_layer(model, blob_in, blob_out, **kwargs):
        return kwargs

    if not brew.has_helper("probe_layer"):
        brew.Register(probe_layer)
    return brew.probe_layer


DEFAULTS = {"order": "NCHW", "use_cudnn": True, "cudnn_exhaustive_search": False}


def test_arguments_come_from_model_scope_and_call(probe):
    made = model(order="NHWC", is_test=1)
    base = {**DEFAULTS, "order": "NHWC", "is_test": 1}
    assert probe(made, "x", "y") == base
    with brew.arg_scope([brew.conv, probe], foo=1, is_test=0):
        assert probe(made, "x", "y", bar=2) == {**base, "is_test": 0, "foo": 1, "bar": 2}
        with brew.arg_scope(probe, foo=3):
            assert probe(made, "x", "y")["foo"] == 3
            assert probe(made, "x", "y", foo=4)["foo"] == 4
        with brew.arg_scope(brew.conv, foo=5):
            assert probe(made, "x", "y")["foo"] == 1
    assert probe(model=made, blob_in="x", blob_out="y") == base


def test_scopes_of_arguments_end_and_are_per_thread(probe):
    made, seen = model(), []
    with pytest.raises(ZeroDivisionError), brew.arg_scope(probe, foo=1):
        thread = threading.Thread(target=lambda: seen.append(probe(made, "x", "y")))
        thread.start()
        thread.join()
        _ = 1 / 0
    assert probe(made, "x", "y") == DEFAULTS
    assert seen == [DEFAULTS]


@pytest.mark.parametrize("wrong", ["conv", None, [], [None]])
def test_scopes_are_for_layers(wrong):
    message = "arg_scope is only supporting single or a list of helper functions"
    with pytest.raises(AssertionError, match=message), brew.arg_scope(wrong, foo=1):
        pass


def test_layers_are_registered_once(probe):
    def conv(model):
        """Another one."""

    with pytest.raises(AttributeError, match="Helper conv already exists"):
        brew.Register(conv)
    assert brew.has_helper("conv") and brew.has_helper(brew.conv) and not brew.has_helper("zz")
    with pytest.raises(AttributeError, match="Helper function nope not registered"):
        _ = brew.nope
    assert "conv" in dir(brew)
    assert brew.conv.__doc__


def test_the_first_argument_is_a_model():
    for call in (lambda: brew.relu("x", "y"), lambda: brew.relu(blob_in="x", blob_out="y")):
        with pytest.raises(RuntimeError, match="first input of helper function should be model"):
            call()
