"""Queues of records as pipes between readers and writers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe2.data.io import Pipe, Reader, Writer
from caffe2.graph.net import Net
from caffe2.graph.records import Field
from caffe2.plans.step import execution_step
from caffe2.plans.task import TaskGroup


class _QueueReader(Reader):
    def __init__(self, wrapper: QueueWrapper, num_dequeue_records: int = 1) -> None:
        super().__init__(wrapper.schema())  # None until a writer has come
        self._wrapper, self._records = wrapper, num_dequeue_records

    def setup_ex(self, init_net: Any, exit_net: Any) -> None:
        exit_net.CloseBlobsQueue([self._wrapper.queue()], 0)

    def read_ex(self, local_init_net: Any, local_finish_net: Any) -> tuple[list[Any], Any, Any]:
        self._wrapper._new_reader(local_init_net)
        net = Net("dequeue")
        stop, fields = self.read(net)
        return [net], stop, fields

    def read(self, read_net: Any) -> tuple[Any, Any]:
        self._set_schema(self._wrapper.schema())
        names = self.schema().field_names()
        fields, stop = dequeue(
            read_net, self._wrapper.queue(), len(names), None, names, self._records
        )
        return stop, fields


class _QueueWriter(Writer):
    def __init__(self, wrapper: QueueWrapper) -> None:
        self._wrapper = wrapper

    def setup_ex(self, init_net: Any, exit_net: Any) -> None:
        exit_net.CloseBlobsQueue([self._wrapper.queue()], 0)

    def write_ex(
        self, fields: Sequence[Any], local_init_net: Any, local_finish_net: Any, status: Any
    ) -> list[Any]:
        self._wrapper._new_writer(self.schema(), local_init_net)
        net = Net("enqueue")
        enqueue(net, self._wrapper.queue(), fields, status)
        return [net]


class QueueWrapper(Pipe):
    """A queue that there is already, as a pipe."""

    def __init__(
        self, handler: Any, schema: Field | None = None, num_dequeue_records: int = 1
    ) -> None:
        super().__init__(schema, TaskGroup.LOCAL_SETUP)
        self._queue, self._records = handler, num_dequeue_records

    def reader(self) -> Reader:
        return _QueueReader(self, self._records)

    def writer(self) -> Writer:
        return _QueueWriter(self)

    def queue(self) -> Any:
        """The blob."""
        return self._queue


class Queue(QueueWrapper):
    """A new queue of `capacity` records."""

    def __init__(
        self,
        capacity: int,
        schema: Field | None = None,
        name: str = "queue",
        num_dequeue_records: int = 1,
    ) -> None:
        net = Net(name)
        super().__init__(net.AddExternalInput(net.NextName("handler")), schema, num_dequeue_records)
        self.capacity = capacity
        self._made = False

    def setup(self, global_init_net: Any) -> None:
        """Appends the making of the queue to a net, once; the schema has to be known by then."""
        if self._made:
            return
        self._made = True
        global_init_net.CreateBlobsQueue(
            [],
            [self._queue],
            capacity=self.capacity,
            num_blobs=len(self._schema.field_names()) if self._schema is not None else 1,
            field_names=self._schema.field_names() if self._schema is not None else [],
        )


def enqueue(net: Any, queue: Any, data_blobs: Sequence[Any], status: Any = None) -> Any:
    """Appends the enqueueing of a record; the blob that is true when the queue is closed.

    The record is a copy: the blobs keep their values.
    """
    if status is None:
        status = net.NextName("status")
    copies = [net.Copy(blob) for blob in data_blobs]
    results = net.SafeEnqueueBlobs([queue, *copies], [*copies, status])
    return results[-1]


def dequeue(
    net: Any,
    queue: Any,
    num_blobs: int,
    status: Any = None,
    field_names: Sequence[str] | None = None,
    num_records: int = 1,
) -> tuple[list[Any], Any]:
    """Appends the dequeueing of a record (or several, concatenated): its blobs, named after the
    fields, and the blob that is true when the queue is closed and empty."""
    names = [net.NextName(name) for name in field_names or ["data"] * num_blobs]
    if status is None:
        status = net.NextName("status")
    results = net.SafeDequeueBlobs(queue, [*names, status], num_records=num_records)
    return list(results[:-1]), results[-1]


def close_queue(step: Any, *queues: Any) -> Any:
    """A step that runs `step` and then closes queues, whatever comes of it."""
    close = Net("close_queue_net")
    for queue in queues:
        close.CloseBlobsQueue([queue], 0)
    return execution_step("close_queue_step", [step, execution_step("close", close)])
