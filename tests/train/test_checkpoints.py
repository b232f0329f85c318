"""Jobs and their checkpoints (`caffe2.python.checkpoint`)."""

import os

import pytest

from caffe2.graph.errors import UsageError
from caffe2.python import checkpoint, workspace
from caffe2.python.checkpoint import Job, JobRunner, MultiNodeCheckpointManager, epoch_limiter
from caffe2.python.net_builder import ops
from caffe2.python.session import LocalSession
from caffe2.python.task import Node, Task, TaskGroup, WorkspaceType


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def counting_job(epochs):
    """Adds 1 to `total` in each epoch."""
    with Job() as job, Node("trainer"):
        with job.init_group, Task():
            total, one = ops.Const(0, dtype="int64"), ops.Const(1, dtype="int64")
        with Task():
            ops.Add([total, one], [total])
    epoch_limiter(job, epochs)
    return job, total


def test_a_job_without_checkpoints():
    job, total = counting_job(3)
    assert JobRunner(job).train(LocalSession()) == 3
    assert workspace.FetchBlob(total) == 3
    with pytest.raises(UsageError, match="the job has no checkpoints"):
        JobRunner(job).load_blobs_from_checkpoints([total], 1, LocalSession())
    with pytest.raises(UsageError, match="a stop condition is a blob or the output of a task"):
        job.add_stop_condition("name")


def test_a_job_goes_on_from_a_checkpoint(tmp_path):
    folder = str(tmp_path)
    job, total = counting_job(3)
    session = LocalSession()
    runner = JobRunner(job, MultiNodeCheckpointManager(folder, "minidb"))
    assert runner.train(session) == 3
    names = [f"{node}.{epoch}" for node in ("local", "trainer") for epoch in range(4)]
    assert sorted(os.listdir(folder)) == names
    for epoch in range(4):
        assert runner.load_blobs_from_checkpoints([total], epoch, session)
        assert workspace.FetchBlob(total) == epoch
    assert not runner.load_blobs_from_checkpoints([total], 9, session)
    again = JobRunner(job, MultiNodeCheckpointManager(folder, "minidb"), resume_from_epoch=1)
    workspace.FeedBlob(total, workspace.FetchBlob(total) + 100)
    assert again.train(session) == 3
    assert workspace.FetchBlob(total) == 3


def test_a_handler_knows_the_checkpoints(tmp_path):
    written, asked = [], []

    class Handler:
        def set_params(self, **params):
            asked.append(params["node_names"])

        def write(self, epoch):
            written.append(epoch)

        def last_epoch(self, user_epoch=None):
            return None

        def cp_accessible(self, epoch=None):
            return len(written) < 2

    job, total = counting_job(4)
    manager = MultiNodeCheckpointManager(str(tmp_path), "minidb", Handler())
    assert JobRunner(job, manager, resume_from_epoch=1).train(LocalSession()) == 4
    assert written == [0, 1] and asked == [["trainer", "local"]]
    assert workspace.FetchBlob(total) == 4


def test_names_and_what_has_to_come_first(tmp_path):
    assert checkpoint.db_name(3, "n", "folder") == os.path.join("folder", "n.3")
    assert checkpoint.db_name(3, "n", "folder", "/p") == "/pn.3"
    manager = checkpoint.CheckpointManager(str(tmp_path), "n", "minidb")
    with pytest.raises(UsageError, match=r"prepared with init\(\) first"):
        manager.save(1)
    several = MultiNodeCheckpointManager(str(tmp_path), "minidb")
    with pytest.raises(UsageError, match=r"prepared with init\(\) first"):
        several.save(1)
    several.init(["a"])
    with pytest.raises(UsageError, match="are those of the nodes a, not of"):
        several.init(["b"])
    with TaskGroup(WorkspaceType.GLOBAL):
        exists = manager.check_db_exists(1)
    LocalSession().run(exists)
    assert not exists.outputs()[0].fetch()


def test_a_job_goes_on_where_checkpoints_cannot_be_written(tmp_path, caplog):
    job, total = counting_job(2)
    manager = MultiNodeCheckpointManager(str(tmp_path / "nowhere"), "minidb")
    assert JobRunner(job, manager).train(LocalSession()) == 2
    assert workspace.FetchBlob(total) == 2
    assert "the checkpoint of epoch 1 was not written: " in caplog.text
    assert [(node, own._node_name) for node, own in manager._node_managers] == [
        ("trainer", "trainer"),
        ("local", "local"),
    ]


def test_the_download_group_runs_after_the_epochs():
    job, total = counting_job(3)
    with job.download_group, Task():
        ops.Copy(total, "downloaded")
    JobRunner(job).train(LocalSession())
    assert workspace.FetchBlob("downloaded") == 3
