"""Functions on threads beside a net; see `caffe2.data.parallel`."""

from caffe2.data.parallel import (
    LOG_INT_SECS,
    GlobalWorkerCoordinator,
    Metrics,
    State,
    Worker,
    WorkerCoordinator,
    global_coordinator,
    init_workers,
    run_worker,
)

__all__ = [
    "LOG_INT_SECS",
    "GlobalWorkerCoordinator",
    "Metrics",
    "State",
    "Worker",
    "WorkerCoordinator",
    "global_coordinator",
    "init_workers",
    "run_worker",
]
