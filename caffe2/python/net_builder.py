"""Plans written as programs; see `caffe2.plans.net_builder`."""

from caffe2.plans.net_builder import NetBuilder, Operations, ops
from caffe2.plans.task import Task, TaskGroup

__all__ = ["NetBuilder", "Operations", "Task", "TaskGroup", "ops"]
