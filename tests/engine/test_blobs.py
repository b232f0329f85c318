"""Blobs: what can be fed, what comes back, what views and versions promise."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

from caffe2 import _native
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from caffe2.runtime.engine import new_workspace, set_memory_limit


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


@pytest.mark.parametrize("dtype", ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "f2", "f4", "f8"])
def test_arrays_come_back_as_they_were(dtype):
    for shape in [(), (0,), (3,), (2, 0, 4), (2, 3, 4)]:
        array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        workspace.FeedBlob("x", array)
        back = workspace.FetchBlob("x")
        assert back.dtype == array.dtype and back.shape == array.shape
        np.testing.assert_array_equal(back, array)


def test_layouts_of_memory_and_byte_order_do_not_matter():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for form in (array.T, array[:, ::-1], np.asfortranarray(array), array.astype(">f4")):
        workspace.FeedBlob("x", form)
        np.testing.assert_array_equal(workspace.FetchBlob("x"), form)


def test_numbers_lists_strings_and_messages():
    workspace.FeedBlob("x", 3)
    assert workspace.FetchBlob("x") == 3 and workspace.FetchBlob("x").dtype == np.int64
    workspace.FeedBlob("x", [0.5, 1.5])
    assert workspace.FetchBlob("x").dtype == np.float32
    workspace.FeedBlob("x", np.float64(0.5))
    assert workspace.FetchBlob("x").dtype == np.float64
    workspace.FeedBlob("x", "text")
    assert workspace.FetchBlob("x") == b"text"
    workspace.FeedBlob("x", b"\0\xff")
    assert workspace.FetchBlob("x") == b"\0\xff"
    message = caffe2_pb2.TensorProto(dims=[2], data_type=caffe2_pb2.TensorProto.INT32)
    message.int32_data.extend([7, -8])
    workspace.FeedBlob("x", message)
    np.testing.assert_array_equal(workspace.FetchBlob("x"), np.array([7, -8], np.int32))


@pytest.mark.parametrize(
    "value", [np.array([1 + 2j]), np.array([None]), np.array([b"a", 1], object), {}, object()]
)
def test_what_is_no_tensor_is_refused_and_changes_nothing(value):
    workspace.FeedBlob("x", np.float32([1]))
    with pytest.raises((TypeError, ValueError)):
        workspace.FeedBlob("x", value)
    np.testing.assert_array_equal(workspace.FetchBlob("x"), np.float32([1]))


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="no longer floats here")
def test_longer_floats_than_tensors_have_are_refused():
    with pytest.raises(TypeError, match="blob 'x' was fed ndarray of element type float"):
        workspace.FeedBlob("x", np.zeros(2, np.longdouble))


def test_element_types_without_tensor_are_named():
    with pytest.raises(RuntimeError, match="allowed are bool, int8"):
        workspace.FeedBlob("x", np.zeros(2, np.uint64))
    assert not workspace.HasBlob("x")


@pytest.mark.parametrize("value", ["a\udcff", np.array(["b\udcff"]), ["c", "d\udcff"]])
def test_text_that_is_no_unicode_is_refused(value):
    with pytest.raises(ValueError, match=r"blob 'x' was fed text that is no Unicode: '\w\\udcff'"):
        workspace.FeedBlob("x", value)
    assert not workspace.HasBlob("x")


@pytest.mark.parametrize("name", ["a\udcff", b"\xff"])
def test_names_that_are_no_unicode_are_refused(name):
    for use in (workspace.HasBlob, workspace.FetchBlob, workspace.CreateBlob):
        with pytest.raises(
            ValueError, match=r"the name of a blob is UTF-8 text, which b?'.*' is not"
        ):
            use(name)
    with pytest.raises(ValueError, match="the name of a net is UTF-8 text"):
        workspace.RunNet(name)
    with pytest.raises(TypeError, match="a blob is named by a str, not by int: 3"):
        workspace.HasBlob(3)
    workspace.FeedBlob("été".encode(), np.float32([1]))
    assert workspace.HasBlob("été")


def test_arrays_of_strings():
    for array in (
        np.array([["a", "été"], ["", "long" * 100]]),
        np.array([[b"a", b"\xff\0x"]], dtype=object),
        np.array([b"one"]),
        np.zeros((0, 2), "U1"),
    ):
        workspace.FeedBlob("s", array)
        back = workspace.FetchBlob("s")
        assert back.dtype == object and back.shape == array.shape
        expected = [x.encode() if isinstance(x, str) else bytes(x) for x in array.flat]
        assert list(back.flat) == expected
    workspace.FeedBlob("s", np.array([b"one", b"two"], dtype=object))
    workspace.RunOperatorOnce(("Copy", ["s"], ["t"]))
    workspace.RunOperatorOnce(("Copy", ["s"], ["u"], {}))
    workspace.FeedBlob("s", np.float32([1]))
    assert workspace.FetchBlob("t").tolist() == [b"one", b"two"]
    workspace.DeserializeBlob("v", workspace.SerializeBlob("t"))
    assert workspace.FetchBlob("v").tolist() == [b"one", b"two"]
    workspace.FeedBlob("t", np.float32([1, 2, 3]))
    workspace.RunOperatorOnce(("Copy", ["v"], ["t"]))
    assert workspace.FetchBlob("t").tolist() == [b"one", b"two"]


def test_feed_and_fetch_copy():
    array = np.zeros(3, np.float32)
    workspace.FeedBlob("x", array)
    array[:] = 1
    first = workspace.FetchBlob("x")
    first[:] = 2
    np.testing.assert_array_equal(workspace.FetchBlob("x"), np.zeros(3))


def test_a_missing_blob_is_a_runtime_error_with_near_names():
    workspace.FeedBlob("conv1_w", np.zeros(1))
    with pytest.raises(RuntimeError, match=r"no blob 'conv1w'.*Did you mean conv1_w\?"):
        workspace.FetchBlob("conv1w")


def test_views_share_memory_and_outlive_everything():
    space = new_workspace()
    space.feed("x", np.float32([1, 2, 3]))
    view = space.view("x")
    view[1] = 9
    np.testing.assert_array_equal(space.fetch("x"), [1, 9, 3])
    space.feed("x", np.zeros(1000, np.float32))
    np.testing.assert_array_equal(view, [1, 9, 3])
    space.feed("y", np.float32([4, 5]))
    kept = space.view("y")
    space.delete_blob("y")
    del space
    gc.collect()
    np.testing.assert_array_equal(kept, [4, 5])


def test_blobs_as_a_dictionary():
    workspace.blobs["a"] = np.float32([1])
    assert "a" in workspace.blobs and list(workspace.blobs) == ["a"] and len(workspace.blobs) == 1
    np.testing.assert_array_equal(workspace.blobs["a"], [1])


def test_serialized_blobs():
    for dtype in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "f4", "f8"):
        array = np.array([[0, 1, 100]]).astype(dtype)
        workspace.FeedBlob("x", array)
        data = workspace.SerializeBlob("x")
        message = caffe2_pb2.BlobProto.FromString(data)
        assert message.name == "x" and message.type == "Tensor"
        assert list(message.tensor.dims) == [1, 3]
        workspace.DeserializeBlob("y", data)
        back = workspace.FetchBlob("y")
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)
    with pytest.raises(RuntimeError):
        workspace.DeserializeBlob("y", data[:-1])
    np.testing.assert_array_equal(workspace.FetchBlob("y"), array)
    with pytest.raises(TypeError, match="a serialized blob is bytes, not str"):
        workspace.DeserializeBlob("y", "text")
    liar = caffe2_pb2.BlobProto(type="Tensor")
    liar.tensor.dims.extend([1 << 40])
    liar.tensor.float_data.extend([1, 2])
    with pytest.raises(RuntimeError, match="holds 2 values of float; 1099511627776 are needed"):
        workspace.DeserializeBlob("z", liar.SerializeToString())
    assert not workspace.HasBlob("z")


def test_memory_limits_name_the_bytes():
    engine = _native.Engine(threads=1, memory_limit=1 << 20)
    space = new_workspace(engine)
    with pytest.raises(RuntimeError, match="4000000 bytes would pass the memory limit of 1048576"):
        space.feed("x", np.zeros(1_000_000, np.float32))
    assert space.blobs() == [] and engine.memory_used == 0
    fill = core.CreateOperator("ConstantFill", [], ["x"], shape=[1_000_000])
    with pytest.raises(RuntimeError, match=r"ConstantFill.*4000000 bytes would pass the memory"):
        space.run_operator(fill.SerializeToString())
    assert engine.memory_used == 0


def test_the_default_limit_follows_the_machine():
    engine = _native.Engine(threads=1)
    assert 0 < engine.memory_limit < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    net = core.Net("greedy")
    net.ConstantFill([], "x", shape=[16])
    net.ConstantFill([], "y", shape=[engine.memory_limit // 4])
    with pytest.raises(RuntimeError) as error:
        new_workspace(engine).run_net_once(net.Proto().SerializeToString(), net.op_sites)
    text = str(error.value)
    assert text.startswith("Operator 1 (ConstantFill) of net 'greedy': allocating ")
    assert "; unless set, it is three quarters of the memory there is\n  created at" in text


def test_the_limit_of_the_process_is_set_by_a_call_or_the_environment():
    program = (
        "from caffe2.runtime.engine import default_engine as engine, set_memory_limit\n"
        "print(engine().memory_limit); set_memory_limit(1 << 20); print(engine().memory_limit)"
    )
    for text, wanted in (("5000000", ["5000000", "1048576"]), ("5G", None)):
        environment = {**os.environ, "CAFFE2_MEMORY_LIMIT": text}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        if wanted:
            assert done.stdout.split() == wanted
        else:
            assert "ValueError: CAFFE2_MEMORY_LIMIT in the environment is '5G'" in done.stderr
    for wrong in (-1, 1 << 64):
        with pytest.raises(ValueError, match="a limit of memory"):
            set_memory_limit(wrong)


def test_workspaces_are_apart():
    workspace.FeedBlob("x", np.float32([1]))
    with workspace.WorkspaceGuard("other"):
        assert workspace.Blobs() == [] and workspace.CurrentWorkspace() == "other"
        workspace.FeedBlob("x", np.float32([2]))
    assert workspace.CurrentWorkspace() == "default"
    np.testing.assert_array_equal(workspace.FetchBlob("x"), [1])
    assert workspace.Workspaces() == ["default", "other"]
    workspace.SwitchWorkspace(b"other")
    assert workspace.CurrentWorkspace() == "other"
    workspace.SwitchWorkspace("default")
    with pytest.raises(RuntimeError, match="no workspace 'missing'"):
        workspace.SwitchWorkspace("missing")
    with pytest.raises(TypeError, match="a workspace is named by a str, not by int: 3"):
        workspace.SwitchWorkspace(3, True)
    assert workspace.Workspaces() == ["default", "other"]
    workspace.SwitchWorkspace(b"other")
    assert workspace.CurrentWorkspace() == "other"
    workspace.ResetWorkspace()
    workspace.SwitchWorkspace("default")


@pytest.mark.parametrize("value", [np.zeros(2, np.uint64), [[1, 2], [3]]])
def test_what_cannot_be_fed_is_named_with_its_blob(value):
    with pytest.raises((RuntimeError, ValueError), match=f"'wide' was fed {type(value).__name__}"):
        workspace.FeedBlob("wide", value)


def test_what_is_no_value_is_fetched_as_a_text():
    """As the original has it: programs fetch all blobs that there are."""
    workspace.RunOperatorOnce(core.CreateOperator("CreateMutex", [], ["mutex"]))
    text = b"mutex, a C++ native class of type std::unique_ptr<std::mutex>."
    assert workspace.FetchBlob("mutex") == text
    workspace.CreateBlob("empty")
    with pytest.raises(RuntimeError, match="'empty' holds nothing"):
        workspace.FetchBlob("empty")
