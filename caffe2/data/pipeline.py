"""Records from readers through functions to writers, on several threads: `pipe`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from caffe2.data.io import Reader, Writer
from caffe2.data.queues import Queue
from caffe2.data.records import as_record
from caffe2.graph.cloning import clone_and_bind_net
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Field
from caffe2.ops.datatypes import DataType
from caffe2.plans.net_builder import NetBuilder, ops
from caffe2.plans.step import execution_step
from caffe2.plans.task import Node, Task, TaskGroup

DEFAULT_QUEUE_CAPACITY = 100


class Output:
    """What a processor gives: nets to run, the record, and a blob that says to stop."""

    def __init__(self, nets: Any = None, record: Any = None, should_stop: Any = None) -> None:
        listed = nets if isinstance(nets, (list, tuple)) else [nets]
        self.nets = [] if nets is None else list(listed)
        self.record = None if record is None else as_record(record)
        self.should_stop = should_stop


def normalize_processor_output(output: Any) -> Output:
    """What a processor gave, as an Output.

    It may be an Output, a record, None, a net or a list of nets, or a tuple of nets, record and, if
    wanted, the blob that says to stop.
    """
    if isinstance(output, Output):
        return output
    if isinstance(output, Field):
        return Output(record=output)
    if isinstance(output, tuple):
        return Output(*output)
    return Output(output)


def processor_name(processor: Any) -> str:
    """What a processor is called in the names of nets."""
    given = getattr(processor, "name", None)
    if given:
        return str(given)
    name = getattr(processor, "__name__", type(processor).__name__)
    return "function" if name == "<lambda>" else str(name)


def make_processor(processor: Any, reader: Any = None) -> Callable[[Any], Any]:
    """What is called with records: the function itself, one for a net, or one that does nothing."""
    if processor is None:
        return lambda record: record
    return NetProcessor(processor) if isinstance(processor, Net) else processor


class NetProcessor:
    """A net as a processor: a copy of it runs on each record, from its input record to its output
    record.

    stop_signal       a blob of the net that says to stop
    thread_init_nets  nets that run once in each thread before
    """

    def __init__(
        self,
        net: Net,
        stop_signal: Any = None,
        thread_init_nets: Iterable[Net] | None = None,
        name: str | None = None,
    ) -> None:
        self.net, self.stop_signal = net, stop_signal
        self.thread_init_nets = list(thread_init_nets or ())
        self.name = name or net.Name()
        self._blob_maps: list[dict[str, str]] = []

    def schema(self) -> Any:
        """The schema of its output."""
        return self.net.output_record()

    def setup(self, init_net: Any) -> None:
        """Nothing: what runs before is in `thread_init_nets`."""

    def __call__(self, rec: Any) -> Output:
        prefix = f"{NetBuilder.current()}/"
        names: dict[str, str] = {}
        for net in self.thread_init_nets:
            copy, names = clone_and_bind_net(net, net.Name(), prefix, names)
            with ops.task_instance_init():
                ops.net(copy)
        copy, names = clone_and_bind_net(self.net, self.name, prefix, names, rec)
        self._blob_maps.append(names)
        stop = self.stop_signal and names.get(str(self.stop_signal), str(self.stop_signal))
        return Output([copy], copy.output_record(), copy.GetBlobRef(stop) if stop else None)

    def blob_maps(self) -> list[dict[str, str]]:
        """For each copy the new name of each blob."""
        return self._blob_maps


class ProcessingReader(Reader):
    """The records of another reader after a processor."""

    def __init__(self, reader: Reader, processor: Any) -> None:
        super().__init__()
        self.reader, self.processor = reader, make_processor(processor, reader)

    def setup_ex(self, init_net: Any, finish_net: Any) -> None:
        self.reader.setup_ex(init_net, finish_net)

    def read_ex(self, init_net: Any, exit_net: Any) -> tuple[list[Any], Any, Any]:
        nets, stop, record = self.reader.read_record_ex(init_net, exit_net)
        with NetBuilder(processor_name(self.processor)) as block:
            result = normalize_processor_output(self.processor(record))
            for net in result.nets:
                block.add(net)
            ends = [] if result.should_stop is None else [result.should_stop]
        if block.has_stop_blob():
            ends.append(block.stop_blob())
        parts = [*nets, block.step()]
        for end in ends:
            either = Net(f"{block}_stop")
            either.Copy([either.Or([stop, end])], [stop])  # they may differ in shape
            parts.append(either)
        self._set_schema(result.record)
        return parts, stop, result.record


def pipe(
    input: Any,
    output: Any = None,
    num_threads: int = 1,
    processor: Any = None,
    name: str | None = None,
    capacity: int | None = None,
    group: TaskGroup | None = None,
    num_runtime_threads: int = 1,
) -> Any:
    """Adds a task that brings records from an input to an output.

    input                a Reader, or what has `reader()`, such as what another `pipe` gave
    output               a Writer, or what has `writer()`; default: a new Queue of `capacity`
                         (100) records, unless the processor gives no record
    processor            a function of a record, a net with input and output records, or None.  It
                         appends to `ops`, and gives what normalize_processor_output takes
    num_threads, num_runtime_threads
                         as many instances of the task as their product run side by side, each with
                         blobs of its own
    group                the TaskGroup; default: the current one

    Gives the output, for the next `pipe`; None when there is none.
    """
    return pipe_and_output(
        input, output, num_threads, processor, name, capacity, group, num_runtime_threads
    )[0]


def pipe_and_output(
    input: Any,
    output: Any = None,
    num_threads: int = 1,
    processor: Any = None,
    name: str | None = None,
    capacity: int | None = None,
    group: TaskGroup | None = None,
    num_runtime_threads: int = 1,
    final_outputs: Any = None,
) -> tuple[Any, Any]:
    """`pipe` with blobs that can be fetched after the task: the output, and their TaskOutputs."""
    if num_threads < 1 or num_runtime_threads < 1:
        raise UsageError(f"{num_threads} times {num_runtime_threads} threads do nothing")
    reader = input if isinstance(input, Reader) else input.reader()
    if processor is not None:
        reader = ProcessingReader(reader, processor)
    threads = num_threads * num_runtime_threads
    title = name or processor_name(processor if processor is not None else input)
    task = Task(
        name=f"pipe_{title}",
        group=group,
        node=Node.current(),
        num_instances=threads if threads > 1 else None,
    )
    before, after = Net(f"{title}_init"), Net(f"{title}_exit")
    reader.setup_ex(before, after)
    with task:
        once_before, once_after = Net(f"{title}_thread_init"), Net(f"{title}_thread_exit")
        nets, stop, record = reader.read_record_ex(once_before, once_after)
        once_before.ConstantFill([], [stop], shape=[], value=False, dtype=int(DataType.BOOL))
        if output is None and record is not None:
            output = Queue(capacity or DEFAULT_QUEUE_CAPACITY, name=f"{title}_queue")
        writes: list[Any] = []
        if output is not None and record is not None:
            writer = output if isinstance(output, Writer) else output.writer()
            writer.setup_ex(before, after)
            writes, _ = writer.write_record_ex(record, once_before, once_after, stop)
        with ops.task_init():
            ops.net(before)
        with ops.task_instance_init():
            ops.net(once_before)
        ops.net(execution_step(f"{title}_loop", [*nets, *writes], should_stop_blob=stop))
        with ops.task_instance_exit():
            ops.net(once_after)
        with ops.task_exit():
            ops.net(after)
    outputs = task.add_outputs(final_outputs) if final_outputs is not None else None
    return output, outputs
