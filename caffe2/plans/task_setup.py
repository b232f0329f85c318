"""What runs before, after and beside a task: attributes of the nets that need it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from caffe2.graph.net import Net
from caffe2.plans.step import ExecutionStep, execution_step


class TaskKeys:
    """Names of the attributes of nets."""

    TASK_SETUP = "TASK_SETUP"
    TASK_INSTANCE_SETUP = "TASK_INSTANCE_SETUP"
    REPORT_STEP = "REPORT_STEP"
    LOCAL_SETUP = "LOCAL_SETUP"


class SetupNets:
    """Nets or steps that run before and after."""

    def __init__(self, init_nets: Any = None, exit_nets: Any = None) -> None:
        self.init_nets, self.exit_nets = init_nets, exit_nets

    def setup(self, init_net: Net) -> Any:
        return self.init_nets

    def exit(self, exit_net: Net) -> Any:
        return self.exit_nets


@dataclass(frozen=True)
class Reporter:
    """A step that runs every `interval_ms` milliseconds."""

    step: ExecutionStep
    interval_ms: int


def get_setup_nets(key: str, steps_or_nets: Sequence[Any], target: Any) -> tuple[list[Any], Any]:
    """What runs before and after, as the objects say that nets remember under a key.

    An object has `setup(net)`, `exit(net)` or both; they give nets or steps, or None after they
    have appended operators to the net.  Each object counts once.
    """
    found: dict[int, Any] = {}
    for item in steps_or_nets:
        attributes = (
            item.get_attributes(key) if isinstance(item, Net) else item.get_all_attributes(key)
        )
        found.update((id(value), value) for value in attributes)
    before: list[Any] = []
    after: list[Any] = []
    for value in found.values():
        for method, collected in (("setup", before), ("exit", after)):
            if not hasattr(value, method):
                continue
            net = Net(f"{key.lower()}_{method}")
            nets = getattr(value, method)(net)
            nets = list(nets) if isinstance(nets, (list, tuple)) else [nets] if nets else []
            collected.extend(([net] if net.Proto().op else []) + nets)
    return before, after


def add_setup_steps(
    step: ExecutionStep, init_nets: Sequence[Any], exit_nets: Sequence[Any], name: str
) -> ExecutionStep:
    """The step with what runs before and after it."""
    if not init_nets and not exit_nets:
        return step
    parts = [
        *(execution_step(f"{name}:init", part) for part in init_nets),
        step,
        *(execution_step(f"{name}:exit", part) for part in exit_nets),
    ]
    return execution_step(name, parts)
