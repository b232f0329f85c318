"""Data of Python functions for nets; see `caffe2.data.workers`."""

from caffe2.data.parallel import (
    LOG_INT_SECS,
    GlobalWorkerCoordinator,
    Metrics,
    State,
    Worker,
    WorkerCoordinator,
    get_worker_ids,
    run_worker,
)
from caffe2.data.workers import (
    BatchFeeder,
    DataWorker,
    GlobalCoordinator,
    enqueuer,
    global_coordinator,
    init_data_input_workers,
)

__all__ = [
    "LOG_INT_SECS",
    "BatchFeeder",
    "DataWorker",
    "GlobalCoordinator",
    "GlobalWorkerCoordinator",
    "Metrics",
    "State",
    "Worker",
    "WorkerCoordinator",
    "enqueuer",
    "get_worker_ids",
    "global_coordinator",
    "init_data_input_workers",
    "run_worker",
]
