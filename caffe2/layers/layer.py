"""The base of layers: a layer knows its input record, its parameters and its output record, and
adds its operators to the nets that are made of a model."""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Field, Scalar
from caffe2.graph.scope import NameScope
from caffe2.layers.features import is_request_only_scalar, set_request_only
from caffe2.layers.tags import TagContext
from caffe2.proto import caffe2_pb2


class InstantiationContext:
    """The nets that layers add operators to."""

    ACCUMULATE_PRED = "accumulate_pred"
    EVAL = "eval"
    PREDICTION = "prediction"
    TRAINING = "training"


class AccessedFeatures(NamedTuple):
    """Features that a layer reads: their type, and the set of their ids."""

    type: str
    ids: set[int]


class LayerPsParam(NamedTuple):
    """What a parameter server has to know of an embedding: the blob of ids that look rows up in
    it, and how many there are on average."""

    sparse_key: Any
    average_length: Any


class LayerParameter:
    """A parameter of a layer.

    parameter    its blob
    optimizer    its own, or None for that of the model
    initializer  the operator that fills it
    ps_param     a LayerPsParam
    regularizer  a Regularizer
    """

    def __init__(
        self,
        parameter: BlobReference | None = None,
        optimizer: Any = None,
        initializer: caffe2_pb2.OperatorDef | None = None,
        ps_param: LayerPsParam | None = None,
        regularizer: Any = None,
    ) -> None:
        if parameter is not None and not isinstance(parameter, BlobReference):
            raise UsageError(f"a parameter is a BlobReference, got {parameter!r}")
        self.parameter = parameter
        self.optimizer = optimizer
        self._shape: list[int] | None = None
        self.initializer = initializer
        self.ps_param = ps_param
        self.regularizer = regularizer

    @property
    def initializer(self) -> caffe2_pb2.OperatorDef | None:
        return self._initializer

    @initializer.setter
    def initializer(self, op: caffe2_pb2.OperatorDef | None) -> None:
        if op is not None and not isinstance(op, caffe2_pb2.OperatorDef):
            raise UsageError(f"initializer expects an operator, got type: {type(op)}")
        self._initializer = op
        for arg in op.arg if op is not None else ():
            if arg.name == "shape":
                self.shape = list(arg.ints)

    @property
    def shape(self) -> list[int] | None:
        """Its shape: that of its initializer, if it has one."""
        return self._shape

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        if self._shape is not None and self._shape != list(shape):
            raise UsageError(
                f"inconsistent shape for layer parameter: {self}, "
                f"expect: {self._shape}, but got {list(shape)}"
            )
        self._shape = list(shape)

    def __str__(self) -> str:
        return str(self.parameter)


class ModelLayer:
    """The base of layers.

    A layer is made by `model.<Name>(input_record, ...)`, which gives its `output_schema`.  A class
    of its own calls `super().__init__`, sets `output_schema` (and makes parameters by
    `create_param`), has `add_ops(net)`, and is made known by `register_layer`.

    model         the LayerModelHelper
    prefix        what its name begins with; blobs and parameters are called `<name>/...`
    input_record  the record of its inputs
    predict_input_record_fields  those of them that it needs in the predict net; default: all
    tags          of Tags, besides those of the `with Tags(...)` blocks around
    """

    def __init__(
        self,
        model: Any,
        prefix: str,
        input_record: Any,
        predict_input_record_fields: Any = None,
        tags: Iterable[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.name: str = model.next_layer_name(prefix)
        self.model = model
        self.kwargs = kwargs
        self._input_record = input_record
        self._predict_input_record = (
            input_record[predict_input_record_fields] if predict_input_record_fields else None
        )
        self.request_only = isinstance(input_record, Field) and is_request_only_scalar(input_record)
        # Marks that models set on layers whose outputs are computed ahead of time.
        self.precomputation_request_only = False
        self.precomputation_object_only = False
        self._output_schema: Any = None
        self._predict_output_schema: Any = None
        self.eval_output_schema: Any = None
        context = TagContext.current()
        own = (tags,) if isinstance(tags, str) else (tags or ())
        self.tags = {*own, *(context.tags if context is not None else ())}
        self.params: list[LayerParameter] = []
        self._export_output_for_metrics = False
        self._export_params_for_metrics = False

    # -- records ------------------------------------------------------------------------------

    @property
    def input_record(self) -> Any:
        return self._input_record

    @property
    def predict_input_record(self) -> Any:
        """What it needs of its input record in the predict net."""
        return self._predict_input_record or self._input_record

    @property
    def output_schema(self) -> Any:
        """The record of its outputs, which is set once.  UsageError when there is none yet."""
        if self._output_schema is None:
            raise UsageError(f"the output schema of layer '{self.name}' is not set")
        return self._output_schema

    @output_schema.setter
    def output_schema(self, output_schema: Any) -> None:
        if self._output_schema is not None:
            raise UsageError(f"the output schema of layer '{self.name}' is already set")
        self._output_schema = output_schema
        if self.request_only:
            set_request_only(output_schema)

    @property
    def predict_output_schema(self) -> Any:
        """The record of its outputs in the predict net; `output_schema`, unless set."""
        return self._predict_output_schema or self._output_schema

    @predict_output_schema.setter
    def predict_output_schema(self, output_schema: Any) -> None:
        if self._predict_output_schema is not None:
            raise UsageError(f"the predict output schema of layer '{self.name}' is already set")
        self._predict_output_schema = output_schema

    def get_next_blob_reference(self, name: str) -> BlobReference:
        """A new blob of the model, called `<layer>/<name>`."""
        with NameScope(self.name, reset=True):
            return self.model.net.NextScopedBlob(name)  # type: ignore[no-any-return]

    def output_scalar(self, dtype: Any, name: str = "output", metadata: Any = None) -> Scalar:
        """A column of a type for a new blob called `<layer>/<name>`."""
        return Scalar(dtype, self.get_next_blob_reference(name), metadata)

    # -- parameters ---------------------------------------------------------------------------

    def create_param(
        self,
        param_name: str,
        shape: Sequence[int] | None,
        initializer: tuple[str, dict[str, Any]],
        optimizer: Any,
        ps_param: LayerPsParam | None = None,
        regularizer: Any = None,
    ) -> BlobReference:
        """A parameter called `<layer>/<param_name>`; see `LayerModelHelper.create_param`."""
        with NameScope(self.name, reset=True):
            parameter = self.model.create_param(
                param_name=param_name,
                shape=shape,
                initializer=initializer,
                optimizer=optimizer,
                ps_param=ps_param,
                regularizer=regularizer,
            )
        self.params.append(parameter)
        return parameter.parameter  # type: ignore[no-any-return]

    def get_type(self) -> str:
        return type(self).__name__

    def get_parameters(self) -> list[LayerParameter]:
        return self.params

    def get_fp16_compatible_parameters(self) -> list[BlobReference]:
        """The parameters that can be kept as float16 for prediction."""
        return []

    def get_memory_usage(self) -> int:
        """The bytes of its embeddings."""
        return 0

    def get_accessed_features(self) -> dict[str, list[AccessedFeatures]]:
        """The features that it reads, by column."""
        return defaultdict(list)

    # -- operators ----------------------------------------------------------------------------

    def add_init_params(self, init_net: Net) -> None:
        """Adds what fills its parameters, unless an equal operator is there (shared parameters)."""
        for parameter in self.params:
            op = parameter.initializer
            if op is None:
                continue
            if not any(op == known for known in init_net.Proto().op):
                init_net.Proto().op.extend([op])

    def add_operators(
        self,
        net: Net,
        init_net: Net | None = None,
        context: str = InstantiationContext.TRAINING,
    ) -> None:
        """Adds its operators for a context to `net`, and what fills its parameters to `init_net`,
        which is not needed for eval, prediction and accumulate_pred."""
        needless = (
            InstantiationContext.PREDICTION,
            InstantiationContext.EVAL,
            InstantiationContext.ACCUMULATE_PRED,
        )
        if context != InstantiationContext.TRAINING and context not in needless:
            raise UsageError(f"unknown context {context!r} for layer '{self.name}'")
        with NameScope(self.name):
            if context == InstantiationContext.TRAINING and init_net is None:
                raise UsageError("Only prediction and eval context don't need init_net")
            if init_net is not None:
                self.add_init_params(init_net)
            if context == InstantiationContext.TRAINING:
                self.add_train_ops(net)
            elif context == InstantiationContext.EVAL:
                self.add_eval_ops(net)
            elif context == InstantiationContext.ACCUMULATE_PRED:
                self.add_ops_to_accumulate_pred(net)
            else:
                self.add_ops(net)
            measured = (InstantiationContext.TRAINING, InstantiationContext.EVAL)
            if context in measured and self._export_params_for_metrics:
                self.add_param_copy_operators(net)

    def add_ops(self, net: Net) -> None:
        """Adds the operators of the predict net, and of the others by default."""
        raise NotImplementedError(f"{type(self).__name__} has no add_ops")

    def add_eval_ops(self, net: Net) -> None:
        """Adds the operators of the eval net."""
        self.add_ops(net)

    def add_train_ops(self, net: Net) -> None:
        """Adds the operators of the training net."""
        self.add_ops(net)

    def add_ops_to_accumulate_pred(self, net: Net) -> None:
        """Adds the operators of a net that collects predictions."""
        self.add_eval_ops(net)

    # -- metrics ------------------------------------------------------------------------------

    def add_param_copy_operators(self, net: Net) -> None:
        """Copies its parameters to the blobs that `export_params_for_metrics` has named."""
        for param in self.params:
            net.Copy(param.parameter, self.model.metrics_schema[str(param)]())

    def export_output_for_metrics(self) -> None:
        """Lets the training and eval nets put out its outputs as metrics."""
        for scalar in self.output_schema.all_scalars():
            self.model.add_metric_field(str(scalar()), scalar)
        self._export_output_for_metrics = True

    def export_params_for_metrics(self) -> None:
        """Lets the training and eval nets put out copies of its parameters as metrics."""
        for param in self.params:
            copy = BlobReference(f"{param}_copy", self.model.net)
            self.model.add_metric_field(str(param), Scalar(blob=copy))
        self._export_params_for_metrics = True


def cast_to_float(net: Net, scalar: Scalar, name: str | BlobReference) -> Any:
    """The blob of a column, cast to a new blob of this name where it is not float32."""
    if scalar.field_type().base == np.dtype(np.float32):
        return scalar()
    return net.Cast(scalar(), name, to=int(caffe2_pb2.TensorProto.FLOAT))


# -- the registry -----------------------------------------------------------------------------

_layers: dict[str, type[ModelLayer]] = {}


def register_layer(name: str, layer: type[ModelLayer]) -> None:
    """Lets models have `model.<name>(...)`.  UsageError for a name that is taken."""
    if name in _layers:
        raise UsageError(f"{name} already exists")
    _layers[name] = layer


def layer_exists(name: str) -> bool:
    return name in _layers


def get_layer_class(name: str) -> type[ModelLayer]:
    """The class of a layer.  KeyError for an unknown name."""
    return _layers[name]


def create_layer(layer_name: str, *args: Any, **kwargs: Any) -> ModelLayer:
    """A new layer of this name; it is not added to the model."""
    return _layers[layer_name](*args, **kwargs)


def import_recursive(package: Any) -> None:
    """Imports all modules of a package, so that their layers can be found."""
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)


def find_subclasses_recursively(base_cls: type, sub_cls: set[type]) -> None:
    """Adds the subclasses of a class, and theirs, to a set."""
    cls: type
    for cls in base_cls.__subclasses__():
        sub_cls.add(cls)
        find_subclasses_recursively(cls, sub_cls)


__all__ = [
    "AccessedFeatures",
    "InstantiationContext",
    "LayerParameter",
    "LayerPsParam",
    "ModelLayer",
    "cast_to_float",
    "create_layer",
    "find_subclasses_recursively",
    "get_layer_class",
    "import_recursive",
    "layer_exists",
    "register_layer",
]
