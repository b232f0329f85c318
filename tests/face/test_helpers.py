"""Helpers that tests of old use: checkers, drawn inputs, devices of blobs, plug-in files."""

import numpy as np
import pytest
from hypothesis import given, settings

import caffe2.python.hypothesis_test_util as hu
from caffe2.ops.arguments import DeclarationError
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


PLUGIN = '''
import numpy as np
from caffe2.ops.arguments import Float
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import operator, same_as

@operator("{name}", inputs="X", outputs="Y", args={{"by": Float(2.0, min=0)}}, types={{"X": FLOAT}},
          inplace=[(0, 0)], native={native}, shape=same_as("X"))
class Stretch:
    """Y = X * by."""

    def reference(X, *, op):
        return X * np.float32(op.args.by)

    def gradient(op):
        return op.make("{name}", [op.grad(0)], [op.input_grad(0)])
'''


@pytest.fixture
def stretch(tmp_path):
    """A plug-in with an operator Y = X * by, which stays for the whole process."""
    if not core.IsOperator("TestStretch"):
        (tmp_path / "stretch.py").write_text(PLUGIN.format(name="TestStretch", native=False))
        dyndep.InitOpsLibrary(str(tmp_path / "stretch.py"))


def test_operators_of_a_plug_in_run_in_the_engine(stretch):
    net = core.Net("plugin")
    y = net.TestStretch("x", "y", by=3.0)
    net.TestStretch(y, y)  # in place
    gradients = net.AddGradientOperators([net.AveragedLoss(y, "loss")])
    workspace.FeedBlob("x", np.array([1, -2], np.float32))
    for kind in ("simple", "dag"):
        net.Proto().type = kind
        workspace.RunNetOnce(net)
        np.testing.assert_array_equal(workspace.FetchBlob("y"), [6, -12])
        np.testing.assert_array_equal(workspace.FetchBlob(gradients["x"]), [3, 3])
    predictor = workspace.Predictor(
        caffe2_pb2.NetDef(),
        caffe2_pb2.NetDef(
            op=[core.CreateOperator("TestStretch", "x", "z")],
            external_input=["x"],
            external_output=["z"],
        ),
    )
    np.testing.assert_array_equal(predictor.run([np.ones(2, np.float32)])[0], [2, 2])


@pytest.mark.parametrize(
    ("op", "text"),
    [
        ({"inputs": ["x", "x"], "outputs": "y"}, "it has 2 input(s); allowed: 1"),
        ({"inputs": "x", "outputs": "y", "by": -1.0}, "argument 'by'"),
        ({"inputs": "numbers", "outputs": "y"}, "is INT32; allowed are FLOAT"),
    ],
)
def test_operators_of_a_plug_in_are_checked(stretch, op, text):
    workspace.FeedBlob("x", np.ones(2, np.float32))
    workspace.FeedBlob("numbers", np.ones(2, np.int32))
    with pytest.raises(RuntimeError) as error:
        workspace.RunOperatorOnce(core.CreateOperator("TestStretch", **op))
    assert text in str(error.value)


def test_a_plug_in_that_fails_leaves_nothing(tmp_path):
    plugin = tmp_path / "plugin.py"
    plugin.write_text(PLUGIN.format(name="TestHalf", native=False) + "raise OSError('half')\n")
    with pytest.raises(OSError, match="half"):
        dyndep.InitOpsLibrary(str(plugin))
    assert not core.IsOperator("TestHalf")
    plugin.write_text(PLUGIN.format(name="TestHalf", native=True))
    with pytest.raises(DeclarationError, match=r"operator TestHalf .* needs native=False"):
        dyndep.InitOpsLibrary(str(plugin))
    assert not core.IsOperator("TestHalf")
    with pytest.raises(RuntimeError, match="unknown operator types: 'TestHalf'"):
        workspace.RunOperatorOnce(caffe2_pb2.OperatorDef(type="TestHalf"))
