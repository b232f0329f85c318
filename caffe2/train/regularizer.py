"""Regularizers: what keeps parameters small, as operators.

A regularizer is called once with `by="on_loss"`, and gives a blob to be added to the loss or None,
and once with `by="after_optimizer"`, when it changes the parameter in place or does nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.ops.declaration import GradientSlice
from caffe2.train.iteration import BuildUniqueMutexIter


class RegularizationBy:
    """When a regularizer works."""

    AFTER_OPTIMIZER = "after_optimizer"
    ON_LOSS = "on_loss"


class Regularizer:
    """The base of all; a subclass has `_run_on_loss` or `_run_after_optimizer`."""

    def __init__(self) -> None:
        self.kEpsilon = 1e-9

    def __call__(
        self, net: Net, param_init_net: Net, param: Any, grad: Any = None, by: str | None = None
    ) -> Any:
        if not isinstance(param, BlobReference):
            raise UsageError(f"a parameter is a BlobReference, got {param!r}")
        if by == RegularizationBy.ON_LOSS:
            return self._run_on_loss(net, param_init_net, param, grad)
        if by == RegularizationBy.AFTER_OPTIMIZER:
            self._run_after_optimizer(net, param_init_net, param, grad)
            return None
        raise UsageError(f"by is {by!r}; it must be 'on_loss' or 'after_optimizer'")

    def _run_on_loss(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> Any:
        return None

    def _run_after_optimizer(self, net: Net, param_init_net: Net, param: Any, grad: Any) -> None:
        return None

    def _ensure_clipped(
        self,
        net: Net,
        param: Any,
        grad: Any = None,
        min: float | None = None,
        max: float | None = None,
        open_range: bool = False,
        left_open: bool = False,
        right_open: bool = False,
        epsilon: float | None = None,
    ) -> None:
        """Puts the parameter into [min, max], in place; of a sparse gradient its rows only."""
        gap = self.kEpsilon if epsilon is None else epsilon
        limits = {}
        if min is not None:
            limits["min"] = min + gap if open_range or left_open else min
        if max is not None:
            limits["max"] = max - gap if open_range or right_open else max
        inputs = [param, *grad] if isinstance(grad, GradientSlice) else [param]
        net.EnsureClipped(inputs, [param], **limits)


def _check(name: str, value: float) -> float:
    if not value >= 0:
        raise UsageError(f"{name} is {value}; it must not be negative")
    return float(value)


def _scaled_norm(net: Net, param: Any, p: int, strength: float, name: str) -> Any:
    """strength * the sum of |w|^p, in a blob of this name."""
    blob = net.LpNorm([param], net.NextScopedBlob(name), p=p)
    return net.Scale([blob], [blob], scale=strength)


class L1Norm(Regularizer):
    """Adds reg_lambda * sum |w| to the loss."""

    def __init__(self, reg_lambda: float) -> None:
        super().__init__()
        self.reg_lambda = _check("reg_lambda", reg_lambda)

    def _run_on_loss(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> Any:
        return _scaled_norm(net, param, 1, self.reg_lambda, f"{param}_l1_regularization")


class L2Norm(Regularizer):
    """Adds reg_lambda * sum w^2 to the loss."""

    def __init__(self, reg_lambda: float) -> None:
        super().__init__()
        self.reg_lambda = _check("reg_lambda", reg_lambda)

    def _run_on_loss(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> Any:
        return _scaled_norm(net, param, 2, self.reg_lambda, f"{param}_l2_regularization")


class ElasticNet(Regularizer):
    """Adds l1 * sum |w| + l2 * sum w^2 to the loss."""

    def __init__(self, l1: float, l2: float) -> None:
        super().__init__()
        self.l1 = l1
        self.l2 = l2

    def _run_on_loss(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> Any:
        second = _scaled_norm(net, param, 2, self.l2, f"{param}_l2_blob")
        first = _scaled_norm(net, param, 1, self.l1, f"{param}_l1_blob")
        name = net.NextScopedBlob(f"{param}_elastic_net_regularization")
        return net.Add([first, second], [name])


def _trimmed_l1(net: Net, param: Any, k: int, name: str) -> Any:
    """The sum of |w| without its k largest."""
    size = net.Abs([param], [net.NextScopedBlob("abs")])
    total = net.SumElements([size], [net.NextScopedBlob("sum_abs")], average=False)
    largest, _, _ = net.TopK(
        [size], [net.NextScopedBlob(part) for part in ("topk", "id", "flat_id")], k=k
    )
    spared = net.SumElements([largest], [net.NextScopedBlob("topk_sum")], average=False)
    return net.Sub([total, spared], [net.NextScopedBlob(name)])


class L1NormTrimmed(Regularizer):
    """Adds reg_lambda * the sum of |w| without the k largest to the loss (Yun et al., "Trimming the
    l1 Regularizer", 2019)."""

    def __init__(self, reg_lambda: float, k: int) -> None:
        super().__init__()
        self.reg_lambda = _check("reg_lambda", reg_lambda)
        self.k = _positive("k", k)

    def _run_on_loss(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> Any:
        blob = _trimmed_l1(net, param, self.k, f"{param}_l1_trimmed_regularization")
        return net.Scale([blob], [blob], scale=self.reg_lambda)


class ElasticNetL1NormTrimmed(Regularizer):
    """ElasticNet with the L1 norm of L1NormTrimmed."""

    def __init__(self, l1: float, l2: float, k: int) -> None:
        super().__init__()
        self.l1 = l1
        self.l2 = l2
        self.k = _positive("k", k)

    def _run_on_loss(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> Any:
        second = _scaled_norm(net, param, 2, self.l2, f"{param}_l2_blob")
        first = _trimmed_l1(net, param, self.k, f"{param}_l1_blob")
        net.Scale([first], [first], scale=self.l1)
        name = net.NextScopedBlob(f"{param}_elastic_net_l1_trimmed_regularization")
        return net.Add([first, second], [name])


def _positive(name: str, value: int) -> int:
    if not (isinstance(value, int) and value > 0):
        raise UsageError(f"{name} is {value!r}; it must be an integer above 0")
    return value


def _column_norms(net: Net, param: Any) -> Any:
    """The Euclidean norm of each column of a matrix: the weights of one input."""
    squares = net.Mul([param, param], [net.NextScopedBlob("param_mul")])
    sums = net.ReduceFrontSum([squares], [net.NextScopedBlob("param_reduced")])
    return net.Pow([sums], [net.NextScopedBlob("grouped_feature_weight_vec")], exponent=0.5)


class LpNorm(Regularizer):
    """Adds reg_lambda * (sum of |column|^p)^(1/p) over the columns of the weight to the loss."""

    def __init__(self, reg_lambda: float, p_value: float = 0.5) -> None:
        super().__init__()
        if not p_value > 0:
            raise UsageError(f"p_value is {p_value}; it must be positive")
        self.p_value = p_value
        self.reg_lambda = _check("reg_lambda", reg_lambda)

    def _run_on_loss(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> Any:
        norms = _column_norms(net, param)
        raised = net.Pow([norms], [net.NextScopedBlob("lp_vec_raised")], exponent=self.p_value)
        summed = net.ReduceFrontSum([raised], [net.NextScopedBlob("lp_vec_summed")])
        norm = net.Pow([summed], [net.NextScopedBlob("lp_vec")], exponent=1 / self.p_value)
        name = net.NextScopedBlob(f"{param}_dense_feature_regularization")
        return net.Scale([norm], [name], scale=self.reg_lambda)


class L0ApproxNorm(Regularizer):
    """Adds reg_lambda * max(sum of min(|column|, alpha) / alpha - budget, 0) to the loss: about the
    number of columns that are not zero, beyond the budget."""

    def __init__(self, reg_lambda: float, alpha: float = 0.01, budget: int = 0) -> None:
        super().__init__()
        if not alpha > 0:
            raise UsageError(f"alpha is {alpha}; it must be positive")
        self.reg_lambda = _check("reg_lambda", reg_lambda)
        self.alpha = alpha
        self.budget = _check("budget", budget)

    def _run_on_loss(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> Any:
        size = net.Abs([_column_norms(net, param)], [net.NextScopedBlob("l0_abs")])
        capped = net.Clip([size], [net.NextScopedBlob("l0_min")], max=self.alpha)
        summed = net.ReduceFrontSum([capped], [net.NextScopedBlob("l0_summed")])
        norm = net.Scale([summed], [net.NextScopedBlob("l0_norm")], scale=1 / self.alpha)
        if self.budget:
            budget = net.ConstantFill([], "budget", shape=[1], value=self.budget)
            beyond = net.Sub([norm, budget], [net.NextScopedBlob("l0_budget")])
            norm = net.Relu([beyond], [net.NextScopedBlob("relu_l0_sub_budget")])
        name = net.NextScopedBlob(f"{param}_dense_feature_regularization")
        return net.Scale([norm], [name], scale=self.reg_lambda)


class GroupL1Norm(Regularizer):
    """Adds reg_lambda * sum over groups of sqrt(size of the group) * |its weights| to the loss,
    where a group is some columns next to each other (Yuan and Lin, "Model selection and estimation
    in regression with grouped variables", 2006).

    groups            how many columns each group has
    stabilizing_val   is added to the square of each norm
    """

    def __init__(
        self, reg_lambda: float, groups: Sequence[int], stabilizing_val: float = 0
    ) -> None:
        super().__init__()
        if not groups or not all(isinstance(group, int) and group > 0 for group in groups):
            raise UsageError(f"groups is {groups!r}; it must hold sizes above 0")
        self.reg_lambda = _check("reg_lambda", reg_lambda)
        self.groups = list(groups)
        self.stabilizing_val = _check("stabilizing_val", stabilizing_val)

    def _run_on_loss(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> Any:
        squares = net.ReduceSum(net.Sqr(param), axes=[0], keepdims=0)
        count = len(self.groups)
        sizes = net.GivenTensorIntFill([], 1, shape=[count], values=self.groups)
        grouped = net.LengthsSum([squares, *sizes])
        if self.stabilizing_val:
            (more,) = net.ConstantFill([], 1, value=self.stabilizing_val)
            grouped = net.Add([grouped, more], grouped, broadcast=1)
        weights = net.GivenTensorFill(
            [], shape=[count], values=[self.reg_lambda * math.sqrt(size) for size in self.groups]
        )
        scaled = net.Mul([net.Sqrt(grouped), weights], ["normalized_l2_norm_scaled"])
        return net.LpNorm(scaled, ["group_l1_nrom"], p=1)  # the name of the original


class LogBarrier(Regularizer):
    """Keeps a parameter above 0 by adding -reg_lambda * discount * sum log(w) to the loss (Wright,
    "The interior-point revolution in optimization", 2004).

    discount_policy, discount_options   a policy of the operator LearningRate and its arguments
    """

    def __init__(
        self,
        reg_lambda: float,
        discount_policy: str = "inv",
        discount_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        if not reg_lambda > 0:
            raise UsageError(f"reg_lambda is {reg_lambda}; it must be positive")
        self.reg_lambda = reg_lambda
        self.discount_policy = discount_policy
        self.discount_options = discount_options or {"gamma": 1.0, "power": 1.0}

    def _run_on_loss(self, net: Net, param_init_net: Net, param: Any, grad: Any = None) -> Any:
        iteration = BuildUniqueMutexIter(param_init_net, net)
        discount = net.LearningRate(
            [iteration],
            [net.NextScopedBlob(f"{param}_log_barrier_discount")],
            base_lr=-self.reg_lambda,
            policy=self.discount_policy,
            **self.discount_options,
        )
        # Otherwise log(w) is not a number.
        positive = net.Clip([param], [net.NextScopedBlob(f"{param}_non_neg")], min=self.kEpsilon)
        log = net.Log([positive], [net.NextScopedBlob(f"{param}_log")])
        total = net.SumElements([log], [net.NextScopedBlob(f"{param}_log_sum")])
        name = net.NextScopedBlob(f"{param}_log_barrier")
        return net.Mul([total, discount], [name], broadcast=1)

    def _run_after_optimizer(self, net: Net, param_init_net: Net, param: Any, grad: Any) -> None:
        self._ensure_clipped(net, param, grad, min=0, open_range=True)


class BoundedGradientProjection(Regularizer):
    """Puts a parameter into [lb, ub] after each step, or beyond an open end by epsilon."""

    def __init__(
        self,
        lb: float | None = None,
        ub: float | None = None,
        left_open: bool = False,
        right_open: bool = False,
        epsilon: float | None = None,
    ) -> None:
        super().__init__()
        gap = self.kEpsilon if epsilon is None else epsilon
        if not gap > 0:
            raise UsageError(f"Bounded Gradient Projection with invalid eps={gap}")
        low = None if lb is None else float(lb) + (gap if left_open else 0)
        high = None if ub is None else float(ub) - (gap if right_open else 0)
        if low is not None and high is not None and low > high:
            raise UsageError(
                f"Bounded Gradient Projection with invalid range: lb={lb}, ub={ub}, eps={gap}"
            )
        self.lb = lb
        self.ub = ub
        self.left_open = left_open
        self.right_open = right_open
        self.epsilon = gap

    def _run_after_optimizer(self, net: Net, param_init_net: Net, param: Any, grad: Any) -> None:
        self._ensure_clipped(
            net,
            param,
            grad,
            min=self.lb,
            max=self.ub,
            left_open=self.left_open,
            right_open=self.right_open,
            epsilon=self.epsilon,
        )


class _SparseRegularizer(Regularizer):
    """One that changes the rows of a sparse gradient."""

    def _run_after_optimizer(self, net: Net, param_init_net: Net, param: Any, grad: Any) -> None:
        if not isinstance(grad, GradientSlice):
            raise NotImplementedError(
                f"{type(self).__name__} is not supported for dense parameters"
            )
        self._run_on_rows(net, param, grad.indices)

    def _run_on_rows(self, net: Net, param: Any, indices: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say what it does")


class MaxNorm(_SparseRegularizer):
    """Makes rows shorter that are longer than `norm`, after each step."""

    def __init__(self, norm: float = 1.0, dtype: str | None = None) -> None:
        super().__init__()
        if not norm > 0:
            raise UsageError(f"norm is {norm}; it must be positive")
        if dtype not in (None, "fp16"):
            raise UsageError(f"dtype is {dtype!r}; it must be None or 'fp16'")
        self.norm = norm
        self.dtype = dtype

    def _run_on_rows(self, net: Net, param: Any, indices: Any) -> None:
        make = net.Float16SparseNormalize if self.dtype == "fp16" else net.SparseNormalize
        make([param, indices], [param], use_max_norm=True, norm=self.norm)


class ConstantNorm(_SparseRegularizer):
    """Gives rows the length `norm`, after each step."""

    def __init__(self, norm: float = 1.0) -> None:
        super().__init__()
        if not norm > 0:
            raise UsageError(f"norm is {norm}; it must be positive")
        self.norm = norm

    def _run_on_rows(self, net: Net, param: Any, indices: Any) -> None:
        net.SparseNormalize([param, indices], [param], use_max_norm=False, norm=self.norm)


class SparseLpNorm(_SparseRegularizer):
    """Makes rows smaller after each step; see the operator SparseLpRegularizer."""

    def __init__(self, p: float, reg_lambda: float) -> None:
        super().__init__()
        if p not in (1.0, 2.0):
            raise UsageError("Sparse Lp regularization only implemented for p = 1.0 and p = 2.0.")
        if not reg_lambda > 0:
            raise UsageError(f"reg_lambda is {reg_lambda}; it must be positive")
        self.p = p
        self.reg_lambda = reg_lambda

    def _run_on_rows(self, net: Net, param: Any, indices: Any) -> None:
        net.SparseLpRegularizer([param, indices], [param], p=self.p, reg_lambda=self.reg_lambda)


class SparseL1Norm(SparseLpNorm):
    """SparseLpNorm with p = 1."""

    def __init__(self, reg_lambda: float) -> None:
        super().__init__(p=1.0, reg_lambda=reg_lambda)


class SparseL2Norm(SparseLpNorm):
    """SparseLpNorm with p = 2."""

    def __init__(self, reg_lambda: float) -> None:
        super().__init__(p=2.0, reg_lambda=reg_lambda)
