"""Rows D of the founding documents: work flows."""

import threading

import numpy as np
import pytest

from caffe2.python import core, model_helper, optimizer, workspace
from caffe2.python.core import ExecutionStep
from caffe2.runtime.engine import default_engine


@pytest.fixture(autouse=True)
def clean():
    workspace.ResetWorkspace()
    yield
    for name in workspace.Workspaces():
        if name != "default":
            workspace.DeleteWorkspace(name)


def test_d1_workspaces_are_apart():
    workspace.CreateWorkspace("training_ws", reuse=False)
    workspace.CreateWorkspace("inference_ws", reuse=False)
    workspace.SwitchWorkspace("training_ws")
    workspace.FeedBlob("data", np.ones((2, 3), np.float32))
    workspace.SwitchWorkspace("inference_ws")
    workspace.FeedBlob("data", np.zeros((1, 3), np.float32))
    workspace.FeedBlob("more", 1)
    assert workspace.Blobs() == ["data", "more"]
    assert workspace.FetchBlob("data").shape == (1, 3)
    workspace.SwitchWorkspace("training_ws")
    assert workspace.FetchBlob("data").shape == (2, 3)
    with pytest.raises(RuntimeError, match="there is a workspace 'training_ws' already"):
        workspace.CreateWorkspace("training_ws", reuse=False)
    workspace.CreateWorkspace("training_ws", reuse=True)
    assert workspace.Blobs() == ["data"]


def test_d1_memory_goes_back_at_once():
    engine = default_engine()
    workspace.CreateWorkspace("large")
    before = engine.memory_used
    held = workspace.Workspace("large")
    held.feed_blob("x", np.zeros(2**20, np.float32))
    assert engine.memory_used >= before + 2**22
    workspace.SwitchWorkspace("large")
    workspace.DeleteWorkspace("large")
    assert engine.memory_used == before
    assert workspace.CurrentWorkspace() == "default"
    assert "large" not in workspace.Workspaces()
    with pytest.raises(RuntimeError, match="there is no workspace 'large'"):
        workspace.DeleteWorkspace("large")


def test_d2_blobs_across_workspaces():
    workspace.CreateWorkspace("src")
    workspace.CreateWorkspace("dst")
    with workspace.Workspace("src"):
        workspace.FeedBlob("shared_tensor", np.ones((2, 2)))
    workspace.SwitchWorkspace("dst")
    workspace.FeedBlob("received", workspace.FetchBlob("shared_tensor", ws="src"))
    np.testing.assert_array_equal(workspace.FetchBlob("received"), np.ones((2, 2)))
    workspace.FeedBlob("received", np.zeros(2), ws="src")
    np.testing.assert_array_equal(workspace.FetchBlob("received"), np.ones((2, 2)))
    assert workspace.Blobs(ws="src") == ["received", "shared_tensor"]
    with pytest.raises(RuntimeError, match="there is no workspace 'nowhere'"):
        workspace.FetchBlob("x", ws="nowhere")


def test_d2_a_block_is_of_its_thread_and_survives_exceptions():
    seen = []

    def other():
        seen.append(workspace.CurrentWorkspace())
        with workspace.Workspace("b"):
            workspace.FeedBlob("x", 2)
            barrier.wait()
            seen.append(workspace.FetchBlob("x").item())

    barrier = threading.Barrier(2)
    thread = threading.Thread(target=other)
    with pytest.raises(KeyError), workspace.Workspace("a"):
        workspace.FeedBlob("x", 1)
        thread.start()
        barrier.wait()
        assert workspace.FetchBlob("x") == 1 and workspace.CurrentWorkspace() == "a"
        raise KeyError
    thread.join()
    assert seen == ["default", 2]
    assert workspace.CurrentWorkspace() == "default" and not workspace.HasBlob("x")


def test_d2_sharing_without_a_copy():
    workspace.FeedBlob("weights", np.zeros(3, np.float32))
    workspace.CreateWorkspace("user")
    workspace.ShareWorkspace("default", "user", blobs=["weights"])
    with workspace.Workspace("user"):
        net = core.Net("write")
        net.ConstantFill(["weights"], ["weights"], value=7.0)
        workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob("weights"), [7, 7, 7])


def test_d2_workspaces_in_workspaces():
    workspace.FeedBlob("outer", 1)
    workspace.CreateWorkspace("child", parent="default")
    with workspace.Workspace("child"):
        workspace.FeedBlob("inner", workspace.FetchBlob("outer"))
        assert workspace.Blobs() == ["inner", "outer"]
    assert workspace.Blobs() == ["outer"]


def test_d3_queues_and_operators_as_tuples():
    create = {"capacity": 10, "num_blobs": 2, "enforce_unique_name": True}
    workspace.RunOperatorOnce(("CreateBlobsQueue", [], ["data_queue"], create))
    workspace.FeedBlob("img", np.ones((2, 2), np.float32))
    workspace.FeedBlob("label", np.array([3]))
    blobs = ["img", "label"]
    workspace.RunOperatorOnce(("EnqueueBlobs", ["data_queue", *blobs], blobs))
    workspace.RunOperatorOnce(("DequeueBlobs", ["data_queue"], ["out_img", "out_label"]))
    np.testing.assert_array_equal(workspace.FetchBlob("out_label"), [3])


@pytest.mark.parametrize("kind", ["dag", "async_scheduling"])
def test_d5_independent_operators_overlap(kind):
    meeting = threading.Barrier(2)

    def meet(inputs, outputs):
        meeting.wait(timeout=20)  # an error unless the other one runs at the same time
        outputs[0].feed(inputs[0].data + 1)

    net = core.Net("overlap")
    net.Proto().type = kind
    net.Proto().num_workers = 2
    left, right = net.Python(meet)(["x"], ["left"]), net.Python(meet)(["x"], ["right"])
    net.Add([left, right], "sum")
    workspace.FeedBlob("x", np.ones(2, np.float32))
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob("sum"), [4, 4])


def test_d5_executors_give_the_same():
    results = {}
    for kind in ("simple", "dag", "async_scheduling"):
        workspace.ResetWorkspace()
        net = core.Net(f"random_{kind}")
        net.Proto().type = kind
        for branch in range(4):
            x = net.UniformFill([], f"x{branch}", shape=[64, 64], run_once=0)
            net.Tanh(net.MatMul([x, x]), f"y{branch}")
        net.Sum([f"y{branch}" for branch in range(4)], "sum")
        net.Relu("sum", "sum")  # after those that read it: in place
        net.set_rand_seed(7)
        workspace.CreateNet(net)
        workspace.RunNet(net, 3)
        results[kind] = workspace.FetchBlob("sum")
    assert results["simple"].any()
    for kind, found in results.items():
        np.testing.assert_array_equal(found, results["simple"], err_msg=kind)


def test_d6_steps_with_threads():
    model = model_helper.ModelHelper(name="async_demo")
    model.Conv(["data", "conv_w", "conv_b"], ["conv1"], kernel=3, stride=1, pad=1)
    model.Relu("conv1", "relu1")
    workspace.FeedBlob("data", np.ones((1, 1, 4, 4), np.float32))
    workspace.FeedBlob("conv_w", np.ones((1, 1, 3, 3), np.float32))
    workspace.FeedBlob("conv_b", np.zeros(1, np.float32))
    step = ExecutionStep()
    step.networks.extend([model.net.Proto()])
    step.num_threads = 4
    step.concurrent_ops = True
    workspace.RunStep(step)
    np.testing.assert_array_equal(workspace.FetchBlob("relu1")[0, 0, 1], [6, 9, 9, 6])
    plan = core.Plan("plan")
    plan.AddStep(core.ExecutionStep("again", model.net.OrderedNet(), 2))
    assert model.net.Proto().type == "simple"
    workspace.RunPlan(plan)


def test_d7_a_chain_of_training():
    model = model_helper.ModelHelper()
    data = model.net.AddExternalInput("data")
    label = model.net.AddExternalInput("label")
    fc = model.FC(data, "fc", dim_in=784, dim_out=10)
    pred = model.Softmax(fc, "pred")
    loss = model.LabelCrossEntropy([pred, label], ["loss"])
    avg_loss = model.Averaged(loss, "avg_loss")
    model.AddGradientOperators([avg_loss])
    optimizer.build_sgd(model, base_learning_rate=0.01, policy="step", stepsize=1000, gamma=0.99)
    random = np.random.default_rng(0)
    workspace.FeedBlob("data", random.random((16, 784), np.float32))
    workspace.FeedBlob("label", random.integers(0, 10, 16).astype(np.int32))
    train_nets = [model.param_init_net, model.net]
    for net in train_nets:
        workspace.CreateNet(net)
    workspace.RunNets(train_nets)
    first = workspace.FetchBlob("avg_loss").item()
    for _ in range(20):
        workspace.RunNet(model.net)
    assert workspace.FetchBlob("avg_loss").item() < first
