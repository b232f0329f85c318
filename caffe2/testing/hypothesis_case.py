"""A base class of tests that run one operator on drawn inputs; for tests of the old API."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2
from caffe2.runtime import workspace
from caffe2.testing.devices import DeviceChecker
from caffe2.testing.numeric_gradients import GradientChecker, getGradientForOp
from caffe2.testing.test_case import TestCase

Devices: TypeAlias = Mapping[str, Any] | None
Arrays: TypeAlias = Sequence[npt.NDArray[Any]]


@contextlib.contextmanager
def temp_workspace(name: str | bytes = b"temp_ws") -> Iterator[None]:
    """A workspace that is empty at first and again at the end."""
    with workspace.WorkspaceGuard(name):
        workspace.ResetWorkspace()
        try:
            yield
        finally:
            workspace.ResetWorkspace()


def _feed(op: Any, inputs: Arrays, device_option: Any, input_device_options: Devices) -> None:
    for name, value in zip(op.input, inputs, strict=True):
        device = (input_device_options or {}).get(name, device_option)
        workspace.FeedBlob(name, value, device)


def runOpOnInput(
    device_option: Any, op: Any, inputs: Arrays, input_device_options: Devices = None
) -> list[Any]:
    """The outputs of an operator."""
    op.device_option.CopyFrom(device_option)
    with temp_workspace():
        _feed(op, inputs, device_option, input_device_options)
        workspace.RunOperatorOnce(op)
        return [workspace.FetchBlob(name) for name in op.output]


def runOpBenchmark(
    device_option: Any,
    op: Any,
    inputs: Arrays,
    input_device_options: Devices = None,
    iterations: int = 10,
) -> list[float]:
    """Milliseconds per run of an operator."""
    op.device_option.CopyFrom(device_option)
    with temp_workspace():
        _feed(op, inputs, device_option, input_device_options)
        net = caffe2_pb2.NetDef(name="benchmark", op=[op])
        workspace.CreateNet(net)
        start = time.perf_counter()
        workspace.RunNet("benchmark", iterations)
        return [(time.perf_counter() - start) * 1000 / iterations]


class HypothesisTestCase(TestCase):
    """What a test of an operator asserts."""

    def assertDeviceChecks(
        self,
        device_options: Sequence[Any],
        op: Any,
        inputs: Arrays,
        outputs_to_check: Sequence[int],
        input_device_options: Devices = None,
        threshold: float = 0.01,
    ) -> None:
        """The outputs are the same on all devices."""
        checker = DeviceChecker(threshold, device_options)
        self.assertTrue(checker.CheckSimple(op, inputs, outputs_to_check, input_device_options))

    def assertGradientChecks(
        self,
        device_option: Any,
        op: Any,
        inputs: Arrays,
        outputs_to_check: int,
        outputs_with_grads: Sequence[int],
        grad_ops: Any = None,
        threshold: float = 0.005,
        stepsize: float = 0.05,
        input_device_options: Devices = None,
        ensure_outputs_are_inferred: bool = False,
    ) -> None:
        """The gradient of input number `outputs_to_check` is near the numeric one."""
        checker = GradientChecker(stepsize, threshold, device_option)
        right, grad, estimate = checker.CheckSimple(
            op, inputs, outputs_to_check, outputs_with_grads, grad_ops, input_device_options
        )
        self.assertEqual(grad.shape, estimate.shape)
        self.assertTrue(
            right,
            f"gradient of input {op.input[outputs_to_check]} of {op.type}:\n{grad}\n"
            f"numeric:\n{estimate}",
        )

    def assertReferenceChecks(
        self,
        device_option: Any,
        op: Any,
        inputs: Arrays,
        reference: Callable[..., Any],
        input_device_options: Devices = None,
        threshold: float = 0.0001,
        output_to_grad: Any = None,
        grad_reference: Callable[..., Any] | None = None,
        atol: float | None = None,
        outputs_to_check: Sequence[int] | None = None,
        ensure_outputs_are_inferred: bool = False,
    ) -> list[Any]:
        """The outputs are near those of reference(*inputs), and the gradients near those of
        grad_reference(gradient of output_to_grad, outputs, inputs)."""
        atol = threshold if atol is None else atol
        expected = reference(*inputs)
        outputs = runOpOnInput(device_option, op, inputs, input_device_options)
        if isinstance(expected, np.ndarray) or not isinstance(expected, (tuple, list)):
            expected = [expected]
        checked = range(len(expected)) if outputs_to_check is None else outputs_to_check
        for index in checked:
            self._assert_near(outputs[index], expected[index], threshold, atol)
        if grad_reference is not None:
            index = (
                list(op.output).index(output_to_grad)
                if isinstance(output_to_grad, str)
                else (output_to_grad or 0)
            )
            self._assert_gradients(
                device_option, op, inputs, outputs, index, grad_reference, threshold, atol
            )
        return outputs

    def _assert_near(self, found: Any, expected: Any, threshold: float, atol: float) -> None:
        expected, found = np.asarray(expected), np.asarray(found)
        self.assertEqual(expected.shape, found.shape)
        if expected.dtype.kind in "fiub" and found.dtype.kind in "fiub":
            np.testing.assert_allclose(found, expected, rtol=threshold, atol=atol)
        else:
            np.testing.assert_array_equal(found, expected)

    def _assert_gradients(
        self,
        device_option: Any,
        op: Any,
        inputs: Arrays,
        outputs: Sequence[Any],
        index: int,
        reference: Callable[..., Any],
        threshold: float,
        atol: float,
    ) -> None:
        grad = np.random.default_rng(0).standard_normal(outputs[index].shape)
        grad = grad.astype(outputs[index].dtype)
        grad_ops, gradients = getGradientForOp(op)
        with temp_workspace():
            _feed(op, inputs, device_option, None)
            workspace.RunOperatorOnce(op)
            workspace.FeedBlob(f"{op.output[index]}_grad", grad)
            workspace.RunOperatorsOnce(grad_ops)
            found = [
                workspace.FetchBlob(g.values if isinstance(g, GradientSlice) else g) if g else None
                for g in gradients
            ]
        for value, expected in zip(found, reference(grad, outputs, inputs), strict=False):
            if expected is not None and value is not None:
                self._assert_near(value, expected, threshold, atol)

    def assertValidationChecks(
        self,
        device_option: Any,
        op: Any,
        inputs: Arrays,
        validator: Callable[..., Any],
        input_device_options: Devices = None,
        as_kwargs: bool = True,
        init_net: Any = None,
    ) -> None:
        """The validator, which gets inputs and outputs (by name, `as_kwargs`), raises nothing."""
        if as_kwargs and len(set(op.input) | set(op.output)) < len(op.input) + len(op.output):
            raise ValueError("in-place operators need as_kwargs=False: names occur twice")
        op.device_option.CopyFrom(device_option)
        with temp_workspace():
            _feed(op, inputs, device_option, input_device_options)
            if init_net is not None:
                workspace.RunNetOnce(init_net)
            workspace.RunOperatorOnce(op)
            outputs = [workspace.FetchBlob(name) for name in op.output]
            if as_kwargs:
                values = [*inputs, *outputs]
                validator(**dict(zip([*op.input, *op.output], values, strict=True)))
            else:
                validator(inputs=inputs, outputs=outputs)

    def assertRunOpRaises(
        self,
        device_option: Any,
        op: Any,
        inputs: Arrays,
        input_device_options: Devices = None,
        exception: Any = (Exception,),
        regexp: str | None = None,
    ) -> None:
        """Running the operator raises (a text that `regexp` finds)."""

        def run() -> None:
            runOpOnInput(device_option, op, inputs, input_device_options)

        if regexp is None:
            self.assertRaises(exception, run)
        else:
            self.assertRaisesRegex(exception, regexp, run)


__all__ = [
    "HypothesisTestCase",
    "runOpBenchmark",
    "runOpOnInput",
    "temp_workspace",
]
