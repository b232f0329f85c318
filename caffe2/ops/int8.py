# mypy: disable-error-code="misc, no-any-return"
"""Operators on Int8 tensors: integers q that stand for (q - zero_point) * scale.

An Int8 tensor is no array (`workspace.FetchInt8Blob` and `FeedInt8Blob` read and write one): uint8
elements, for biases int32, with a scale and a zero point.  Y_scale and Y_zero_point are those of
the output.  Values are rounded to the nearest and cut off at 0 and 255; halves go away from zero in
layers, sums and average pools, and become even elsewhere and in layers with engine="DNNLOWP".
(Jacob et al., 2018, "Quantization and training of neural networks for efficient
integer-arithmetic-only inference", arXiv 1712.05877.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2 import ops
from caffe2.ops import geometry
from caffe2.ops.arguments import (
    INT64_MAX,
    INT64_MIN,
    Argument,
    Bool,
    Float,
    Int,
    Ints,
    OperatorError,
    Str,
)
from caffe2.ops.batch_norm import ORDER
from caffe2.ops.conv_transpose import TRANSPOSE_ARGS
from caffe2.ops.datatypes import FLOAT, INTS, type_names
from caffe2.ops.declaration import NativeOnly, OpView, Spec, operator
from caffe2.ops.regions import ALIGN_ARGS
from caffe2.ops.shapes import require_dimensions, require_same_shape

_NO_ARRAY = NativeOnly("an Int8 tensor is no array")
_SCALES: dict[str, Argument] = {
    "Y_scale": Float(1.0, min=1e-30),
    "Y_zero_point": Int(0, min=0, max=255),
}
_UINT8, _INT32 = np.dtype(np.uint8), np.dtype(np.int32)
_OF_WINDOWS = ("Conv", "ConvTranspose", "AveragePool", "MaxPool")


def _bytes_like(name: str, X: Spec) -> Spec:
    """The Int8 tensor of the shape of another one.  Its type is that of its elements."""
    _require_quantized(name, X)
    return Spec(X.shape, _UINT8)


def _require_quantized(name: str, X: Spec) -> None:
    if X.dtype not in (_UINT8, _INT32):
        raise OperatorError(name, f"is {type_names([X.dtype])}; an Int8 tensor is needed")


def _like(twin: str, op: OpView, X: Spec, *more: Spec | None, **args: Any) -> Any:
    """What the operator on floats gives that moves or meets elements in the same way."""
    _require_quantized(op.declaration.inputs.name(0), X)
    if twin in _OF_WINDOWS and op.args.order.upper() != "NHWC":
        raise OperatorError("argument 'order'", f"is {op.args.order}; it must be NHWC")
    declaration = ops.find(twin)
    taken = {name: getattr(op.args, name) for name in op.given if name in declaration.args}
    if "order" in declaration.args:
        taken["order"] = "NHWC"
    inputs = [f"{i}" for i, spec in enumerate((X, *more)) if spec is not None]
    outputs = [f"Y{i}" for i in range(declaration.outputs.least)]
    view = declaration.view(inputs, outputs, {**taken, **args})
    return declaration.shape(X, *more, op=view)


_WINDOW_ARGS = {**geometry.window_arguments(), **_SCALES}


class _Int8Quantize:
    """Y = X / Y_scale + Y_zero_point.

    X: float of any shape.  Y: Int8 of the same shape.
    As Quantize, and with engine="DNNLOWP", values are rounded after the zero point is added, and
    without Y_scale both are chosen for 0 and the values of X, which must be finite.
    """

    reference = _NO_ARRAY

    def shape(X: Spec) -> Spec:
        return Spec(X.shape, _UINT8)


class _Int8Dequantize:
    """Y = (qX - zero_point) * scale.

    qX: Int8 of any shape.  Y: float of the same shape.
    """

    reference = _NO_ARRAY

    def shape(qX: Spec) -> Spec:
        _require_quantized("qX", qX)
        return Spec(qX.shape, np.dtype(np.float32))


for _prefix in ("", "Int8"):
    operator(f"{_prefix}Quantize", inputs="X", outputs="Y", args=_SCALES, types={"X": FLOAT})(
        _Int8Quantize
    )
    operator(f"{_prefix}Dequantize", inputs="qX", outputs="Y")(_Int8Dequantize)


@operator(
    "Int8FCPackWeight",
    inputs="W b?",
    outputs="W_q B_q?",
    args={
        "in_scale": Float(1.0, min=1e-30),
        "axis_w": Int(1),
        "quantize_channelwise": Bool(False),
        "save_unpacked_weights": Bool(False),
    },
    types={"W": FLOAT, "b": FLOAT},
)
class Int8FCPackWeight:
    """W_q, B_q = the weights of Int8FC from those of FC.

    W: float, at least 2-d, finite.  W_q: Int8 of the same shape, whose scale and zero point are
    chosen for 0 and the values of W.  b: float, one for each row of W.  B_q: int32 Int8 of the same
    shape, of the scale in_scale (that of Int8FC's X) times that of W_q.
    quantize_channelwise must be 0; axis_w and save_unpacked_weights change nothing.
    """

    reference = _NO_ARRAY

    def shape(W: Spec, b: Spec | None) -> tuple[Spec, Spec]:
        require_dimensions("W", W, 2)
        if b is not None and b.shape != W.shape[:1]:
            raise OperatorError("b", f"has shape {b.shape}; {W.shape[:1]} is needed")
        return Spec(W.shape, _UINT8), Spec(W.shape[:1], _INT32)


class _Int8Fill:
    """Y = the given values.

    values: the elements, for Int8GivenTensorFill as text whose bytes they are.
    shape: that of Y.  Y: Int8, with uint8 elements, for Int8GivenIntTensorFill int32.
    """

    reference = _NO_ARRAY

    def shape(op: OpView) -> Spec:
        return Spec(op.args.shape, _INT32 if "Int" in op.type.removeprefix("Int8") else _UINT8)


for _name, _values in (
    ("Int8GivenTensorFill", Str(required=True)),
    ("Int8GivenIntTensorFill", Ints(required=True)),
):
    operator(
        _name,
        inputs="",
        outputs="Y",
        args={"values": _values, "shape": Ints(min=0, max=INT64_MAX), **_SCALES},
    )(_Int8Fill)


class _Int8Add:
    """C = A + B, for Int8AddRelu its positive part.

    A, B: Int8 of one shape, with scales of their own.  C: Int8 of this shape.
    """

    reference = _NO_ARRAY

    def shape(A: Spec, B: Spec) -> Spec:
        require_same_shape("B", B, "A", A)
        return _bytes_like("A", A)


class _Int8Sum:
    """Y = the sum of the inputs, for Int8SumRelu its positive part.

    Inputs: Int8 of one shape, with scales of their own.  Y: Int8 of this shape.
    """

    reference = _NO_ARRAY

    def shape(*X: Spec) -> Spec:
        for spec in X:
            require_same_shape("X", spec, "the first", X[0])
        return _bytes_like("X", X[0])


for _name in ("Int8Add", "Int8AddRelu"):
    operator(_name, inputs="A B", outputs="C", args=_SCALES, inplace=[(0, 0), (1, 0)])(_Int8Add)
for _name in ("Int8Sum", "Int8SumRelu"):
    operator(_name, inputs="X*", outputs="Y", args=_SCALES, inplace=[(0, 0), (1, 0)])(_Int8Sum)


@operator("Int8Relu", inputs="X", outputs="Y", args=_SCALES, inplace=[(0, 0)])
class Int8Relu:
    """Y = max(X, 0), element by element.

    X, Y: Int8 of one shape, scale and zero point.
    """

    reference = _NO_ARRAY

    def shape(X: Spec) -> Spec:
        return _bytes_like("X", X)


@operator(
    "Int8LeakyRelu",
    inputs="X",
    outputs="Y",
    args={"alpha": Float(0.01), **_SCALES},
    inplace=[(0, 0)],
)
class Int8LeakyRelu:
    """Y = X where it is positive, else alpha * X.

    X, Y: Int8 of one shape.
    """

    reference = _NO_ARRAY

    def shape(X: Spec) -> Spec:
        return _bytes_like("X", X)


@operator("Int8Sigmoid", inputs="input", outputs="output", args=_SCALES)
class Int8Sigmoid:
    """output = 1 / (1 + exp(-input)), element by element.

    input, output: Int8 of one shape.  (The original takes Y_scale = 1 / 256, Y_zero_point = 0.)
    """

    reference = _NO_ARRAY

    def shape(input: Spec) -> Spec:
        return _bytes_like("input", input)


@operator(
    "Int8Softmax",
    inputs="input",
    outputs="output",
    args={"axis": Int(1), "order": ORDER, **_SCALES},
)
class Int8Softmax:
    """output = exp(input) / sum, over the dimensions from `axis` on.

    input, output: Int8 of one shape.  (The original takes Y_scale = 1 / 256, Y_zero_point = 0.)
    """

    reference = _NO_ARRAY

    def shape(input: Spec) -> Spec:
        return _bytes_like("input", input)


class _Int8Conv:
    """Y = the convolution of X and filter + bias, for Int8ConvRelu its positive part.

    X: Int8 (N, H, W, C).  filter: Int8 (M, kernel_h, kernel_w, C / group).
    bias: int32 Int8 (M,), whose scale is taken to be that of X times that of filter; or float.
    Y: Int8 (N, H', W', M).  The arguments are those of Conv, with order="NHWC".
    """

    reference = _NO_ARRAY

    def shape(X: Spec, filter: Spec, bias: Spec | None, op: OpView) -> Spec:
        return _like("Conv", op, X, filter, bias)


class _Int8FC:
    """Y = X W^T + b, for Int8FCRelu its positive part.

    X: Int8, whose dimensions from `axis` on hold K elements.  W: Int8 (N, K).  b: int32 Int8 (N,),
    whose scale is taken to be that of X times that of W; or float.
    Y: Int8, with the dimensions of X before `axis`, and N.
    """

    reference = _NO_ARRAY

    def shape(X: Spec, W: Spec, b: Spec | None, op: OpView) -> Spec:
        return _like("FC", op, X, W, Spec(W.shape[:1], _INT32) if b is None else b)


class _Int8ConvTranspose:
    """Y = the transposed convolution of X and filter + bias.

    X: Int8 (N, H, W, C).  filter: Int8 (C, kernel_h, kernel_w, M / group).
    bias: int32 Int8 (M,), whose scale is taken to be that of X times that of filter; or float.
    Y: Int8 (N, H', W', M).  The arguments are those of ConvTranspose, with order="NHWC".
    """

    reference = _NO_ARRAY

    def shape(X: Spec, filter: Spec, bias: Spec | None, op: OpView) -> Spec:
        return _like("ConvTranspose", op, X, filter, bias)


operator(
    "Int8ConvTranspose",
    inputs="X filter bias?",
    outputs="Y",
    args={**TRANSPOSE_ARGS, **_SCALES},
)(_Int8ConvTranspose)

for _suffix in ("", "Relu"):
    operator(
        f"Int8Conv{_suffix}",
        inputs="X filter bias?",
        outputs="Y",
        args={"group": Int(1, min=1), **_WINDOW_ARGS},
    )(_Int8Conv)
    operator(
        f"Int8FC{_suffix}", inputs="X W b?", outputs="Y", args={"axis": Int(1, min=0), **_SCALES}
    )(_Int8FC)


class _Int8AveragePool:
    """Y = the mean of each window, pads as 0; for Int8AveragePoolRelu its positive part.

    X: Int8 (N, H, W, C).  Y: Int8 (N, H', W', C).
    The arguments are those of AveragePool, with order="NHWC".
    """

    reference = _NO_ARRAY

    def shape(X: Spec, op: OpView) -> Spec:
        return _like("AveragePool", op, X)


class _Int8MaxPool:
    """Y = the largest element of each window, for Int8MaxPoolRelu at least 0.

    X: Int8 (N, H, W, C).  Y: Int8 (N, H', W', C), of the same scale and zero point.
    The arguments are those of MaxPool, with order="NHWC".
    """

    reference = _NO_ARRAY

    def shape(X: Spec, op: OpView) -> Spec:
        return _like("MaxPool", op, X)


for _suffix in ("", "Relu"):
    for _name, _body in (("AveragePool", _Int8AveragePool), ("MaxPool", _Int8MaxPool)):
        operator(f"Int8{_name}{_suffix}", inputs="X", outputs="Y", args=_WINDOW_ARGS)(_body)


@operator("Int8Flatten", inputs="input", outputs="output", args={"axis": Int(1, min=0), **_SCALES})
class Int8Flatten:
    """output = input as a matrix: the dimensions before `axis`, and the others.

    input, output: Int8 of one scale and zero point.
    """

    reference = _NO_ARRAY

    def shape(input: Spec, op: OpView) -> Spec:
        return _like("Flatten", op, input)


_RESIZE = Float(1.0, min=1e-6, max=1e6)


@operator(
    "Int8ResizeNearest",
    inputs="X",
    outputs="Y",
    args={"width_scale": _RESIZE, "height_scale": _RESIZE, "order": ORDER, **_SCALES},
)
class Int8ResizeNearest:
    """Y[i, j] = X[int(i / height_scale), int(j / width_scale)], picture by picture.

    X: Int8 (N, H, W, C), of which only N may be 0.
    Y: Int8 (N, int(H * height_scale), int(W * width_scale), C), of the same scale and zero point.
    """

    reference = _NO_ARRAY

    def shape(X: Spec, op: OpView) -> Spec:
        return _like("ResizeNearest", op, X, None)


@operator(
    "Int8ChannelShuffle",
    inputs="X",
    outputs="Y",
    args={"group": Int(1, min=1), "order": ORDER, **_SCALES},
)
class Int8ChannelShuffle:
    """Y = X with the first channel of each group, then the second of each, and so on.

    X, Y: Int8 (N, H, W, C) of one scale and zero point; C is a multiple of group.
    """

    reference = _NO_ARRAY

    def shape(X: Spec, op: OpView) -> Spec:
        return _like("ChannelShuffle", op, X)


@operator(
    "Int8Concat",
    inputs="X*",
    outputs="concat_result split_info?",
    helpers=[1],
    args={"axis": Int(0), "order": ORDER, **_SCALES},
)
class Int8Concat:
    """concat_result = the inputs side by side along `axis`; split_info = their sizes there.

    X: Int8 of one shape but for `axis`, of one scale and zero point, which concat_result has, too.
    axis: the last of four with order="NHWC", where it is not given.  split_info: int32.
    """

    reference = _NO_ARRAY

    def shape(*X: Spec, op: OpView) -> tuple[Spec, Spec]:
        last = op.args.order.upper() == "NHWC" and "axis" not in op.given
        return _like("Concat", op, *X, axis=3 if last else op.args.axis)


@operator(
    "Int8Reshape",
    inputs="data new_shape?",
    outputs="reshaped old_shape",
    helpers=[1],
    args={"shape": Ints(None, min=-1, max=INT64_MAX), **_SCALES},
    types={"new_shape": INTS},
    inplace=[(0, 0)],
)
class Int8Reshape:
    """reshaped = data in another shape; old_shape = the shape it had.

    data: Int8.  new_shape: as for Reshape, where the argument shape is not given.
    reshaped: Int8, of the same scale and zero point.  old_shape: 1-d, int64, or int32 as new_shape.
    """

    reference = _NO_ARRAY

    def shape(data: Spec, new_shape: Spec | None, op: OpView) -> tuple[Spec | None, Spec]:
        return _like("Reshape", op, data, new_shape)


@operator("Int8Transpose", inputs="X", outputs="Y", args={"axes": Ints(min=0), **_SCALES})
class Int8Transpose:
    """Y = X with its axes in the order of `axes`, reversed without.

    X, Y: Int8, of one scale and zero point.
    """

    reference = _NO_ARRAY

    def shape(X: Spec, op: OpView) -> Spec:
        return _like("Transpose", op, X)


_END = Ints(None, min=INT64_MIN, max=INT64_MAX)


@operator(
    "Int8Slice",
    inputs="data starts? ends?",
    outputs="output",
    args={
        "starts": _END,
        "ends": _END,
        "dim": Int(min=0, max=15),
        "start_idx": Int(0),
        "end_idx": Int(-1),
        **_SCALES,
    },
    types={"starts": INTS, "ends": INTS},
)
class Int8Slice:
    """output = data from starts to ends, which mean what they mean for Slice.

    data, output: Int8, of one scale and zero point.
    dim, start_idx, end_idx: of one dimension alone, where starts and ends are not given.
    """

    reference = _NO_ARRAY

    def shape(data: Spec, starts: Spec | None, ends: Spec | None, op: OpView) -> Spec | None:
        if starts is not None or op.args.starts is not None or op.args.dim is None:
            return _like("Slice", op, data, starts, ends)
        whole = op.args.dim  # dimensions before the one that is cut
        first, last = [0] * whole + [op.args.start_idx], [-1] * whole + [op.args.end_idx]
        return _like("Slice", op, data, None, None, starts=first, ends=last)


@operator(
    "Int8RoIAlign",
    inputs="X RoIs",
    outputs="Y",
    args={**ALIGN_ARGS, **_SCALES},
    types={"RoIs": FLOAT},
)
class Int8RoIAlign:
    """Y = each region of X as pooled_h x pooled_w averages of samples between its elements.

    X: Int8 (N, H, W, C).  RoIs: float (R, 5) or (R, 4).  Y: Int8 (R, pooled_h, pooled_w, C).
    The arguments are those of RoIAlign, with order="NHWC".  Outside of X is 0.
    """

    reference = _NO_ARRAY

    def shape(X: Spec, RoIs: Spec, op: OpView) -> Spec:
        return _like("RoIAlign", op, X, RoIs)
