"""Gradients of an operator, in float32 as it runs, against numeric ones; for tests of the old API.

`caffe2.testing.check` is sharper: it differentiates the NumPy body in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from caffe2.graph.gradients import GradientRegistry
from caffe2.graph.net import Net
from caffe2.ops.declaration import GradientSlice
from caffe2.proto import caffe2_pb2
from caffe2.runtime import workspace

Array: TypeAlias = npt.NDArray[Any]


def getGradientForOp(op: caffe2_pb2.OperatorDef) -> tuple[list[Any], list[Any]]:
    """The gradient operators of an operator, and the gradients of its inputs."""
    return GradientRegistry.GetGradientForOp(op, [f"{name}_grad" for name in op.output])


class GradientChecker:
    """Compares the gradient operators of an operator with differences of its outputs.

    stepsize       how far an input is moved to both sides
    threshold      how far the two gradients may be apart: times the largest of 1 and the two
    device_option  where the operators run
    """

    def __init__(
        self,
        stepsize: float,
        threshold: float,
        device_option: Any = None,
        workspace_name: str = "gradient_check",
        input_device_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._stepsize, self._threshold = stepsize, threshold
        self._device_option = device_option or caffe2_pb2.DeviceOption()
        self._workspace_name = workspace_name
        self._input_device_options = dict(input_device_options or {})

    def GetLossAndGrad(
        self,
        op: caffe2_pb2.OperatorDef,
        grad_ops: Sequence[caffe2_pb2.OperatorDef],
        inputs: Sequence[Array],
        input_names: Sequence[str],
        input_to_check: int,
        grad_name: Any,
        outputs_with_grads: Sequence[int],
    ) -> tuple[float, Array]:
        """The loss, half the sum of squares of the outputs, and its gradient by the operators."""
        for name, value in zip(input_names, inputs, strict=True):
            workspace.FeedBlob(name, value, self._input_device_options.get(name))
        x = inputs[input_to_check]
        workspace.RunOperatorOnce(op)
        loss = 0.0
        for index in outputs_with_grads:
            value = np.asarray(workspace.FetchBlob(op.output[index]))
            loss += float((value.astype(np.float64) ** 2).sum()) / 2
            workspace.FeedBlob(f"{op.output[index]}_grad", value)
        workspace.RunOperatorsOnce(grad_ops)
        if isinstance(grad_name, GradientSlice):
            grad = np.zeros_like(x)
            indices, values = map(workspace.FetchBlob, grad_name)
            np.add.at(grad, indices.reshape(-1), values.reshape(-1, *x.shape[1:]))
        else:
            grad = np.asarray(workspace.FetchBlob(grad_name))
        return loss, grad

    def CheckSimple(
        self,
        op: caffe2_pb2.OperatorDef,
        inputs: Sequence[Array],
        input_to_check: int,
        outputs_with_grads: Sequence[int],
        grad_ops: Sequence[caffe2_pb2.OperatorDef] | None = None,
        input_device_options: Mapping[str, Any] | None = None,
        ensure_outputs_are_inferred: bool = False,
    ) -> tuple[bool, Array, Array]:
        """Whether the gradient of one input is right; it, and the numeric one.

        grad_ops  the gradient operators; default: those of the operator's rule
        """
        op.device_option.CopyFrom(self._device_option)
        if grad_ops is None:
            grad_ops, gradients = getGradientForOp(op)
        else:
            gradients = [f"{name}_grad" for name in op.input]
        for grad_op in grad_ops:
            grad_op.device_option.CopyFrom(self._device_option)
        outer = self._input_device_options
        self._input_device_options = dict(input_device_options or outer)
        values = [np.array(value) for value in inputs]
        with workspace.Workspace():

            def run() -> tuple[float, Array]:
                return self.GetLossAndGrad(
                    op,
                    grad_ops,
                    values,
                    list(op.input),
                    input_to_check,
                    gradients[input_to_check],
                    outputs_with_grads,
                )

            grad = run()[1]
            x = values[input_to_check]
            estimate = np.zeros_like(x)
            for index in np.ndindex(x.shape):
                before = x[index]
                x[index] = before + self._stepsize
                above = run()[0]
                x[index] = before - self._stepsize
                below = run()[0]
                x[index] = before
                estimate[index] = (above - below) / 2 / self._stepsize
        self._input_device_options = outer
        scale = np.maximum(np.maximum(np.abs(grad), np.abs(estimate)), 1)
        return bool(np.all(np.abs(grad - estimate) <= scale * self._threshold)), grad, estimate


class NetGradientChecker:
    """The same for whole nets."""

    @staticmethod
    def Check(
        net: Net,
        outputs_with_grad: Sequence[Any],
        input_values: Mapping[str, Array],
        input_to_check: Any,
        step_size: float = 0.0001,
        threshold: float = 0.05,
        print_net: bool = True,
    ) -> None:
        """AssertionError when the gradient of an input differs from the numeric one."""
        name = str(input_to_check)
        grads = net.AddGradientOperators(list(outputs_with_grad))
        values = {key: np.array(value) for key, value in input_values.items()}

        def loss() -> float:
            for key, value in values.items():
                workspace.FeedBlob(key, value)
            workspace.RunNetOnce(net)
            return sum(
                float(np.asarray(workspace.FetchBlob(y), np.float64).sum())
                for y in outputs_with_grad
            )

        with workspace.Workspace():
            loss()
            grad = workspace.FetchBlob(grads[name])  # type: ignore[index]
            x, estimate = values[name], np.zeros_like(values[name])
            for index in np.ndindex(x.shape):
                before = x[index]
                x[index] = before + step_size
                above = loss()
                x[index] = before - step_size
                below = loss()
                x[index] = before
                estimate[index] = (above - below) / 2 / step_size
        np.testing.assert_allclose(grad, estimate, rtol=threshold, atol=threshold)

    @staticmethod
    def CompareNets(
        nets: Sequence[Net],
        outputs: Sequence[Sequence[Any]],
        outputs_with_grad_ids: Sequence[int],
        inputs_with_grads: Sequence[Any],
        input_values: Mapping[str, Array] | None = None,
        threshold: float = 0.0000001,
        print_net_images: bool = False,
    ) -> None:
        """AssertionError when two nets have different outputs, or gradients of the inputs."""
        found = []
        for net, ys in zip(nets, outputs, strict=True):
            grads = net.AddGradientOperators([ys[index] for index in outputs_with_grad_ids])
            with workspace.Workspace():
                for name, value in (input_values or {}).items():
                    workspace.FeedBlob(name, value)
                workspace.RunNetOnce(net)
                results = [workspace.FetchBlob(y) for y in ys]
                results += [workspace.FetchBlob(grads[str(x)]) for x in inputs_with_grads]  # type: ignore[index]
            found.append(results)
        for first, second in zip(*found, strict=True):
            np.testing.assert_allclose(first, second, rtol=threshold, atol=threshold)
