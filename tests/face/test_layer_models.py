"""Models of layers: names, parameters, records, and the nets made of them."""

import numpy as np
import pytest

from caffe2.graph.errors import UsageError
from caffe2.python import core, schema, workspace
from caffe2.python.layer_model_helper import LayerModelHelper
from caffe2.python.layer_model_instantiator import (
    generate_eval_net,
    generate_predict_net,
    generate_training_nets,
    generate_training_nets_forward_only,
    shrink_output_schema,
)
from caffe2.python.layers.layers import (
    IdList,
    IdListWithEvicted,
    LayerParameter,
    ModelLayer,
    almost_equal_schemas,
    get_avg_length,
    get_categorical_limit,
    get_key,
    is_request_only_scalar,
    register_layer,
    set_request_only,
)
from caffe2.python.layers.tags import Tags
from caffe2.python.modeling.net_modifier import NetModifier
from caffe2.python.modeling.parameter_sharing import ParameterSharing
from caffe2.python.optimizer import AdagradOptimizer, SgdOptimizer
from caffe2.python.regularizer import BoundedGradientProjection, L2Norm


@pytest.fixture
def model():
    workspace.ResetWorkspace()
    features = schema.Struct(("features", schema.Scalar((np.float32, (3,)))))
    extra = schema.Struct(("label", schema.Scalar(np.float32)))
    return LayerModelHelper("m", features, extra)


def ops(net):
    return [op.type for op in net.Proto().op]


def classifier(model, **kwargs):
    logit = model.FC(model.input_feature_schema.features, 1, **kwargs)
    model.output_schema = schema.Struct(("logit", logit))
    record = schema.Struct(("label", model.trainer_extra_schema.label), ("logit", logit))
    model.add_loss(model.BatchLRLoss(record))
    return logit


def test_a_model_learns(model):
    model.default_optimizer = SgdOptimizer(1.0)
    logit = classifier(model)
    init_net, train_net = generate_training_nets(model)
    rows = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    labels = (rows @ [1.0, -2.0, 0.5] > 0).astype(np.float32)
    schema.FeedRecord(train_net.input_record(), [rows, labels])
    workspace.RunNetOnce(init_net)
    workspace.CreateNet(train_net)
    workspace.RunNet(train_net, num_iter=50)
    predict_net = generate_predict_net(model)
    workspace.RunNetOnce(predict_net)
    found = schema.FetchRecord(predict_net.output_record()).logit()
    assert found.shape == (64, 1)
    assert np.mean((found[:, 0] > 0) == labels) > 0.95
    assert predict_net.input_record().field_names() == ["features"]
    assert [str(blob) for blob in predict_net.external_outputs] == [str(logit())]


# Recorded from the original: the operators, in order, and what goes in and out.
def test_nets_of_a_model(model):
    model.default_optimizer = AdagradOptimizer(0.1)
    classifier(model, weight_reg=L2Norm(0.1), bias_reg=BoundedGradientProjection(lb=0, ub=1))
    init_net, net = generate_training_nets(model)
    forward = [
        "FC",
        "Cast",
        "ExpandDims",
        "SigmoidCrossEntropyWithLogits",
        "AveragedLoss",
    ]
    assert ops(net)[:7] == [*forward, "LpNorm", "Scale"]
    assert ops(net)[-5:] == ["AtomicIter", "LearningRate", "Adagrad", "Adagrad", "EnsureClipped"]
    assert ops(init_net)[:4] == ["GivenTensorFill"] * 3 + ["GivenTensorIntFill"]
    assert ops(init_net)[4:6] == ["UniformFill", "UniformFill"]
    assert list(net.Proto().external_input[:4]) == ["features", "fc/w", "fc/b", "label"]
    assert list(net.Proto().external_output) == ["fc/output"]
    assert model.loss.field_names() == ["unnamed", "fc/w_l2_regularization"]
    # Making the nets once more adds nothing to the loss.
    assert ops(generate_training_nets(model)[1]) == ops(net)
    assert len(model.loss.fields) == 2
    assert ops(generate_eval_net(model)) == forward
    assert ops(generate_predict_net(model)) == ["FC"]
    assert ops(generate_training_nets_forward_only(model)[1]) == forward
    assert ops(model.net) == forward and ops(model.param_init_net) == ["UniformFill"] * 2


def test_parameters_without_optimizer(model):
    classifier(model)
    with pytest.raises(UsageError, match=r"parameter 'fc/w' has no optimizer: set default_opt"):
        generate_training_nets(model)


def test_parameters_that_are_not_learned(model):
    model.default_optimizer = SgdOptimizer(0.1)
    classifier(model, weight_optim=model.NoOptim)
    _, net = generate_training_nets(model)
    assert [list(op.output) for op in net.Proto().op if op.type == "WeightedSum"] == [["fc/b"]]


def test_tags_choose_layers(model):
    features = model.input_feature_schema.features
    with Tags(Tags.EXCLUDE_FROM_PREDICTION):
        first = model.FC(features, 1, name="a")
    with Tags(Tags.TRAIN_ONLY):
        model.FC(features, 1, name="b")
    second = model.FC(features, 1, name="c", tags=["mine"])
    model.output_schema = schema.Struct(("a", first), ("n", schema.Struct(("c", second))))

    def outputs(net):
        return [op.output[0] for op in net.Proto().op]

    assert outputs(generate_predict_net(model)) == ["c/output"]
    assert outputs(generate_eval_net(model)) == ["a/output", "c/output"]
    _, train_net = generate_training_nets_forward_only(model)
    assert outputs(train_net) == ["a/output", "b/output", "c/output"]
    assert outputs(generate_predict_net(model, include_tags=["mine"])) == ["c/output"]
    assert outputs(generate_predict_net(model, include_tags=["other"])) == []
    assert generate_predict_net(model).output_record().field_names() == ["n:c"]
    shrunk = shrink_output_schema(generate_eval_net(model), model.output_schema)
    assert shrunk.field_names() == ["a", "n:c"]

    @Tags("deco")
    def build():
        model.FC(features, 1)

    build()
    assert model.layers[-1].tags == {"deco"}


def test_names(model):
    features = model.input_feature_schema.features
    with core.NameScope("s"):
        assert str(model.FC(features, 1)()) == "s/fc/output"
        assert str(model.FC(features, 1)()) == "s/fc_auto_0/output"
    assert str(model.Relu(features, 1)()) == "Relu/field_0"
    assert str(model.Relu(features, "y")()) == "Relu_auto_0/y"
    assert [str(p) for p in model.params] == ["s/fc/w", "s/fc/b", "s/fc_auto_0/w", "s/fc_auto_0/b"]
    with pytest.raises(AttributeError, match="non-registered layer: Nope"):
        _ = model.Nope


def test_shared_parameters(model):
    features = model.input_feature_schema.features
    model.default_optimizer = SgdOptimizer(0.1)
    with ParameterSharing({"b": "a"}):
        model.FC(features, 2, name="a")
        model.FC(features, 2, name="b")
        assert model.layers[1].w == "a/w" and len(model.params) == 2
        with core.NameScope("a"), pytest.raises(UsageError, match=r"inconsistent shapes.*\[2, 3\]"):
            model.create_param("w", [3, 3], ("XavierFill", {}))
        with core.NameScope("a"), pytest.raises(UsageError, match="inconsistent optimizers"):
            model.create_param("w", [2, 3], ("XavierFill", {}), optimizer=SgdOptimizer(0.2))
        with core.NameScope("a"):
            again = model.create_param("w", [2, 3], ("XavierFill", {}), SgdOptimizer(0.1))
        assert again.parameter == "a/w"
    assert ops(model.param_init_net) == ["UniformFill", "UniformFill"]


def test_bad_initializers(model):
    features = model.input_feature_schema.features
    with pytest.raises(UsageError, match="no operator: 'Nope'"):
        model.FC(features, 1, weight_init=("Nope", {}))
    with pytest.raises(UsageError, match=r"the initializer of 'fc_auto_0/w' is 'Xavier'"):
        model.FC(features, 1, weight_init="Xavier")
    with pytest.raises(TypeError, match="param_name"):
        model.create_param(3, [1], ("XavierFill", {}))
    parameter = LayerParameter(core.BlobReference("p"))
    parameter.initializer = core.CreateOperator("ConstantFill", [], "p", shape=[2, 3])
    assert parameter.shape == [2, 3]
    with pytest.raises(UsageError, match=r"expect: \[2, 3\], but got \[1\]"):
        parameter.shape = [1]
    with pytest.raises(UsageError, match="expects an operator"):
        parameter.initializer = 3


def test_constants(model):
    model.add_global_constant("floats", [1.0, 2.0])
    model.add_global_constant("ints", 3, dtype=np.int64)
    model.add_global_constant("bools", [True, False])
    model.add_global_constant("strings", ["x", "y"])
    model.add_global_constant(
        "own",
        initializer=lambda b: core.CreateOperator("ConstantFill", [], b, shape=[2], value=4.0),
    )
    assert model.maybe_add_global_constant("floats", [1.0, 2.0]) == "floats"
    with pytest.raises(UsageError, match="conflict initializers for global constant floats"):
        model.maybe_add_global_constant("floats", [1.0, 3.0])
    with pytest.raises(UsageError, match="ONE already added"):
        model.add_global_constant("ONE", 2.0)
    with pytest.raises(UsageError, match="needs an array or an initializer"):
        model.add_global_constant("nothing")
    workspace.RunNetOnce(model.create_init_net("init"))
    for name, expected in (
        ("ONE", np.float32(1)),
        ("ZERO_RANGE", np.array([0, 0], np.int32)),
        ("floats", np.array([1, 2], np.float32)),
        ("ints", np.int64(3)),
        ("bools", np.array([True, False])),
        ("own", np.array([4, 4], np.float32)),
    ):
        found = workspace.FetchBlob(name)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
    assert workspace.FetchBlob("strings").tolist() == [b"x", b"y"]
    assert np.isnan(workspace.FetchBlob("NAN"))


def test_metrics(model):
    model.FC(model.input_feature_schema.features, 1, output_to_metrics=True, params_to_metrics=True)
    model.output_schema = schema.Struct()
    assert model.metrics_schema.field_names() == ["fc/output", "fc/w", "fc/b"]
    init_net, net = generate_training_nets_forward_only(model)
    assert ops(net) == ["FC", "Copy", "Copy"]
    assert net.output_record().field_names() == ["fc/output", "fc/w", "fc/b"]
    schema.FeedRecord(net.input_record(), [np.ones((2, 3), np.float32), np.ones(2, np.float32)])
    workspace.RunNetOnce(init_net)
    workspace.RunNetOnce(net)
    metrics = schema.FetchRecord(net.output_record())
    assert metrics["fc/w"]().shape == (1, 3)
    model.filter_metrics_schema({"fc/w"})
    assert model.metrics_schema.field_names() == ["fc/w"]
    with pytest.raises(UsageError, match="metric field twice: fc/w"):
        model.add_metric_field("fc/w", schema.Scalar())


def test_what_is_set_once(model):
    for name in ("output_schema", "preproc_output_schema", "loss"):
        with pytest.raises(UsageError, match=f"has no {name}"):
            getattr(model, name)
        setattr(model, name, schema.Struct())
        with pytest.raises(UsageError, match=f"the {name} of model 'm' is already set"):
            setattr(model, name, schema.Struct())
    model.clear_output_schema()
    model.add_output_schema("a", schema.Scalar(np.float32))
    with pytest.raises(UsageError, match="already has a field 'a'"):
        model.add_output_schema("a", schema.Scalar(np.float32))
    with pytest.raises(UsageError, match="prediction is empty"):
        _ = model.prediction
    with pytest.raises(UsageError, match="must be a dictionary"):
        model.breakdown_map = 3


def test_modifiers(model):
    seen = []

    class Counter(NetModifier):
        def modify_net(
            self,
            net,
            init_net=None,
            grad_map=None,
            blob_to_device=None,
            modify_output_record=False,
        ):
            seen.append((len(net.Proto().op), sorted(map(str, grad_map))))

    model.default_optimizer = SgdOptimizer(0.1)
    classifier(model)
    modifier = Counter()
    model.add_post_grad_net_modifiers(modifier)
    model.add_final_net_modifiers(modifier)
    with pytest.raises(UsageError, match="is already in"):
        model.add_final_net_modifiers(modifier)
    with pytest.raises(UsageError, match="3 has to be a NetModifier"):
        model.add_final_net_modifiers(3)
    _, net = generate_training_nets(model)
    (early, params), (late, every) = seen
    assert params == ["fc/b", "fc/w"] and set(every) > set(params)
    assert late == early + 4 == len(net.Proto().op)


def test_seeds(model):
    net = core.Net("n")
    model.apply_seed(net)
    model.store_seed(5)
    for name in "ab":
        net.UniformFill([], name, shape=[1])
    model.apply_seed(net)
    assert [op.device_option.random_seed for op in net.Proto().op] == [5, 6]
    model.store_seed(7, sequence_seed=False)
    model.apply_seed(net)
    assert [op.device_option.random_seed for op in net.Proto().op] == [7, 7]


def test_layers_of_ones_own(model):
    class Doubled(ModelLayer):
        def __init__(self, model, input_record, name="doubled", **kwargs):
            super().__init__(model, name, input_record, **kwargs)
            self.output_schema = self.output_scalar(input_record.field_type())

        def add_ops(self, net):
            net.Scale(self.input_record(), self.output_schema(), scale=2.0)

        def add_eval_ops(self, net):
            net.Scale(self.input_record(), self.output_schema(), scale=3.0)

        def add_train_ops(self, net):
            self.add_ops(net)

    register_layer("Doubled", Doubled)
    with pytest.raises(UsageError, match="Doubled already exists"):
        register_layer("Doubled", Doubled)
    features = model.input_feature_schema.features
    model.output_schema = schema.Struct(("y", model.Doubled(features)))
    workspace.FeedBlob(str(features()), np.ones((1, 3), np.float32))
    for net, expected in ((generate_predict_net(model), 2), (generate_eval_net(model), 3)):
        workspace.RunNetOnce(net)
        assert workspace.FetchBlob("doubled/output").tolist() == [[expected] * 3]
    net = core.Net("n")
    with pytest.raises(UsageError, match="don't need init_net"):
        model.layers[0].add_operators(net)
    with pytest.raises(UsageError, match="unknown context 'soon' for layer 'doubled'"):
        model.layers[0].add_operators(net, context="soon")


def test_records_of_sparse_features(model):
    limit = schema.Metadata(categorical_limit=5)
    ids = schema.NewRecord(model.net, schema.List(schema.Scalar(np.int64, metadata=limit)))
    assert str(get_key(ids)()) == "values" and get_categorical_limit(ids) == 5
    assert almost_equal_schemas(IdListWithEvicted, IdList)
    assert not almost_equal_schemas(schema.List(np.int32), IdList)
    with pytest.raises(NotImplementedError, match="IdList or IdScoreList is needed"):
        get_key(schema.Scalar(np.int64))
    with pytest.raises(UsageError, match="doesn't have metadata"):
        get_key(schema.NewRecord(model.net, IdList))
    with pytest.raises(UsageError, match="have no metadata"):
        get_avg_length(ids)
    ids.lengths.set_metadata(schema.Metadata(expected_value=3))
    assert get_avg_length(ids) == 3
    column = schema.Scalar(np.float32)
    assert not is_request_only_scalar(column)
    set_request_only(column)
    assert is_request_only_scalar(column)
