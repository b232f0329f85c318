"""Readers and writers; see `caffe2.data.io`."""

from caffe2.data.io import (
    CompositeReader,
    CompositeReaderBuilder,
    CounterReader,
    CountUntil,
    Pipe,
    PipedReaderBuilder,
    Reader,
    ReaderBuilder,
    ReaderWithDelay,
    ReaderWithLimit,
    ReaderWithLimitBase,
    ReaderWithTimeLimit,
    Writer,
)

__all__ = [
    "CompositeReader",
    "CompositeReaderBuilder",
    "CountUntil",
    "CounterReader",
    "Pipe",
    "PipedReaderBuilder",
    "Reader",
    "ReaderBuilder",
    "ReaderWithDelay",
    "ReaderWithLimit",
    "ReaderWithLimitBase",
    "ReaderWithTimeLimit",
    "Writer",
]
