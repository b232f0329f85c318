"""Layers that normalize, and Dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Scalar
from caffe2.layers.dense import row_shape
from caffe2.layers.layer import ModelLayer


class BatchNormalization(ModelLayer):
    """Normalizes each feature, or each channel of pictures, over the batch; outside of training, by
    the means of the batches before.  See the operator SpatialBN.

    input_record  rows of one axis, or pictures of `order`
    momentum      of the running mean and variance
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        name: str = "batch_normalization",
        scale_optim: Any = None,
        bias_optim: Any = None,
        momentum: float = 0.9,
        order: str = "NCHW",
        scale_init_value: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if not isinstance(input_record, Scalar):
            raise UsageError(f"Incorrect input type, a Scalar is needed, got {input_record!r}")
        if order not in ("NCHW", "NHWC"):
            raise UsageError(f"order should either 'NHWC' or 'NCHW', got {order!r}")
        self.input_shape = input_record.field_type().shape
        if len(self.input_shape) not in (1, 3):
            raise UsageError("This layer supports only 4D or 2D tensors")
        self.momentum = momentum
        self.order = order
        channels = self.input_shape[0] if order == "NCHW" else self.input_shape[-1]

        def create(param: str, value: float, optimizer: Any) -> Any:
            return self.create_param(
                param_name=param,
                shape=[channels],
                initializer=("ConstantFill", {"value": value}),
                optimizer=optimizer,
            )

        self.scale = create("scale", scale_init_value, scale_optim)
        self.bias = create("bias", 0.0, bias_optim)
        self.rm = create("running_mean", 0.0, model.NoOptim)
        self.riv = create("running_inv_var", 1.0, model.NoOptim)
        self.output_schema = self.output_scalar((np.float32, self.input_shape))

    def _add_bn(self, net: Net, is_test: bool) -> None:
        source, output = self.input_record(), self.output_schema()
        # A feature is a picture of one pixel.
        dims = [2, 3] if self.order == "NCHW" else [1, 2]
        flat = len(self.input_shape) == 1
        if flat:
            source = net.ExpandDims(source, dims=dims)
        outputs = [output]
        if not is_test:
            saved = [net.NextScopedBlob(part) for part in ("bn_saved_mean", "bn_saved_iv")]
            outputs += [self.rm, self.riv, *saved]
        net.SpatialBN(
            [source, self.scale, self.bias, self.rm, self.riv],
            outputs,
            momentum=self.momentum,
            is_test=is_test,
            order=self.order,
        )
        if flat:
            net.Squeeze([output], [output], dims=dims)

    def add_train_ops(self, net: Net) -> None:
        self._add_bn(net, is_test=False)

    def add_eval_ops(self, net: Net) -> None:
        self._add_bn(net, is_test=True)

    def add_ops(self, net: Net) -> None:
        self._add_bn(net, is_test=True)


class LayerNormalization(ModelLayer):
    """Normalizes each example to mean 0 and deviation 1, and scales and shifts it (Ba et al.,
    "Layer Normalization", 2016).  See the operator LayerNorm.

    epsilon            is added to the variance
    axis               the first axis that is normalized; scale and bias are along it
    use_layer_norm_op  False: by simpler operators; for rows of one axis only
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        name: str = "layer_normalization",
        scale_optim: Any = None,
        bias_optim: Any = None,
        epsilon: float = 1e-4,
        axis: int = 1,
        use_layer_norm_op: bool = True,
        scale_init_value: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        self.input_shape = row_shape("LayerNormalization", input_record)
        if not 1 <= axis <= len(self.input_shape):
            raise UsageError(f"axis is {axis}; it must be from 1 to {len(self.input_shape)}")
        if not use_layer_norm_op and len(self.input_shape) != 1:
            raise UsageError(
                "When using alternative implementation, input data can only be 2D, "
                f"but a row has shape {self.input_shape}"
            )
        self.axis = axis
        self.use_layer_norm_op = use_layer_norm_op
        self.epsilon: Any = epsilon
        if not use_layer_norm_op:
            self.epsilon = model.maybe_add_global_constant(f"{self.name}_epsilon", float(epsilon))
        size = self.input_shape[axis - 1]
        self.scale = self.create_param(
            param_name="scale",
            shape=[size],
            initializer=("ConstantFill", {"value": scale_init_value}),
            optimizer=scale_optim,
        )
        self.bias = self.create_param(
            param_name="bias",
            shape=[size],
            initializer=("ConstantFill", {"value": 0.0}),
            optimizer=bias_optim,
        )
        self.output_schema = self.output_scalar((np.float32, self.input_shape))

    def add_ops_with_layer_norm_op(self, net: Net) -> None:
        parts = [net.NextScopedBlob(part) for part in ("ln_output", "ln_mean", "ln_stdev")]
        net.LayerNorm([self.input_record()], parts, axis=self.axis, epsilon=self.epsilon)
        self._add_affine(net, parts[0], {"broadcast": 1, "axis": self.axis})

    def add_ops_without_layer_norm_op(self, net: Net) -> None:
        source = self.input_record()
        mean = net.ReduceBackMean([source], [net.NextScopedBlob("ln_mean_arr")])
        mean = net.ExpandDims([mean], [net.NextScopedBlob("ln_mean")], dims=[1])
        centered = net.Sub([source, mean], [net.NextScopedBlob("ln_centered")])
        squares = net.Sqr([centered], [net.NextScopedBlob("ln_sqr")])
        variance = net.ReduceBackMean([squares], [net.NextScopedBlob("ln_sqr_mean")])
        variance = net.Add([variance, self.epsilon], [net.NextScopedBlob("ln_var")])
        deviation = net.Pow([variance], [net.NextScopedBlob("ln_std_arr")], exponent=0.5)
        deviation = net.ExpandDims([deviation], [net.NextScopedBlob("ln_stdev")], dims=[1])
        normal = net.Div([centered, deviation], [net.NextScopedBlob("ln_output")])
        self._add_affine(net, normal, {})

    def _add_affine(self, net: Net, normal: Any, how: dict[str, int]) -> None:
        scaled = net.Mul([normal, self.scale], [net.NextScopedBlob("ln_scaled")], **how)
        net.Add([scaled, self.bias], self.output_schema.field_blobs(), **how)

    def add_ops(self, net: Net) -> None:
        if self.use_layer_norm_op:
            self.add_ops_with_layer_norm_op(net)
        else:
            self.add_ops_without_layer_norm_op(net)


class Dropout(ModelLayer):
    """Sets a part `ratio` of the values to 0 while training, and divides the others by 1 - ratio;
    with `dropout_for_eval`, always."""

    def __init__(
        self,
        model: Any,
        input_record: Any,
        name: str = "dropout",
        ratio: float = 0.5,
        dropout_for_eval: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if not isinstance(input_record, Scalar):
            raise UsageError(f"Incorrect input type, a Scalar is needed, got {input_record!r}")
        if not 0 <= ratio < 1:
            raise UsageError(f"Expected 0 <= ratio < 1, but got ratio of {ratio}")
        self.ratio = ratio
        self.dropout_for_eval = dropout_for_eval
        self.output_schema = input_record.clone_schema()
        self.output_schema.set_value(self.get_next_blob_reference("output"))

    def _add_dropout(self, net: Net, is_test: bool) -> None:
        net.Dropout(
            self.input_record.field_blobs(),
            [*self.output_schema.field_blobs(), net.NextScopedBlob("d_mask")],
            ratio=self.ratio,
            is_test=is_test,
        )

    def add_train_ops(self, net: Net) -> None:
        self._add_dropout(net, is_test=False)

    def add_eval_ops(self, net: Net) -> None:
        self._add_dropout(net, is_test=not self.dropout_for_eval)

    def add_ops(self, net: Net) -> None:
        self.add_eval_ops(net)
