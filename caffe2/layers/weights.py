"""Layers that weigh several losses, or other blobs, against each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Scalar
from caffe2.layers.dense import row_shape
from caffe2.layers.layer import ModelLayer
from caffe2.layers.losses import one_hot_times
from caffe2.proto import caffe2_pb2
from caffe2.train.regularizer import BoundedGradientProjection, LogBarrier

_FLOAT = int(caffe2_pb2.TensorProto.FLOAT)


def _weights(layer: str, weights: Any, count: int) -> np.ndarray:
    """One weight for each of `count` blobs; equal ones that sum to 1 by default."""
    if count < 1:
        raise UsageError(f"{layer} needs at least one column")
    if weights is None:
        return np.full(count, 1.0 / count, np.float32)
    values = np.asarray(weights, np.float32)
    if values.shape != (count,):
        raise UsageError(f"{layer}: {count} weights are needed, got {list(values.shape)}")
    return values


class AdaptiveWeight(ModelLayer):
    """The sum of losses, each weighed by its uncertainty, which is learned: sum of
    loss / (2 s^2) + log s (Kendall et al., "Multi-Task Learning Using Uncertainty to Weigh Losses",
    2018).

    input_record       a Struct of losses
    weights            what 1 / (2 s^2) is at first; default: equal ones that sum to 1
    enable_diagnose    the weights are metrics, to be plotted
    estimation_method  what is learned: "log_std", mu = 2 log s, or "inv_var", k = 1 / s^2
    pos_optim_method   what keeps k positive: "log_barrier" with reg_lambda, or "pos_grad_proj"
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        name: str = "adaptive_weight",
        optimizer: Any = None,
        weights: Any = None,
        enable_diagnose: bool = False,
        estimation_method: str = "log_std",
        pos_optim_method: str = "log_barrier",
        reg_lambda: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        for what, value, known in (
            ("estimation_method", estimation_method, ("log_std", "inv_var")),
            ("pos_optim_method", pos_optim_method, ("log_barrier", "pos_grad_proj")),
        ):
            if value not in known:
                raise UsageError(f"{what} is {value!r}; it must be one of {', '.join(known)}")
        self.data = input_record.field_blobs()
        self.num = len(self.data)
        self.optimizer = optimizer
        self.weights = _weights("AdaptiveWeight", weights, self.num)
        if not (self.weights > 0).all():
            raise UsageError(f"initial weights must be positive, got {self.weights.tolist()}")
        self.estimation_method = estimation_method
        self.pos_optim_method = pos_optim_method
        self.reg_lambda = float(reg_lambda)
        self.enable_diagnose = enable_diagnose
        getattr(self, f"{estimation_method}_init")()
        self.weight_func = getattr(self, f"{estimation_method}_weight")
        self.reg_func = getattr(self, f"{estimation_method}_reg")
        self.output_schema = self.output_scalar(np.float32, "adaptive_weight")
        if enable_diagnose:
            self.weight_i = [
                self.get_next_blob_reference(f"adaptive_weight_{index}")
                for index in range(self.num)
            ]
            for blob in self.weight_i:
                model.add_ad_hoc_plot_blob(blob)

    def _learned(self, name: str, values: np.ndarray, regularizer: Any = None) -> Any:
        return self.create_param(
            param_name=name,
            shape=[self.num],
            initializer=("GivenTensorFill", {"values": values.tolist(), "dtype": _FLOAT}),
            optimizer=self.optimizer,
            regularizer=regularizer,
        )

    def concat_data(self, net: Net) -> Any:
        """Adds what puts the losses into one vector, and gives its blob."""
        flat = [
            net.Reshape(
                [blob],
                [
                    net.NextScopedBlob(f"reshaped_data_{index}"),
                    net.NextScopedBlob(f"new_shape_{index}"),
                ],
                shape=[1],
            )[0]
            for index, blob in enumerate(self.data)
        ]
        names = [net.NextScopedBlob(name) for name in ("concated_data", "concated_new_shape")]
        return net.Concat(flat, names, axis=0)[0]

    def log_std_init(self) -> None:
        """weight = exp(-mu) / 2."""
        self.mu = self._learned("mu", np.log(1.0 / 2.0 / self.weights))

    def log_std_weight(self, x: Any, net: Net, weight: Any) -> None:
        negative = net.Negative([self.mu], net.NextScopedBlob("mu_neg"))
        precision = net.Exp([negative], net.NextScopedBlob("mu_neg_exp"))
        net.Scale([precision], [weight], scale=0.5)

    def log_std_reg(self, net: Net, reg: Any) -> None:
        net.Scale([self.mu], [reg], scale=0.5)

    def inv_var_init(self) -> None:
        """weight = k / 2."""
        regularizer: Any = BoundedGradientProjection(lb=0, left_open=True)
        if self.pos_optim_method == "log_barrier":
            regularizer = LogBarrier(reg_lambda=self.reg_lambda)
        self.k = self._learned("k", 2.0 * self.weights, regularizer)

    def inv_var_weight(self, x: Any, net: Net, weight: Any) -> None:
        net.Scale([self.k], [weight], scale=0.5)

    def inv_var_reg(self, net: Net, reg: Any) -> None:
        log = net.Log([self.k], net.NextScopedBlob("log_k"))
        net.Scale([log], [reg], scale=-0.5)

    def add_ops(self, net: Net) -> None:
        x = self.concat_data(net)
        weight, reg = net.NextScopedBlob("weight"), net.NextScopedBlob("reg")
        self.weight_func(x, net, weight)
        self.reg_func(net, reg)
        weighted = net.Mul([weight, x], net.NextScopedBlob("weighted_x"))
        total = net.Add([weighted, reg], net.NextScopedBlob("weighted_x_add_reg"))
        net.SumElements([total], self.output_schema.field_blobs())
        if self.enable_diagnose:
            for index, blob in enumerate(self.weight_i):
                net.Slice([weight], [blob], starts=[index], ends=[index + 1])


class ConstantWeight(ModelLayer):
    """The sum of losses times constant weights; by default their mean.

    input_record   a Struct of losses
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        weights: Any = None,
        name: str = "constant_weight",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        self.data = input_record.field_blobs()
        self.num = len(self.data)
        self.weights = [
            model.add_global_constant(f"{self.name}_weight_{index}", float(weight))
            for index, weight in enumerate(_weights("ConstantWeight", weights, self.num))
        ]
        self.output_schema = self.output_scalar(np.float32, "constant_weight")

    def add_ops(self, net: Net) -> None:
        pairs = [blob for pair in zip(self.data, self.weights, strict=True) for blob in pair]
        net.WeightedSum(pairs, self.output_schema.field_blobs())


class HomotopyWeight(ModelLayer):
    """alpha x + beta y, where alpha goes from max_weight to min_weight in the course of training,
    and beta the other way: alpha = min + (max - min) (1 + gamma t)^(-power) in run t.

    input_record   a Struct of the two losses x and y
    half_life      the run t in which alpha has gone half of its way
    quad_life      that in which it has gone three quarters; more than 2 half_life
    atomic_iter    the blob that counts runs; default: one of its own
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        name: str = "homotopy_weight",
        min_weight: float = 0.0,
        max_weight: float = 1.0,
        half_life: float = 1e6,
        quad_life: float = 3e6,
        atomic_iter: BlobReference | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        data = input_record.field_blobs()
        if len(data) != 2:
            raise UsageError(f"HomotopyWeight needs two columns, got {len(data)}")
        if not max_weight > min_weight >= 0:
            raise UsageError(
                f"weights are {min_weight} and {max_weight}; max_weight > min_weight >= 0 is needed"
            )
        self.x, self.y = data
        self.scale = max_weight - min_weight
        self.offset = model.add_global_constant(f"{self.name}_offset_1dfloat", float(min_weight))
        self.gamma, self.power = self.solve_inv_lr_params(half_life, quad_life)
        self.use_external_iter = atomic_iter is not None
        self.atomic_iter = atomic_iter if atomic_iter is not None else self.create_atomic_iter()
        self.output_schema = self.output_scalar(np.float32, "homotopy_weight")

    def solve_inv_lr_params(self, half_life: float, quad_life: float) -> tuple[float, float]:
        """gamma and power of (1 + gamma t)^(-power), which is 1/2 at half_life and 1/4 at
        quad_life: (1 + gamma half_life)^2 = 1 + gamma quad_life."""
        if not quad_life > 2 * half_life > 0:
            raise UsageError(
                f"half_life is {half_life} and quad_life {quad_life}; "
                "quad_life > 2 * half_life > 0 is needed"
            )
        gamma = (quad_life - 2 * half_life) / half_life**2
        return gamma, math.log(2.0) / math.log(1.0 + gamma * half_life)

    def create_atomic_iter(self) -> Any:
        """Makes the counter of runs and its mutex."""
        base = self.name.rpartition("/")[2]
        self.mutex = self.create_param(
            param_name=f"{base}_mutex",
            shape=None,
            initializer=("CreateMutex", {}),
            optimizer=self.model.NoOptim,
        )
        return self.create_param(
            param_name=f"{base}_atomic_iter",
            shape=[1],
            initializer=(
                "ConstantFill",
                {"value": 0, "dtype": int(caffe2_pb2.TensorProto.INT64)},
            ),
            optimizer=self.model.NoOptim,
        )

    def update_weight(self, net: Net) -> tuple[Any, Any]:
        """Adds what computes alpha and beta, and gives their blobs."""
        lr = net.LearningRate(
            [self.atomic_iter],
            net.NextScopedBlob("lr"),
            policy="inv",
            gamma=self.gamma,
            power=self.power,
            base_lr=1.0,
        )
        one = self.model.global_constants["ONE"]
        rest = net.Sub([one, lr], net.NextScopedBlob("complementary_lr"))
        scaled = net.Scale([lr], net.NextScopedBlob("scaled_lr"), scale=self.scale)
        other = net.Scale([rest], net.NextScopedBlob("scaled_complementary_lr"), scale=self.scale)
        alpha = net.Add([scaled, self.offset], net.NextScopedBlob("alpha"))
        return alpha, net.Add([other, self.offset], net.NextScopedBlob("beta"))

    def add_ops(self, net: Net) -> None:
        if not self.use_external_iter:
            net.AtomicIter([self.mutex, self.atomic_iter], [self.atomic_iter])
        alpha, beta = self.update_weight(net)
        net.WeightedSum([self.x, alpha, self.y, beta], self.output_schema.field_blobs())


class BlobWeightedSum(ModelLayer):
    """The sum of columns of one shape, each times a learned number, which is 1 at first unless
    `init_weights` says otherwise."""

    def __init__(
        self,
        model: Any,
        input_record: Any,
        init_weights: Any = None,
        weight_optim: Any = None,
        name: str = "blob_weighted_sum",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        self.blobs = input_record.field_blobs()
        self.num_weights = len(self.blobs)
        if self.num_weights < 2:
            raise UsageError("BlobWeightedSum expects more than one input blobs")
        shapes = [row_shape("BlobWeightedSum", scalar) for scalar in input_record.all_scalars()]
        if any(shape != shapes[0] for shape in shapes):
            raise UsageError(f"Shape of input blobs should be the same shape {shapes[0]}")
        initial = [1.0] * self.num_weights if init_weights is None else list(init_weights)
        if len(initial) != self.num_weights:
            raise UsageError(
                "the size of init_weights should be the same as input blobs, "
                f"expects {self.num_weights}, got {len(initial)}"
            )
        self.weights = [
            self.create_param(
                param_name=f"w_{index}",
                shape=[1],
                initializer=("ConstantFill", {"value": float(value)}),
                optimizer=weight_optim,
            )
            for index, value in enumerate(initial)
        ]
        dtype = input_record.field_types()[0]
        self.output_schema = self.output_scalar(dtype, "blob_weighted_sum_out")

    def add_ops(self, net: Net) -> None:
        pairs = [blob for pair in zip(self.blobs, self.weights, strict=True) for blob in pair]
        net.WeightedSum(pairs, self.output_schema.field_blobs(), grad_on_w=True)


class LabelSmooth(ModelLayer):
    """Labels as distributions (Szegedy et al., "Rethinking the Inception Architecture", 2016).

    label          a Scalar of labels
    smooth_matrix  two numbers, which stand for labels 0 and 1; or (classes, classes), whose row i
                   is the distribution that stands for label i
    """

    def __init__(
        self,
        model: Any,
        label: Any,
        smooth_matrix: Any,
        name: str = "label_smooth",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, label, **kwargs)
        if not isinstance(label, Scalar):
            raise UsageError(f"a Scalar of labels is needed, got {label!r}")
        self.label = label
        matrix = np.asarray(smooth_matrix, np.float32)
        self.set_dim(matrix)
        self.set_smooth_matrix(matrix)
        self.output_schema = self.output_scalar((np.float32, (self.dim,)), "smoothed_label")

    def set_dim(self, smooth_matrix: np.ndarray) -> None:
        """Sets the size of a distribution: 1 for two labels."""
        shape = smooth_matrix.shape
        self.binary_prob_label = shape == (2,)
        if not self.binary_prob_label and (len(shape) != 2 or shape[0] != shape[1]):
            raise UsageError(
                f"smooth_matrix must have two elements or be square, but its shape is {shape}"
            )
        self.dim = 1 if self.binary_prob_label else shape[0]

    def set_smooth_matrix(self, smooth_matrix: np.ndarray) -> None:
        """Keeps the matrix, one that is square as a constant of the model."""
        self.smooth_matrix: Any = smooth_matrix
        if not self.binary_prob_label:
            add = self.model.add_global_constant
            self.smooth_matrix = add(f"{self.name}_label_smooth_matrix", smooth_matrix)
            self.len = add(f"{self.name}_label_dim", self.dim, dtype=np.int64)

    def add_ops_for_binary_prob_label(self, net: Net) -> None:
        label = self.label()
        if self.label.field_type().base != np.float32:
            label = net.Cast([label], net.NextScopedBlob("float32_label"), to=_FLOAT)
        net.StumpFunc(
            [label],
            self.output_schema.field_blobs(),
            threshold=0.5,
            low_value=self.smooth_matrix[0],
            high_value=self.smooth_matrix[1],
        )

    def add_ops_for_categorical_label(self, net: Net) -> None:
        one_hot_times(net, self.label, self.len, self.smooth_matrix, self.output_schema())

    def add_ops(self, net: Net) -> None:
        if self.binary_prob_label:
            self.add_ops_for_binary_prob_label(net)
        else:
            self.add_ops_for_categorical_label(net)
