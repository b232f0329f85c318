"""The engine in processes that fork, end, and are interrupted while nets run.

Each test is a process of its own, which must end by itself in the right way, and in silence.
"""

import os
import subprocess
import sys
import textwrap

import pytest

BUILD = """
import os, signal, sys, threading, time
import numpy as np
from caffe2.python import core, workspace
from caffe2.runtime.engine import set_threads

set_threads(4)
workspace.FeedBlob("x", np.random.default_rng(0).random((200, 200), np.float32) * 0.01)

def build(name, kind, length, *, body=False, chain=False):
    net = core.Net(name)
    net.Proto().type = kind
    blob = "x"
    for index in range(length):
        target = f"{name}_{index % 5}"
        if body:
            net.Relu(["x"], [target], engine="REFERENCE")
        else:
            net.MatMul([blob, "x"], [target])
        blob = target if chain else "x"
    workspace.CreateNet(net)
    return net
"""
# A process that hangs would hang for ever; one that ends needs seconds on a busy machine.
HANGS = 120


def ends(code, *arguments):
    """The output of a process that has to end well and write no errors."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", BUILD + textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="processes do not fork here")
@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_a_forked_process_runs_nets(kind):
    code = """
    import warnings
    warnings.simplefilter("ignore")  # newer Pythons warn of threads in a process that forks
    build("first", sys.argv[1], 8)
    build("second", sys.argv[1], 8)
    workspace.RunNet("first")
    right = workspace.FetchBlob("first_4")
    child = os.fork()
    if child == 0:
        for name in ("first", "second"):
            workspace.RunNet(name)
            same = np.array_equal(workspace.FetchBlob(f"{name}_4"), right)
            if not same:
                os._exit(2)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    workspace.RunNet("first")
    print(os.WEXITSTATUS(status), os.WIFEXITED(status))
    """
    assert ends(code, kind) == "0 True\n"


@pytest.mark.parametrize(
    ("kind", "body"), [("simple", ""), ("dag", ""), ("simple", "body"), ("dag", "body")]
)
def test_a_process_ends_while_a_thread_runs_a_net(kind, body):
    code = """
    build("endless", sys.argv[1], 200, body=bool(sys.argv[2]))
    started = threading.Event()

    def run():
        while True:
            workspace.RunNet("endless")
            started.set()

    threading.Thread(target=run, daemon=True).start()
    started.wait()
    print("ends")
    """
    assert ends(code, kind, body) == "ends\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no process is sent SIGINT here")
@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_an_interrupt_ends_a_long_chain(kind):
    """A chain of 20,000 products, which would run for many times as long as is waited."""
    code = """
    build("chain", sys.argv[1], 20000, chain=True)
    began = threading.Event()

    def interrupt():
        began.wait()
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    try:
        began.set()
        workspace.RunNet("chain", 1000)
    except KeyboardInterrupt:
        print("interrupted")
    workspace.FeedBlob("x", np.ones((2, 2), np.float32))
    workspace.RunOperatorOnce(("Relu", ["x"], ["y"]))
    print(workspace.FetchBlob("y").tolist())
    """
    assert ends(code, kind) == "interrupted\n[[1.0, 1.0], [1.0, 1.0]]\n"


@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_an_interrupt_in_a_body_comes_out(kind):
    code = """
    from caffe2 import ops

    def interrupted(X):
        raise KeyboardInterrupt

    build("bodies", sys.argv[1], 3, body=True)
    object.__setattr__(ops.find("Relu"), "reference", interrupted)
    for allow_fail in (False, True):
        try:
            workspace.RunNet("bodies", allow_fail=allow_fail)
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert ends(code, kind) == "interrupted\ninterrupted\n"


def test_the_number_of_threads_changes_while_nets_run():
    code = """
    build("wide", "dag", 12)
    stop = False

    def run():
        while not stop:
            workspace.RunNet("wide")

    thread = threading.Thread(target=run)
    thread.start()
    for turn in range(300):
        set_threads(3 + turn % 2)
        time.sleep(0.002)
    stop = True
    thread.join()
    print("done")
    """
    assert ends(code) == "done\n"


def test_an_instruction_set_that_is_none_is_named():
    code = "from caffe2.python import workspace; workspace.Blobs()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CAFFE2_ISA": "bogus"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "ValueError: CAFFE2_ISA in the environment is 'bogus'; this CPU and build have" in last


@pytest.mark.skipif(sys.platform == "win32", reason="processes do not fork here")
def test_a_fork_while_other_threads_work_on_blobs_and_mutexes():
    """Each child uses what other threads of its parent used at that moment."""
    code = """
    import warnings
    warnings.simplefilter("ignore")  # newer Pythons warn of threads in a process that forks
    init = core.Net("init")
    init.CreateMutex([], ["mutex"])
    init.ConstantFill([], ["iter"], shape=[1], value=0, dtype=core.DataType.INT64)
    init.CreateBlobsQueue([], ["queue"], capacity=2)
    workspace.RunNetOnce(init)
    count = core.Net("count")
    for _ in range(50):
        count.AtomicIter(["mutex", "iter"], ["iter"])
    workspace.CreateNet(count)
    stop = False

    def feed():
        while not stop:
            for index in range(20):
                workspace.FeedBlob(f"blob_{index}", np.ones(1, np.float32))
                workspace.RemoveBlob(f"blob_{index}")

    def wait():
        try:
            workspace.RunOperatorOnce(("DequeueBlobs", ["queue"], ["record"]))
        except RuntimeError:
            pass

    def counts():
        while not stop:
            workspace.RunNet("count")

    threads = [threading.Thread(target=target) for target in (feed, feed, wait, counts)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            workspace.Blobs()
            workspace.FeedBlob("blob_0", np.ones(1, np.float32))
            workspace.RunOperatorOnce(("AtomicIter", ["mutex", "iter"], ["iter"]))
            workspace.FeedBlob("new", np.ones(1, np.float32))
            workspace.RunOperatorOnce(("EnqueueBlobs", ["queue", "new"], ["new"]))
            workspace.RunOperatorOnce(("DequeueBlobs", ["queue"], ["new"]))
            workspace.RunOperatorOnce(("CloseBlobsQueue", ["queue"], []))
            workspace.ResetWorkspace()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    stop = True
    workspace.RunOperatorOnce(("CloseBlobsQueue", ["queue"], []))
    for thread in threads:
        thread.join()
    print("done")
    """
    assert ends(code) == "done\n"


def test_a_process_ends_while_a_plan_of_its_own_runs():
    """A background plan that nobody cancels, on NumPy bodies, and kept until the very end."""
    code = """
    from caffe2 import _native
    from caffe2.runtime import workspace as runtime

    net = build("endless", "dag", 20, body=True)
    plan = core.Plan("plan")
    plan.AddStep(core.execution_step("step", net, num_iter=10**9))
    sys.kept = _native.BackgroundPlan(
        runtime.current(), plan.Proto().SerializeToString(), [])
    time.sleep(0.2)
    print("ends", sys.kept.is_done())
    """
    assert ends(code) == "ends False\n"


def test_a_process_ends_while_steps_of_a_plan_run_side_by_side():
    """One computes, one waits for a record that nobody puts, one for room that nobody makes."""
    code = """
    workspace.FeedBlob("one", np.ones(1, np.float32))
    for queue in ("empty", "full"):
        workspace.RunOperatorOnce(("CreateBlobsQueue", [], [queue], {"capacity": 1}))
    nets = [build("endless", "dag", 20, body=True), core.Net("take"), core.Net("put")]
    nets[1].DequeueBlobs(["empty"], ["record"])
    nets[2].Copy("one", "copy")
    nets[2].EnqueueBlobs(["full", "copy"], ["copy"])
    steps = [core.execution_step(net.Name(), net, num_iter=10**9) for net in nets]
    plan = core.Plan("plan")
    plan.AddStep(core.execution_step("all", steps, concurrent_substeps=True))
    threading.Thread(target=workspace.RunPlan, args=(plan,), daemon=True).start()
    time.sleep(0.2)
    print("ends")
    """
    assert ends(code) == "ends\n"


STALLS = {
    "DequeueBlobs(['queue'], ['record'])": "a record of queue 'queue' (0 of 1 records)",
    "SafeDequeueBlobs(['queue'], ['record', 'status'])":
        "a record of queue 'queue' (0 of 1 records)",
    "EnqueueBlobs(['full', 'one'], ['one'])": "room in queue 'full' (1 of 1 records)",
    "SafeEnqueueBlobs(['full', 'one'], ['one', 'status'])":
        "room in queue 'full' (1 of 1 records)",
    "WeightedSampleDequeueBlobs(['queue'], ['record', 'status'])":
        "a record of queue 'queue' (0 of 1 records)",
    "DequeueRebatchingQueue(['batches'], ['record'])": "batches",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_reports_say_who_waits_for_what(kind):
    code = """
    import ast, logging
    from caffe2.runtime.engine import report_stalls

    told = []
    class Keep(logging.Handler):
        def emit(self, record):
            told.append(record.getMessage())
            created.cancel()

    logging.getLogger("caffe2").addHandler(Keep())
    workspace.FeedBlob("one", np.ones(1, np.float32))
    for queue in ("queue", "full"):
        workspace.RunOperatorOnce(("CreateBlobsQueue", [], [queue], {"capacity": 1}))
    workspace.RunOperatorOnce(("CreateRebatchingQueue", [], ["batches"], {"capacity": 1}))
    workspace.RunOperatorOnce(("Copy", ["one"], ["two"]))
    workspace.RunOperatorOnce(("EnqueueBlobs", ["full", "two"], ["two"]))
    report_stalls(0.02)
    for call in ast.literal_eval(sys.argv[2]):
        net = core.Net("stalled")
        net.Proto().type = sys.argv[1]
        net.Copy("one", "other")
        eval("net." + call)
        created = workspace.Workspace.current.create_net(net)
        try:
            created.run()
        except RuntimeError as error:
            assert "the run was cancelled" in str(error)
    print(*told, sep="\\n")
    """
    lines = ends(code, kind, repr(list(STALLS))).splitlines()
    assert len(lines) == len(STALLS)
    for line, (call, what) in zip(lines, STALLS.items(), strict=True):
        assert line.startswith(f"Operator 1 ({call.split('(')[0]}) waits for ")
        assert what in line and line.endswith("; it has waited for a while")


def test_an_operator_that_waits_for_long_is_reported():
    code = """
    import logging
    from caffe2.runtime.engine import report_stalls

    reports = []
    told = threading.Event()

    class Keep(logging.Handler):
        def emit(self, record):
            reports.append(record.getMessage())
            told.set()

    logging.getLogger("caffe2").addHandler(Keep())
    workspace.RunOperatorOnce(("CreateBlobsQueue", [], ["queue"], {"capacity": 2}))
    report_stalls(0.05)
    net = core.Net("stalled")
    net.DequeueBlobs(["queue"], ["record"])
    thread = threading.Thread(target=workspace.RunNetOnce, args=(net,))
    thread.start()
    told.wait()
    workspace.FeedBlob("new", np.ones(1, np.float32))
    workspace.RunOperatorOnce(("EnqueueBlobs", ["queue", "new"], ["new"]))
    thread.join()
    print(*reports)
    try:
        report_stalls(-1)
    except ValueError as error:
        print(error)
    """
    assert ends(code) == (
        "Operator 0 (DequeueBlobs) waits for a record of queue 'queue' (0 of 2 records); "
        "it has waited for a while\n"
        "stalls cannot be reported after -1 seconds; 0 means never\n"
    )
