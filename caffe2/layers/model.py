"""LayerModelHelper: a model made of layers, out of which nets for training, evaluation and
prediction are made (see nets.py)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from caffe2.data.records import NewRecord, as_record
from caffe2.graph.blob import BlobReference, ScopedName
from caffe2.graph.device import DeviceOption
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.operator import CreateOperator, IsOperator
from caffe2.graph.records import Scalar, Struct
from caffe2.graph.scope import DeviceScope
from caffe2.layers.constants import GlobalConstants
from caffe2.layers.layer import (
    LayerParameter,
    ModelLayer,
    create_layer,
    layer_exists,
)
from caffe2.nn.model_helper import ModelHelper
from caffe2.nn.parameter_sharing import parameter_sharing_context
from caffe2.proto import caffe2_pb2
from caffe2.train.devices import get_param_device
from caffe2.train.net_modifiers import NetModifier
from caffe2.train.optimizer import Optimizer
from caffe2.train.regularizer import RegularizationBy, Regularizer

_log = logging.getLogger(__name__)

Devices = Mapping[str, caffe2_pb2.DeviceOption]


class LayerModelHelper(GlobalConstants, ModelHelper):
    """A model of layers.

    Each layer is a method that takes the record of its inputs and gives that of its outputs:
    `hidden = model.FC(model.input_feature_schema.features, 64)`.  So is each operator, with the
    number or names of its outputs: `model.Relu(hidden, 1)`; it is a layer called Functional.

    name                  of the model
    input_feature_schema  the columns that all nets read
    trainer_extra_schema  those that the nets for training and evaluation read besides
    keep_blobs            the blobs of these records are used, instead of new ones
    use_attribution       a mark for readers of the model

    default_optimizer is that of parameters without one; it is set before layers are made.
    output_schema is what nets put out, loss what training makes small, metrics_schema what nets
    for training and evaluation put out besides.
    """

    def __init__(
        self,
        name: str,
        input_feature_schema: Any,
        trainer_extra_schema: Any,
        keep_blobs: bool = False,
        use_attribution: bool = True,
    ) -> None:
        super().__init__(name=name)
        self._layer_names: set[str] = set()
        self._layers: list[ModelLayer] = []
        self._param_to_shape: dict[BlobReference, list[int] | None] = {}
        self._seed: int | None = None
        self._sequence_seed = True
        self.param_to_optim: dict[BlobReference, Any] = {}
        self.param_to_reg: dict[BlobReference, Regularizer | None] = {}
        self.default_optimizer: Any = None
        self._loss: Any = None
        self._prediction: list[tuple[Any, float]] = []
        self._output_schema: Any = None
        self._preproc_output_schema: Any = None
        self._post_grad_net_modifiers: list[NetModifier] = []
        self._final_net_modifiers: list[NetModifier] = []
        self._breakdown_map: dict[str, Any] | None = None
        records = (as_record(input_feature_schema), as_record(trainer_extra_schema))
        if not keep_blobs:
            records = (NewRecord(self.net, records[0]), NewRecord(self.net, records[1]))
        self._input_feature_schema: Any = records[0]
        self._trainer_extra_schema: Any = records[1]
        self._metrics_schema: Any = Struct()
        self._initialize_params = True
        self.transfer_learning_blob_name_mappings: Any = None
        self.ad_hoc_diagnose_blobs_and_operations: list[Any] = []
        self.ad_hoc_plot_blobs: list[BlobReference] = []
        self.use_attribution = use_attribution
        self._init_constants()

    # -- records ------------------------------------------------------------------------------

    @property
    def input_feature_schema(self) -> Any:
        return self._input_feature_schema

    @property
    def trainer_extra_schema(self) -> Any:
        return self._trainer_extra_schema

    def add_trainer_extra_schema(self, trainer_extra_schema: Any) -> None:
        """Adds columns that the nets for training and evaluation read."""
        record = NewRecord(self.net, trainer_extra_schema)
        self._trainer_extra_schema = self._trainer_extra_schema + record

    @property
    def output_schema(self) -> Any:
        """What the nets put out; it is set once.  UsageError when there is none."""
        return self._known("output_schema")

    @output_schema.setter
    def output_schema(self, schema: Any) -> None:
        self._set_once("output_schema", schema)

    @property
    def preproc_output_schema(self) -> Any:
        """What preprocessing puts out; it is set once.  UsageError when there is none."""
        return self._known("preproc_output_schema")

    @preproc_output_schema.setter
    def preproc_output_schema(self, schema: Any) -> None:
        self._set_once("preproc_output_schema", schema)

    def _known(self, name: str) -> Any:
        value = vars(self)[f"_{name}"]
        if value is None:
            raise UsageError(f"the model '{self.name}' has no {name}")
        return value

    def _set_once(self, name: str, value: Any) -> None:
        if vars(self)[f"_{name}"] is not None:
            raise UsageError(f"the {name} of model '{self.name}' is already set")
        vars(self)[f"_{name}"] = value

    def clear_output_schema(self) -> None:
        """Takes the output schema away, so that another can be set."""
        self._output_schema = None

    def add_output_schema(self, name: str, value: Any) -> None:
        """Adds a field to the output schema.  UsageError when it has one of that name."""
        if value is None:
            raise UsageError(f"Added output schema {name} should not be None")
        known = self._output_schema or Struct()
        if name in known.fields:
            raise UsageError(f"Output schema already has a field '{name}'")
        self._output_schema = known + Struct((name, value))

    @property
    def metrics_schema(self) -> Any:
        return self._metrics_schema

    def add_metric_field(self, name: str, value: Any) -> None:
        """Adds a field to the metrics.  UsageError when there is one of that name."""
        if name in self._metrics_schema:
            raise UsageError(f"Try to add metric field twice: {name}")
        self._metrics_schema = self._metrics_schema + Struct((name, value))

    def filter_metrics_schema(self, white_set: Iterable[str]) -> None:
        """Leaves only metrics of these (nested) names."""
        kept = set(white_set)
        columns = self._metrics_schema.named_scalars()
        self._metrics_schema = Struct(*((name, field) for name, field in columns if name in kept))

    def add_ad_hoc_plot_blob(self, blob: Any, dtype: Any = None) -> None:
        """Adds a blob, of one float64 by default, to the metrics, to be plotted."""
        if not isinstance(blob, BlobReference):
            raise UsageError(f"a BlobReference is needed, got {blob!r}")
        self.add_metric_field(str(blob), Scalar(dtype or (np.float64, (1,)), blob))
        self.ad_hoc_plot_blobs.append(blob)

    @property
    def breakdown_map(self) -> dict[str, Any] | None:
        """How metrics are broken down, for those who read them: a dictionary or None."""
        return self._breakdown_map

    @breakdown_map.setter
    def breakdown_map(self, breakdown_map: dict[str, Any]) -> None:
        if not isinstance(breakdown_map, dict):
            raise UsageError(f"breakdown_map must be a dictionary, got {breakdown_map!r}")
        self._breakdown_map = breakdown_map

    # -- loss and predictions -----------------------------------------------------------------

    def has_loss(self) -> bool:
        return self._loss is not None

    @property
    def loss(self) -> Any:
        """The record of all losses, the sum of which training makes small."""
        return self._known("loss")

    @loss.setter
    def loss(self, loss: Any) -> None:
        self._set_once("loss", loss)

    def add_loss(self, loss: Any, name: str = "unnamed") -> None:
        """Adds a loss, a Scalar or a Struct of them; a name that is taken gets a number."""
        if loss is None:
            raise UsageError("Added loss should not be None")
        taken = self._loss if self._loss is not None else Struct()
        unique, number = name, 0
        while unique in taken.fields:
            unique, number = f"{name}_auto_{number}", number + 1
        self._loss = taken + Struct((unique, loss))

    @property
    def prediction(self) -> list[tuple[Any, float]]:
        """The predictions and their weights.  UsageError when there are none."""
        if not self._prediction:
            raise UsageError("model prediction is empty")
        return self._prediction

    def add_prediction(self, prediction: Any, weight: float = 1.0) -> None:
        """Adds a prediction for those who read the model."""
        if prediction is None:
            raise UsageError("Added prediction should not be None")
        self._prediction.append((prediction, weight))

    # -- layers and parameters ----------------------------------------------------------------

    @property
    def layers(self) -> list[ModelLayer]:
        return self._layers

    def next_layer_name(self, prefix: str) -> str:
        """A name for a layer: `prefix` in the current NameScope, with a number if it is taken."""
        base: str = ScopedName(prefix)
        name = base
        number = 0
        while name in self._layer_names:
            name, number = f"{base}_auto_{number}", number + 1
        self._layer_names.add(name)
        return name

    def add_layer(self, layer: ModelLayer) -> Any:
        """Adds a layer to the model, its operators for training to `net` and what fills its
        parameters to `param_init_net`, and gives its outputs."""
        self._layers.append(layer)
        for param in layer.get_parameters():
            blob = param.parameter
            if blob is None:
                raise UsageError(f"layer '{layer.name}' has a parameter without a blob")
            if blob not in self.param_to_optim:
                self.params.append(blob)
            self.param_to_optim[blob] = param.optimizer or self.default_optimizer
            self.param_to_reg[blob] = param.regularizer
        layer.add_operators(self.net, self.param_init_net)
        return layer.output_schema

    def create_param(
        self,
        param_name: str | BlobReference,
        shape: Sequence[int] | None,
        initializer: Any,
        optimizer: Any = None,
        ps_param: Any = None,
        regularizer: Regularizer | None = None,
    ) -> Any:
        """A LayerParameter for a new blob, or for the one that ParameterSharing lets it stand for.

        param_name   in the current NameScope
        shape        None for what is no tensor
        initializer  the operator that fills it and its arguments: ("ConstantFill", {"value": 1.0})
        optimizer    default: the model's; `model.NoOptim` leaves the parameter as it is

        ValueError when a shared parameter has another shape or optimizer.
        """
        if isinstance(param_name, BlobReference):
            name = str(param_name)
        elif isinstance(param_name, str):
            name = parameter_sharing_context.get_parameter_name(param_name)
        else:
            raise TypeError(f"Unsupported type for param_name: {param_name!r}")
        if not (isinstance(initializer, (tuple, list)) and len(initializer) == 2):
            raise UsageError(
                f"the initializer of '{name}' is {initializer!r}; an operator and a dictionary of "
                "its arguments are needed"
            )
        op_type, arguments = initializer[0], dict(initializer[1])
        if not IsOperator(op_type):
            raise UsageError(f"the initializer of '{name}' is no operator: {op_type!r}")
        if shape is not None:
            arguments["shape"] = list(shape)
        blob = BlobReference(name, self.net)
        op = CreateOperator(op_type, [], [blob], **arguments)
        param = LayerParameter(
            parameter=blob,
            optimizer=optimizer,
            initializer=op,
            ps_param=ps_param,
            regularizer=regularizer,
        )
        self._check_shared(param)
        self._param_to_shape[blob] = param.shape
        return param

    def _check_shared(self, param: LayerParameter) -> None:
        blob = param.parameter
        assert blob is not None
        if blob in self._param_to_shape and self._param_to_shape[blob] != param.shape:
            raise UsageError(
                f"Got inconsistent shapes between shared parameters: '{blob}' has shape "
                f"{self._param_to_shape[blob]}, and cannot have {param.shape} as well"
            )
        if blob not in self.param_to_optim:
            return
        known, wanted = self.param_to_optim[blob], param.optimizer or self.default_optimizer
        if not _same_optimizer(known, wanted):
            raise UsageError(
                f"Got inconsistent optimizers between shared parameters: '{blob}' has "
                f"{_describe(known)}, and cannot have {_describe(wanted)} as well"
            )

    def get_parameter_blobs(self) -> list[BlobReference]:
        """The parameters of all layers."""
        return [param.parameter for layer in self._layers for param in layer.get_parameters()]  # type: ignore[misc]

    def set_initialize_params(self, initialize_params: bool) -> None:
        """Notes whether whoever trains the model has to fill its parameters; the nets are the
        same."""
        self._initialize_params = initialize_params

    def NoOptim(self, *args: Any, **kwargs: Any) -> None:
        """The optimizer of parameters that are not learned."""

    def __getattr__(self, layer: str) -> Callable[..., Any]:
        if layer.startswith("_") or "_layers" not in vars(self):
            raise AttributeError(layer)
        if layer_exists(layer):

            def make(*args: Any, **kwargs: Any) -> Any:
                new = create_layer(layer, self, *args, **kwargs)
                if kwargs.get("output_to_metrics"):
                    new.export_output_for_metrics()
                if kwargs.get("params_to_metrics"):
                    new.export_params_for_metrics()
                return self.add_layer(new)

            return make
        if not IsOperator(layer):
            raise AttributeError(f"Trying to create non-registered layer: {layer}")

        def apply_operator(net: Net, in_record: Any, out_record: Any, **kwargs: Any) -> None:
            net.__getattr__(layer)(in_record.field_blobs(), out_record.field_blobs(), **kwargs)

        def functional(inputs: Any, *args: Any, **kwargs: Any) -> Any:
            named = {"name": layer, "function": apply_operator, **kwargs}
            return self.add_layer(
                create_layer("Functional", self, as_record(inputs), *args, **named)
            )

        return functional

    # -- seeds --------------------------------------------------------------------------------

    @property
    def seed(self) -> int | None:
        return self._seed

    @property
    def sequence_seed(self) -> bool:
        return self._sequence_seed

    def store_seed(self, seed: int, sequence_seed: bool = True) -> None:
        """Keeps a random seed for `apply_seed`; see `Net.set_rand_seed`."""
        self._seed = seed
        self._sequence_seed = sequence_seed

    def apply_seed(self, net: Net) -> None:
        """Gives a net the seed that is kept, if there is one."""
        if self._seed:
            net.set_rand_seed(self._seed, self._sequence_seed)

    # -- what is added to the training nets ---------------------------------------------------

    def add_post_grad_net_modifiers(self, modifier: NetModifier) -> None:
        """Lets a modifier work on the training net before the optimizers."""
        _add_modifier(self._post_grad_net_modifiers, modifier)

    def add_final_net_modifiers(self, modifier: NetModifier) -> None:
        """Lets a modifier work on the finished training net."""
        _add_modifier(self._final_net_modifiers, modifier)

    def apply_regularizers_on_loss(
        self, train_net: Net, train_init_net: Net, blob_to_device: Devices | None = None
    ) -> None:
        """Adds the terms of the regularizers to the loss."""
        for param, regularizer in self.param_to_reg.items():
            if regularizer is None:
                continue
            term = regularizer(train_net, train_init_net, param, by=RegularizationBy.ON_LOSS)
            if term is not None and str(term) not in (self._loss or Struct()).fields:
                self.add_loss(Scalar(blob=term), str(term))

    def apply_regularizers_after_optimizer(
        self,
        train_net: Net,
        train_init_net: Net,
        grad_map: Mapping[Any, Any],
        blob_to_device: Devices | None = None,
    ) -> None:
        """Adds what the regularizers do with the parameters after each step."""
        for param, regularizer in self.param_to_reg.items():
            if regularizer is None:
                continue
            grad = grad_map.get(param)
            with self._device_of(param, grad, blob_to_device):
                regularizer(
                    train_net, train_init_net, param, grad, by=RegularizationBy.AFTER_OPTIMIZER
                )

    def apply_post_grad_net_modifiers(
        self,
        trainer_net: Net,
        trainer_init_net: Net,
        grad_map: Mapping[Any, Any],
        blob_to_device: Devices | None = None,
        modify_output_record: bool = False,
    ) -> None:
        """Calls the modifiers, which see the gradients of the parameters only."""
        param_grads = {param: grad for param, grad in grad_map.items() if param in self.params}
        for modifier in self._post_grad_net_modifiers:
            modifier(
                trainer_net,
                trainer_init_net,
                param_grads,
                blob_to_device=blob_to_device,
                modify_output_record=modify_output_record,
            )

    def apply_final_net_modifiers(
        self,
        trainer_net: Net,
        trainer_init_net: Net,
        grad_map: Mapping[Any, Any],
        blob_to_device: Devices | None = None,
        modify_output_record: bool = False,
    ) -> None:
        """Calls the modifiers, which see all gradients."""
        for modifier in self._final_net_modifiers:
            modifier(
                trainer_net,
                trainer_init_net,
                grad_map,
                blob_to_device=blob_to_device,
                modify_output_record=modify_output_record,
            )

    def apply_optimizers(
        self,
        train_net: Net,
        train_init_net: Net,
        grad_map: Mapping[Any, Any],
        blob_to_device: Devices | None = None,
    ) -> None:
        """Adds the updates of the parameters that have a gradient.

        UsageError for a parameter that has no optimizer.
        """
        for param, optimizer in self.param_to_optim.items():
            if optimizer is None:
                raise UsageError(
                    f"parameter '{param}' has no optimizer: set default_optimizer before the "
                    "layers are made"
                )
            grad = grad_map.get(param)
            if grad is None or optimizer == self.NoOptim:
                continue
            with self._device_of(param, grad, blob_to_device):
                optimizer(train_net, train_init_net, param, grad)

    @staticmethod
    def _device_of(param: Any, grad: Any, blob_to_device: Devices | None) -> Any:
        cpu = DeviceOption(caffe2_pb2.CPU)
        return DeviceScope(get_param_device(str(param), grad, blob_to_device or {}, cpu))


def _add_modifier(modifiers: list[NetModifier], modifier: Any) -> None:
    if modifier in modifiers:
        raise UsageError(f"{modifier} is already in {modifiers}")
    if not isinstance(modifier, NetModifier):
        raise UsageError(f"{modifier} has to be a NetModifier instance")
    modifiers.append(modifier)


def _same_optimizer(one: Any, other: Any) -> bool:
    if one is other or one == other:
        return True
    if not (isinstance(one, Optimizer) and type(one) is type(other)):
        return False
    return _settings(one) == _settings(other)


def _settings(optimizer: Optimizer) -> dict[str, Any]:
    """What an optimizer was made with, without what it keeps while it works."""
    return {name: value for name, value in vars(optimizer).items() if not name.startswith("_")}


def _describe(optimizer: Any) -> str:
    if isinstance(optimizer, Optimizer):
        return f"{type(optimizer).__name__}({_settings(optimizer)})"
    return getattr(optimizer, "__name__", str(optimizer))
