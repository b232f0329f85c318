"""A queue of records that threads fill from a reader, for plans that are made of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caffe2.data.io import Reader
from caffe2.data.queues import Queue
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Field
from caffe2.plans.step import ExecutionStep, execution_step
from caffe2.runtime import workspace


class RecordQueue:
    """A queue of `capacity` records of a schema; `num_threads` threads fill it.

    It is made at once, in the current workspace: whoever reads may begin before those that fill it.
    """

    def __init__(
        self,
        fields: Any,
        name: str | None = None,
        capacity: int = 1,
        enforce_unique_name: bool = False,
        num_threads: int = 1,
    ) -> None:
        if not isinstance(fields, Field):
            raise UsageError(f"a schema is needed, got {fields!r}")
        self.schema, self.name = fields.clone_schema(), name or "queue"
        self.num_threads = num_threads
        self._queue = Queue(capacity, self.schema, name=self.name)
        init = Net(f"{self.name}_init")
        self._queue.setup(init)
        workspace.RunNetOnce(init)

    def build(
        self, reader: Reader, process: Callable[[Net, Any], Any] | None = None
    ) -> tuple[Reader, ExecutionStep, ExecutionStep, Any]:
        """What reads the queue, the step that fills it, the step that closes it, and the record.

        reader   a reader whose cursor is made
        process  appends to a net what is done with a record before, and gives the new one
        """
        steps, record = [], None
        for number in range(self.num_threads):
            net = Net(f"{self.name}_read_{number}")
            stop, record = reader.read_record(net)
            enqueue = Net(f"{self.name}_enqueue_{number}")
            if process is not None:
                record = process(enqueue, record)
            nets, _ = self._queue.writer().write_record_ex(record, enqueue, enqueue, stop)
            steps.append(
                execution_step(
                    f"{self.name}_fill_{number}", [net, enqueue, *nets], should_stop_blob=stop
                )
            )
        step = execution_step(f"{self.name}_fill", steps, concurrent_substeps=True)
        end = Net(f"{self.name}_exit")
        end.CloseBlobsQueue([self._queue.queue()], 0)
        return self._queue.reader(), step, execution_step(f"{self.name}_exit", end), record
