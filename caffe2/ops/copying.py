# mypy: disable-error-code="misc, no-any-return"
"""Other names for a tensor, what is known of it, and floats of 16 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Ints, OperatorError, Str
from caffe2.ops.datatypes import FLOAT, FLOAT16
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    GradientSlice,
    OpView,
    Spec,
    operator,
    same_as,
)


@operator("Alias", inputs="input", outputs="output", shape=same_as("input"))
class Alias:
    """output = input, without a copy of the elements.

    input, output: tensors of any one shape and type.  Writing one of them leaves the other.
    """

    def reference(input: Array) -> Array:
        return input.copy()

    def gradient(op: GradientContext) -> Any:
        op.set_input_grad(0, op.grad(0))
        return []


@operator(
    "AliasWithName",
    inputs="input",
    outputs="output",
    args={"name": Str(required=True), "is_backward": Bool(False)},
    inplace=[(0, 0)],
    shape=same_as("input"),
)
class AliasWithName:
    """output = input, without a copy of the elements; a mark in a net.

    input, output: tensors of any one shape and type.
    name, is_backward: what the mark says to tools that read the net; nothing depends on it.
    """

    def reference(input: Array) -> Array:
        return input.copy()


@operator("EnsureDense", inputs="input", outputs="output", inplace=[(0, 0)], shape=same_as("input"))
class EnsureDense:
    """output = input; its gradient is dense, whatever comes back.

    input, output: tensors of any one shape and type.
    """

    def reference(input: Array) -> Array:
        return input.copy()

    def gradient(op: GradientContext) -> Any:
        grad = op.grad(0)
        if not isinstance(grad, GradientSlice):
            op.set_input_grad(0, grad)
            return []
        inputs = [grad.indices, grad.values, op.input(0)]
        return op.make("SparseToDense", inputs, [op.input_grad(0)])


@operator("EnsureCPUOutput", inputs="input", outputs="output", shape=same_as("input"))
class EnsureCPUOutput:
    """output = input, in the memory of the CPU.

    input, output: tensors of any one shape and type.
    """

    gradient = NO_GRADIENT

    def reference(input: Array) -> Array:
        return input.copy()


@operator("CopyFromCPUInput", inputs="input", outputs="output", shape=same_as("input"))
class CopyFromCPUInput:
    """output = input, from the memory of the CPU to that of the operator's device.

    input, output: tensors of any one shape and type.
    """

    def reference(input: Array) -> Array:
        return input.copy()


class _DeviceCopy:
    """output = input.  There are no GPUs here: both blobs are in the memory of the CPU.

    input, output: tensors of any one shape and type.
    """

    def reference(input: Array) -> Array:
        return input.copy()

    def gradient(op: GradientContext) -> Any:
        back = "CopyCPUToGPU" if op.type == "CopyGPUToCPU" else "CopyGPUToCPU"
        return op.make(back, [op.grad(0)], [op.input_grad(0)])


for _name in ("CopyCPUToGPU", "CopyGPUToCPU"):
    operator(_name, inputs="input", outputs="output", shape=same_as("input"))(_DeviceCopy)


@operator("Shape", inputs="X", outputs="shape", args={"axes": Ints(min=0)})
class Shape:
    """shape = the dimensions of X.

    X: any type.  axes: which dimensions, in this order; all when there are none.
    shape: int64, 1-d.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(X: Spec, op: OpView) -> Spec:
        rank = len(X.shape)
        if max(op.args.axes, default=-1) >= rank:
            problem = f"is {list(op.args.axes)}; X has {rank} dimensions"
            raise OperatorError("argument 'axes'", problem)
        return Spec((len(op.args.axes) or rank,), np.dtype(np.int64))

    def reference(X: Array, op: OpView) -> Array:
        axes = op.args.axes or range(X.ndim)
        return np.array([X.shape[axis] for axis in axes], dtype=np.int64)


@operator("Size", inputs="X", outputs="size")
class Size:
    """size = the number of elements of X.

    X: any type.  size: int64 ().
    """

    gradient = NO_GRADIENT

    def shape(X: Spec) -> Spec:
        return Spec((), np.dtype(np.int64))

    def reference(X: Array) -> Array:
        return np.array(X.size, dtype=np.int64)


@operator("FloatToHalf", inputs="input", outputs="output", types={"input": FLOAT})
class FloatToHalf:
    """output = input as floats of 16 bits: the nearest, ties to even; beyond 65504 infinite.

    input: float.  output: float16 of the same shape.
    """

    def shape(input: Spec) -> Spec:
        return Spec(input.shape, np.dtype(np.float16))

    def reference(input: Array) -> Array:
        with np.errstate(over="ignore"):
            return input.astype(np.float16)

    def gradient(op: GradientContext) -> Any:
        return op.make("HalfToFloat", [op.grad(0)], [op.input_grad(0)])


@operator("HalfToFloat", inputs="input", outputs="output", types={"input": FLOAT16})
class HalfToFloat:
    """output = input as floats of 32 bits, which hold them all.

    input: float16.  output: float of the same shape.
    """

    def shape(input: Spec) -> Spec:
        return Spec(input.shape, np.dtype(np.float32))

    def reference(input: Array) -> Array:
        return input.astype(np.float32)

    def gradient(op: GradientContext) -> Any:
        return op.make("FloatToHalf", [op.grad(0)], [op.input_grad(0)])
