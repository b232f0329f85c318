"""Tasks, groups of them and jobs as text."""

from __future__ import annotations

from typing import Any

from caffe2.graph import printer
from caffe2.plans.plan import Plan
from caffe2.plans.task import Task, TaskGroup


def to_string(obj: Any, **kwargs: Any) -> str:
    """A net, plan, step, task, group of tasks or job as text; see `caffe2.graph.printer`."""
    if hasattr(obj, "init_group"):  # a Job
        stages = ("init_group", "epoch_group", "download_group", "exit_group")
        return "".join(f"{stage}\n{to_string(getattr(obj, stage))}" for stage in stages)
    if isinstance(obj, TaskGroup):
        return "".join(map(to_string, obj.tasks()))
    if isinstance(obj, Task):
        plan = printer.to_string(Plan(obj.get_step()))
        return f"task {obj.name} on {obj.node}\n{plan}"
    return printer.to_string(obj)


def debug_net(net: Any) -> None:
    """Prints a net as text."""
    print(to_string(net))
