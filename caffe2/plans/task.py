"""Tasks: steps with what they need before and after, on nodes, and in groups that run together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Field
from caffe2.plans.context import DefaultManaged, Managed
from caffe2.plans.net_builder import NetBuilder
from caffe2.plans.step import ExecutionStep, execution_step, to_execution_step
from caffe2.plans.task_setup import Reporter, TaskKeys, add_setup_steps, get_setup_nets


class WorkspaceType:
    """Where a task has its blobs: in a workspace of its own, or with the others of its node."""

    PRIVATE = "private"
    GLOBAL = "global"


class Cluster(DefaultManaged):
    """The nodes of a distributed program."""

    def __init__(self) -> None:
        self._nodes: list[str] = []
        self._kwargs: dict[str, dict[str, Any]] = {}

    def add_node(self, node: Node) -> None:
        if str(node) not in self._nodes:
            self._nodes.append(str(node))
            self._kwargs[str(node)] = node.kwargs()

    def nodes(self) -> list[str]:
        return list(self._nodes)

    def node_kwargs(self) -> dict[str, dict[str, Any]]:
        return dict(self._kwargs)

    def __repr__(self) -> str:
        return f"Cluster(nodes={self._nodes})"


class Node(DefaultManaged):
    """Where tasks of a `with` block run; "local" is the default."""

    def __init__(self, node: str = "local", **kwargs: Any) -> None:
        self._name, self._kwargs = str(node), kwargs
        cluster = Cluster.current()
        assert cluster is not None
        cluster.add_node(self)

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"Node(name={self._name}, kwargs={self._kwargs})"

    def kwargs(self) -> dict[str, Any]:
        return dict(self._kwargs)


class TaskOutput:
    """A blob or record of a task, whose value can be fetched after it ran."""

    def __init__(self, names: Any) -> None:
        self._schema = names if isinstance(names, Field) else None
        self._is_scalar = self._schema is None and not isinstance(names, (list, tuple))
        blobs = names.field_blobs() if self._schema is not None else names
        self.names = [blobs] if self._is_scalar else list(blobs)
        self._values: list[Any] | None = None

    def set(self, values: Iterable[Any], _fetch_func: Callable[[Any], Any] | None = None) -> None:
        """The values, or what `_fetch_func` fetches them by."""
        found = list(values)
        if len(found) != len(self.names):
            raise UsageError(f"{len(self.names)} values are needed, got {len(found)}")
        self._values = [_fetch_func(value) for value in found] if _fetch_func else found

    def get(self) -> Any:
        """The value, the list of them, or a record.  UsageError before the task ran."""
        if self._values is None:
            raise UsageError("Output value not set yet.")
        if self._is_scalar:
            return self._values[0]
        if self._schema is None:
            return list(self._values)
        record = self._schema.clone_schema()
        for scalar, value in zip(record.all_scalars(), self._values, strict=True):
            scalar.set_value(value, unsafe=True)
        return record

    fetch = get

    def __repr__(self) -> str:
        return f"TaskOutput(names={self.names}, values={self._values})"


class TaskOutputList:
    """The outputs of a task."""

    def __init__(self, outputs: Iterable[TaskOutput] | None = None) -> None:
        self.outputs = list(outputs or ())

    def names(self) -> list[Any]:
        """The blobs of all of them."""
        return [name for output in self.outputs for name in output.names]

    def set_values(
        self, values: Iterable[Any], _fetch_func: Callable[[Any], Any] | None = None
    ) -> None:
        """The values of all blobs, in order."""
        rest = list(values)
        for output in self.outputs:
            count = len(output.names)
            output.set(rest[:count], _fetch_func)
            rest = rest[count:]

    def __repr__(self) -> str:
        return f"TaskOutputList(outputs={self.outputs})"


def final_output(blob_or_record: Any) -> TaskOutput:
    """Makes a blob or record an output of the current task."""
    task = Task.current()
    assert task is not None  # it is required
    return task.add_output(blob_or_record)


class TaskGroup(Managed):
    """Tasks that run side by side, the setup of each node around them."""

    LOCAL_SETUP = TaskKeys.LOCAL_SETUP

    def __init__(self, workspace_type: str | None = None) -> None:
        self._tasks: list[Task] = []
        self._workspace_type = workspace_type
        self._reports: list[tuple[str, Reporter]] = []
        self._remote_nets: list[Net] = []

    def add(self, task: Task) -> None:
        if task not in self._tasks:
            self._tasks.append(task)

    def tasks(self) -> list[Task]:
        return list(self._tasks)

    def num_registered_tasks(self) -> int:
        return len(self._tasks)

    def used_nodes(self) -> list[str]:
        """The nodes of the tasks, each once."""
        return list(dict.fromkeys(task.node for task in self._tasks))

    def workspace_type(self) -> str | None:
        return self._workspace_type

    def add_remote_net(self, net: Net) -> None:
        """A net that something else than the tasks runs."""
        self._remote_nets.append(net)

    def remote_nets(self) -> list[Net]:
        return list(self._remote_nets)

    def report_step(self, step: Any = None, node: Any = None, interval_ms: int = 1000) -> None:
        """A step that runs every `interval_ms` milliseconds while the tasks of a node run."""
        name = str(node or Node.current())
        self._reports.append((name, Reporter(to_execution_step(step), interval_ms)))

    def report_net(self, net: Any = None, node: Any = None, report_interval: int = 5) -> Any:
        """A net (default: a new one, which is given) that runs every `report_interval` seconds."""
        net = net if net is not None else Net("report_net")
        self.report_step(net, node, report_interval * 1000)
        return net

    def tasks_by_node(self, node_remap: Mapping[str, str] | None = None) -> TaskGroup:
        """A group with one task for each node: its tasks side by side."""
        by_node: dict[str, list[Task]] = defaultdict(list)
        for task in self._tasks:
            by_node[(node_remap or {}).get(task.node, task.node)].append(task)
        grouped = TaskGroup(self._workspace_type)
        for node, tasks in by_node.items():
            reports = [r for name, r in self._reports if (node_remap or {}).get(name, name) == node]
            merged = self._merged(node, tasks, reports)
            grouped.add(merged)
        return grouped

    def to_task(self, node: Any = None) -> Task:
        """All tasks as one, side by side."""
        name = str(node or Node.current())
        return self._merged(name, self._tasks, [report for _, report in self._reports])

    def _merged(self, node: str, tasks: list[Task], reports: list[Reporter]) -> Task:
        steps = [task.get_step() for task in tasks]
        init, exit_ = get_setup_nets(TaskKeys.LOCAL_SETUP, steps, self)
        step = execution_step(f"{node}:body", steps, concurrent_substeps=True)
        step = _with_reports(step, reports, node)
        step = add_setup_steps(step, init, exit_, f"{node}:local")
        outputs = [output for task in tasks for output in task.outputs()]
        merged = Task(step, outputs, self._workspace_type, node=node, name=node, _lone=True)
        merged._step = step  # the tasks have what runs around them already
        return merged

    def __repr__(self) -> str:
        return f"TaskGroup(tasks={self._tasks}, workspace_type={self._workspace_type})"


def _with_reports(step: ExecutionStep, reports: list[Reporter], name: str) -> ExecutionStep:
    if not reports:
        return step
    beside = []
    for report in reports:
        part = execution_step(f"{name}:report", report.step)
        part.RunEveryMillis(report.interval_ms)
        beside.append(part)
    return execution_step(f"{name}:reported", [step, *beside])


class Task(Managed):
    """A step, or what is written in the task's `with` block (see NetBuilder), and its outputs.

    workspace_type  a WorkspaceType
    group           the TaskGroup it belongs to; default: the current one, if there is one
    node            where it runs; default: the current Node
    num_instances   how many of it run side by side, each in a workspace of its own
    """

    TASK_SETUP, TASK_INSTANCE_SETUP = TaskKeys.TASK_SETUP, TaskKeys.TASK_INSTANCE_SETUP
    REPORT_STEP = TaskKeys.REPORT_STEP

    def __init__(
        self,
        step: Any = None,
        outputs: Any = None,
        workspace_type: str | None = None,
        group: TaskGroup | None = None,
        node: Any = None,
        name: str | None = None,
        num_instances: int | None = None,
        *,
        _lone: bool = False,
    ) -> None:
        self.node = str(node if node is not None else Node.current())
        self.num_instances = num_instances
        self._workspace_type = workspace_type
        self._outputs: list[TaskOutput] = []
        self._given = step
        self._step: ExecutionStep | None = None
        self._builder: NetBuilder | None = None
        self.group = None if _lone else TaskGroup.current(group, required=False)
        self.name = str(name) if _lone else self._own_name(name or "task")
        if self.group is not None:
            self.group.add(self)
        if outputs is not None:
            self.add_outputs(outputs)

    def _own_name(self, name: str) -> str:
        """Of the node and, in a group, of this task alone: blobs made inside are named after it."""
        own = f"{self.node}/{name}"
        taken = [task.name for task in self.group.tasks()] if self.group is not None else []
        names = [own, *(f"{own}:{k}" for k in range(1, len(taken) + 1))]
        return next(name for name in names if name not in taken)

    def __enter__(self) -> Task:
        super().__enter__()
        if self._given is not None:
            raise UsageError(f"the task '{self.name}' has a step already")
        self._builder = NetBuilder(self.name)
        self._builder.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        assert self._builder is not None
        self._builder.__exit__(*exc_info)
        super().__exit__(*exc_info)
        if exc_info[0] is None:
            self.set_step(self._builder)

    def workspace_type(self) -> str | None:
        return self._workspace_type

    def add_output(self, output: Any) -> TaskOutput:
        """A blob, record or TaskOutput that can be fetched after the task ran."""
        found = output if isinstance(output, TaskOutput) else TaskOutput(output)
        self._outputs.append(found)
        return found

    def add_outputs(self, outputs: Any) -> Any:
        if isinstance(outputs, (list, tuple)):
            return [self.add_output(output) for output in outputs]
        return self.add_output(outputs)

    def outputs(self) -> list[TaskOutput]:
        return list(self._outputs)

    def output_list(self) -> TaskOutputList:
        return TaskOutputList(self._outputs)

    def set_step(self, step: Any) -> None:
        """What it runs: a net, step, builder or a list of nets and steps."""
        self._given, self._step = step, None

    def get_step(self) -> ExecutionStep:
        """The step with all that has to run before, after and beside it."""
        if self._step is None:
            self._step = self._assembled()
        return self._step

    def _assembled(self) -> ExecutionStep:
        given = self._given.step() if isinstance(self._given, NetBuilder) else self._given
        step = to_execution_step(given, self.name)
        task = get_setup_nets(TaskKeys.TASK_SETUP, [step], self)
        instance = get_setup_nets(TaskKeys.TASK_INSTANCE_SETUP, [step], self)
        reports = step.get_all_attributes(TaskKeys.REPORT_STEP)
        step = add_setup_steps(step, *instance, f"{self.name}:instance")
        if self.num_instances is not None and self.num_instances > 1:
            one = execution_step(f"{self.name}:one", step, create_workspace=True)
            step = execution_step(
                f"{self.name}:instances",
                [one],
                concurrent_substeps=True,
                num_concurrent_instances=self.num_instances,
            )
        step = _with_reports(step, reports, self.name)
        step = add_setup_steps(step, *task, self.name)
        # A task around this one would set it up in its own workspace, for all instances to share.
        step.settled |= {TaskKeys.TASK_SETUP, TaskKeys.TASK_INSTANCE_SETUP, TaskKeys.REPORT_STEP}
        return step

    def __repr__(self) -> str:
        return f"Task(name={self.name}, node={self.node}, outputs={self._outputs})"


__all__ = [
    "Cluster",
    "Node",
    "Task",
    "TaskGroup",
    "TaskOutput",
    "TaskOutputList",
    "WorkspaceType",
    "final_output",
]
