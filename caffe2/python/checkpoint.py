"""Jobs and checkpoints; see `caffe2.train.checkpoints`."""

from caffe2.plans.net_builder import ops
from caffe2.plans.task import Node, Task, TaskGroup, TaskOutput, WorkspaceType, final_output
from caffe2.train.checkpoints import (
    CheckpointManager,
    Job,
    JobRunner,
    MultiNodeCheckpointManager,
    UploadTaskGroupBuilder,
    db_name,
    epoch_limiter,
    get_ckpt_filename,
)

__all__ = [
    "CheckpointManager",
    "Job",
    "JobRunner",
    "MultiNodeCheckpointManager",
    "Node",
    "Task",
    "TaskGroup",
    "TaskOutput",
    "UploadTaskGroupBuilder",
    "WorkspaceType",
    "db_name",
    "epoch_limiter",
    "final_output",
    "get_ckpt_filename",
    "ops",
]
