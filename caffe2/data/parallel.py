"""Python functions that are called again and again on threads beside a net.

coordinator = init_workers(fetch, num_worker_threads=2)
coordinator.start()
...
coordinator.stop()
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

_log = logging.getLogger(__name__)
_STOP_SECONDS = 60.0  # how long a worker may take to end
LOG_INT_SECS = 60


class Metrics:
    """Sums of what workers count, handed to loggers (`log(dict)`) once a minute."""

    def __init__(self, external_loggers: Iterable[Any] | None) -> None:
        self._loggers = list(external_loggers or ())
        self._lock = threading.Lock()
        self.reset_metrics()

    def reset_metrics(self) -> None:
        self._sums: dict[str, float] = defaultdict(float)
        self._counts: dict[str, int] = defaultdict(int)
        self._logged_at = time.monotonic()

    def put_metric(self, key: str, value: float, count: bool = True) -> None:
        """Adds to a sum; with `count` the average is logged, else the sum."""
        with self._lock:
            self._sums[key] += value
            self._counts[key] += count

    def log_metrics(self) -> None:
        """Logs and begins anew when a minute is over."""
        with self._lock:
            if time.monotonic() - self._logged_at < LOG_INT_SECS:
                return
            values = {
                key: total / self._counts[key] if self._counts[key] else total
                for key, total in self._sums.items()
            }
            self.reset_metrics()
        for logger in self._loggers:
            try:
                logger.log(values)
            except Exception:  # a logger must not end the work
                _log.exception("a logger of metrics failed")


class State:
    """What belongs to the workers of a coordinator."""

    def start(self) -> None:
        """Before the workers begin."""

    def stop(self) -> None:
        """When they are to end: whoever waits for something in here is woken."""

    def cleanup(self) -> None:
        """After they have ended."""


class WorkerCoordinator:
    """The workers of one kind: started and stopped together.

    init_fun(coordinator, global_coordinator) is called before the first start, shutdown_fun()
    after the end.  `error` is what a worker raised, which stops all of them.
    """

    def __init__(
        self,
        worker_name: str,
        worker_ids: Iterable[int],
        init_fun: Callable[..., Any] | None,
        state: State | None = None,
        shutdown_fun: Callable[[], Any] | None = None,
    ) -> None:
        self.name = worker_name
        self.error: Exception | None = None
        self._ids = list(worker_ids)
        self._init_fun, self._shutdown_fun = init_fun, shutdown_fun
        self._state = state or State()
        self.jobs: list[Callable[[], None]] = []  # one for each thread
        self._threads: list[threading.Thread] = []
        self._active = False

    def is_active(self) -> bool:
        return self._active

    def get_worker_ids(self) -> list[int]:
        return self._ids

    def init(self, global_coordinator: GlobalWorkerCoordinator) -> None:
        if self._init_fun:
            self._init_fun(self, global_coordinator)

    def start(self) -> None:
        """Starts the workers, unless they are at work."""
        if self._active:
            return
        self._active, self.error = True, None
        self._state.start()
        self._threads = [
            threading.Thread(target=job, name=f"{self.name} worker {number}", daemon=True)
            for number, job in enumerate(self.jobs)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, error: Exception | None = None) -> None:
        """Tells the workers to end, of which one may have failed."""
        self.error = self.error or error
        self._active = False
        self._state.stop()

    def wait(self) -> bool:
        """Waits for the end of the workers; False when one goes on nevertheless."""
        end = time.monotonic() + _STOP_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        late = [thread.name for thread in self._threads if thread.is_alive()]
        if late:
            _log.error("%s did not end within %g seconds", ", ".join(late), _STOP_SECONDS)
        self._threads = []
        self._state.cleanup()
        if self._shutdown_fun:
            self._shutdown_fun()
        return not late


class Worker:
    """One thread's work: `run` is called while its coordinator is active."""

    def __init__(
        self,
        coordinator: WorkerCoordinator,
        worker_id: int,
        worker_fun: Callable[..., Any] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._coordinator, self._worker_id = coordinator, worker_id
        self._worker_fun, self._metrics = worker_fun, metrics
        self._begun = 0.0

    def start(self) -> None:
        self._begun = time.monotonic()

    def run(self) -> None:
        assert self._worker_fun is not None
        self._worker_fun(self._worker_id)

    def handle_exception(self, e: Exception) -> None:
        """Stops all workers of the coordinator."""
        _log.error("a worker of '%s' failed", self._coordinator.name, exc_info=e)
        self._coordinator.stop(e)

    def finish(self) -> None:
        if self._metrics is not None:
            self._metrics.put_metric("worker_time", time.monotonic() - self._begun)
            self._metrics.log_metrics()


def run_worker(coordinator: WorkerCoordinator, worker: Worker) -> None:
    """Lets a worker work until its coordinator is stopped."""
    while coordinator.is_active():
        worker.start()
        try:
            worker.run()
        except Exception as error:  # whatever the user's function raises
            worker.handle_exception(error)
        finally:
            worker.finish()


class GlobalWorkerCoordinator:
    """All coordinators of a process."""

    def __init__(self) -> None:
        self._coordinators: list[WorkerCoordinator] = []
        self._fetcher_id_seq = 0
        self._lock = threading.Lock()
        self._registered = False

    def add(self, coordinator: WorkerCoordinator) -> None:
        self._coordinators.append(coordinator)

    def get_new_worker_id(self) -> int:
        with self._lock:
            self._fetcher_id_seq += 1
            return self._fetcher_id_seq - 1

    def get_worker_ids(self) -> list[int]:
        return [number for one in self._coordinators for number in one.get_worker_ids()]

    def start(self) -> None:
        """Starts all workers that are not at work."""
        for coordinator in self._coordinators:
            coordinator.init(self)
            coordinator.start()

    def stop(self) -> bool:
        """Stops all workers, waits for their end and forgets them; False when one goes on."""
        coordinators, self._coordinators = self._coordinators, []
        return self._end(coordinators)

    def stop_coordinator(self, worker_name: str) -> bool:
        """Stops and forgets the workers of one name."""
        named = [one for one in self._coordinators if one.name == worker_name]
        self._coordinators = [one for one in self._coordinators if one.name != worker_name]
        return self._end(named)

    @staticmethod
    def _end(coordinators: list[WorkerCoordinator]) -> bool:
        for coordinator in coordinators:
            coordinator.stop()
        ended = [coordinator.wait() for coordinator in coordinators]
        return all(ended)

    def register_shutdown_handler(self) -> None:
        """Stops all workers when the interpreter ends."""
        if not self._registered:
            self._registered = True
            atexit.register(self.stop)


global_coordinator = GlobalWorkerCoordinator()


def get_worker_ids(
    num_workers: int, coordinator: GlobalWorkerCoordinator = global_coordinator
) -> list[int]:
    """New numbers for workers, each used once in a process."""
    return [coordinator.get_new_worker_id() for _ in range(num_workers)]


def init_workers(
    worker_fun: Callable[..., Any],
    num_worker_threads: int = 2,
    worker_name: str = "train",
    init_fun: Callable[..., Any] | None = None,
    external_loggers: Iterable[Any] | None = None,
    shutdown_fun: Callable[[], Any] | None = None,
) -> GlobalWorkerCoordinator:
    """Prepares threads that call `worker_fun(worker_id)` again and again from `start()` to `stop()`
    of what is given back.  One that raises stops all of this call."""
    metrics = Metrics(external_loggers)
    ids = get_worker_ids(num_worker_threads)
    coordinator = WorkerCoordinator(worker_name, ids, init_fun, shutdown_fun=shutdown_fun)
    for number in ids:
        worker = Worker(coordinator, number, worker_fun, metrics)
        coordinator.jobs.append(partial(run_worker, coordinator, worker))
    global_coordinator.add(coordinator)
    return global_coordinator
