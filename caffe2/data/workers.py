"""Data of Python functions on its way into a net.

    def fetch(worker_id, batch_size):
        return [images, labels]  # arrays of as many rows as there are at hand

    coordinator = init_data_input_workers(net, ["data", "label"], fetch, batch_size=32)
    workspace.CreateNet(net)
    coordinator.start()
    workspace.RunNet(net)  # takes the next 32 rows
    coordinator.stop()

Threads call the function, one puts batches of equal size together, and a queue of the engine keeps
them until an operator of the net takes them out.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe2.data.parallel import (
    GlobalWorkerCoordinator,
    Metrics,
    State,
    Worker,
    WorkerCoordinator,
    get_worker_ids,
    run_worker,
)
from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.operator import CreateOperator
from caffe2.graph.scope import CurrentNameScope
from caffe2.runtime.handles import Workspace
from caffe2.runtime.workspaces import current

_POLL_SECONDS = 0.1
_READY_BATCHES = 4  # in the queue of the engine
Array = npt.NDArray[Any]
Chunk = Sequence[Any]


class BatchFeeder(State):
    """Chunks of rows from workers, and batches of them in a queue of the engine.

    dont_rebatch    each chunk is a batch
    batch_columns   for each input the dimension of its rows (default: 0)
    """

    def __init__(
        self,
        net: Any,
        input_blob_names: Sequence[Any],
        batch_size: int,
        input_source_name: str,
        chunks: queue.Queue[Chunk],
        metrics: Metrics,
        dont_rebatch: bool = False,
        batch_columns: Sequence[int] | None = None,
        timeout: float = 600,
    ) -> None:
        self.names, self.batch_size = [str(name) for name in input_blob_names], batch_size
        self.namescope, self._source = CurrentNameScope(), input_source_name
        self._chunks, self._metrics, self._whole = chunks, metrics, dont_rebatch
        self._columns = list(batch_columns or [0] * len(self.names))
        if len(self._columns) != len(self.names):
            raise UsageError(f"{len(self._columns)} batch_columns for {len(self.names)} inputs")
        self._timeout = timeout
        self._workspace = Workspace.of(current())
        prefix = f"{self.namescope}{input_source_name}_{'_'.join(self.names)}"
        self._queue = BlobReference(f"{prefix}_queue")
        self._ready = [BlobReference(f"{prefix}_next_{name}") for name in self.names]
        self._status = BlobReference(f"{prefix}_status")
        self._left: list[Array] | None = None  # rows of no batch yet
        self._inputs, self._lock = 0, threading.Lock()  # rows that workers have given
        self._create_queue()
        self.add_to(net)

    def add_to(self, net: Any) -> None:
        """Appends the operator that takes the next batch."""
        net.DequeueBlobs(self._queue, self.names, timeout_secs=float(self._timeout))

    def _run(
        self, op_type: str, inputs: Sequence[Any], outputs: Sequence[Any], **args: Any
    ) -> None:
        self._workspace.run(CreateOperator(op_type, inputs, outputs, **args))

    def _create_queue(self) -> None:
        count = len(self.names)
        self._run("CreateBlobsQueue", [], [self._queue], num_blobs=count, capacity=_READY_BATCHES)

    def start(self) -> None:
        self._left = None
        self._create_queue()

    def stop(self) -> None:
        self._run("CloseBlobsQueue", [self._queue], [])

    def cleanup(self) -> None:
        while not self._chunks.empty():
            self._chunks.get()

    def put(self, chunk: Chunk, data_input_coordinator: WorkerCoordinator) -> None:
        """A chunk of a worker; waits while there are enough."""
        if len(chunk) != len(self.names):
            raise UsageError(
                f"the function of '{self._source}' gave {len(chunk)} arrays for "
                f"{len(self.names)} inputs: {', '.join(self.names)}"
            )
        with self._lock:
            self._inputs += np.shape(chunk[0])[self._columns[0]]
        while data_input_coordinator.is_active():
            try:
                self._chunks.put(chunk, timeout=_POLL_SECONDS)
                return
            except queue.Full:
                continue

    def feed_next(self) -> bool:
        """Puts the batches of the next chunk into the queue; False when that is closed."""
        try:
            chunk = self._chunks.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            return True
        self._metrics.put_metric("queue_size", self._chunks.qsize())
        if self._whole:
            return self._enqueue(list(map(np.asarray, chunk)))
        self._add(chunk)
        while self._left is not None and self._rows(self._left) >= self.batch_size:
            batch, self._left = self._split(self._left)
            if not self._enqueue(batch):
                return False
        return True

    def _rows(self, arrays: Sequence[Array]) -> int:
        counts = [array.shape[axis] for array, axis in zip(arrays, self._columns, strict=True)]
        if len(set(counts)) > 1:
            text = ", ".join(f"{name}: {n}" for name, n in zip(self.names, counts, strict=True))
            raise UsageError(f"'{self._source}' gave arrays of several numbers of rows: {text}")
        return int(counts[0])

    def _add(self, chunk: Chunk) -> None:
        arrays = [np.asarray(array) for array in chunk]
        self._rows(arrays)
        if self._left is not None:
            arrays = [
                np.concatenate(pair, axis=axis)
                for *pair, axis in zip(self._left, arrays, self._columns, strict=True)
            ]
        self._left = arrays

    def _split(self, arrays: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        parts = [
            np.split(array, [self.batch_size], axis=axis)
            for array, axis in zip(arrays, self._columns, strict=True)
        ]
        return [first for first, _ in parts], [rest for _, rest in parts]

    def _enqueue(self, batch: Sequence[Array]) -> bool:
        for blob, array in zip(self._ready, batch, strict=True):
            self._workspace.feed_blob(blob, array)
        self._run("SafeEnqueueBlobs", [self._queue, *self._ready], [*self._ready, self._status])
        return not bool(self._workspace.fetch_blob(self._status))


class DataWorker(Worker):
    """Calls the user's function and hands on what it gives."""

    def __init__(
        self,
        coordinator: WorkerCoordinator,
        worker_id: int,
        worker_fun: Callable[..., Any],
        metrics: Metrics,
        batch_size: int,
        batch_feeder: BatchFeeder,
    ) -> None:
        super().__init__(coordinator, worker_id, worker_fun, metrics)
        self._batch_size, self._feeder = batch_size, batch_feeder

    def run(self) -> None:
        assert self._worker_fun is not None
        chunk = self._worker_fun(self._worker_id, self._batch_size)
        if chunk is not None:
            self._feeder.put(chunk, self._coordinator)


class GlobalCoordinator(GlobalWorkerCoordinator):
    """All sources of data of a process."""

    def __init__(self) -> None:
        super().__init__()
        self._queues: dict[str, queue.Queue[Chunk]] = {}
        self.register_shutdown_handler()

    def get_queue(self, queue_name: str, max_buffered_batches: int) -> queue.Queue[Chunk]:
        """The chunks of a source; sources of one name share them."""
        return self._queues.setdefault(queue_name, queue.Queue(maxsize=max_buffered_batches))

    def reset_data_input(self, namescope: str, name: str, net: Any, batch_size: int) -> None:
        """Another batch size for the source of a name, which `net` takes data from as well."""
        for coordinator in self._coordinators:
            feeder = coordinator._state
            if not isinstance(feeder, BatchFeeder) or coordinator.name != name:
                continue
            if feeder.namescope == namescope:
                feeder.batch_size = batch_size
                feeder.add_to(net)


global_coordinator = GlobalCoordinator()


def enqueuer(coordinator: WorkerCoordinator, batch_feeder: BatchFeeder) -> None:
    """Feeds batches until the coordinator is stopped."""
    try:
        while coordinator.is_active() and batch_feeder.feed_next():
            pass
    except Exception as error:  # of data that makes no batch
        Worker(coordinator, -1).handle_exception(error)


def init_data_input_workers(
    net: Any,
    input_blob_names: Sequence[Any],
    fetch_fun: Callable[..., Any],
    batch_size: int,
    num_worker_threads: int = 2,
    input_source_name: str = "train",
    max_buffered_batches: int = 800,
    init_fun: Callable[..., Any] | None = None,
    external_loggers: Iterable[Any] | None = None,
    dont_rebatch: bool = False,
    batch_columns: Sequence[int] | None = None,
    timeout: float = 600,
) -> GlobalCoordinator:
    """Appends to `net` the operator that takes the next batch, and prepares the threads that make
    batches from `start()` to `stop()` of what is given back.

    net                   a Net, or a ModelHelper
    input_blob_names      the blobs of a batch
    fetch_fun             fetch_fun(worker_id, batch_size) gives one array for each, of any equal
                          number of rows, or None for nothing at present
    input_source_name     sources of one name share what their functions give
    max_buffered_batches  functions wait when so many of their results are not used yet
    dont_rebatch          each result is a batch
    batch_columns         for each blob the dimension of its rows (default: 0)
    timeout               seconds after which a net that waits for a batch ends with an error

    When a function raises, its source is stopped and nets that wait for it end with an error.
    """
    source = net.net if hasattr(net, "param_init_net") else net
    coordinator_queue = global_coordinator.get_queue(input_source_name, max_buffered_batches)
    metrics = Metrics(external_loggers)
    feeder = BatchFeeder(
        source,
        input_blob_names,
        batch_size,
        input_source_name,
        coordinator_queue,
        metrics,
        dont_rebatch,
        batch_columns,
        timeout,
    )
    ids = get_worker_ids(num_worker_threads, global_coordinator)
    coordinator = WorkerCoordinator(input_source_name, ids, init_fun, feeder)
    for number in ids:
        worker = DataWorker(coordinator, number, fetch_fun, metrics, batch_size, feeder)
        coordinator.jobs.append(partial(run_worker, coordinator, worker))
    coordinator.jobs.append(partial(enqueuer, coordinator, feeder))
    global_coordinator.add(coordinator)
    return global_coordinator
