"""Rows C of the founding documents: operators and kernels."""

import os
import subprocess
import sys

import numpy as np
import pytest

from caffe2 import _native, ops
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from caffe2.runtime.engine import prepare_body


def net_with(op_type, **arguments):
    net = core.Net("kernels")
    getattr(net, op_type)(["x"], ["y"], **arguments)
    return net.Proto().SerializeToString()


def run_on(engine, message, x, body=None):
    space = _native.Workspace(engine)
    if body is not None:
        space.set_reference(body)
    space.feed("x", x)
    space.run_net_once(message)
    return space.fetch("y")


class TestC5:
    """An environment variable or argument forces a kernel, to compare kernels."""

    def test_the_argument_forces_the_kernel_of_a_type(self):
        calls = []

        def prepare(op_def):
            calls.append(caffe2_pb2.OperatorDef.FromString(op_def).type)
            return prepare_body(lambda: None, op_def)

        x = np.array([-1, 2], np.float32)
        engine = _native.Engine(threads=1, kernels="Relu:REFERENCE")
        np.testing.assert_array_equal(run_on(engine, net_with("Relu"), x, prepare), [0, 2])
        assert calls == ["Relu"]

    def test_it_counts_more_than_what_the_operator_asks_for(self):
        engine = _native.Engine(threads=1, kernels="Relu:REFERENCE")
        with pytest.raises(_native.EngineError, match="no reference body"):
            run_on(engine, net_with("Relu", engine="CUDNN"), np.zeros(2, np.float32))
        np.testing.assert_array_equal(
            run_on(engine, net_with("Scale", scale=3.0), np.ones(2, np.float32)), [3, 3]
        )

    @pytest.mark.parametrize(
        ("kernels", "text"),
        [
            ("Conv", "'Conv' names no kernel; it should read Type:KERNEL"),
            ("Convolve:IM2COL", "'Convolve:IM2COL' names an unknown operator type"),
        ],
    )
    def test_wrong_names_are_errors(self, kernels, text):
        with pytest.raises(_native.EngineError) as error:
            _native.Engine(threads=1, kernels=kernels)
        assert text in str(error.value)

    def test_the_environment_variable(self):
        code = """
import numpy as np
from caffe2.python import core, workspace
workspace.FeedBlob("x", np.random.default_rng(0).random((1, 3, 8, 8), np.float32))
workspace.FeedBlob("w", np.random.default_rng(1).random((4, 3, 3, 3), np.float32))
workspace.RunOperatorOnce(core.CreateOperator("Conv", ["x", "w"], ["y"], kernel=3))
print(workspace.FetchBlob("y").tobytes().hex())
"""

        def run(value):
            return subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "CAFFE2_ENGINE": value},
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )

        outputs = []
        for value in ("", "Conv:IM2COL", "Conv:REFERENCE"):
            done = run(value)
            assert (done.returncode, done.stderr) == (0, "")
            outputs.append(np.frombuffer(bytes.fromhex(done.stdout.strip()), np.float32))
        # 27 products of numbers below 1 are summed: an error of 27 units in the last place of 27.
        np.testing.assert_allclose(outputs[1], outputs[0], rtol=27 * 2**-23)
        np.testing.assert_allclose(outputs[2], outputs[0], rtol=27 * 2**-23)
        wrong = run("Convolve:IM2COL")
        assert wrong.returncode == 1
        assert "CAFFE2_ENGINE in the environment: 'Convolve:IM2COL' names an" in wrong.stderr


class TestC1:
    """Operator and kernel are separate; kernels are found by type, device, data type and engine."""

    def test_what_is_registered(self):
        assert _native.registered_kernels("Relu").split(", ")[0] == "CPU"
        assert _native.registered_kernels("Nope") == "none"

    def test_a_type_without_a_kernel_says_what_is_allowed(self):
        engine = _native.Engine(threads=1)
        with pytest.raises(_native.EngineError, match="has type int64; allowed: float"):
            run_on(engine, net_with("Sigmoid"), np.zeros(2, np.int64))


class TestC2:
    """Kernels register themselves by type, device and engine; operators are made from their
    definition, their workspace and their position in the net."""

    def test_what_is_registered(self):
        for op_type in workspace.RegisteredOperators():
            native = ops.find(op_type).native
            assert _native.registered_kernels(op_type).startswith("CPU" if native else "none")
        assert core.IsOperator("Conv") and not core.IsOperator("Convolve")

    def test_every_instruction_set_has_the_kernels(self):
        x = np.linspace(-3, 3, 37, dtype=np.float32)
        for isa in _native.instruction_sets():
            engine = _native.Engine(threads=1, isa=isa)
            assert engine.isa == isa
            np.testing.assert_array_equal(
                run_on(engine, net_with("Relu"), x), np.maximum(x, 0), err_msg=isa
            )

    def test_operators_know_their_position(self):
        net = core.Net("positions")
        net.Relu("x", "y")
        net.FC(["y", "y", "y"], "z")
        space = _native.Workspace(_native.Engine(threads=1))
        space.feed("x", np.zeros(3, np.float32))
        with pytest.raises(_native.EngineError) as error:
            space.run_net_once(net.Proto().SerializeToString())
        assert (error.value.net, error.value.index, error.value.operator) == ("positions", 1, "FC")

    def test_whether_winograd_can_do_it(self):
        def convolution(**arguments):
            net = core.Net("conv")
            net.Conv(["x", "w"], "y", engine="WINOGRAD", **arguments)
            workspace.FeedBlob("x", np.ones((1, 8, 6, 6), np.float32))
            kernel = arguments["kernel"]
            workspace.FeedBlob("w", np.ones((8, 8, kernel, kernel), np.float32))
            workspace.RunNetOnce(net)
            return workspace.FetchBlob("y")

        np.testing.assert_allclose(convolution(kernel=3), np.full((1, 8, 4, 4), 72), rtol=1e-5)
        for arguments in ({"kernel": 5}, {"kernel": 3, "stride": 2}, {"kernel": 3, "dilation": 2}):
            with pytest.raises(RuntimeError, match="WINOGRAD"):
                convolution(**arguments)


class TestC6:
    """Conv by several algorithms: chosen by rules, forced by `engine=`, and all agree."""

    def test_all_agree(self):
        random = np.random.default_rng(0)
        workspace.FeedBlob("x", random.uniform(-1, 1, (2, 16, 10, 10)).astype(np.float32))
        workspace.FeedBlob("w", random.uniform(-1, 1, (16, 16, 3, 3)).astype(np.float32))
        workspace.FeedBlob("b", random.uniform(-1, 1, 16).astype(np.float32))
        found = {}
        engines = ("", "DIRECT", "IM2COL", "WINOGRAD", "WINOGRAD_2", "WINOGRAD_4", "REFERENCE")
        for engine in engines:
            net = core.Net("conv")
            net.Conv(["x", "w", "b"], "y", kernel=3, pad=1, engine=engine)
            workspace.RunNetOnce(net)
            found[engine] = workspace.FetchBlob("y")
        exact = found["REFERENCE"]
        for engine in engines:
            # The error of minimal filtering with tiles of 4x4: 1e-5 of the range of the output.
            np.testing.assert_allclose(
                found[engine], exact, rtol=0, atol=1e-5 * np.abs(exact).max(), err_msg=engine
            )
        # This window, with 16 channels and two maps of 10x10: the rules say tiles of 2x2.
        np.testing.assert_array_equal(found[""], found["WINOGRAD_2"])
        np.testing.assert_array_equal(found["WINOGRAD"], found["WINOGRAD_2"])


class TestC3:
    """What has no kernel for its device runs on the CPU."""

    def test_the_cpu_stands_in(self):
        gpu = core.DeviceOption(caffe2_pb2.CUDA, 1)
        engine = _native.Engine(threads=1)
        x = np.array([-1, 2], np.float32)
        found = run_on(engine, net_with("Relu", device_option=gpu), x)
        np.testing.assert_array_equal(found, [0, 2])


@pytest.fixture
def blobs():
    workspace.ResetWorkspace()
    random = np.random.default_rng(0)

    def feed(name, *shape):
        workspace.FeedBlob(name, random.standard_normal(shape).astype(np.float32))

    return feed


def all_of(net, *wanted):
    """The blobs that a net computes by its kernels and by NumPy bodies."""
    results = []
    for engine in ("", "REFERENCE"):
        for op in net.Proto().op:
            op.engine = engine
        workspace.RunNetOnce(net)
        results.append([workspace.FetchBlob(blob) for blob in wanted])
    return zip(*results, strict=True)


class TestC7:
    """Grouped, depthwise and dilated convolution, forward and backward."""

    @pytest.mark.parametrize(
        ("channels", "filters", "arguments"),
        [
            (4, 6, {"group": 2}),
            (4, 4, {"group": 4, "pad": 1}),
            (3, 2, {"dilation": 2, "pad": 2}),
            (3, 2, {"stride": 2, "pad": 1}),
        ],
    )
    @pytest.mark.parametrize("order", ["NCHW", "NHWC"])
    def test_against_the_definition(self, blobs, channels, filters, arguments, order):
        group = arguments.get("group", 1)
        if order == "NHWC" and group > 1:
            pytest.skip("the original has no groups in NHWC")
        image, kernel = (2, channels, 9, 9), (filters, channels // group, 3, 3)
        if order == "NHWC":
            image, kernel = (2, 9, 9, channels), (filters, 3, 3, channels)
        blobs("x", *image)
        blobs("w", *kernel)
        blobs("b", filters)
        net = core.Net("conv")
        net.Conv(["x", "w", "b"], "y", kernel=3, order=order, **arguments)
        grads = net.AddGradientOperators(["y"])
        # Sums of at most 2 * 9 * 9 * 4 products of numbers of about 1, in another order.
        for found, expected in all_of(net, "y", grads["x"], grads["w"], grads["b"]):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


class TestC8:
    """Pooling, forward and backward."""

    @pytest.mark.parametrize(
        ("op_type", "arguments"),
        [
            ("MaxPool", {"kernel": 2, "stride": 2}),
            ("MaxPool", {"kernel": 3, "stride": 2, "pad": 1}),
            ("AveragePool", {"kernel": 3, "stride": 2, "pad": 1}),
            ("AveragePool", {"kernel": 3, "stride": 2, "pad": 1, "count_include_pad": 1}),
            ("AveragePool", {"global_pooling": 1}),
            ("MaxPool", {"global_pooling": 1}),
        ],
    )
    def test_against_the_definition(self, blobs, op_type, arguments):
        blobs("x", 2, 3, 7, 8)
        net = core.Net("pool")
        getattr(net, op_type)("x", "y", **arguments)
        grads = net.AddGradientOperators(["y"])
        for found, expected in all_of(net, "y", grads["x"]):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
