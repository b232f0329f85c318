"""Parameters of models and how they begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from caffe2.graph.blob import BlobReference
from caffe2.graph.datatype import DataType
from caffe2.graph.errors import UsageError
from caffe2.graph.gradients import Gradient
from caffe2.graph.net import Net

Fill: TypeAlias = tuple[str, dict[str, Any]]


class ParameterTags:
    """What a parameter is for."""

    BIAS = "BIAS"
    WEIGHT = "WEIGHT"
    COMPUTED_PARAM = "COMPUTED_PARAM"  # computed while training, not learned


class ParameterInfo:
    """A parameter: its blob, shape, gradient (once there is one) and optimizer of its own."""

    def __init__(
        self,
        param_id: int | None,
        param: BlobReference,
        key: Any = None,
        shape: Sequence[int] | None = None,
        length: int | None = None,
        grad: Gradient | None = None,
        blob_copy: Any = None,
    ) -> None:
        self.param_id = param_id
        self.blob = param
        self.name = str(param)
        self.key = key
        self.shape = shape
        self.size = length
        if shape is not None:
            self.size = 1
            for dimension in shape:
                self.size *= dimension
        self.grad = grad
        self.blob_copy = blob_copy
        self._optimizer: Any = None

    @property
    def parameter(self) -> BlobReference:
        return self.blob

    @property
    def optimizer(self) -> Any:
        """The optimizer for this parameter instead of the model's; it can be set once."""
        return self._optimizer

    @optimizer.setter
    def optimizer(self, value: Any) -> None:
        if self._optimizer is not None:
            raise UsageError(f"the optimizer of '{self.name}' has already been set")
        self._optimizer = value

    def __str__(self) -> str:
        return self.name


class Initializer:
    """Fills a parameter by an operator: `Initializer("XavierFill")`."""

    def __init__(self, operator_name: str | None = None, **kwargs: Any) -> None:
        self.operator_name = operator_name
        self.operator_kwargs = kwargs

    def update(self, operator_name: str, kwargs: dict[str, Any]) -> None:
        """Names the operator, where none is named yet."""
        if self.operator_name is not None:
            raise UsageError("Operator name overwrites are not allowed")
        self.operator_name = operator_name
        self.operator_kwargs = kwargs

    def create_param(
        self, param_name: BlobReference, init_net: Net, shape: Sequence[int]
    ) -> ParameterInfo:
        """Adds the operator to `init_net`."""
        if self.operator_name is None:
            raise UsageError(f"the initializer of '{param_name}' names no operator")
        make = init_net.__getattr__(self.operator_name)
        blob = make([], param_name, shape=shape, **self.operator_kwargs)
        return ParameterInfo(None, blob, shape=shape)


class PseudoFP16Initializer(Initializer):
    """For a float16 parameter: fills `<name>_fp32`, which is its copy of 32 bits, and rounds it."""

    def create_param(
        self, param_name: BlobReference, init_net: Net, shape: Sequence[int]
    ) -> ParameterInfo:
        """Adds two operators to `init_net`."""
        wide = super().create_param(param_name + "_fp32", init_net, shape).blob
        param = init_net.FloatToHalf(wide, param_name)
        return ParameterInfo(None, param, shape=shape, blob_copy={DataType.FLOAT: wide})


class ReversePseudoFP16Initializer(Initializer):
    """For a float32 parameter with a copy of 16 bits, `<name>_fp16`."""

    def create_param(
        self, param_name: BlobReference, init_net: Net, shape: Sequence[int]
    ) -> ParameterInfo:
        """Adds two operators to `init_net`."""
        param = super().create_param(param_name, init_net, shape).blob
        half = init_net.FloatToHalf(param, param_name + "_fp16")
        return ParameterInfo(None, param, shape=shape, blob_copy={DataType.FLOAT16: half})


class ExternalInitializer:
    """For a parameter that comes from elsewhere, such as a file."""

    def create_param(
        self, param_name: BlobReference, init_net: Net, shape: Sequence[int]
    ) -> ParameterInfo:
        """Adds nothing to `init_net`."""
        return ParameterInfo(None, BlobReference(param_name, init_net), shape=shape)


def update_initializer(
    initializer_class: Callable[[], Any] | None, given: Fill | None, default: Fill
) -> Any:
    """The initializer of a layer: of class `initializer_class` (default: Initializer), with the
    operator and arguments `given`, or else `default`, unless it has some of its own."""
    initializer = (initializer_class or Initializer)()
    if isinstance(initializer, Initializer) and initializer.operator_name is None:
        operator, arguments, *_ = given or default  # old scripts have more in it, of no effect
        initializer.update(operator, arguments)
    return initializer


def output_name(net: Net, blob_out: Any) -> Any:
    """The blob that a layer writes and names its parameters after: `blob_out`, or a new one.

    Longer names are made of it with `+`: a BlobReference stays one, which no scope renames.
    """
    return net.NextName() if blob_out is None else blob_out
