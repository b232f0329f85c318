"""Adding an optimizer to a model in one call, and optimizers known by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from caffe2.graph.errors import UsageError
from caffe2.nn.model_helper import ModelHelper
from caffe2.proto import caffe2_pb2
from caffe2.train.adaptive import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    DecayAdagradOptimizer,
    RmsPropOptimizer,
    StormOptimizer,
    WngradOptimizer,
    YellowFinOptimizer,
)
from caffe2.train.ftrl import FtrlOptimizer, GFtrlOptimizer
from caffe2.train.lion import LionOptimizer
from caffe2.train.optimizer import Optimizer
from caffe2.train.sgd import FP16SgdOptimizer, MultiPrecisionSgdOptimizer, SgdOptimizer

Kind = TypeVar("Kind", bound=Optimizer)

_optimizers: dict[str, type[Optimizer]] = {
    "adadelta": AdadeltaOptimizer,
    "adagrad": AdagradOptimizer,
    "adam": AdamOptimizer,
    "decay_adagrad": DecayAdagradOptimizer,
    "fp16_sgd": FP16SgdOptimizer,
    "ftrl": FtrlOptimizer,
    "gftrl": GFtrlOptimizer,
    "lion": LionOptimizer,
    "multi_precision_sgd": MultiPrecisionSgdOptimizer,
    "rms_prop": RmsPropOptimizer,
    "sgd": SgdOptimizer,
    "storm": StormOptimizer,
    "wngrad": WngradOptimizer,
    "yellowfin": YellowFinOptimizer,
}


def register_optimizer(name: str, kind: type[Optimizer]) -> None:
    """Makes an optimizer known by name, for `build_optimizer`.  UsageError for one that is taken by
    another class."""
    known = _optimizers.setdefault(name, kind)
    if known is not kind:
        raise UsageError(f"the optimizer '{name}' is {known.__name__} already")


def build_optimizer(
    model: ModelHelper,
    name: str,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
    **kwargs: Any,
) -> Optimizer:
    """Updates a model by an optimizer that is known by name: "sgd", "adam", ..., or what
    `register_optimizer` was told.  Further arguments are those of the optimizer."""
    if name not in _optimizers:
        raise UsageError(f"no optimizer is called '{name}'; there are {', '.join(_optimizers)}")
    return _build(model, _optimizers[name](**kwargs), max_gradient_norm, allow_lr_injection)


def _build(
    model: ModelHelper,
    optimizer: Kind,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
    parameters: Iterable[Any] | None = None,
    weight_decay: float = 0.0,
) -> Kind:
    optimizer.build(
        model,
        parameters=parameters,
        max_gradient_norm=max_gradient_norm,
        allow_lr_injection=allow_lr_injection,
        weight_decay=weight_decay,
    )
    return optimizer


def build_sgd(
    model: ModelHelper,
    base_learning_rate: float,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
    weight_decay: float = 0.0,
    **kwargs: Any,
) -> SgdOptimizer:
    """Updates every parameter of a model that has a gradient by an SgdOptimizer, which is given
    back.  To be called after AddGradientOperators; max_gradient_norm, allow_lr_injection and
    weight_decay are those of `Optimizer.build`, the other arguments those of SgdOptimizer."""
    optimizer = SgdOptimizer(base_learning_rate, **kwargs)
    return _build(
        model, optimizer, max_gradient_norm, allow_lr_injection, weight_decay=weight_decay
    )


def build_multi_precision_sgd(
    model: ModelHelper,
    base_learning_rate: float,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
    **kwargs: Any,
) -> MultiPrecisionSgdOptimizer:
    """As build_sgd, by a MultiPrecisionSgdOptimizer."""
    optimizer = MultiPrecisionSgdOptimizer(base_learning_rate, **kwargs)
    return _build(model, optimizer, max_gradient_norm, allow_lr_injection)


def build_fp16_sgd(
    model: ModelHelper, base_learning_rate: float, **kwargs: Any
) -> FP16SgdOptimizer:
    """As build_sgd, by an FP16SgdOptimizer."""
    return _build(model, FP16SgdOptimizer(base_learning_rate, **kwargs))


def build_adagrad(
    model: ModelHelper,
    base_learning_rate: float,
    parameters: Iterable[Any] | None = None,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
    **kwargs: Any,
) -> AdagradOptimizer:
    """As build_sgd, by an AdagradOptimizer; `parameters` (default: all) are updated."""
    optimizer = AdagradOptimizer(alpha=base_learning_rate, **kwargs)
    return _build(model, optimizer, max_gradient_norm, allow_lr_injection, parameters)


def build_wngrad(
    model: ModelHelper,
    base_learning_rate: float,
    parameters: Iterable[Any] | None = None,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
    **kwargs: Any,
) -> WngradOptimizer:
    """As build_adagrad, by a WngradOptimizer."""
    optimizer = WngradOptimizer(alpha=base_learning_rate, **kwargs)
    return _build(model, optimizer, max_gradient_norm, allow_lr_injection, parameters)


def build_storm(
    model: ModelHelper,
    base_learning_rate: float,
    parameters: Iterable[Any] | None = None,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
    **kwargs: Any,
) -> StormOptimizer:
    """As build_adagrad, by a StormOptimizer."""
    optimizer = StormOptimizer(lr=base_learning_rate, **kwargs)
    return _build(model, optimizer, max_gradient_norm, allow_lr_injection, parameters)


def build_adadelta(
    model: ModelHelper,
    base_learning_rate: float,
    parameters: Iterable[Any] | None = None,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
    weight_decay: float = 0.0,
    **kwargs: Any,
) -> AdadeltaOptimizer:
    """As build_adagrad, by an AdadeltaOptimizer."""
    optimizer = AdadeltaOptimizer(alpha=base_learning_rate, **kwargs)
    return _build(model, optimizer, max_gradient_norm, allow_lr_injection, parameters, weight_decay)


def build_adam(
    model: ModelHelper,
    base_learning_rate: float,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
    weight_decay: float = 0.0,
    **kwargs: Any,
) -> AdamOptimizer:
    """As build_sgd, by an AdamOptimizer."""
    optimizer = AdamOptimizer(alpha=base_learning_rate, **kwargs)
    return _build(
        model, optimizer, max_gradient_norm, allow_lr_injection, weight_decay=weight_decay
    )


def build_adam_sgd(
    param: Any, grad: Any, base_learning_rate: float = 0.001, **kwargs: Any
) -> list[caffe2_pb2.OperatorDef]:
    """The operators of Adam for one parameter, a blob of the workspace, and its gradient; see
    `Optimizer.get_update_ops`."""
    return AdamOptimizer(alpha=base_learning_rate, **kwargs).get_update_ops(param, grad)


def build_decay_adagrad(
    model: ModelHelper,
    base_learning_rate: float,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
    **kwargs: Any,
) -> DecayAdagradOptimizer:
    """As build_sgd, by a DecayAdagradOptimizer."""
    optimizer = DecayAdagradOptimizer(alpha=base_learning_rate, **kwargs)
    return _build(model, optimizer, max_gradient_norm, allow_lr_injection)


def build_rms_prop(
    model: ModelHelper,
    base_learning_rate: float,
    max_gradient_norm: float | None = None,
    allow_lr_injection: bool = False,
    weight_decay: float = 0.0,
    **kwargs: Any,
) -> RmsPropOptimizer:
    """As build_sgd, by an RmsPropOptimizer."""
    optimizer = RmsPropOptimizer(alpha=base_learning_rate, **kwargs)
    return _build(
        model, optimizer, max_gradient_norm, allow_lr_injection, weight_decay=weight_decay
    )


def build_ftrl(model: ModelHelper, engine: str = "SIMD", **kwargs: Any) -> FtrlOptimizer:
    """As build_sgd, by an FtrlOptimizer.  `engine` is a hint; there is one kernel."""
    return _build(model, FtrlOptimizer(engine=engine, **kwargs))


def build_gftrl(model: ModelHelper, engine: str = "", **kwargs: Any) -> GFtrlOptimizer:
    """As build_sgd, by a GFtrlOptimizer."""
    return _build(model, GFtrlOptimizer(engine=engine, **kwargs))


def build_yellowfin(
    model: ModelHelper, base_learning_rate: float = 0.1, **kwargs: Any
) -> YellowFinOptimizer:
    """As build_sgd, by a YellowFinOptimizer."""
    return _build(model, YellowFinOptimizer(alpha=base_learning_rate, **kwargs))
