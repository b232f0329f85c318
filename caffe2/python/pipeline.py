"""Records from readers to writers; see `caffe2.data.pipeline`."""

from caffe2.data.pipeline import (
    DEFAULT_QUEUE_CAPACITY,
    NetProcessor,
    Output,
    ProcessingReader,
    make_processor,
    normalize_processor_output,
    pipe,
    pipe_and_output,
    processor_name,
)

__all__ = [
    "DEFAULT_QUEUE_CAPACITY",
    "NetProcessor",
    "Output",
    "ProcessingReader",
    "make_processor",
    "normalize_processor_output",
    "pipe",
    "pipe_and_output",
    "processor_name",
]
