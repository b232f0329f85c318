"""Layers that multiply by a learned matrix, and convolution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Scalar, Struct
from caffe2.layers.layer import ModelLayer
from caffe2.nn.arg_scope import get_current_scope

Initializer = tuple[str, dict[str, Any]]


def row_shape(layer: str, record: Any) -> tuple[int, ...]:
    """The shape of the rows of a column.  UsageError for other records and unknown shapes."""
    if not isinstance(record, Scalar):
        raise UsageError(f"{layer}: Incorrect input type, a Scalar is needed, got {record!r}")
    shape: tuple[int, ...] = record.field_type().shape
    if not shape:
        raise UsageError(f"{layer} expects limited dimensions of the input tensor")
    return shape


def uniform_fill(scale: float) -> Initializer:
    return ("UniformFill", {"min": -scale, "max": scale})


def get_fc_predictor_version(fc_version: str) -> str:
    """Checks the precision of FC in nets for prediction and evaluation: "fp32" or "fp16".

    `arg_scope([get_fc_predictor_version], fc_version="fp16")` sets it for the nets made inside.
    """
    if fc_version not in ("fp32", "fp16"):
        raise UsageError(
            "Only support fp32 and fp16 for the fully connected layer in the predictor net, "
            f"the provided FC precision is {fc_version}"
        )
    return fc_version


def _predictor_version() -> str:
    scope = get_current_scope().get(get_fc_predictor_version.__name__, {})
    return get_fc_predictor_version(scope.get("fc_version", "fp32"))


def _clip_arguments(clip_param: Any) -> dict[str, float] | None:
    if clip_param is None:
        return None
    if len(clip_param) != 2 or clip_param[0] > clip_param[1]:
        raise UsageError(f"clip_param must be [lowest, highest], got {clip_param}")
    return {"min": float(clip_param[0]), "max": float(clip_param[1])}


def _clipped(net: Net, clip_args: dict[str, float] | None, params: list[Any]) -> list[Any]:
    if clip_args is None:
        return params
    return [net.Clip([p], [net.NextScopedBlob(f"clipped_{p}")], **clip_args) for p in params]


class SamplingTrainableMixin:
    """A layer that SamplingTrain can train on a sample of its outputs: while training, its
    operators read `train_param_blobs` instead of its parameters `param_blobs`.

    A subclass has `_add_ops(net, params, version)`.
    """

    _train_param_blobs: list[Any] | None = None

    @property
    def param_blobs(self) -> list[Any]:
        raise NotImplementedError(f"{type(self).__name__} names no parameters")

    @property
    def train_param_blobs(self) -> list[Any]:
        return self.param_blobs if self._train_param_blobs is None else self._train_param_blobs

    @train_param_blobs.setter
    def train_param_blobs(self, blobs: list[Any]) -> None:
        if len(blobs) != len(self.param_blobs):
            raise UsageError(f"{len(self.param_blobs)} blobs are needed, got {len(blobs)}")
        self._train_param_blobs = list(blobs)

    def _add_ops(self, net: Net, params: list[Any], version: str = "fp32") -> None:
        raise NotImplementedError(f"{type(self).__name__} adds no operators")

    def add_ops(self, net: Net) -> None:
        self._add_ops(net, self.param_blobs, _predictor_version())

    def add_train_ops(self, net: Net) -> None:
        self._add_ops(net, self.train_param_blobs)


def _add_fc(net: Net, inputs: list[Any], output: Any, version: str, **kwargs: Any) -> None:
    transposed = kwargs.pop("transposed", False)
    if version == "fp32":
        (net.FCTransposed if transposed else net.FC)(inputs, [output], **kwargs)
    elif transposed:
        raise UsageError("FC with transposed weights can be of fp32 only")
    else:
        net.FbFCPacked(inputs, [output], **kwargs)


class FC(SamplingTrainableMixin, ModelLayer):
    """Y = X W^T + b.

    input_record   X: float, (batch, ...) of a known shape
    output_dims    the number of outputs
    weight_init, bias_init   default: uniform within sqrt(uniform_weight_init_scale_numerator / K),
                   where K is the number of inputs that are summed
    weight_optim, bias_optim, weight_reg, bias_reg   of W and b
    clip_param     [lowest, highest]: W and b are clipped before use
    max_fc_size    the largest size of a matrix: W is kept in several parts; None or -1: one
    axis           the first axis of X that is summed over; the axes before it are kept
    transposed     W is kept as (inputs, outputs)

    Other arguments go to the operator.
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        output_dims: int,
        weight_init: Initializer | None = None,
        bias_init: Initializer | None = None,
        weight_optim: Any = None,
        bias_optim: Any = None,
        name: str = "fc",
        weight_reg: Any = None,
        bias_reg: Any = None,
        clip_param: Any = None,
        max_fc_size: int | None = None,
        axis: int = 1,
        transposed: bool = False,
        uniform_weight_init_scale_numerator: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        shape = row_shape("FC", input_record)
        if not 1 <= axis <= len(shape):
            raise UsageError(f"axis {axis} should >= 1. and <= {len(shape)}, the axes of the input")
        self.axis = axis
        self.transposed = transposed
        self.clip_args = _clip_arguments(clip_param)
        inputs = math.prod(shape[axis - 1 :])
        default = uniform_fill(math.sqrt(uniform_weight_init_scale_numerator / inputs))
        self.output_dim_vec = None
        if max_fc_size is not None and max_fc_size != -1:
            self.output_dim_vec = self.calculate_fc_output_dims(max_fc_size, inputs, output_dims)
        weights, biases = [], []
        for index, outputs in enumerate(self.output_dim_vec or [output_dims]):
            suffix = f"_sub_{index}" if self.output_dim_vec else ""
            weights.append(
                self.create_param(
                    param_name="w" + suffix,
                    shape=[inputs, outputs] if transposed else [outputs, inputs],
                    initializer=weight_init or default,
                    optimizer=weight_optim,
                    regularizer=weight_reg,
                )
            )
            biases.append(
                self.create_param(
                    param_name="b" + suffix,
                    shape=[outputs],
                    initializer=bias_init or default,
                    optimizer=bias_optim,
                    regularizer=bias_reg,
                )
            )
        if self.output_dim_vec:
            self.w_vec, self.b_vec = weights, biases
        else:
            self.w, self.b = weights[0], biases[0]
        dims = (*shape[: axis - 1], output_dims)
        self.output_schema = self.output_scalar((np.float32, dims))

    @staticmethod
    def calculate_fc_output_dims(max_fc_size: int, input_dim: int, output_dim: int) -> list[int]:
        """The numbers of outputs of the parts, none of which is larger than `max_fc_size`."""
        if not 0 < input_dim <= max_fc_size:
            raise UsageError(
                "Currently we split along the output dimension. So we need max_fc_size >= "
                f"input_dim. But, max_fc_size: {max_fc_size}, input_dim: {input_dim}"
            )
        part = max_fc_size // input_dim
        return [min(part, output_dim - first) for first in range(0, output_dim, part)]

    @property
    def param_blobs(self) -> list[Any]:
        return self.w_vec + self.b_vec if self.output_dim_vec else [self.w, self.b]

    def get_fp16_compatible_parameters(self) -> list[Any]:
        return self.w_vec if self.output_dim_vec else [self.w]

    def _add_ops(self, net: Net, params: list[Any], version: str = "fp32") -> None:
        options = {"axis": self.axis, "transposed": self.transposed, **self.kwargs}
        params = _clipped(net, self.clip_args, params)
        source, output = self.input_record(), self.output_schema()
        if not self.output_dim_vec:
            _add_fc(net, [source, *params], output, version, **options)
            return
        parts = []
        count = len(self.output_dim_vec)
        for index in range(count):
            part = net.NextScopedBlob(f"output_sub_{index}")
            _add_fc(net, [source, params[index], params[count + index]], part, version, **options)
            parts.append(part)
        # Outputs are the last axis; that of Concat is 1 by default.
        where = {"axis": self.axis} if self.axis > 1 else {}
        net.Concat(parts, [output, output + "_concat_dims"], **where)


class FCWithoutBias(SamplingTrainableMixin, ModelLayer):
    """Y = X W^T; see FC."""

    def __init__(
        self,
        model: Any,
        input_record: Any,
        output_dims: int,
        weight_init: Initializer | None = None,
        weight_optim: Any = None,
        name: str = "fc_without_bias",
        uniform_weight_init_scale_numerator: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        inputs = row_shape("FCWithoutBias", input_record)[0]
        self.w = self.create_param(
            param_name="w",
            shape=[output_dims, inputs],
            initializer=weight_init
            or uniform_fill(math.sqrt(uniform_weight_init_scale_numerator / inputs)),
            optimizer=weight_optim,
        )
        self.output_schema = self.output_scalar((np.float32, (output_dims,)))

    @property
    def param_blobs(self) -> list[Any]:
        return [self.w]

    def _add_ops(self, net: Net, params: list[Any], version: str = "fp32") -> None:
        net.MatMul([self.input_record(), *params], [self.output_schema()], trans_b=1, **self.kwargs)


class FCWithBootstrap(SamplingTrainableMixin, ModelLayer):
    """Several FC, each trained on another sample, drawn with replacement, of the batch.

    The outputs are a Struct of `bootstrap_iteration_<i>/indices`, the examples that were drawn
    (int32), and `bootstrap_iteration_<i>/preds`, for each of `num_bootstrap`; outside of training,
    of all examples.  The rest is as in FC.
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        output_dims: int,
        num_bootstrap: int,
        weight_init: Initializer | None = None,
        bias_init: Initializer | None = None,
        weight_optim: Any = None,
        bias_optim: Any = None,
        name: str = "fc_with_bootstrap",
        weight_reg: Any = None,
        bias_reg: Any = None,
        clip_param: Any = None,
        axis: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        shape = row_shape("FCWithBootstrap", input_record)
        if not 1 <= axis <= len(shape):
            raise UsageError(f"axis {axis} should >= 1. and <= {len(shape)}, the axes of the input")
        if num_bootstrap < 1:
            raise UsageError(f"num_bootstrap is {num_bootstrap}; it must be at least 1")
        self.axis = axis
        self.clip_args = _clip_arguments(clip_param)
        self.num_bootstrap = num_bootstrap
        self.input_dims = math.prod(shape[axis - 1 :])
        default = uniform_fill(math.sqrt(1.0 / self.input_dims))
        self.bootstrapped_FCs: list[Any] = []
        columns = []
        for index in range(num_bootstrap):
            prefix = f"bootstrap_iteration_{index}"
            self.bootstrapped_FCs += [
                self.create_param(
                    param_name=f"{prefix}/w",
                    shape=[output_dims, self.input_dims],
                    initializer=weight_init or default,
                    optimizer=weight_optim,
                    regularizer=weight_reg,
                ),
                self.create_param(
                    param_name=f"{prefix}/b",
                    shape=[output_dims],
                    initializer=bias_init or default,
                    optimizer=bias_optim,
                    regularizer=bias_reg,
                ),
            ]
            for part in ("indices", "preds"):
                columns.append((f"{prefix}/{part}", self.output_scalar(None, f"{prefix}/{part}")))
        self.output_schema = Struct(*columns)

    @property
    def param_blobs(self) -> list[Any]:
        return self.bootstrapped_FCs

    def get_fp16_compatible_parameters(self) -> list[Any]:
        return self.bootstrapped_FCs[::2]

    def add_ops(self, net: Net) -> None:
        self._add_sampled_ops(net, self.param_blobs, _predictor_version(), sampled=False)

    def add_train_ops(self, net: Net) -> None:
        self._add_sampled_ops(net, self.train_param_blobs, "fp32", sampled=True)

    def _add_sampled_ops(self, net: Net, params: list[Any], version: str, sampled: bool) -> None:
        source = self.input_record()

        def new(name: str) -> Any:
            return net.NextScopedBlob(f"bootstrap_iteration_0/{name}")

        shape = net.Shape([source], new("input_shape"))
        first = net.GivenTensorInt64Fill([], new("batch_size_index"), shape=[1], values=[0])
        size = net.Gather([shape, first], new("batch_size"))
        lowest = net.GivenTensorIntFill([], new("lower_bound"), shape=[1], values=[0])
        one = net.GivenTensorIntFill([], new("offset"), shape=[1], values=[1])
        size32 = net.Cast([size], new("int_batch_size"), to=2)
        highest = net.Sub([size32, one], new("upper_bound"))
        for index in range(self.num_bootstrap):
            indices, output = self.output_schema.field_blobs()[2 * index : 2 * index + 2]
            net.UniformIntFill([size, lowest, highest], [indices], input_as_shape=1)
            examples = source
            if sampled:
                drawn = net.NextScopedBlob(f"bootstrapped_features_{index}")
                examples = net.Gather([source, indices], [drawn])
            own = _clipped(net, self.clip_args, params[2 * index : 2 * index + 2])
            _add_fc(net, [examples, *own], output, version, axis=self.axis, **self.kwargs)


class AddBias(ModelLayer):
    """Y = X + b, with a learned b."""

    def __init__(
        self,
        model: Any,
        input_record: Any,
        bias_init: Initializer | None = None,
        bias_optim: Any = None,
        name: str = "add_bias",
    ) -> None:
        super().__init__(model, name, input_record)
        shape = row_shape("AddBias", input_record)
        self.b = self.create_param(
            param_name="b",
            shape=list(shape),
            initializer=bias_init or uniform_fill(math.sqrt(1.0 / shape[0])),
            optimizer=bias_optim,
        )
        self.output_schema = self.output_scalar((input_record.field_type().base, shape))

    def add_ops(self, net: Net) -> None:
        net.Add([self.input_record(), self.b], self.output_schema.field_blobs(), broadcast=1)


class Conv(ModelLayer):
    """Convolution in two dimensions.

    input_record   pictures (height, width, channels), or of order "NCHW"
    output_dim     the number of output channels
    pad_*          None: (kernel - 1) // 2 where the stride is 1, else 0
    kernel_init, bias_init   default: XavierFill, and 0
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        output_dim: int,
        kernel_h: int,
        kernel_w: int,
        stride_h: int,
        stride_w: int,
        pad_b: int | None = None,
        pad_l: int | None = None,
        pad_r: int | None = None,
        pad_t: int | None = None,
        order: str = "NHWC",
        kernel_init: Initializer | None = None,
        bias_init: Initializer | None = None,
        kernel_optim: Any = None,
        bias_optim: Any = None,
        name: str = "conv",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        for what, size in (
            ("kernel_h", kernel_h),
            ("kernel_w", kernel_w),
            ("stride_h", stride_h),
            ("stride_w", stride_w),
            ("output_dim", output_dim),
        ):
            if not (isinstance(size, int) and size > 0):
                raise UsageError(f"{what} should be positive integer, got {size!r}")
        if order not in ("NHWC", "NCHW"):
            raise UsageError(f"order should either 'NHWC' or 'NCHW', got {order!r}")
        self.kernel_h, self.kernel_w = kernel_h, kernel_w
        self.stride_h, self.stride_w = stride_h, stride_w
        self.order = order
        self.pad_t = _pad("pad_t", pad_t, kernel_h, stride_h)
        self.pad_l = _pad("pad_l", pad_l, kernel_w, stride_w)
        self.pad_b = _pad("pad_b", pad_b, kernel_h, stride_h)
        self.pad_r = _pad("pad_r", pad_r, kernel_w, stride_w)
        shape = row_shape("Conv", input_record)
        channels = shape[-1] if order == "NHWC" else shape[0]
        window = [kernel_h, kernel_w]
        filters = [*window, channels] if order == "NHWC" else [channels, *window]
        self.kernel = self.create_param(
            param_name="conv_kernel",
            shape=[output_dim, *filters],
            initializer=kernel_init or ("XavierFill", {}),
            optimizer=kernel_optim,
        )
        self.bias = self.create_param(
            param_name="conv_bias",
            shape=[output_dim],
            initializer=bias_init or ("ConstantFill", {"value": 0.0}),
            optimizer=bias_optim,
        )
        self.output_schema = self.output_scalar((np.float32, (output_dim,)))

    def add_ops(self, net: Net) -> None:
        net.Conv(
            [self.input_record(), self.kernel, self.bias],
            self.output_schema.field_blobs(),
            kernel_h=self.kernel_h,
            kernel_w=self.kernel_w,
            stride_h=self.stride_h,
            stride_w=self.stride_w,
            pad_t=self.pad_t,
            pad_l=self.pad_l,
            pad_b=self.pad_b,
            pad_r=self.pad_r,
            order=self.order,
        )


def _pad(what: str, pad: int | None, kernel: int, stride: int) -> int:
    if pad is None:
        return (kernel - 1) // 2 if stride == 1 else 0
    if not (isinstance(pad, int) and pad >= 0):
        raise UsageError(f"{what} should be int >= 0, got {pad!r}")
    return pad
