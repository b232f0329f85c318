"""Helpers that tests of old use: checkers, drawn inputs, devices of blobs, plug-in files."""

import numpy as np
import pytest
from hypothesis import given, settings

import caffe2.python.hypothesis_test_util as hu
from caffe2.proto import caffe2_pb2
from caffe2.python import core, dyndep, gradient_checker, utils, workspace
from caffe2.python.device_checker import DeviceChecker
from caffe2.python.test_util import TestCase, rand_array


def test_the_gradient_checker_tells_right_from_wrong():
    checker = gradient_checker.GradientChecker(0.01, 0.01)
    op = core.CreateOperator("Tanh", ["x"], ["y"])
    x = rand_array(2, 3).astype(np.float32)
    right, grad, estimate = checker.CheckSimple(op, [x], 0, [0])
    assert right
    np.testing.assert_allclose(grad, estimate, atol=0.01)
    wrong = core.CreateOperator("Scale", ["y_grad"], ["x_grad"], scale=2.0)
    assert not checker.CheckSimple(op, [x + 1], 0, [0], grad_ops=[wrong])[0]


def test_the_device_checker_compares():
    op = core.CreateOperator("Relu", ["x"], ["y"])
    options = [core.DeviceOption(caffe2_pb2.CPU)] * 2
    assert DeviceChecker(0.0, options).CheckSimple(op, [np.ones(3, np.float32)], [0])


class TestHypothesisHelpers(hu.HypothesisTestCase):
    @given(x=hu.tensor(max_dim=2), **hu.gcs)
    @settings(max_examples=5, deadline=None)
    def test_reference(self, x, gc, dc):
        op = core.CreateOperator("Relu", ["x"], ["y"])
        self.assertReferenceChecks(gc, op, [x], lambda x: [np.maximum(x, 0)])
        self.assertDeviceChecks(dc, op, [x], [0])
        with self.assertRaises(AssertionError):
            self.assertReferenceChecks(gc, op, [x], lambda x: [np.maximum(x, 0) + 1])

    @given(lengths=hu.lengths(12))
    @settings(max_examples=20, deadline=None)
    def test_lengths(self, lengths):
        assert lengths.sum() == 12 and (lengths >= 0).all() and lengths.dtype == np.int32

    @given(ids=hu.segment_ids(9, is_sorted=True), mixed=hu.segment_ids(9, is_sorted=False))
    @settings(max_examples=20, deadline=None)
    def test_segments(self, ids, mixed):
        for found in (ids, mixed):
            assert sorted(set(found.tolist())) == list(range(found.max() + 1))
        assert (np.diff(ids) >= 0).all()


class TestTestCase(TestCase):
    def test_the_workspace_is_empty(self):
        assert workspace.Blobs() == []


def test_copies_between_devices():
    gpu = core.DeviceOption(caffe2_pb2.CUDA, 1)
    init, net = core.Net("init"), core.Net("net")
    weight = init.ConstantFill([], "w", shape=[1])
    with core.DeviceScope(gpu):
        net.FC(["data", weight, "b"], "fc1")
        net.Relu("data", "again")
    _, devices = core.InjectCrossDeviceCopies(init)
    copied, devices = core.InjectCrossDeviceCopies(net, devices)
    assert [(op.type, list(op.input)) for op in copied.Proto().op] == [
        ("CopyCPUToGPU", ["data"]),
        ("CopyCPUToGPU", ["w"]),
        ("CopyCPUToGPU", ["b"]),
        ("FC", ["data_gpu_1", "w_gpu_1", "b_gpu_1"]),
        ("Relu", ["data_gpu_1"]),
    ]
    assert devices["fc1"] == gpu and devices["w"] != gpu


def test_a_blob_that_changes_its_device_is_an_error():
    net = core.Net("net")
    net.Relu("x", "y")
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, 1)):
        net.Relu("x", "y")
    with pytest.raises(RuntimeError, match="In-place blob: y is not supported between operators"):
        core.InjectCrossDeviceCopies(net)


def test_libraries(tmp_path):
    dyndep.InitOpsLibrary("@/caffe2/caffe2/contrib/gpu_ops.so")  # not there: a note in the log
    with pytest.raises(FileNotFoundError, match="there is no operator library"):
        dyndep.InitOpsLibrary(str(tmp_path / "mine.py"))
    plugin = tmp_path / "plugin.py"
    plugin.write_text("import os\nos.environ['CAFFE2_TEST_PLUGIN'] = 'loaded'\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAFFE2_TEST_PLUGIN", "")
        dyndep.InitOpsLibrary(str(plugin))
        import os

        assert os.environ["CAFFE2_TEST_PLUGIN"] == "loaded"
    assert str(plugin) in dyndep.GetImportedOpsLibraries()
    native = tmp_path / "ops.so"
    native.write_bytes(b"\x7fELF")
    with pytest.raises(OSError, match="native library of the original Caffe2"):
        dyndep.InitOpsLibrary(str(native))


def test_messages_as_text_and_bytes(tmp_path):
    net = caffe2_pb2.NetDef(name="n", op=[core.CreateOperator("Relu", "x", "y")])
    for form in (str(net), net.SerializeToString()):
        assert utils.TryReadProtoWithClass(caffe2_pb2.NetDef, form) == net
    text, binary = tmp_path / "net.pbtxt", tmp_path / "net.pb"
    text.write_text(str(net))
    utils.ConvertProtoToBinary(caffe2_pb2.NetDef, str(text), str(binary))
    assert binary.read_bytes() == net.SerializeToString()
    other = core.CreateOperator("Relu", "x", "y", name="other")
    assert utils.OpAlmostEqual(net.op[0], other, ignore_fields=["name"])
    assert not utils.OpAlmostEqual(net.op[0], other)
