"""Plans through the old API: order, stopping, threads, workspaces, errors, interrupts."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from caffe2 import _native
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from caffe2.runtime.engine import default_engine


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()
    workspace.FeedBlob("trace", np.float32([0]))


def digit(number, stop_after=None):
    """A net that appends a digit to the number in `trace`; from its run `stop_after` + 1 on it sets
    the blob `stop`."""
    net = core.Net(f"digit_{number}")
    net.Scale(["trace"], ["trace"], scale=10.0)
    value = net.ConstantFill([], [f"value_{number}"], shape=[1], value=float(number))
    net.Sum(["trace", value], ["trace"])
    if stop_after is not None:
        net.CountDown([counter(stop_after)], ["stop"])
    return net


def counter(count):
    name = f"counter_{count}"
    workspace.RunOperatorOnce(core.CreateOperator("CreateCounter", [], [name], init_count=count))
    workspace.FeedBlob("stop", np.array(False))
    return name


def trace(*steps):
    """The digits of the nets in the order in which a plan of the steps ran them."""
    workspace.FeedBlob("trace", np.float32([0]))
    plan = core.Plan("plan")
    for step in steps:
        plan.AddStep(step)
    assert workspace.RunPlan(plan) is True
    return int(workspace.FetchBlob("trace")[0])


STOP = core.BlobReference("stop")


def test_order_and_iterations():
    one, two, three = digit(1), digit(2), digit(3)
    step = core.execution_step
    assert trace(step("s", [one, two])) == 12
    assert trace(step("s", [two, one], num_iter=2), step("t", three)) == 21213
    assert trace(step("s", one, num_iter=0), step("t", two)) == 2
    inner = [step("x", one), step("y", two, num_iter=2)]
    assert trace(step("o", inner, num_iter=2), step("z", three)) == 1221223
    assert trace() == 0


def test_stop_blobs():
    step = core.execution_step
    assert trace(step("s", [digit(1, 2), digit(2)], should_stop_blob=STOP)) == 12121
    assert trace(step("s", [digit(1), digit(2, 1)], should_stop_blob=STOP)) == 1212
    inner = [step("x", digit(1)), step("y", digit(2, 1)), step("z", digit(3))]
    assert trace(step("o", inner, should_stop_blob=STOP), step("e", digit(4))) == 123124
    workspace.FeedBlob("stop", np.array([True]))
    assert trace(step("s", [digit(1), digit(2)], should_stop_blob=STOP), step("t", digit(3))) == 13


def test_a_stop_blob_that_is_made_by_the_step():
    counter(1)
    workspace.RemoveBlob("stop")
    net = core.Net("stops")
    net.CountDown(["counter_1"], ["stop"])
    assert trace(core.execution_step("s", [digit(1), net], should_stop_blob=STOP)) == 11


def test_only_once_is_one_pass():
    step = core.execution_step
    once = step("x", [digit(1, 1), digit(2)], should_stop_blob=STOP, only_once=True)
    assert trace(step("o", [once, step("y", digit(3))], num_iter=3)) == 1231313


def test_refused_plans_run_nothing():
    good = core.execution_step("good", digit(1))

    def refused(match, **fields):
        step = caffe2_pb2.ExecutionStep(name="bad", **fields)
        plan = core.Plan(good).Proto()
        plan.execution_step.append(step)
        with pytest.raises(RuntimeError, match=match) as caught:
            workspace.RunPlan(plan)
        assert caught.value.step == "bad"
        assert workspace.FetchBlob("trace") == 0

    refused("has no network 'digit_one'", network=["digit_one"])
    refused("either substeps or networks", network=["x"], substep=[good.Proto()])
    refused("one or the other", should_stop_blob="stop", num_iter=2)
    refused("only_once needs a should_stop_blob", only_once=True)
    refused("report_interval, in seconds, has to be given", report_net=good.networks[0].Name())
    refused("num_iter = -1 is negative", num_iter=-1)
    deep = caffe2_pb2.ExecutionStep(name="bad")
    for _ in range(64):
        deep = caffe2_pb2.ExecutionStep(name="bad", substep=[deep])
    refused("nested more than 64 deep", substep=[deep])
    for missing, match in (
        ("stopp", "should_stop_blob 'stopp' does not exist. Did you mean stop?"),
        ("trace", r"holds a tensor of type float and shape \(1,\); one bool is needed"),
    ):
        counter(1)
        with pytest.raises(RuntimeError, match=match):
            workspace.RunPlan(
                core.execution_step("s", digit(1), should_stop_blob=core.BlobReference(missing))
            )


def test_what_is_no_plan_is_refused():
    net = digit(1)
    for wrong in (net, net.Proto(), "plan", None):
        with pytest.raises(TypeError, match="a Plan, an ExecutionStep, a PlanDef or its bytes"):
            workspace.RunPlan(wrong)
    with pytest.raises(RuntimeError, match="PlanDef"):
        workspace.RunPlan(b"junk")
    step = core.ExecutionStep("s", net)
    for plan in (step, core.Plan(step), core.Plan(step).Proto()):
        assert workspace.RunPlan(plan) is True
    assert workspace.RunPlan(core.Plan(step).Proto().SerializeToString()) is True
    assert workspace.FetchBlob("trace") == 1111


def test_nets_of_a_plan_stay():
    net, unused = digit(1), digit(2)
    workspace.CreateNet(net)
    plan = core.Plan(core.ExecutionStep("s", net))
    plan.AddNets([unused])
    workspace.RunPlan(plan)
    assert workspace.Nets() == [net.Name()]
    workspace.RunNet(net)
    assert workspace.FetchBlob("trace") == 11


def test_criteria_networks_have_no_effect():
    plan = core.Plan(core.execution_step("s", digit(1), num_iter=2)).Proto()
    plan.execution_step[0].criteria_network = "nothing"
    workspace.RunPlan(plan)
    assert workspace.FetchBlob("trace") == 11


def test_concurrent_steps_and_instances_count_together():
    workspace.RunOperatorOnce(core.CreateOperator("CreateMutex", [], ["mutex"]))
    workspace.FeedBlob("count", np.int64([0]))
    net = core.Net("count")
    net.AtomicIter(["mutex", "count"], ["count"])
    inner = [core.execution_step("x", net, num_iter=10), core.execution_step("y", net, num_iter=5)]
    step = core.execution_step(
        "o", inner, num_iter=3, concurrent_substeps=True, num_concurrent_instances=4
    )
    workspace.RunPlan(step)
    assert workspace.FetchBlob("count") == 3 * 4 * 15


def test_reports():
    step = core.execution_step
    report, main = digit(9), digit(1)
    assert trace(step("s", main, num_iter=3, report_net=report, report_interval=1000)) == 1119
    inner = [step("r", report, run_every_ms=10**6), step("x", main), step("y", digit(2))]
    assert trace(step("o", inner, num_iter=2), step("z", digit(3))) == 121293


def test_a_workspace_for_each_run_of_a_step():
    workspace.FeedBlob("outside", np.int64([0]))
    net = core.Net("inside")
    net.Iter([], ["inside"])
    net.Copy(["inside"], ["outside"])
    inner = core.execution_step("i", net, num_iter=2, create_workspace=True)
    workspace.RunPlan(core.execution_step("o", inner, num_iter=3))
    assert workspace.FetchBlob("outside") == 2
    assert workspace.Blobs() == ["outside", "trace"]
    assert workspace.Nets() == []


def queue(capacity):
    workspace.RunOperatorOnce(
        core.CreateOperator("CreateBlobsQueue", [], ["queue"], capacity=capacity, num_blobs=1)
    )


def producer(count):
    """A step that puts 1 into the queue `count` times, then closes it."""
    put, close = core.Net("put"), core.Net("close")
    one = put.ConstantFill([], ["one"], shape=[1], value=1.0)
    put.EnqueueBlobs(["queue", one], [one])
    close.CloseBlobsQueue(["queue"], [])
    steps = [core.execution_step("put", put, num_iter=count), core.execution_step("close", close)]
    return core.execution_step("producer", steps, create_workspace=True)


def test_producer_and_consumers_until_the_queue_is_closed():
    queue(2)
    workspace.RunOperatorOnce(core.CreateOperator("CreateMutex", [], ["mutex"]))
    workspace.FeedBlob("sum", np.int64([0]))
    take, count = core.Net("take"), core.Net("count")
    _, status = take.SafeDequeueBlobs(["queue"], ["record", "status"])
    count.AtomicIter(["mutex", "sum"], ["sum"])
    consumers = core.execution_step(
        "consumers",
        core.execution_step(
            "consumer", [take, count], should_stop_blob=status, create_workspace=True
        ),
        concurrent_substeps=True,
        num_concurrent_instances=3,
    )
    workspace.RunPlan(core.execution_step("o", [producer(50), consumers], concurrent_substeps=True))
    assert workspace.FetchBlob("sum") == 50


def test_an_error_wakes_those_who_wait_and_names_the_place():
    queue(1)
    workspace.FeedBlob("two", np.float32([1, 2]))
    wrong = core.Net("wrong")
    wrong.DequeueBlobs(["queue"], ["record"])
    wrong.Sum(["record", "two"], ["sum"])
    step = core.execution_step(
        "o",
        [producer(50), core.execution_step("consumer", wrong, num_iter=50)],
        concurrent_substeps=True,
    )
    with pytest.raises(RuntimeError, match="they must be the same") as caught:
        workspace.RunPlan(step)
    error = caught.value
    assert (error.operator, error.index, error.net, error.step) == (
        "Sum",
        1,
        wrong.Name(),
        "consumer",
    )
    assert "test_plans.py:" in error.site
    assert str(error).endswith(f"created at {error.site}\n  in step 'consumer'")


def endless(name="endless"):
    workspace.FeedBlob("stop", np.array(False))
    net = core.Net(name)
    net.Copy(["trace"], ["copy"])
    return core.execution_step(name, net, should_stop_blob=STOP)


def test_an_interrupt_ends_a_plan():
    queue(1)
    wait = core.Net("wait")
    wait.DequeueBlobs(["queue"], ["record"])
    waiting = core.execution_step("waiting", wait)
    for step in (
        endless(),
        waiting,
        core.execution_step("o", [endless(), waiting], concurrent_substeps=True),
        core.execution_step("o", [endless()], report_net=digit(1), report_interval=1000),
    ):
        timer = threading.Timer(0.2, interrupt)
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            workspace.RunPlan(step)
        timer.join()
    assert workspace.FetchBlob("trace") == 0


def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def wait_for(plan):
    while not plan.is_done():
        time.sleep(0.005)


def test_plans_in_the_background():
    plan = workspace.RunPlanInBackground(core.execution_step("s", digit(1), num_iter=3))
    wait_for(plan)
    assert plan.is_succeeded() is True
    assert workspace.FetchBlob("trace") == 111

    plan = workspace.RunPlanInBackground(endless())
    assert plan.is_done() is False
    with pytest.raises(_native.EngineError, match="still running"):
        plan.is_succeeded()
    workspace.FeedBlob("stop", np.array(True))
    wait_for(plan)
    assert plan.is_succeeded() is True

    plan = workspace.RunPlanInBackground(endless())
    plan.cancel()
    with pytest.raises(_native.EngineError, match="the run was cancelled"):
        plan.is_succeeded()

    workspace.RemoveBlob("stop")
    plan = workspace.RunPlanInBackground(core.execution_step("s", digit(1), should_stop_blob=STOP))
    wait_for(plan)
    with pytest.raises(_native.EngineError, match="'stop' does not exist"):
        plan.is_succeeded()


def test_a_process_ends_although_a_plan_runs_in_the_background():
    code = """
import numpy as np
from caffe2.python import core, workspace
workspace.FeedBlob("x", np.float32([1]))
workspace.FeedBlob("stop", np.array(False))
net = core.Net("endless")
net.Relu(["x"], ["y"], engine="REFERENCE")
step = core.execution_step("s", net, should_stop_blob=core.BlobReference("stop"))
held = workspace.RunPlanInBackground(step)
workspace.RunPlanInBackground(core.Plan(step))
print("end")
"""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_a_step_with_its_own_number_of_threads():
    before = default_engine().threads
    rng = np.random.default_rng(0)
    workspace.FeedBlob("data", rng.standard_normal((1, 3, 8, 8)).astype(np.float32))
    workspace.FeedBlob("conv_w", rng.standard_normal((4, 3, 3, 3)).astype(np.float32))
    workspace.FeedBlob("conv_b", np.zeros(4, np.float32))
    net = core.Net("async_demo")
    net.Conv(["data", "conv_w", "conv_b"], ["conv1"], kernel=3, stride=1, pad=1)
    net.Relu("conv1", "relu1")
    step = core.ExecutionStep()
    step.networks.extend([net.Proto()])
    step.num_threads = 4
    step.concurrent_ops = True
    assert workspace.RunStep(step) is True
    assert default_engine().threads == before
    np.testing.assert_array_equal(
        workspace.FetchBlob("relu1"), np.maximum(workspace.FetchBlob("conv1"), 0)
    )
    assert workspace.RunStep(core.ExecutionStep("plain", digit(1))) is True
