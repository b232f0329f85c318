"""Rows C of the founding documents: operators and kernels."""

import os
import subprocess
import sys

import numpy as np
import pytest

from caffe2 import _native
from caffe2.proto import caffe2_pb2
from caffe2.python import core
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
