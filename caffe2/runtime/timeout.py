"""Ending a process that hangs."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator

_log = logging.getLogger(__name__)
_GRACE = 10.0  # seconds between the polite end and the other one


class WatcherThread(threading.Thread):
    """Ends the process unless `completed` is set within `timeout_secs`: it prints the stacks of all
    threads, sends SIGINT, and after some more seconds ends the process with code 1."""

    def __init__(self, timeout_secs: float) -> None:
        super().__init__(daemon=True, name="timeout watcher")
        self.timeout_secs = timeout_secs
        self.completed = False
        self.condition = threading.Condition()

    def complete(self) -> None:
        with self.condition:
            self.completed = True
            self.condition.notify_all()

    def _waited(self, seconds: float) -> bool:
        with self.condition:
            return self.condition.wait_for(lambda: self.completed, seconds)

    def run(self) -> None:
        if self._waited(self.timeout_secs):
            return
        _log.error("call did not finish in %s seconds: the process ends", self.timeout_secs)
        faulthandler.dump_traceback(file=sys.__stderr__ or sys.stderr, all_threads=True)
        os.kill(os.getpid(), signal.SIGINT)
        if not self._waited(_GRACE):
            os._exit(1)


@contextlib.contextmanager
def CompleteInTimeOrDie(timeout_secs: float) -> Iterator[None]:
    """Ends the process when the `with` block takes longer than this."""
    watcher = WatcherThread(timeout_secs)
    watcher.start()
    try:
        yield
    finally:
        watcher.complete()


def EuthanizeIfNecessary(timeout_secs: float = 120) -> None:
    """Ends the process when it still runs after this time; to be called when all is done."""
    WatcherThread(timeout_secs).start()
