"""Jobs of several epochs, and checkpoints from which they go on.

    with Job() as job:
        with job.init_group: ...   # tasks that run once
        with job.epoch_group: ...  # tasks of each epoch
    epoch_limiter(job, 10)
    JobRunner(job, MultiNodeCheckpointManager("folder", "minidb")).train(LocalSession())

A checkpoint is a database of all blobs of a node; that of epoch 0 is written before the first one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.plans.context import Managed
from caffe2.plans.net_builder import ops
from caffe2.plans.task import Node, Task, TaskGroup, TaskOutput, WorkspaceType

_log = logging.getLogger(__name__)


class Job(Managed):
    """Groups of tasks: init_group once, epoch_group again and again until a stop condition is true,
    then download_group and exit_group.

    In its `with` block new tasks belong to epoch_group.
    """

    def __init__(
        self,
        init_group: TaskGroup | None = None,
        epoch_group: TaskGroup | None = None,
        download_group: TaskGroup | None = None,
        exit_group: TaskGroup | None = None,
        stop_conditions: Iterable[TaskOutput] | None = None,
        nodes_to_checkpoint: Sequence[str] | None = None,
    ) -> None:
        self.init_group = init_group or TaskGroup(WorkspaceType.GLOBAL)
        self.epoch_group = epoch_group or TaskGroup()
        self.download_group = download_group or TaskGroup()
        self.exit_group = exit_group or TaskGroup()
        self.stop_conditions = list(stop_conditions or ())
        self._nodes = nodes_to_checkpoint

    def nodes_to_checkpoint(self) -> list[str]:
        """The nodes whose blobs are saved; by default those of init_group."""
        return list(self._nodes) if self._nodes else self.init_group.used_nodes()

    def compile(self, session_class: Any) -> None:
        """Fixes the nodes.  Sessions compile their tasks when they run them."""
        self._nodes = self.nodes_to_checkpoint()

    def __enter__(self) -> Job:
        super().__enter__()
        self.epoch_group.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.epoch_group.__exit__(*exc_info)
        super().__exit__(*exc_info)

    def add_stop_condition(self, output: Any) -> None:
        """A blob, or output of a task of epoch_group, that is true after the last epoch."""
        if isinstance(output, BlobReference):
            output = Task(outputs=[output], group=self.epoch_group).outputs()[0]
        if not isinstance(output, TaskOutput):
            raise UsageError(f"a stop condition is a blob or the output of a task, not {output!r}")
        self.stop_conditions.append(output)


def epoch_limiter(job: Job, num_epochs: int) -> None:
    """Ends a job after so many epochs, counted across its checkpoints."""
    with job.init_group:
        init_net = Net("epoch_counter_init")
        counter = init_net.CreateCounter([], init_count=num_epochs - 1)
        Task(step=init_net)
    with job.epoch_group:
        epoch_net = Net("epoch_countdown")
        finished = epoch_net.CountDown(counter)
        output = Task(step=epoch_net, outputs=finished).outputs()[0]
    job.add_stop_condition(output)


def get_ckpt_filename(node_name: str, epoch: int) -> str:
    """The name of the checkpoint of a node and epoch."""
    return f"{node_name}.{epoch}"


def db_name(epoch: int, node_name: str, db_prefix: str, path_prefix: str | None = None) -> str:
    """The path of a checkpoint: in the folder db_prefix, or right after path_prefix."""
    name = get_ckpt_filename(node_name, epoch)
    return path_prefix + name if path_prefix else os.path.join(db_prefix, name)


class CheckpointManager:
    """Checkpoints of one node.  Its methods give tasks, to be run on that node.

    metadata_handler   with `last_epoch(user_epoch)`, `write(epoch)`, `cp_accessible(epoch)` and
                       `set_params(...)`, remembers which checkpoints there are
    """

    BLOB_NAMES = "blob_names"

    def __init__(
        self, db_prefix: str, node_name: str, db_type: str, metadata_handler: Any = None
    ) -> None:
        self._db_prefix, self._node_name, self._db_type = db_prefix, node_name, db_type
        self._metadata_handler = metadata_handler
        self._net = Net("!!checkpoint_mngr")
        self._blob_names = self._net.AddExternalInput(self.BLOB_NAMES)
        self._names_output: TaskOutput | None = None
        self._path_prefix: str | None = None

    def _database(self, epoch: int) -> dict[str, Any]:
        name = db_name(epoch, self._node_name, self._db_prefix, self._path_prefix)
        return {"db": name, "db_type": self._db_type, "absolute_path": True}

    def init(
        self,
        nodes: Sequence[str] | None = None,
        retrieve_from_epoch: int | None = None,
        path_prefix: str | None = None,
        path_type: str | None = None,
    ) -> Task:
        """Finds out which blobs there are to be saved: all of the workspace, or those of the
        checkpoint of an epoch."""
        self.set_params(nodes, path_prefix, path_type)
        with Task(outputs=[self._blob_names]) as task:
            if retrieve_from_epoch is None:
                ops.GetAllBlobNames([], self._blob_names, include_shared=False)
            else:
                ops.Load([], self._blob_names, **self._database(retrieve_from_epoch))
        self._names_output = task.outputs()[0]
        return task

    def blob_list(self) -> list[str]:
        """The blobs to save.  UsageError before the task of `init` ran."""
        if self._names_output is None:
            raise UsageError("the checkpoints have to be prepared with init() first")
        return [name.decode() for name in self._names_output.fetch()]

    def load(
        self, epoch: int, path_prefix: str | None = None, path_type: str | None = None
    ) -> Task:
        """Loads all blobs of a checkpoint."""
        self._path_prefix = path_prefix or self._path_prefix
        with Task() as task:
            ops.Load([], list(map(BlobReference, self.blob_list())), **self._database(epoch))
        return task

    def load_blobs_from_checkpoint(self, blob_names: Sequence[Any], epoch: int) -> Task:
        """Loads some blobs of a checkpoint, as far as they are in it."""
        blobs = [BlobReference(str(name)) for name in blob_names]
        with Task() as task:
            ops.Load([], blobs, allow_incomplete=True, **self._database(epoch))
        return task

    def check_db_exists(self, epoch: int) -> Task:
        """Whether there is a checkpoint, as the output of the task."""
        database = self._database(epoch)
        with Task() as task:
            found = ops.DBExists([], db_name=database.pop("db"), **database)
            task.add_output(found)
        return task

    def save(self, epoch: int) -> Task:
        """Writes a checkpoint."""
        with Task() as task:
            ops.Save(list(map(BlobReference, self.blob_list())), [], **self._database(epoch))
        return task

    def write_checkpoint_metadata(self, epoch: int) -> None:
        """Tells the metadata handler of a checkpoint that was written."""
        if self._metadata_handler is not None:
            self._metadata_handler.write(epoch=epoch)

    def get_resume_from_epoch_id(self, user_epoch: int | None = None) -> int | None:
        """The epoch to go on from: what the metadata handler says, else user_epoch."""
        if self._metadata_handler is None:
            return user_epoch
        last: int | None = self._metadata_handler.last_epoch(user_epoch=user_epoch)
        return last

    def set_params(
        self,
        nodes: Sequence[str] | None,
        path_prefix: str | None = None,
        path_type: str | None = None,
    ) -> None:
        """Where checkpoints are, in the place of db_prefix."""
        self._path_prefix = path_prefix or self._path_prefix
        if self._metadata_handler is not None:
            self._metadata_handler.set_params(
                db_prefix=self._db_prefix,
                db_type=self._db_type,
                node_names=[self._node_name],
                path_prefix=self._path_prefix,
                path_type=path_type,
            )

    def cp_accessible(self, epoch: int | None = None) -> bool:
        """Whether checkpoints can be read and written, as far as the metadata handler knows."""
        if self._metadata_handler is None:
            return True
        return bool(self._metadata_handler.cp_accessible(epoch))


class MultiNodeCheckpointManager:
    """Checkpoints of several nodes.  Its methods give groups of tasks."""

    def __init__(self, db_prefix: str, db_type: str, metadata_handler: Any = None) -> None:
        self._db_prefix, self._db_type = db_prefix, db_type
        self._metadata_handler = metadata_handler
        self._managers: dict[str, CheckpointManager] = {}
        self._path_prefix: str | None = None

    @property
    def _node_managers(self) -> list[tuple[str, CheckpointManager]]:
        """Each node and its manager, for builders of upload tasks."""
        return list(self._managers.items())

    def _tasks(self, make: Callable[[CheckpointManager], Any]) -> TaskGroup:
        if not self._managers:
            raise UsageError("the checkpoints have to be prepared with init() first")
        with TaskGroup(WorkspaceType.GLOBAL) as group:
            for node, manager in self._managers.items():
                with Node(node):
                    make(manager)
        return group

    def _set_nodes(self, nodes: Sequence[str]) -> None:
        if not self._managers:
            self._managers = {
                str(node): CheckpointManager(self._db_prefix, str(node), self._db_type)
                for node in nodes
            }
        elif set(self._managers) != set(map(str, nodes)):
            known = ", ".join(self._managers)
            raise UsageError(f"the checkpoints are those of the nodes {known}, not of {nodes}")

    def init(
        self,
        nodes: Sequence[str],
        retrieve_from_epoch: int | None = None,
        path_prefix: str | None = None,
        path_type: str | None = None,
    ) -> TaskGroup:
        self.set_params(nodes, path_prefix, path_type)
        return self._tasks(
            lambda manager: manager.init(None, retrieve_from_epoch, path_prefix, path_type)
        )

    def load(
        self, epoch: int, path_prefix: str | None = None, path_type: str | None = None
    ) -> TaskGroup:
        """Loads the checkpoints of an epoch, each on its node."""
        return self._tasks(lambda manager: manager.load(epoch, path_prefix, path_type))

    def load_blobs_locally(
        self, nodes: Sequence[str], blob_names: Sequence[Any], epoch: int, session: Any
    ) -> bool:
        """Loads blobs of the checkpoints of several nodes on this one; False when a checkpoint is
        not there."""
        self._set_nodes(nodes)
        tasks = {node: m.check_db_exists(epoch) for node, m in self._managers.items()}
        for node, task in tasks.items():
            session.run(task)
            if not task.outputs()[0].fetch():
                _log.warning("there is no checkpoint '%s'", self.get_ckpt_db_name(node, epoch))
                return False
        for manager in self._managers.values():
            session.run(manager.load_blobs_from_checkpoint(blob_names, epoch))
        return True

    def get_ckpt_db_name(self, node_name: str, epoch: int) -> str:
        """The path of the checkpoint of a node and epoch."""
        return db_name(epoch, node_name, self._db_prefix, self._path_prefix)

    def save(self, epoch: int) -> TaskGroup:
        """Writes the checkpoints of an epoch, each on its node."""
        return self._tasks(lambda manager: manager.save(epoch))

    def write_checkpoint_metadata(self, epoch: int) -> None:
        if self._metadata_handler is not None:
            self._metadata_handler.write(epoch=epoch)

    def get_resume_from_epoch_id(self, user_epoch: int | None = None) -> int | None:
        if self._metadata_handler is None:
            return user_epoch
        last: int | None = self._metadata_handler.last_epoch(user_epoch=user_epoch)
        return last

    def set_params(
        self,
        nodes: Sequence[str],
        path_prefix: str | None = None,
        path_type: str | None = None,
    ) -> None:
        self._set_nodes(nodes)
        self._path_prefix = path_prefix or self._path_prefix
        if self._metadata_handler is not None:
            self._metadata_handler.set_params(
                db_prefix=self._db_prefix,
                db_type=self._db_type,
                node_names=list(self._managers),
                path_prefix=self._path_prefix,
                path_type=path_type,
            )

    def cp_accessible(self, epoch: int | None = None) -> bool:
        if self._metadata_handler is None:
            return True
        return bool(self._metadata_handler.cp_accessible(epoch))


class UploadTaskGroupBuilder:
    """Makes the tasks that take a finished model elsewhere."""

    def build(self, epoch: int, checkpoint_manager: Any) -> TaskGroup:
        raise NotImplementedError


class JobRunner:
    """Runs a job, writes a checkpoint after each epoch and goes on from one.

    resume_from_epoch           the checkpoint to begin with; None: begin anew
    upload_task_group_builder   an UploadTaskGroupBuilder for the end
    """

    def __init__(
        self,
        job: Job,
        checkpoint_manager: Any = None,
        resume_from_epoch: int | None = None,
        upload_task_group_builder: UploadTaskGroupBuilder | None = None,
    ) -> None:
        self.job, self.checkpoint_manager = job, checkpoint_manager
        self.resume_from_epoch = resume_from_epoch
        self.upload_task_group_builder = upload_task_group_builder

    def train(self, session: Any) -> int:
        """Runs the job to its end; the number of the last epoch."""
        manager, begin = self.checkpoint_manager, self.resume_from_epoch
        if manager is not None:
            begin = manager.get_resume_from_epoch_id(begin)
        if begin is None:
            session.run(self.job.init_group)
        if manager is not None:
            nodes = self.job.nodes_to_checkpoint()
            session.run(manager.init(nodes, retrieve_from_epoch=begin))
            if begin is None:
                self.save_checkpoints(0, session)
            else:
                session.run(manager.load(begin))
        epoch = 1 if begin is None else begin + 1
        while True:
            session.run(self.job.epoch_group)
            if manager is not None:
                self.save_checkpoints(epoch, session)
            if any(condition.fetch() for condition in self.job.stop_conditions):
                break
            epoch += 1
        session.run(self.job.download_group)
        if self.upload_task_group_builder is not None:
            session.run(self.upload_task_group_builder.build(epoch, manager))
        session.run(self.job.exit_group)
        return epoch

    def load_blobs_from_checkpoints(
        self, blob_names: Sequence[Any], epoch: int, session: Any
    ) -> bool:
        """Loads blobs of the checkpoints of an epoch; False when one is not there.  UsageError
        without a checkpoint manager."""
        if self.checkpoint_manager is None:
            raise UsageError("the job has no checkpoints")
        found: bool = self.checkpoint_manager.load_blobs_locally(
            self.job.nodes_to_checkpoint(), blob_names, epoch, session
        )
        return found

    def save_checkpoints(self, epoch: int, session: Any) -> None:
        """Writes the checkpoints of an epoch.  When they cannot be written the log (level error)
        says why, and the job goes on."""
        if not self.checkpoint_manager.cp_accessible(epoch=None):
            _log.warning(
                "the checkpoint of epoch %d is left out: its place is not accessible", epoch
            )
            return
        try:
            session.run(self.checkpoint_manager.save(epoch))
            self.checkpoint_manager.write_checkpoint_metadata(epoch)
        except (RuntimeError, OSError) as error:
            _log.error("the checkpoint of epoch %d was not written: %s", epoch, error)
