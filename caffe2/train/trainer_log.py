"""The log of a training run: lines of JSON, and a header that says how it was started."""

from __future__ import annotations

import datetime
import json
import os
import socket
import time
from collections.abc import Iterable, Mapping
from typing import Any


class ExternalLogger:
    """Base of loggers that ModelTrainerLog tells what it logs."""

    def set_runtime_args(self, runtime_args: Any) -> None:
        """How the program was started; called once."""
        raise NotImplementedError(f"{type(self).__name__}.set_runtime_args")

    def log(self, log_dict: Mapping[str, Any]) -> None:
        """One line of the log, as a dictionary."""
        raise NotImplementedError(f"{type(self).__name__}.log")


class ModelTrainerLog:
    """Writes the progress of a training run to `<expname>_<time>.log` in the current folder, a
    line of JSON at a time.

    runtime_args      how the program was started (an argparse.Namespace or anything printable)
    external_loggers  ExternalLoggers, which get the same
    """

    def __init__(
        self,
        expname: str,
        runtime_args: Any,
        external_loggers: Iterable[ExternalLogger] | None = None,
    ) -> None:
        now = datetime.datetime.now()
        self.experiment_name = expname
        self.filename = f"{expname}_{now:%Y%m%d_%H%M%S}.log"
        self.start_time = time.time()
        self.last_time = self.start_time
        self.last_input_count = 0
        self.external_loggers = list(external_loggers or ())
        for logger in self.external_loggers:
            logger.set_runtime_args(runtime_args)
        self.logstr(f"# {runtime_args} on {socket.gethostname()} at {now:%Y-%m-%d %H:%M:%S}")

    def logstr(self, str: str) -> None:
        """Appends a line as it is."""
        with open(self.filename, "a", encoding="utf-8") as file:
            file.write(str + os.linesep)

    def log(self, input_count: int, batch_count: int, additional_values: Mapping[str, Any]) -> None:
        """Appends a line.

        input_count        inputs so far; their rate since the last line (per second) is computed
        batch_count        batches so far
        additional_values  further numbers by name
        """
        now = time.time()
        passed = max(now - self.last_time, 1e-9)
        line = {
            "time_spent": now - self.start_time,
            "cumulative_time_spent": now - self.start_time,
            "input_count": input_count,
            "batch_count": batch_count,
            "inputs_per_sec": (input_count - self.last_input_count) / passed,
            **additional_values,
        }
        self.last_time, self.last_input_count = now, input_count
        for logger in self.external_loggers:
            logger.log(line)
        self.logstr(json.dumps(line, default=float))
