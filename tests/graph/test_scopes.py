"""Name scopes, device scopes, and references to blobs."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

from caffe2.proto import caffe2_pb2
from caffe2.python import core, scope

CPU, CUDA = caffe2_pb2.CPU, caffe2_pb2.CUDA


def device():
    current = scope.CurrentDeviceScope()
    return None if current is None else " ".join(str(current).split())


def test_name_scopes_nest_and_reset():
    with core.NameScope("a"):
        with core.NameScope("b"):
            assert scope.CurrentNameScope() == "a/b/"
            with core.NameScope("c", reset=True):
                assert scope.CurrentNameScope() == "c/"
            with scope.EmptyNameScope():
                assert scope.CurrentNameScope() == ""
            with core.NameScope("e/f"):
                assert scope.CurrentNameScope() == "a/b/e/f/"
        assert scope.CurrentNameScope() == "a/"
    assert scope.CurrentNameScope() == ""


@pytest.mark.parametrize("nothing", ["", None])
def test_an_empty_name_scope_adds_nothing(nothing):
    with core.NameScope("a"), core.NameScope(nothing):
        assert core.ScopedName("x") == "a/x"


def test_scopes_survive_exceptions():
    option = core.DeviceOption(CUDA, 1)
    with pytest.raises(ZeroDivisionError), core.NameScope("a"), core.DeviceScope(option):
        _ = 1 / 0
    assert (scope.CurrentNameScope(), scope.CurrentDeviceScope()) == ("", None)


def test_each_thread_has_its_own_scopes():
    seen = []

    def look():
        seen.append((scope.CurrentNameScope(), scope.CurrentDeviceScope()))
        with core.NameScope("theirs"):
            seen.append(scope.CurrentNameScope())

    with core.NameScope("ours"), core.DeviceScope(core.DeviceOption(CUDA, 1)):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert scope.CurrentNameScope() == "ours/"
    assert seen == [("", None), "theirs/"]


@pytest.mark.parametrize("wrong", [3, b"bytes", ["a"]])
def test_a_name_scope_is_a_string(wrong):
    with pytest.raises(AssertionError, match="NameScope takes in a string"), core.NameScope(wrong):
        pass


def test_device_scopes_nest():
    with core.DeviceScope(core.DeviceOption(CUDA, 2)):
        assert device() == "device_type: 1 device_id: 2"
        with core.DeviceScope(core.DeviceOption(CPU)):
            assert device() == "device_type: 0 device_id: 0"
        with scope.EmptyDeviceScope():
            assert device() is None
        with core.DeviceScope(0):
            assert device() == ""
        assert device() == "device_type: 1 device_id: 2"
    assert device() is None


def test_node_names_are_inherited_and_extra_info_adds_up():
    outer = core.DeviceOption(CPU, random_seed=5, node_name="n", extra_info=["x"])
    with core.DeviceScope(outer):
        with core.DeviceScope(core.DeviceOption(CUDA, 1, extra_info=["y"])):
            assert device() == (
                'device_type: 1 device_id: 1 node_name: "n" extra_info: "x" extra_info: "y"'
            )
        with core.DeviceScope(core.DeviceOption(CPU, node_name="w"), node_name="z"):
            assert device() == 'device_type: 0 device_id: 0 node_name: "z" extra_info: "x"'
        with core.DeviceScope(None, node_name="q"):
            assert device() == 'node_name: "q"'


def test_a_device_scope_keeps_a_copy():
    option = core.DeviceOption(CUDA, 1)
    with core.DeviceScope(option):
        option.device_id = 7
        assert scope.CurrentDeviceScope().device_id == 1


@pytest.mark.parametrize("wrong", [3, "gpu"])
def test_a_device_scope_takes_a_device(wrong):
    with pytest.raises(AssertionError, match=r"caffe2_pb2\.DeviceOption"), core.DeviceScope(wrong):
        pass
    with pytest.raises(AssertionError), core.DeviceScope(None):
        pass


def test_row_A7_set_device_option_lasts():
    try:
        core.SetDeviceOption(core.DeviceOption(CUDA, 0))
        assert core.CreateOperator("Relu", "x", "y").device_option.device_type == CUDA
        with core.DeviceScope(core.DeviceOption(CPU)):
            assert core.CreateOperator("Relu", "x", "y").device_option.device_type == CPU
        assert core.CreateOperator("Relu", "x", "y").device_option.device_type == CUDA
    finally:
        core.SetDeviceOption(None)
    assert not core.CreateOperator("Relu", "x", "y").HasField("device_option")


def test_device_options():
    option = core.DeviceOption(CUDA, 1, random_seed=0, node_name="n", extra_info=["a"])
    assert [field.name for field, _ in option.ListFields()] == [
        "device_type", "device_id", "random_seed", "node_name", "extra_info",
    ]  # fmt: skip
    assert core.DeviceOption(CPU, numa_node_id=3).numa_node_id == 3
    with pytest.raises(AssertionError, match="numa_node_id=3 is for CPU"):
        core.DeviceOption(CUDA, 1, numa_node_id=3)
    assert [core.IsGPUDeviceType(kind) for kind in range(8)] == [
        False, True, False, False, False, False, True, False,
    ]  # fmt: skip


def test_device_options_compare():
    equal, option = core.device_option_equal, core.DeviceOption
    assert equal(option(CPU, random_seed=1), option(CPU))
    assert equal(option(CPU, node_name="a"), option(CPU))
    assert not equal(option(CPU, node_name="a"), option(CPU), ignore_node_name=False)
    assert not equal(option(CPU, random_seed=1), option(CPU), ignore_random_seed=False)
    assert not equal(option(CUDA, 1), option(CUDA, 2))
    assert not equal(None, option(CPU))


def test_references_are_like_their_names():
    ref = core.BlobReference("a/b/c")
    assert (str(ref), repr(ref), ref.name) == ("a/b/c", 'BlobReference("a/b/c")', "a/b/c")
    assert ref == "a/b/c"
    assert ref == "a/b/c"
    assert ref == core.BlobReference(ref)
    assert ref not in ("a/b", 3, None)
    assert {ref: 1}["a/b/c"] == 1
    assert (ref.GetNameScope(), ref.GetUnscopedName()) == ("a/b/", "c")
    assert core.BlobReference("c").GetNameScope() == ""
    assert (repr(ref + "_grad"), repr("q/" + ref)) == (
        'BlobReference("a/b/c_grad")',
        'BlobReference("q/a/b/c")',
    )
    assert core.BlobReference(b"bytes").name == "bytes"


def test_references_can_be_copied_and_pickled():
    ref = core.BlobReference("x")
    assert copy.deepcopy(ref) == ref
    assert pickle.loads(pickle.dumps(ref)) == ref


@pytest.mark.parametrize("wrong", [3, None, ["a"]])
def test_a_blob_name_is_a_string(wrong):
    for make in (core.BlobReference, core.ScopedName, core.ScopedBlobReference):
        with pytest.raises(TypeError, match="a blob's name is a string"):
            make(wrong)
    with pytest.raises(TypeError, match="cannot add"):
        core.BlobReference("x") + wrong


def test_operators_of_references():
    net = core.Net("refs")
    x = net.Relu("in", "x")
    assert x.Net() is net and net.AddExternalInput("other").Net() is net
    assert [str(x.Relu([], "y")), str(x.Sum(["q"], "z")), str(x.Sum("r", "z2"))] == ["y", "z", "z2"]
    assert str(x.Relu(outputs="w")) == "w"
    assert [list(op.input) for op in net.Proto().op[1:]] == [["x"], ["x", "q"], ["x", "r"], ["x"]]
    with pytest.raises(AttributeError, match="not a registered operator"):
        _ = x.Foo
    with pytest.raises(AttributeError, match="not a registered operator"):
        _ = x.Proto
    with pytest.raises(AttributeError, match=r"call net\.Relu"):
        core.BlobReference("x").Relu("y")
    assert "Conv" in dir(x) and "Conv" not in dir(core.BlobReference("x"))


def test_row_A1_a_scoped_reference_has_the_scoped_name():
    with core.NameScope("worker"), core.NameScope("task"):
        ref = core.ScopedBlobReference("blob")
        assert core.ScopedName(core.BlobReference("x")) == "worker/task/x"
    assert isinstance(ref, core.BlobReference)
    assert (str(ref), ref.name) == ("worker/task/blob", "worker/task/blob")
    with core.NameScope("other"):
        assert core.CreateOperator("Relu", ref, "y").input == ["worker/task/blob"]
