"""Layers that sample examples or outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import Scalar, Struct
from caffe2.layers.dense import SamplingTrainableMixin
from caffe2.layers.layer import ModelLayer, get_layer_class
from caffe2.layers.losses import check_fields
from caffe2.proto import caffe2_pb2

_FLOAT = int(caffe2_pb2.TensorProto.FLOAT)
_INT32 = int(caffe2_pb2.TensorProto.INT32)
_INT64 = int(caffe2_pb2.TensorProto.INT64)


class SamplingTrain(ModelLayer):
    """A layer with many outputs, of which a sample is computed and trained in each run; outside of
    training, all are (Jean et al., "On Using Very Large Target Vocabulary for Neural Machine
    Translation", 2015).

    input_record       `input`, that of the layer; `indices`, the outputs that are wanted, and
                       `sampling_prob`, the probability that each of them was drawn
    prediction_layer   the layer: "FC" or "FCWithoutBias"
    subtract_log_odd   the logarithm of the probability is taken off each output

    Other arguments go to the layer.
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        prediction_layer: str,
        output_dims: int,
        subtract_log_odd: bool = True,
        name: str = "sampling_train",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        check_fields("SamplingTrain", input_record, "input", "indices")
        layer_class: Any = get_layer_class(prediction_layer)
        if not issubclass(layer_class, SamplingTrainableMixin):
            raise UsageError(f"{prediction_layer} cannot be trained on a sample of its outputs")
        if kwargs.get("max_fc_size") not in (None, -1):
            raise UsageError("SamplingTrain: outputs of a layer in several parts have no rows")
        if kwargs.get("transposed"):
            raise UsageError("SamplingTrain: outputs of transposed weights have no rows")
        self.subtract_log_odd = subtract_log_odd
        if subtract_log_odd:
            check_fields("SamplingTrain", input_record, "sampling_prob")
        self._prediction_layer = layer_class(
            model, input_record.input, output_dims=output_dims, **kwargs
        )
        self._prediction_layer.train_param_blobs = [
            param + "_sampled" for param in self._prediction_layer.param_blobs
        ]
        self.params = self._prediction_layer.params
        self.output_schema = self._prediction_layer.output_schema

    def add_ops(self, net: Net) -> None:
        self._prediction_layer.add_ops(net)

    def add_train_ops(self, net: Net) -> None:
        layer = self._prediction_layer
        indices = self.input_record.indices()
        for param, sampled in zip(layer.param_blobs, layer.train_param_blobs, strict=True):
            net.Gather([param, indices], [sampled])
        layer.add_train_ops(net)
        if self.subtract_log_odd:
            log_q = net.Log([self.input_record.sampling_prob()], net.NextScopedBlob("log_q"))
            output = layer.output_schema()
            net.Sub([output, log_q], [output], broadcast=1, use_grad_hack=1)


class UniformSampling(ModelLayer):
    """Draws integers below `num_elements`, each once, to those of the input, so that they are
    `num_samples` in all.

    input_record   a Scalar of integers (int32), fewer than num_samples

    The outputs are `samples` (int32), the input first, and `sampling_prob`, the same for each.
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        num_samples: int,
        num_elements: int,
        name: str = "uniform_sampling",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if not 0 < num_samples < num_elements:
            raise UsageError(
                f"num_samples is {num_samples}; it must be above 0 and below num_elements, "
                f"{num_elements}"
            )
        if not isinstance(input_record, Scalar):
            raise UsageError(f"Incorrect input type, a Scalar is needed, got {input_record!r}")
        self.num_elements = num_elements
        self.num_samples = self.create_param(
            param_name="num_examples",
            shape=[1],
            initializer=("GivenTensorInt64Fill", {"values": [num_samples]}),
            optimizer=model.NoOptim,
        )
        probability = {"value": num_samples / num_elements, "dtype": _FLOAT}
        self.sampling_prob = self.create_param(
            param_name="prob",
            shape=[num_samples],
            initializer=("ConstantFill", probability),
            optimizer=model.NoOptim,
        )
        self.output_schema = Struct(
            ("samples", self.output_scalar(np.int32, "samples")),
            ("sampling_prob", Scalar(np.float32, self.sampling_prob)),
        )

    def add_ops(self, net: Net) -> None:
        net.StopGradient([self.sampling_prob], [self.sampling_prob])
        given, samples = self.input_record(), self.output_schema.samples()
        shape = net.Shape([given], net.NextScopedBlob("shape"))
        shape = net.Sub([self.num_samples, shape], shape)
        drawn = net.UniqueUniformFill(
            [shape, given],
            net.NextScopedBlob("samples_before_concat"),
            min=0,
            max=self.num_elements - 1,
            input_as_shape=True,
        )
        net.Concat([given, drawn], [samples, net.NextScopedBlob("split_info")], axis=0)
        net.StopGradient([samples], [samples])


class _Collector(ModelLayer):
    """Collects rows over all runs, in parameters that are not learned."""

    def __init__(
        self, model: Any, name: str, input_record: Any, num_to_collect: int, **kwargs: Any
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if num_to_collect <= 0:
            raise UsageError(f"num_to_collect is {num_to_collect}; it must be positive")
        self.num_to_collect = num_to_collect

    def _state(self, name: str, shape: list[int] | None, op_type: str, **arguments: Any) -> Any:
        return self.create_param(
            param_name=name,
            shape=shape,
            initializer=(op_type, arguments),
            optimizer=self.model.NoOptim,
        )

    def _output(self, what: str, rows: Any, blob: Any) -> Struct:
        schema = rows.clone_schema()
        schema.set_value(blob)
        return Struct(
            (what, schema),
            ("num_visited", Scalar(blob=self.num_visited_blob)),
            ("mutex", Scalar(blob=self.mutex)),
        )

    num_visited_blob: Any
    mutex: Any


class LastNWindowCollector(_Collector):
    """The last `num_to_collect` rows of all runs, the older ones anywhere among them.

    input_record   a Scalar

    The outputs are `last_n`, `num_visited`, the number of all rows so far (int64), and the `mutex`
    of whoever reads them.
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        num_to_collect: int,
        name: str = "last_n_window_collector",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, num_to_collect, **kwargs)
        if not isinstance(input_record, Scalar):
            raise UsageError(f"a Scalar is needed, got {input_record!r}")
        self.last_n = self._state("last_n", [0], "ConstantFill")
        self.next_blob = self._state("next", [], "ConstantFill", value=0, dtype=_INT32)
        self.mutex = self._state("mutex", None, "CreateMutex")
        self.num_visited_blob = self._state(
            "num_visited", [], "ConstantFill", value=0, dtype=_INT64
        )
        self.output_schema = self._output("last_n", input_record, self.last_n)

    def add_ops(self, net: Net) -> None:
        state = [self.last_n, self.next_blob]
        net.LastNWindowCollector(
            [*state, self.input_record(), self.mutex, self.num_visited_blob],
            [*state, self.num_visited_blob],
            num_to_collect=self.num_to_collect,
        )


class ReservoirSampling(_Collector):
    """A sample of `num_to_collect` rows of all runs, each as likely as the others (Vitter, "Random
    Sampling with a Reservoir", 1985).

    input_record   `data`, a Scalar; `object_id` (int64), of which each is sampled once

    The outputs are `reservoir`, `num_visited`, the number of all rows so far (int64), and the
    `mutex` of whoever reads them.
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        num_to_collect: int,
        name: str = "reservoir_sampling",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, num_to_collect, **kwargs)
        check_fields("ReservoirSampling", input_record, "data")
        self.reservoir = self._state("reservoir", [0], "ConstantFill")
        self.num_visited_blob = self._state(
            "num_visited", [], "ConstantFill", value=0, dtype=_INT64
        )
        self.mutex = self._state("mutex", None, "CreateMutex")
        self.extra_input_blobs: list[Any] = []
        self.extra_output_blobs: list[Any] = []
        if "object_id" in input_record.fields:
            object_to_pos = self._state(
                "object_to_pos", None, "CreateMap", key_dtype=_INT64, valued_dtype=_INT32
            )
            pos_to_object = self._state("pos_to_object", [0], "ConstantFill", value=0, dtype=_INT64)
            self.extra_output_blobs = [object_to_pos, pos_to_object]
            self.extra_input_blobs = [input_record.object_id(), *self.extra_output_blobs]
        self.output_schema = self._output("reservoir", input_record.data, self.reservoir)

    def add_ops(self, net: Net) -> None:
        state = [self.reservoir, self.num_visited_blob]
        net.ReservoirSampling(
            [*state, self.input_record.data(), self.mutex, *self.extra_input_blobs],
            [*state, *self.extra_output_blobs],
            num_to_collect=self.num_to_collect,
        )
