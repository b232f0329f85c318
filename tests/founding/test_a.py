"""Rows A of the founding documents: references to blobs."""

import threading

import numpy as np
import pytest

from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from caffe2.runtime.scoped_blob import update_all


@pytest.fixture(autouse=True)
def empty():
    workspace.ResetWorkspace()
    yield
    core.SetDeviceOption(None)


def values(*numbers):
    return np.array(numbers, np.float32)


def test_a1_a_reference_is_scoped_once():
    with core.NameScope("task_0"):
        ref = core.ScopedBlobReference("blob")
    assert isinstance(ref, core.BlobReference)
    assert str(ref) == ref.name == "task_0/blob"
    assert ref == "task_0/blob" and hash(ref) == hash("task_0/blob")


def test_a2_get_and_set():
    with core.NameScope("scope"):
        data = core.ScopedBlobReference("data")
    data.set(values(1, 2))
    np.testing.assert_array_equal(data.get(), [1, 2])
    np.testing.assert_array_equal(workspace.FetchBlob("scope/data"), [1, 2])
    with pytest.raises(RuntimeError, match="there is no blob 'nope'"):
        core.ScopedBlobReference("nope").get()


def test_a3_gradients():
    with core.NameScope("scope"):
        data = core.ScopedBlobReference("data")
        data.set(values(1, 2, 3))
        assert data.grad() is None
        data.require_grad()
        grad = data.grad()
    assert grad.name == "scope/data_grad"
    np.testing.assert_array_equal(grad.get(), [0, 0, 0])
    grad.set(values(4, 5, 6))
    data.require_grad()
    np.testing.assert_array_equal(grad.get(), [4, 5, 6])
    data.clear_grad()
    np.testing.assert_array_equal(grad.get(), [0, 0, 0])
    assert grad.grad() is None


def test_a4_update_is_in_place():
    data = core.ScopedBlobReference("data")
    data.update(0.5)  # nothing to update with
    data.set(values(1, 2))
    view = workspace.C.Workspace.current.blobs["data"].tensor().data
    workspace.FeedBlob("data_grad", values(2, 4))
    data.update(0.5)
    np.testing.assert_array_equal(data.get(), [0, 0])
    np.testing.assert_array_equal(view, [0, 0])
    assert workspace.Blobs() == ["data", "data_grad"]


def test_a5_the_end_of_a_with_block_removes_the_blob():
    with core.ScopedBlobReference("buffer") as buffer:
        buffer.set(values(1))
        buffer.require_grad()
        assert workspace.Blobs() == ["buffer", "buffer_grad"]
    assert workspace.Blobs() == []
    kept = core.ScopedBlobReference("kept")
    kept.set(values(1))
    del kept
    assert workspace.Blobs() == ["kept"]


def test_a6_many_at_once():
    refs = [core.ScopedBlobReference(f"p{i}") for i in range(8)]
    for index, ref in enumerate(refs):
        ref.set(values(index, index))
        ref.require_grad()
        ref.grad().set(values(1, 2))
    update_all(refs, 0.25)
    for index, ref in enumerate(refs):
        np.testing.assert_array_equal(ref.get(), [index - 0.25, index - 0.5])
    threads = [threading.Thread(target=ref.update, args=(0.25,)) for ref in refs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, ref in enumerate(refs):
        np.testing.assert_array_equal(ref.get(), [index - 0.5, index - 1.0])


def test_a7_work_split_over_devices(capfd):
    def parallel_task(task_id):
        with core.NameScope(f"task_{task_id}"):
            scoped_blob_ref = core.ScopedBlobReference("blob")
            workspace.FeedBlob(str(scoped_blob_ref), task_id)
            workspace.RunOperatorOnce(core.CreateOperator("Copy", [scoped_blob_ref], ["copy"]))
            workspace.RunOperatorOnce(core.CreateOperator("Print", [scoped_blob_ref], []))
            del scoped_blob_ref

    core.SetDeviceOption(core.DeviceOption(workspace.GpuDeviceType, 0))
    assert core.CreateOperator("Copy", "x", "y").device_option.device_type == caffe2_pb2.CUDA
    for i in range(4):
        device = core.DeviceOption(workspace.GpuDeviceType, i)
        with core.NameScope(f"worker_{i}"), core.DeviceScope(device):
            parallel_task(i)
    for i in range(4):
        # Without a GPU the CPU does the work.
        assert workspace.FetchBlob(f"worker_{i}/task_{i}/copy") == i
    printed = capfd.readouterr().err.splitlines()
    assert len(printed) == 4
    assert all(f"worker_{i}/task_{i}/blob" in line for i, line in enumerate(printed))


def test_a7_strict_devices(monkeypatch):
    monkeypatch.setenv("CAFFE2_STRICT_DEVICES", "1")
    workspace.FeedBlob("x", 1)
    gpu = core.DeviceOption(workspace.GpuDeviceType, 2)
    with pytest.raises(RuntimeError) as error:
        workspace.RunOperatorOnce(core.CreateOperator("Copy", "x", "y", device_option=gpu))
    assert str(error.value) == (
        "Copy 'y' asks for GPU 2; there is none, and CAFFE2_STRICT_DEVICES is set"
    )
    strange = core.CreateOperator("Copy\x1b[2J", "x", "\x1b[2J\n", device_option=gpu)
    with pytest.raises(RuntimeError, match=r"^Copy\\x1b\[2J '\\x1b\[2J\\n' asks for GPU 2"):
        workspace.RunNetOnce(caffe2_pb2.NetDef(op=[strange]))


def test_a7_one_note(caplog, monkeypatch):
    monkeypatch.setattr("caffe2.runtime.devices._noted", False)
    workspace.FeedBlob("x", 1)
    net = core.Net("gpu")
    net.Copy("x", "y")
    net.RunAllOnGPU()
    for _ in range(2):
        workspace.RunNetOnce(net)
    (record,) = caplog.records
    assert "Copy 'y' asks for GPU 0; there is none: it runs on the CPU" in record.getMessage()
