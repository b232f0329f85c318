"""What each optimizer adds to a model: the operators, blobs and arguments of the original."""

import numpy as np
import pytest

from caffe2.graph.printer import operator_line
from caffe2.python import brew, core, model_helper, optimizer, workspace
from caffe2.python.modeling import initializers

F4 = np.float32


@pytest.fixture(autouse=True)
def numbers_from_zero():
    optimizer.reset_optimizer_instance_count()


def dense_model(**kwargs):
    model = model_helper.ModelHelper(name="model")
    brew.fc(model, "x", "f", 3, 4, **kwargs)
    model.SoftmaxWithLoss(["f", "label"], ["softmax", "loss"])
    model.AddGradientOperators(["loss"])
    return model


def sparse_model():
    """A parameter `w` of 10 rows with a sparse gradient."""
    model = model_helper.ModelHelper(name="model")
    w = model.param_init_net.UniformFill([], "w", shape=[10, 3])
    model.AddParameter(w)
    model.gradient_ops_added = True
    gradient = core.GradientSlice(core.BlobReference("i"), core.BlobReference("g"))
    model.param_to_grad[w] = model.get_param_info(w).grad = gradient
    return model


def built(model, build):
    """What `build` adds to the net and the init net, without counters and constants; and what it
    gives."""
    starts = len(model.net.Proto().op), len(model.param_init_net.Proto().op)
    made = build(model)
    lines = [
        [operator_line(op) for op in net.Proto().op[start:]]
        for net, start in zip((model.net, model.param_init_net), starts, strict=True)
    ]
    names = ("optimizer_iteration =", "iteration_mutex =", "ONE_0_0 =")
    return *([one for one in some if not one.startswith(names)] for some in lines), made


def rate(kind, base_lr="-0.1"):
    return (
        f"{kind}Optimizer_0_lr_cpu = "
        f'LearningRate(optimizer_iteration, base_lr={base_lr}, policy="fixed")'
    )


# build, its arguments -> the operators that update f_w (b: f_b is the same), and its states
ADAM = "beta1=0.9, beta2=0.999, epsilon=1e-08"
DENSE = {
    "adagrad": (
        optimizer.build_adagrad, {"epsilon": 0.01, "decay": 0.9},
        [rate("Adagrad"), "f_w, f_w_squared_sum = Adagrad(f_w, f_w_squared_sum, f_w_grad, "
         "AdagradOptimizer_0_lr_cpu, epsilon=0.01, decay=0.9)"],
        ["f_w_squared_sum = ConstantFill(f_w, value=0)"]),
    "adagrad, effective rate": (
        optimizer.build_adagrad, {"output_effective_lr": True},
        [rate("Adagrad"), "f_w, f_w_squared_sum, f_w_effective_lr = Adagrad(f_w, f_w_squared_sum, "
         "f_w_grad, AdagradOptimizer_0_lr_cpu, epsilon=0.0001, decay=1)"],
        ["f_w_squared_sum = ConstantFill(f_w, value=0)"]),
    "adagrad, update": (
        optimizer.build_adagrad, {"output_effective_lr_and_update": True},
        [rate("Adagrad"), "f_w, f_w_squared_sum, f_w_effective_lr, f_w_update = Adagrad(f_w, "
         "f_w_squared_sum, f_w_grad, AdagradOptimizer_0_lr_cpu, epsilon=0.0001, decay=1)"],
        ["f_w_squared_sum = ConstantFill(f_w, value=0)"]),
    "adam": (
        optimizer.build_adam, {},
        [rate("Adam"), "f_w, f_w_first_moment, f_w_second_moment = Adam(f_w, f_w_first_moment, "
         f"f_w_second_moment, f_w_grad, AdamOptimizer_0_lr_cpu, optimizer_iteration, {ADAM})"],
        ["f_w_first_moment = ConstantFill(f_w, value=0)",
         "f_w_second_moment = ConstantFill(f_w, value=0)"]),
    "adam, learned rate": (
        optimizer.build_adam, {"use_lr_adaption": True},
        [rate("Adam"),
         "f_w, f_w_first_moment, f_w_second_moment, f_w_effective_grad = Adam(f_w, "
         "f_w_first_moment, f_w_second_moment, f_w_grad, AdamOptimizer_0_lr_cpu, "
         f"optimizer_iteration, {ADAM})",
         "AdamOptimizer_0_lr_cpu = LearningRateAdaption(AdamOptimizer_0_lr_cpu, f_w_grad, "
         "f_w_effective_grad, lr_alpha=0.01, normalized_lr_adaption=1)"],
        ["f_w_first_moment = ConstantFill(f_w, value=0)",
         "f_w_second_moment = ConstantFill(f_w, value=0)"]),
    "rms_prop": (
        optimizer.build_rms_prop, {"momentum": 0.5},
        [rate("RmsProp", "0.1"),
         "f_w_grad_o, f_w_mean_squares, f_w_momentum = RmsProp(f_w_grad, f_w_mean_squares, "
         "f_w_momentum, ONE_0_0, decay=0.9, momentum=0.5, epsilon=1e-05)",
         "f_w_grad_o, f_w_momentum, f_w = MomentumSGDUpdate(f_w_grad_o, f_w_momentum, "
         "RmsPropOptimizer_0_lr_cpu, f_w)"],
        ["f_w_grad_o = ConstantFill(f_w, value=0)",
         "f_w_mean_squares = ConstantFill(f_w, value=0)",
         "f_w_momentum = ConstantFill(f_w, value=0)"]),
    "adadelta": (
        optimizer.build_adadelta, {},
        [rate("Adadelta"),
         "f_w, f_w_squared_moment, f_w_squared_moment_update = Adadelta(f_w, f_w_squared_moment, "
         "f_w_squared_moment_update, f_w_grad, AdadeltaOptimizer_0_lr_cpu, epsilon=0.0001, "
         "decay=0.95)"],
        ["f_w_squared_moment = ConstantFill(f_w, value=0)",
         "f_w_squared_moment_update = ConstantFill(f_w, value=0)"]),
    "wngrad": (
        optimizer.build_wngrad, {},
        [rate("Wngrad"), "f_w, f_w_moment = Wngrad(f_w, f_w_moment, f_w_grad, "
         "WngradOptimizer_0_lr_cpu, epsilon=1e-09)"],
        ["f_w_moment = ConstantFill(value=100, shape=[1])"]),
    "storm": (
        optimizer.build_storm, {},
        [rate("Storm"), "f_w, f_w_moment, f_w_grad_sq_sum = Storm(f_w, f_w_moment, "
         "f_w_grad_sq_sum, f_w_grad, StormOptimizer_0_lr_cpu, momentum=10, beta=0.1)"],
        ["f_w_moment = ConstantFill(f_w, value=0)",
         "f_w_grad_sq_sum = ConstantFill(value=0.01, shape=[1])"]),
    "decay_adagrad": (
        optimizer.build_decay_adagrad, {"weight_decay": 0.1},
        [rate("DecayAdagrad"),
         "f_w, f_w_first_mo1ment, f_w_second_moment = DecayAdagrad(f_w, f_w_first_mo1ment, "
         "f_w_second_moment, f_w_grad, DecayAdagradOptimizer_0_lr_cpu, optimizer_iteration, "
         "beta1=0, beta2=0.999, epsilon=0.1, weight_decay=0.1, bias_correction_first=1)"],
        ["f_w_first_mo1ment = ConstantFill(f_w, value=0)",
         "f_w_second_moment = ConstantFill(f_w, value=0)"]),
    "sgd with lars": (
        optimizer.build_sgd, {"lars": 0.5},
        ["SgdOptimizer_0_f_w_lars_cpu = Lars(f_w, f_w_grad, weight_decay, trust, lr_max, "
         "offset=0.5, lr_min=0)", rate("Sgd"),
         "SgdOptimizer_0_local_scaled_lr_cpu = Mul(SgdOptimizer_0_lr_cpu, "
         "SgdOptimizer_0_f_w_lars_cpu, broadcast=1)",
         "f_w = WeightedSum(f_w, ONE_0_0, f_w_grad, SgdOptimizer_0_local_scaled_lr_cpu)"],
        ["weight_decay = ConstantFill(shape=[1], value=0)",
         "trust = ConstantFill(shape=[1], value=1)",
         "lr_max = ConstantFill(shape=[1], value=3.402823e+38)"]),
}  # fmt: skip


@pytest.mark.parametrize("name", DENSE)
def test_dense(name):
    build, arguments, net, init = DENSE[name]
    found_net, found_init, _ = built(dense_model(), lambda m: build(m, 0.1, **arguments))
    assert found_net[: len(net)] == net
    assert found_init[: len(init)] == init
    # The bias has the same, but for the learning rate, which is there already.
    bias = [line.replace("f_w", "f_b") for line in net if "= LearningRate(" not in line]
    assert found_net[len(net) :] == bias
    assert found_init[len(init) :] == [line.replace("f_w", "f_b") for line in init]


SPARSE = {
    "sgd with momentum": (
        optimizer.build_sgd, {"momentum": 0.9, "nesterov": 0},
        "g, w_momentum, w = SparseMomentumSGDUpdate(g, w_momentum, SgdOptimizer_0_lr_cpu, w, i, "
        "momentum=0.9, nesterov=0)",
        ["w_momentum = ConstantFill(w, value=0)"]),
    "adagrad": (
        optimizer.build_adagrad, {"weight_decay": 0.1},
        "w, w_squared_sum = SparseAdagrad(w, w_squared_sum, i, g, AdagradOptimizer_0_lr_cpu, "
        "epsilon=0.0001, weight_decay=0.1)",
        ["w_squared_sum = ConstantFill(w, value=0)"]),
    "adagrad by row": (
        optimizer.build_adagrad, {"rowWise": True},
        "w, w_avg_squared_sum = RowWiseSparseAdagrad(w, w_avg_squared_sum, i, g, "
        "AdagradOptimizer_0_lr_cpu, epsilon=0.0001)",
        ["w_avg_squared_sum = ConstantFill(value=0, shape=[10])"]),
    "adam": (
        optimizer.build_adam, {},
        "w, w_first_moment, w_second_moment = SparseAdam(w, w_first_moment, w_second_moment, i, g, "
        f"AdamOptimizer_0_lr_cpu, optimizer_iteration, enableRAdam=0, {ADAM})",
        ["w_first_moment = ConstantFill(w, value=0)",
         "w_second_moment = ConstantFill(w, value=0)"]),
    "adam by row": (
        optimizer.build_adam, {"rowWise": True},
        "w, w_first_moment, w_avg_second_moment = RowWiseSparseAdam(w, w_first_moment, "
        f"w_avg_second_moment, i, g, AdamOptimizer_0_lr_cpu, optimizer_iteration, {ADAM})",
        ["w_first_moment = ConstantFill(w, value=0)",
         "w_avg_second_moment = ConstantFill(value=0, shape=[10])"]),
    "adam that catches up": (
        optimizer.build_adam, {"use_smart_decay": True},
        "w, w_first_moment, w_second_moment, w_last_seen = SmartDecaySparseAdam(w, w_first_moment, "
        "w_second_moment, w_last_seen, i, g, AdamOptimizer_0_lr_cpu, optimizer_iteration, "
        f"{ADAM})",
        ["w_first_moment = ConstantFill(w, value=0)",
         "w_second_moment = ConstantFill(w, value=0)",
         "w_last_seen = ConstantFill(value=0, dtype=10, shape=[10])"]),
    "adadelta": (
        optimizer.build_adadelta, {},
        "w, w_squared_moment, w_squared_moment_update = SparseAdadelta(w, w_squared_moment, "
        "w_squared_moment_update, i, g, AdadeltaOptimizer_0_lr_cpu, epsilon=0.0001, decay=0.95)",
        ["w_squared_moment = ConstantFill(w, value=0)",
         "w_squared_moment_update = ConstantFill(w, value=0)"]),
    "wngrad": (
        optimizer.build_wngrad, {},
        "w, w_moment = SparseWngrad(w, w_moment, i, g, WngradOptimizer_0_lr_cpu, epsilon=1e-09)",
        ["w_moment = ConstantFill(value=100, shape=[1])"]),
    "storm": (
        optimizer.build_storm, {},
        "w, w_moment, w_grad_sq_sum = SparseStorm(w, w_moment, w_grad_sq_sum, g, i, "
        "StormOptimizer_0_lr_cpu, momentum=10, beta=0.1)",
        ["w_moment = ConstantFill(w, value=0)",
         "w_grad_sq_sum = ConstantFill(value=0.01, shape=[1])"]),
    "decay_adagrad": (
        optimizer.build_decay_adagrad, {},
        "w, w_squared_sum = SparseAdagrad(w, w_squared_sum, i, g, DecayAdagradOptimizer_0_lr_cpu, "
        "epsilon=0.1)",
        ["w_squared_sum = ConstantFill(w, value=0)"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SPARSE)
def test_sparse(name):
    build, arguments, update, init = SPARSE[name]
    net, found, _ = built(sparse_model(), lambda m: build(m, 0.1, **arguments))
    assert "= LearningRate(" in net[0] and net[1:] == [update]
    assert found == init


def test_weight_decay_by_frequency():
    net, init, made = built(
        sparse_model(),
        lambda m: optimizer.build_adagrad(
            m, 0.1, rowWise=True, weight_decay=0.1, counter_halflife=5
        ),
    )
    assert net[1:] == [
        "w, w_avg_squared_sum = RowWiseSparseAdagrad(w, w_avg_squared_sum, i, g, "
        "AdagradOptimizer_0_lr_cpu, w_update_counter, epsilon=0.0001, weight_decay=0.1, "
        "counter_halflife=5)",
        "w_prev_update_iter, w_update_counter = RowWiseCounter(w_prev_update_iter, "
        "w_update_counter, i, optimizer_iteration, counter_halflife=5)",
    ]
    assert init[1:] == [
        "w_update_counter = ConstantFill(value=0, dtype=13, shape=[10])",
        "w_prev_update_iter = ConstantFill(value=0, dtype=10, shape=[10])",
    ]
    states = ["w_avg_squared_sum", "w_update_counter", "w_prev_update_iter"]
    assert made.get_auxiliary_parameters() == (states, ["optimizer_iteration"])


def test_ftrl():
    arguments = "alpha=0.1, beta=0.0001, lambda1=0, lambda2=0"
    net, init, _ = built(dense_model(), lambda m: optimizer.build_ftrl(m, alpha=0.1))
    assert net[0].startswith(f"f_w, f_w_ftrl_nz = Ftrl(f_w, f_w_ftrl_nz, f_w_grad, {arguments})")
    assert init[0] == "f_w_ftrl_nz = ConstantFill(f_w, value=0, extra_shape=[2])"
    net, init, _ = built(sparse_model(), lambda m: optimizer.build_ftrl(m, alpha=0.1))
    assert net[0].startswith(f"w, w_ftrl_nz = SparseFtrl(w, w_ftrl_nz, i, g, {arguments})")
    net, init, _ = built(dense_model(), lambda m: optimizer.build_gftrl(m, alpha=0.1))
    assert net[0] == f"f_w, f_w_gftrl_nz = GFtrl(f_w, f_w_gftrl_nz, f_w_grad, {arguments})"
    assert init[0] == "f_w_gftrl_nz = ConstantFill(f_w, value=0, extra_shape=[2])"


def test_copies_of_two_precisions():
    kinds = {
        f"{kind}Initializer": initializers.PseudoFP16Initializer for kind in ("Weight", "Bias")
    }
    model = dense_model(**kinds)
    assert [operator_line(op) for op in model.param_init_net.Proto().op][:2] == [
        "f_w_fp32 = XavierFill(shape=[4, 3])",
        "f_w = FloatToHalf(f_w_fp32)",
    ]
    net, init, _ = built(model, lambda m: optimizer.build_multi_precision_sgd(m, 0.1, momentum=0.9))
    assert net[1:4] == [
        "f_w_grad_fp32 = HalfToFloat(f_w_grad)",
        "f_w_grad_fp32, f_w_momentum, f_w_fp32 = MomentumSGDUpdate(f_w_grad_fp32, f_w_momentum, "
        "MultiPrecisionSgdOptimizer_0_lr_cpu, f_w_fp32, momentum=0.9, nesterov=1)",
        "f_w = FloatToHalf(f_w_fp32)",
    ]
    assert init[0] == "f_w_momentum = ConstantFill(f_w_fp32, value=0)"
    reverse = dict.fromkeys(kinds, initializers.ReversePseudoFP16Initializer)
    net, init, _ = built(
        dense_model(**reverse), lambda m: optimizer.build_fp16_sgd(m, 0.1, momentum=0.9)
    )
    assert net[1] == (
        "f_w_grad, f_w_fp16_momentum, f_w_fp16 = FP16MomentumSGDUpdate(f_w_grad, "
        "f_w_fp16_momentum, FP16SgdOptimizer_0_lr_cpu, f_w_fp16, momentum=0.9, nesterov=1, "
        "weight_decay=0.0001)"
    )
    assert init[:2] == [
        "f_w_fp16_momentum_fp32 = ConstantFill(f_w, value=0)",
        "f_w_fp16_momentum = FloatToHalf(f_w_fp16_momentum_fp32)",
    ]
    net, _, _ = built(dense_model(), lambda m: optimizer.build_fp16_sgd(m, 0.1))
    assert net[1].startswith("f_w_grad, f_w_momentum_fp32, f_w = FP32MomentumSGDUpdate(f_w_grad,")


def test_injected_learning_rate():
    net, init, _ = built(
        dense_model(), lambda m: optimizer.build_sgd(m, 0.1, allow_lr_injection=True)
    )
    assert init == ["lr_injection = ConstantFill(shape=[1], value=1)"]
    assert net[1:4] == [
        "SgdOptimizer_0_lr_multiplier_cpu = CopyFromCPUInput(lr_injection)",
        "SgdOptimizer_0_scaled_lr_cpu = Mul(SgdOptimizer_0_lr_cpu, "
        "SgdOptimizer_0_lr_multiplier_cpu, broadcast=1)",
        "f_w = WeightedSum(f_w, ONE_0_0, f_w_grad, SgdOptimizer_0_scaled_lr_cpu)",
    ]


def test_global_norm():
    """The operators of the original, and steps as if the gradients had the largest norm."""

    def updated(**kwargs):
        optimizer.reset_optimizer_instance_count()
        model = dense_model()
        net, init, _ = built(model, lambda m: optimizer.build_sgd(m, 0.1, **kwargs))
        for name, value in FEEDS.items():
            workspace.FeedBlob(name, value)
        workspace.RunNetOnce(model.param_init_net)
        workspace.FeedBlob("f_w", np.ones((4, 3), F4))
        workspace.CreateNet(model.net, overwrite=True)
        workspace.RunNet(model.net)
        change = [workspace.FetchBlob("f_w").ravel() - 1, workspace.FetchBlob("f_b")]
        return net, init, np.concatenate(change)

    net, init, clipped = updated(max_gradient_norm=0.05)
    scope = "norm_clipped_grad_update/"
    assert init[0].startswith(f"{scope}clip_norm = ConstantFill(shape=[], value=0.05)")
    kinds = [line.partition(" = ")[2].partition("(")[0] for line in net[:8]]
    assert kinds == ["SumSqrElements", "EnsureCPUOutput"] * 2 + ["Sum", "Pow", "Max", "Div"]
    assert net[0] == f"{scope}grad_0_squared_sum = SumSqrElements(f_w_grad)"
    assert net[-1] == "f_b = WeightedSum(f_b, ONE_0_0, f_b_grad, SgdOptimizer_0_scaled_lr_cpu)"
    np.testing.assert_allclose(np.linalg.norm(clipped), 0.1 * 0.05, rtol=1e-3)
    _, _, free = updated()
    _, _, within = updated(max_gradient_norm=100.0)
    np.testing.assert_allclose(within, free, rtol=1e-6)
    assert np.linalg.norm(free) > 2 * np.linalg.norm(clipped)


def test_rows_of_sgd_and_dedup():
    net, _, _ = built(sparse_model(), lambda m: optimizer.build_sgd(m, 0.1))
    assert net[1] == "w = ScatterWeightedSum(w, ONE_0_0, i, g, SgdOptimizer_0_lr_cpu)"
    optimizer.reset_optimizer_instance_count()
    net, _, _ = built(
        sparse_model(), lambda m: optimizer.build_sgd(m, 0.1, sparse_dedup_aggregator="mean")
    )
    unique, mean, update = net[1:]
    assert "= Unique(i)" in unique and "= UnsortedSegmentMean(g, " in mean
    rows, values = unique.partition(",")[0], mean.partition(" = ")[0]
    inputs = f"w, ONE_0_0, {rows}, {values}, SgdOptimizer_0_lr_cpu"
    assert update == f"w = ScatterWeightedSum({inputs})"
    with pytest.raises(AssertionError, match="'median' is none of sum, mean"):
        optimizer.SgdOptimizer.dedup(core.Net("net"), "median", core.GradientSlice("i", "g"))


def step(model, feeds):
    """Runs both nets once; the parameters before and after."""
    for name, value in feeds.items():
        workspace.FeedBlob(name, value)
    workspace.RunNetOnce(model.param_init_net)
    before = {str(p): workspace.FetchBlob(p) for p in model.params}
    workspace.CreateNet(model.net, overwrite=True)
    workspace.RunNet(model.net)
    return before, {name: workspace.FetchBlob(name) for name in before}


FEEDS = {"x": F4([[1, 2, 3], [-1, 0, 2]]), "label": np.int32([1, 3])}


def test_injection_scales_the_step():
    steps = []
    for injected in (1.0, 0.5):
        model = dense_model()
        optimizer.build_sgd(model, 0.1, allow_lr_injection=True)
        for name, value in FEEDS.items():
            workspace.FeedBlob(name, value)
        workspace.RunNetOnce(model.param_init_net)
        workspace.FeedBlob("f_w", np.ones((4, 3), F4))
        optimizer.set_lr_injection(injected)
        assert optimizer.get_lr_injection().tolist() == [injected]
        workspace.CreateNet(model.net, overwrite=True)
        workspace.RunNet(model.net)
        steps.append(workspace.FetchBlob("f_w") - 1)
    np.testing.assert_allclose(steps[0], 2 * steps[1], rtol=1e-4)
    assert np.abs(steps[0]).max() > 0.01


LEARNERS = """adadelta adagrad adam decay_adagrad ftrl gftrl lion rms_prop sgd storm wngrad
    yellowfin"""


@pytest.mark.parametrize("name", LEARNERS.split())
def test_the_loss_goes_down(name):
    rates = {"adadelta": 5.0, "wngrad": 20.0, "lion": 0.02, "storm": 0.2}
    model = dense_model()
    key = {"sgd": "base_learning_rate", "storm": "lr"}.get(name, "alpha")
    optimizer.build_optimizer(model, name, **{key: rates.get(name, 0.1)})
    step(model, FEEDS)
    losses = []
    for _ in range(30):
        workspace.RunNet(model.net)
        losses.append(float(workspace.FetchBlob("loss")))
    assert losses[-1] < 0.5 * losses[0]


def test_unknown_arguments_are_refused():
    for build in (optimizer.build_sgd, optimizer.build_adam, optimizer.build_storm):
        with pytest.raises(TypeError, match=r"unexpected argument 'gama'.*did you mean 'gamma'"):
            build(dense_model(), 0.1, policy="exp", gama=0.5)
    with pytest.raises(ValueError, match="ema_options is not supported"):
        optimizer.AdagradOptimizer(ema_options={"ema_alpha": 0.5})
    assert optimizer.AdagradOptimizer(pruning_options={"mask_tensor": None}).alpha == 0.01


def test_what_does_not_go_together():
    for wrong, message in (
        (lambda: optimizer.build_adagrad(dense_model(), 0.1, rowWise=True), "'f_w' is dense"),
        (lambda: optimizer.build_adam(dense_model(), 0.1, rowWise=True), "'f_w' is dense"),
        (lambda: optimizer.build_adagrad(sparse_model(), 0.1, decay=0.9), "decay is 0.9"),
        (lambda: optimizer.build_rms_prop(sparse_model(), 0.1), "gradient of 'w' is sparse"),
        (lambda: optimizer.build_yellowfin(sparse_model()), "gradient of 'w' is sparse"),
        (lambda: optimizer.build_gftrl(sparse_model()), "gradient of 'w' is sparse"),
        (lambda: optimizer.add_weight_decay(sparse_model(), 0.1), None),
        (lambda: optimizer.AdamOptimizer(use_smart_decay=True, rowWise=True), "use_smart_decay"),
        (lambda: optimizer.build_sgd(dense_model(), 0.1, max_gradient_norm=0), "is 0"),
        (lambda: optimizer.build_optimizer(dense_model(), "adm"), "no optimizer is called 'adm'"),
        (lambda: optimizer.register_optimizer("adam", optimizer.SgdOptimizer), "already"),
    ):
        if message is None:
            wrong()
        else:
            with pytest.raises(AssertionError, match=message):
                wrong()


def test_attributes_are_what_was_set():
    attributes = optimizer.AdamOptimizer(alpha=0.5, eps=0.1, gamma=2).attributes
    assert (attributes["alpha"], attributes["epsilon"]) == (0.5, 0.1)
    assert attributes["init_kwargs"] == {"gamma": 2} and "_instance_num" not in attributes


def test_only_some_parameters():
    net, _, _ = built(
        dense_model(), lambda m: optimizer.build_adagrad(m, 0.1, parameters=[m.params[1]])
    )
    assert len(net) == 2 and net[1].startswith("f_b, f_b_squared_sum = Adagrad(")


def test_weight_decay_of_any_optimizer():
    net, _, _ = built(dense_model(), lambda m: optimizer.build_adam(m, 0.1, weight_decay=0.01))
    assert net[0] == "f_w_grad = WeightedSum(f_w_grad, ONE_0_0, f_w, wd_0_0)"
    assert net[2].startswith("f_w, f_w_first_moment, f_w_second_moment = Adam(")
