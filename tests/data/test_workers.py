"""Data of Python functions for nets (`data_workers`), and functions on threads."""

import itertools
import threading

import numpy as np
import pytest

from caffe2.graph.errors import UsageError
from caffe2.python import core, data_workers, parallel_workers, workspace
from caffe2.python.model_helper import ModelHelper

F4 = np.float32


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()
    yield
    data_workers.global_coordinator.stop()
    parallel_workers.global_coordinator.stop()


def numbered(rows=3):
    """Chunks of `rows` rows that are numbered from 0 on, over all threads."""
    counter, lock = itertools.count(), threading.Lock()

    def fetch(worker_id, batch_size):
        with lock:
            first = next(counter) * rows
        number = np.arange(first, first + rows)
        return [np.stack([number, -number], axis=1).astype(F4), number]

    return fetch


def test_batches_of_equal_size():
    model = ModelHelper("train")
    coordinator = data_workers.init_data_input_workers(
        model, ["data", "label"], numbered(), batch_size=5, num_worker_threads=1
    )
    workspace.CreateNet(model.net)
    coordinator.start()
    for batch in range(4):
        workspace.RunNet(model.net)
        wanted = list(range(5 * batch, 5 * batch + 5))
        assert workspace.FetchBlob("label").tolist() == wanted
        assert workspace.FetchBlob("data").tolist() == [[n, -n] for n in wanted]
    assert coordinator.stop()
    assert not data_workers.global_coordinator._coordinators


def test_several_threads_lose_nothing():
    net = core.Net("train")
    coordinator = data_workers.init_data_input_workers(
        net, ["data", "label"], numbered(rows=4), batch_size=4, num_worker_threads=3
    )
    workspace.CreateNet(net)
    coordinator.start()
    seen = []
    for _ in range(20):
        workspace.RunNet(net)
        seen += workspace.FetchBlob("label").tolist()
    assert coordinator.stop() and len(set(seen)) == 80 and max(seen) < 120


def test_chunks_as_batches_and_other_columns():
    net = core.Net("whole")

    def fetch(worker_id, batch_size):
        return [np.full((2, 3), batch_size, F4)]

    with core.NameScope("scope"):
        coordinator = data_workers.init_data_input_workers(
            net, ["data"], fetch, batch_size=9, dont_rebatch=True
        )
    columns = core.Net("columns")
    data_workers.init_data_input_workers(
        columns, ["wide"], fetch, batch_size=4, input_source_name="wide", batch_columns=[1]
    )
    for one in (net, columns):
        workspace.CreateNet(one)
    coordinator.start()
    for one in (net, columns):
        workspace.RunNet(one)
    assert workspace.FetchBlob("scope/data").shape == (2, 3)
    assert workspace.FetchBlob("wide").shape == (2, 4)


def test_a_function_that_fails_ends_the_net(caplog):
    net = core.Net("fails")

    def fetch(worker_id, batch_size):
        raise OSError("no data today")

    coordinator = data_workers.init_data_input_workers(net, ["data"], fetch, batch_size=1)
    workspace.CreateNet(net)
    coordinator.start()
    with pytest.raises(RuntimeError, match="is closed and empty"):
        workspace.RunNet(net)
    assert "no data today" in caplog.text
    (one,) = coordinator._coordinators
    assert isinstance(one.error, OSError)


@pytest.mark.parametrize(
    ("chunk", "text"),
    [
        ([np.zeros(2)], "gave 1 arrays for 2 inputs: data, label"),
        ([np.zeros(2), np.zeros(3)], "arrays of several numbers of rows: data: 2, label: 3"),
    ],
)
def test_chunks_that_make_no_batch(caplog, chunk, text):
    net = core.Net("bad")
    coordinator = data_workers.init_data_input_workers(
        net, ["data", "label"], lambda worker, size: chunk, batch_size=1
    )
    workspace.CreateNet(net)
    coordinator.start()
    with pytest.raises(RuntimeError, match="is closed and empty"):
        workspace.RunNet(net)
    assert text in caplog.text
    with pytest.raises(UsageError, match="1 batch_columns for 2 inputs"):
        data_workers.init_data_input_workers(
            net, ["a", "b"], numbered(), batch_size=1, batch_columns=[0]
        )


def test_another_batch_size_for_another_net():
    net, other = core.Net("train"), core.Net("test")
    coordinator = data_workers.init_data_input_workers(
        net, ["data", "label"], numbered(), batch_size=2, input_source_name="source"
    )
    coordinator.reset_data_input("", "source", other, 7)
    workspace.CreateNet(other)
    coordinator.start()
    workspace.RunNet(other)
    assert workspace.FetchBlob("label").shape == (7,)


def test_functions_on_threads():
    done, logged, begun = threading.Event(), [], []

    class Logger:
        def log(self, values):
            logged.append(values)

    numbers = set()

    def work(worker_id):
        numbers.add(worker_id)
        if len(numbers) == 2:
            done.set()

    coordinator = parallel_workers.init_workers(
        work,
        worker_name="mine",
        init_fun=lambda one, everything: begun.append(one.name),
        external_loggers=[Logger()],
        shutdown_fun=lambda: begun.append("end"),
    )
    coordinator.start()
    assert done.wait(10)
    assert coordinator.stop_coordinator("mine") and begun == ["mine", "end"]
    metrics = parallel_workers.Metrics([Logger()])
    metrics.put_metric("time", 2.0)
    metrics.put_metric("time", 4.0)
    metrics.put_metric("rows", 4.0, count=False)
    metrics.log_metrics()
    assert logged == []  # a minute is not over
    metrics._logged_at -= parallel_workers.LOG_INT_SECS
    metrics.log_metrics()
    assert logged == [{"time": 3.0, "rows": 4.0}]
