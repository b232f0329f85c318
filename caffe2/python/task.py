"""Tasks and groups of them; see `caffe2.plans.task`."""

from caffe2.plans.task import (
    Cluster,
    Node,
    Task,
    TaskGroup,
    TaskOutput,
    TaskOutputList,
    WorkspaceType,
    final_output,
)
from caffe2.plans.task_setup import SetupNets, add_setup_steps, get_setup_nets

__all__ = [
    "Cluster",
    "Node",
    "SetupNets",
    "Task",
    "TaskGroup",
    "TaskOutput",
    "TaskOutputList",
    "WorkspaceType",
    "add_setup_steps",
    "final_output",
    "get_setup_nets",
]
