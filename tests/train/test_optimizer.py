"""Optimizers as operators: names, devices, learning rates."""

from __future__ import annotations

import pytest

from caffe2.graph.printer import operator_line
from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, model_helper, optimizer, utils

CPU_OVERRIDE = 'device={device_type: 0 device_id: 0 extra_info: "device_type_override:cpu"}'


@pytest.fixture(autouse=True)
def numbers_from_zero():
    optimizer.reset_optimizer_instance_count()


def lines(net, start=0):
    return [operator_line(op) for op in net.Proto().op[start:]]


def small_model():
    """A model with gradients, whose nets the optimizer is going to be added to."""
    model = model_helper.ModelHelper(name="model")
    brew.fc(model, "x", "f", 3, 4)
    model.SoftmaxWithLoss(["f", "label"], ["softmax", "loss"])
    model.AddGradientOperators(["loss"])
    return model


def added(build):
    """What `build(model)` adds to the net and to the init net."""
    model = small_model()
    before = len(model.net.Proto().op), len(model.param_init_net.Proto().op)
    build(model)
    return lines(model.net, before[0]), lines(model.param_init_net, before[1])


def test_row_E1_sgd():
    net, init = added(lambda model: optimizer.build_sgd(model, 0.1))
    assert net == [
        f"optimizer_iteration = AtomicIter(iteration_mutex, optimizer_iteration) {CPU_OVERRIDE}",
        'SgdOptimizer_0_lr_cpu = LearningRate(optimizer_iteration, base_lr=-0.1, policy="fixed")',
        "f_w = WeightedSum(f_w, ONE_0_0, f_w_grad, SgdOptimizer_0_lr_cpu)",
        "f_b = WeightedSum(f_b, ONE_0_0, f_b_grad, SgdOptimizer_0_lr_cpu)",
    ]
    assert init == [
        f"optimizer_iteration = ConstantFill(shape=[1], value=0, dtype=10) {CPU_OVERRIDE}",
        f"iteration_mutex = CreateMutex() {CPU_OVERRIDE}",
        "ONE_0_0 = ConstantFill(shape=[1], value=1)",
    ]


@pytest.mark.parametrize("nesterov", [0, 1])
def test_row_E1_momentum(nesterov):
    net, init = added(
        lambda model: optimizer.build_sgd(model, 0.1, momentum=0.9, nesterov=nesterov)
    )
    assert net[1:] == [
        'SgdOptimizer_0_lr_cpu = LearningRate(optimizer_iteration, base_lr=0.1, policy="fixed")',
        "f_w_grad, f_w_momentum, f_w = MomentumSGDUpdate(f_w_grad, f_w_momentum, "
        f"SgdOptimizer_0_lr_cpu, f_w, momentum=0.9, nesterov={nesterov})",
        "f_b_grad, f_b_momentum, f_b = MomentumSGDUpdate(f_b_grad, f_b_momentum, "
        f"SgdOptimizer_0_lr_cpu, f_b, momentum=0.9, nesterov={nesterov})",
    ]
    assert init[2:] == [
        "ONE_0_0 = ConstantFill(shape=[1], value=1)",
        "f_w_momentum = ConstantFill(f_w, value=0)",
        "f_b_momentum = ConstantFill(f_b, value=0)",
    ]


def test_row_E4_policies_are_operators():
    net, init = added(
        lambda model: optimizer.build_sgd(
            model, base_learning_rate=0.1, policy="step", stepsize=10, gamma=0.5, iter_val=7
        )
    )
    assert net[1] == (
        "SgdOptimizer_0_lr_cpu = LearningRate(optimizer_iteration, base_lr=-0.1, "
        'policy="step", stepsize=10, gamma=0.5)'
    )
    assert init[0].startswith("optimizer_iteration = ConstantFill(shape=[1], value=7, dtype=10)")


def test_blobs_are_numbered_by_optimizer():
    first, second = small_model(), small_model()
    made = [optimizer.build_sgd(model, 0.1) for model in (first, second)]
    assert all(isinstance(one, optimizer.SgdOptimizer) for one in made)
    assert second.net.BlobIsDefined("SgdOptimizer_1_lr_cpu")
    base = optimizer.Optimizer()
    assert base.get_cpu_blob_name("lr", "node") == "Optimizer_0_lrnode_cpu"
    assert base.get_gpu_blob_name("lr", 3, "") == "Optimizer_0_lr_gpu3"
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, 2, node_name="nn")):
        assert base.make_unique_blob_name("lr") == "Optimizer_0_lrnn_gpu2"


def test_state_is_listed():
    model = small_model()
    built = optimizer.build_sgd(model, 0.1, momentum=0.9)
    assert built.get_auxiliary_parameters() == (["f_w_momentum", "f_b_momentum"], ["ONE_0_0"])
    built = optimizer.build_sgd(small_model(), 0.1)
    assert built.get_auxiliary_parameters() == ([], ["ONE_0_0"])


def test_parameters_are_updated_on_their_device():
    model = model_helper.ModelHelper(name="model")
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, 2)):
        brew.fc(model, "x", "f", 3, 4)
        model.AveragedLoss("f", "loss")
        model.AddGradientOperators(["loss"])
    start = len(model.net.Proto().op)
    optimizer.build_sgd(model, 0.1)
    on_gpu = "device={device_type: 1 device_id: 2}"
    assert lines(model.net, start + 1) == [
        "SgdOptimizer_0_lr_gpu2 = LearningRate(optimizer_iteration, base_lr=-0.1, "
        f'policy="fixed") {on_gpu}',
        f"f_w = WeightedSum(f_w, ONE_1_2, f_w_grad, SgdOptimizer_0_lr_gpu2) {on_gpu}",
        f"f_b = WeightedSum(f_b, ONE_1_2, f_b_grad, SgdOptimizer_0_lr_gpu2) {on_gpu}",
    ]


def test_devices_of_parameters():
    device, other = (core.DeviceOption(caffe2_pb2.CUDA, index) for index in range(2))
    get, grad = optimizer.get_param_device, core.BlobReference("g")
    assert get("w", grad, {"w": device, "g": other}) == device
    assert get("w", grad, {"g": other}) == other
    assert get("w", core.GradientSlice("i", "g"), {"g": other}) == other
    assert get("w", grad, default_device=device) == device
    with pytest.raises(AssertionError, match="Cannot infer device for w"):
        get("w", grad)


def test_a_scope_counts_steps_once():
    def build(model):
        with core.NameScope("s"):
            optimizer.build_sgd(model, 0.1)

    net, init = added(build)
    assert [line.partition("(")[0] for line in net] == [
        "s/optimizer_iteration = AtomicIter", "s/SgdOptimizer_0_lr_cpu = LearningRate",
        "f_w = WeightedSum", "f_b = WeightedSum",
    ]  # fmt: skip
    assert len(init) == 3


def test_one_parameter_at_a_time():
    model = small_model()
    sgd = optimizer.SgdOptimizer(base_learning_rate=0.1)
    start = len(model.net.Proto().op)
    sgd(model.net, model.param_init_net, model.GetOptimizationParamInfo()[0])
    sgd(model.net, model.param_init_net, core.BlobReference("f_b"), "f_b_grad")
    assert [line.partition(" ")[0] for line in lines(model.net, start)] == [
        "optimizer_iteration", "SgdOptimizer_0_lr_cpu", "f_w", "f_b",
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="Expected parameter to be of type ParameterInfo"):
        sgd(model.net, model.param_init_net, core.BlobReference("f_w"))
    sgd(model.net, model.param_init_net, "f_w", "f_w_grad")
    assert list(model.net.Proto().op[-1].output) == ["f_w"]
    with pytest.raises(TypeError, match="a parameter is a blob, got 3"):
        sgd(model.net, model.param_init_net, 3, "f_w_grad")


def test_a_parameter_can_have_its_own_optimizer():
    def build(model):
        info = model.get_param_info(model.params[0])
        info.optimizer = optimizer.SgdOptimizer(0.7)
        with pytest.raises(AssertionError, match="'f_w' has already been set"):
            info.optimizer = optimizer.SgdOptimizer(0.8)
        optimizer.build_sgd(model, 0.1)

    net, _ = added(build)
    assert "base_lr=-0.7" in net[1] and "SgdOptimizer_0_lr_cpu" in net[2]
    assert "base_lr=-0.1" in net[3] and "SgdOptimizer_2_lr_cpu" in net[4]


def test_own_optimizers():
    class Sign(optimizer.Optimizer):
        def _run(self, net, param_init_net, param_info):
            net.Copy(param_info.grad, param_info.blob)

    net, init = added(lambda model: Sign().build(model))
    assert (net, init) == (["f_w = Copy(f_w_grad)", "f_b = Copy(f_b_grad)"], [])
    with pytest.raises(NotImplementedError, match="Optimizer does not say how"):
        added(lambda model: optimizer.Optimizer().build(model))


def test_weight_decay():
    net, init = added(lambda model: optimizer.add_weight_decay(model, 0.01))
    assert net == ["f_w_grad = WeightedSum(f_w_grad, ONE_0_0, f_w, wd_0_0)"]
    assert init == [
        "ONE_0_0 = ConstantFill(shape=[1], value=1)",
        "wd_0_0 = ConstantFill(shape=[1], value=0.01)",
    ]


def test_learning_rates():
    assert added(lambda model: optimizer.build_sgd(model, 0.0)) == ([], [])
    with pytest.raises(AssertionError, match="Expect positive base learning rate, got -1"):
        optimizer.SgdOptimizer(-1.0)
    sgd = optimizer.SgdOptimizer(0.1)
    sgd.scale_learning_rate(2)
    assert sgd.base_learning_rate == 0.2


def test_gradients_come_first():
    model = model_helper.ModelHelper(name="model")
    brew.fc(model, "x", "f", 3, 4)
    for build in (
        lambda: optimizer.build_sgd(model, 0.1),
        lambda: optimizer.add_weight_decay(model, 0.1),
    ):
        with pytest.raises(RuntimeError, match="Need to call AddGradientOperators first"):
            build()


def test_iterations_can_be_counted_by_name():
    init, net = core.Net("init"), core.Net("net")
    assert utils.BuildUniqueMutexIter(init, net) == utils.OPTIMIZER_ITERATION_NAME
    assert utils.BuildUniqueMutexIter(init, net) == "optimizer_iteration"
    assert utils.BuildUniqueMutexIter(init, net, iter="it", iter_mutex="mu", iter_val=4) == "it"
    assert [line.partition(" device")[0] for line in lines(init)] == [
        "optimizer_iteration = ConstantFill(shape=[1], value=0, dtype=10)",
        "iteration_mutex = CreateMutex()",
        "it = ConstantFill(shape=[1], value=4, dtype=10)",
        "mu = CreateMutex()",
    ]
    assert [line.partition(" device")[0] for line in lines(net)] == [
        "optimizer_iteration = AtomicIter(iteration_mutex, optimizer_iteration)",
        "it = AtomicIter(mu, it)",
    ]
