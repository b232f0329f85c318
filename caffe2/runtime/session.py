"""Sessions: where tasks run."""

from __future__ import annotations

from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.plans.plan import Plan
from caffe2.plans.step import ExecutionStep
from caffe2.plans.task import Task, TaskGroup
from caffe2.runtime.handles import Workspace


class LocalSession:
    """Runs nets, steps, tasks and groups of tasks in a workspace of this process.

    ws: a Workspace; default: the current one
    """

    def __init__(self, ws: Workspace | None = None) -> None:
        self._workspace = ws if ws is not None else Workspace.current
        self._open = True

    def is_open(self) -> bool:
        return self._open

    def run(self, runnable: Any) -> None:
        """Runs it; the outputs of its tasks have their values then.  UsageError when closed."""
        if not self._open:
            raise UsageError("the session is closed")
        task = _task_of(runnable)
        self._workspace.run(Plan(task.get_step()))
        outputs = task.output_list()
        outputs.set_values(outputs.names(), _fetch_func=self._workspace.fetch_blob)

    def fetch_output(self, output: Any) -> Any:
        """The value of a blob, or of an output of a task that ran."""
        return output.get() if hasattr(output, "get") else self._workspace.fetch_blob(output)

    def close(self) -> None:
        self._open = False

    def __enter__(self) -> LocalSession:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _task_of(runnable: Any) -> Task:
    if isinstance(runnable, Task):
        return runnable
    if isinstance(runnable, TaskGroup):
        return runnable.to_task()
    if isinstance(runnable, (Net, ExecutionStep)):
        return Task(runnable, _lone=True)
    raise UsageError(f"a net, step, task or group of tasks is needed, got {runnable!r:.200}")
