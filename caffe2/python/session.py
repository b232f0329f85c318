"""Sessions; see `caffe2.runtime.session`."""

from caffe2.plans.task import Cluster, Task, TaskGroup, WorkspaceType
from caffe2.runtime.session import LocalSession

__all__ = ["Cluster", "LocalSession", "Task", "TaskGroup", "WorkspaceType"]
