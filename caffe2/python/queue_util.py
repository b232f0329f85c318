"""Queues of records; see `caffe2.data.queues`."""

from caffe2.data.queues import (
    Queue,
    QueueWrapper,
    close_queue,
    dequeue,
    enqueue,
)

__all__ = [
    "Queue",
    "QueueWrapper",
    "close_queue",
    "dequeue",
    "enqueue",
]
