"""Models on several devices train as one on a single device with the whole batch."""

from __future__ import annotations

import numpy as np
import pytest

from caffe2.python import core, data_parallel_model, model_helper, optimizer, workspace

ROWS, WIDTH = 8, 4
SHAPES = {"data": (ROWS // 2, WIDTH), "label": (ROWS // 2, 1)}


@pytest.fixture(autouse=True)
def _empty_workspace():
    workspace.ResetWorkspace()
    yield
    workspace.ResetWorkspace()


def build(devices, kind=data_parallel_model.Parallelize_CPU, layers=None, update=True, **kwargs):
    def forward(model, loss_scale):
        x = layers(model) if layers else model.net.FC(["data", "w", "b"], "fc")
        loss = model.net.AveragedLoss(model.net.SquaredL2Distance([x, "label"], "distance"), "loss")
        return [model.net.Scale(loss, "scaled", scale=loss_scale)]

    def parameters(model):
        for name, shape in (("w", (1, WIDTH)), ("b", (1,))):
            model.create_param(name, shape, initializer())

    def inputs(model):
        parameters(model)

    def initializer():
        from caffe2.python.modeling.initializers import Initializer

        return Initializer("UniformFill", min=-1.0, max=1.0)

    def optimize(model):
        return optimizer.build_sgd(model, 0.1, momentum=0.9, policy="fixed")

    model = model_helper.ModelHelper(name="parallel")
    if update:
        kwargs.setdefault("optimizer_builder_fun", optimize)
    kind(model, inputs, forward, devices=devices, **kwargs)
    return model


def feed(model, data, label):
    for device, x, y in zip(
        model._devices,
        np.split(data, len(model._devices)),
        np.split(label, len(model._devices)),
        strict=True,
    ):
        scope = f"{model._device_prefix}_{device}"
        workspace.FeedBlob(f"{scope}/data", x)
        workspace.FeedBlob(f"{scope}/label", y)


def batch(seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((ROWS, WIDTH)).astype(np.float32),
        rng.standard_normal((ROWS, 1)).astype(np.float32),
    )


def train(model, steps=3):
    scope = f"{model._device_prefix}_{model._devices[0]}"
    feed(model, *batch())
    data_parallel_model.RunInitNet(model)
    for device in model._devices:
        place = f"{model._device_prefix}_{device}"
        workspace.FeedBlob(f"{place}/w", np.full((1, WIDTH), 0.5, np.float32))
        workspace.FeedBlob(f"{place}/b", np.zeros(1, np.float32))
    for step in range(steps):
        feed(model, *batch(step))
        data_parallel_model.RunNet(model, 1)
    return workspace.FetchBlob(f"{scope}/w")


def expected(steps=3):
    """w after steps of momentum (Nesterov, as build_sgd has it) on the whole batch."""
    w, b = np.full(WIDTH, 0.5), 0.0
    velocity = np.zeros(WIDTH + 1)
    for step in range(steps):
        x, y = batch(step)
        error = x.astype(np.float64) @ w + b - y[:, 0]  # the distance is half a square
        gradient = np.append(error @ x, error.sum()) / ROWS
        new = 0.9 * velocity + 0.1 * gradient
        change = 1.9 * new - 0.9 * velocity
        velocity = new
        w, b = w - change[:-1], b - change[-1]
    return w


@pytest.mark.parametrize("devices", [[0], [0, 1], [3, 1, 0, 2]])
@pytest.mark.parametrize(
    "options",
    [{}, {"shared_model": True}, {"optimize_gradient_memory": True}, {"net_type": "simple"}],
    ids=["plain", "shared_model", "gradient_memory", "simple"],
)
def test_training_does_not_depend_on_the_number_of_devices(devices, options):
    w = train(build(devices, **options))
    np.testing.assert_allclose(w[0], expected(), rtol=1e-5)


def test_gpus_are_replicas_on_the_cpu(caplog):
    model = build([0, 1], data_parallel_model.Parallelize_GPU)
    assert "the replicas run on the CPU" in caplog.text
    np.testing.assert_allclose(train(model)[0], expected(), rtol=1e-5)
    assert workspace.HasBlob("gpu_1/w")


def test_replicas_begin_with_the_same_parameters_and_stay_alike():
    model = build([0, 1])
    feed(model, *batch())
    data_parallel_model.RunInitNet(model)
    np.testing.assert_array_equal(*workspace.FetchBlobs(["cpu_0/w", "cpu_1/w"]))
    data_parallel_model.RunNet(model, 2)
    np.testing.assert_array_equal(*workspace.FetchBlobs(["cpu_0/w", "cpu_1/w"]))


def test_gradients_share_memory_by_the_sizes_of_blobs():
    model = build([0, 1])
    before = {name for op in model.net.Proto().op for name in op.output}
    shapes = {f"cpu_{d}/{name}": shape for d in (0, 1) for name, shape in SHAPES.items()}
    data_parallel_model.OptimizeGradientMemory(model, shapes, ["cpu_1/fc_grad"], True)
    after = {name for op in model.net.Proto().op for name in op.output}
    assert len(after) < len(before) and "cpu_1/fc_grad" in after
    np.testing.assert_allclose(train(model)[0], expected(), rtol=1e-5)


def test_memory_is_freed_after_the_last_use():
    model = build([0, 1], dynamic_memory_management=True, blobs_to_keep=["cpu_0/scaled"])
    np.testing.assert_allclose(train(model)[0], expected(), rtol=1e-5)
    assert workspace.FetchBlob("cpu_0/scaled").shape == ()
    freed = [op.input[0] for op in model.net.Proto().op if op.type == "Free"]
    assert "cpu_0/distance" in freed and "cpu_0/scaled" not in freed


def test_the_state_to_save_and_what_follows_after_loading_it():
    model = build([2, 5])
    train(model)
    names = {str(name) for name in data_parallel_model.GetCheckpointParams(model)}
    assert names == {
        *("cpu_2/w", "cpu_2/b", "cpu_2/w_momentum", "cpu_2/b_momentum"),
        "optimizer_iteration",
    }
    workspace.FeedBlob("cpu_2/w", np.full((1, WIDTH), 7, np.float32))
    data_parallel_model.FinalizeAfterCheckpoint(model)
    assert (workspace.FetchBlob("cpu_5/w") == 7).all()
    assert data_parallel_model.GetLearningRateBlobNames(model)[0].endswith("_lr_cpu")


def test_a_shared_model_saves_its_parameters_too():
    model = build([0, 1], shared_model=True)
    names = {str(name) for name in data_parallel_model.GetCheckpointParams(model)}
    assert {"cpu_0/w", "cpu_0/w_momentum", "optimizer_iteration"} <= names


def test_a_model_without_updates_has_no_gradients():
    calls = []
    model = build([0, 1], update=False, net_transformer_fun=lambda *args: calls.append(args))
    assert not [op for op in model.net.Proto().op if op.is_gradient_op]
    assert calls == [(model, 2, "cpu", 0)]
    net, params = data_parallel_model.ExtractPredictorNet(
        model, ["data"], ["fc"], core.DeviceOption(0)
    )
    assert [(op.type, list(op.input)) for op in net.Proto().op] == [("FC", ["data", "w", "b"])]
    assert params == ["w", "b"]


def test_updates_by_hand_are_built_for_each_device():
    def update(model):
        count = model.param_init_net.ConstantFill([], "iter", shape=[1], dtype=10)
        rate = model.net.LearningRate(
            model.net.Iter(count, count), "rate", base_lr=-0.1, policy="fixed"
        )
        one = model.param_init_net.ConstantFill([], "one", shape=[1], value=1.0)
        for param in model.GetParams():
            model.net.WeightedSum([param, one, model.param_to_grad[param], rate], param)

    model = build([0, 1], param_update_builder_fun=update, optimizer_builder_fun=None)
    w = train(model, 1)
    x, y = batch()
    gradient = (x.astype(np.float64) @ np.full(WIDTH, 0.5) - y[:, 0]) @ x / ROWS
    np.testing.assert_allclose(w[0], 0.5 - 0.1 * gradient, rtol=1e-5)


def test_rows_of_sparse_gradients_are_put_together():
    def forward(model, loss_scale):
        rows = model.net.Gather(["table", "index"], "rows")
        loss = model.net.AveragedLoss(model.net.SquaredL2Distance([rows, "label"], "d"), "loss")
        return [model.net.Scale(loss, "scaled", scale=loss_scale)]

    def inputs(model):
        from caffe2.python.modeling.initializers import Initializer

        model.create_param("table", (3, 2), Initializer("ConstantFill", value=1.0))

    model = model_helper.ModelHelper(name="sparse")
    data_parallel_model.Parallelize_CPU(
        model,
        inputs,
        forward,
        optimizer_builder_fun=lambda m: optimizer.build_sgd(m, 0.5, policy="fixed"),
        devices=[0, 1],
    )
    for device, index in ((0, [0, 1]), (1, [1])):
        workspace.FeedBlob(f"cpu_{device}/index", np.array(index, np.int64))
        workspace.FeedBlob(f"cpu_{device}/label", np.zeros((len(index), 2), np.float32))
    data_parallel_model.RunInitNet(model)
    data_parallel_model.RunNet(model, 1)
    # Half of the mean over each replica's rows: 1/4 each for the first, 1/2 for the other one.
    for table in workspace.FetchBlobs(["cpu_0/table", "cpu_1/table"]):
        np.testing.assert_allclose(table, [[0.875] * 2, [0.625] * 2, [1.0] * 2], rtol=1e-6)


def normalized(model):
    x = model.net.FC(["data", "w", "b"], "fc")
    for name, value in (("scale", 1.0), ("bias", 0.0), ("mean", 0.0), ("variance", 1.0)):
        from caffe2.python.modeling.initializers import Initializer

        tag = "COMPUTED_PARAM" if name in ("mean", "variance") else None
        model.create_param(name, (1,), Initializer("ConstantFill", value=value), tags=tag)
    return model.net.SpatialBN(
        [x, "scale", "bias", "mean", "variance"],
        ["normal", "mean", "variance", "saved_mean", "saved_variance"],
        is_test=0,
    )[0]


def test_batch_normalization_over_all_replicas():
    alone = train(build([0], layers=normalized), 2)
    running = workspace.FetchBlob("cpu_0/mean")
    workspace.ResetWorkspace()
    together = train(build([0, 1], layers=normalized, combine_spatial_bn=True), 2)
    np.testing.assert_allclose(together, alone, rtol=1e-4)
    np.testing.assert_allclose(workspace.FetchBlob("cpu_1/mean"), running, rtol=1e-4)
    workspace.ResetWorkspace()
    apart = train(build([0, 1], layers=normalized), 2)
    assert abs(apart - alone).max() > 1e-3


def test_a_blob_of_the_first_replica_for_all():
    model = build([0, 1])
    data_parallel_model.AddBlobSync(model, ["number"])
    for device, number in ((0, 4.0), (1, 5.0)):
        workspace.FeedBlob(f"cpu_{device}/number", np.array([number], np.float32))
    train(model, 1)
    assert workspace.FetchBlob("cpu_1/number") == [4.0]


@pytest.mark.parametrize(
    ("devices", "options", "text"),
    [
        ([0, 0], {}, r"devices are different numbers, at least one; got \[0, 0\]"),
        ([], {}, r"at least one; got \[\]"),
        ([0], {"param_update_builder_fun": print}, "Can only specify one of"),
        ([0], {"rendezvous": {"num_shards": 2}}, "use one shard"),
    ],
)
def test_refused(devices, options, text):
    with pytest.raises(AssertionError, match=text):
        build(devices, **options)


def test_scopes_and_losses_that_are_refused():
    with core.NameScope("outer"), pytest.raises(AssertionError, match="outside of any scope"):
        build([0])
    with pytest.raises(AssertionError, match="must return list of loss blobs"):
        data_parallel_model.Parallelize_CPU(
            model_helper.ModelHelper(name="none"),
            lambda model: None,
            lambda model, loss_scale: None,
            optimizer_builder_fun=print,
            devices=[0],
        )
    with pytest.raises(ValueError, match="was not parallelized"):
        data_parallel_model.RunNet(model_helper.ModelHelper(name="plain"), 1)


def test_replicas_that_differ_cannot_be_combined():
    count = iter(range(2))

    def layers(model):
        x = normalized(model)
        return model.net.Relu(x, "relu") if next(count) else x

    with pytest.raises(ValueError, match="replicas of the same operators"):
        build([0, 1], layers=layers, combine_spatial_bn=True)


def test_a_net_moved_to_a_replica():
    net = core.Net("other")
    net.Relu("a", "b")
    device = core.DeviceOption(workspace.GpuDeviceType, 3)
    moved = data_parallel_model.ConvertNetForDevice(net, device)
    (op,) = moved.Proto().op
    assert (list(op.input), list(op.output)) == (["gpu_3/a"], ["gpu_3/b"])
    assert op.device_option.device_id == 3 and moved.Proto().external_input == ["gpu_3/a"]
