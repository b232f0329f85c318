"""Embeddings: rows of a learned matrix, looked up by ids and put together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import ListWithEvicted
from caffe2.layers.features import (
    get_avg_length,
    get_categorical_limit,
    get_key,
    is_id_score_list,
)
from caffe2.layers.layer import LayerPsParam, ModelLayer
from caffe2.nn.arg_scope import get_current_scope

FP16_ENGINES = ["SIMD_Q_FP16", "SIMD_Q_STOC_FP16", "SIMD_Q_STOC_MKL_FP16"]
_PREDICTOR_VERSIONS = (
    "fp32",
    "fp16",
    "uint8rowwise",
    "fused_uint8rowwise",
    "fused_uint4rowwise",
)
_ID_LIST_REDUCERS = ("LogMeanExp", "LogSumExp", "Max", "Mean", "Sum", "Sqrt", "None")
_SCORED_REDUCERS = ("PositionWeighted", "RecencyWeighted", "WeightedSum", "Mean", "Sum", "None")


def get_sparse_lookup_predictor_version(
    version: str,
    blob_size: int | None = None,
    min_blob_size_4bits: int | None = None,
    embedding_dim: int | None = None,
    sparse_feature_name: str | None = None,
) -> str:
    """How embeddings are stored for prediction and evaluation.

    `arg_scope([get_sparse_lookup_predictor_version], version="fp16")` sets it for the nets made
    inside.  Small ones (below min_blob_size_4bits bytes) and those of an odd size are not kept in 4
    bits, but in 8.
    """
    if version not in _PREDICTOR_VERSIONS:
        raise UsageError(f"Unexpected version of sparse_lookup layer {version}")
    if version != "fused_uint4rowwise":
        return version
    if blob_size is None or min_blob_size_4bits is None or embedding_dim is None:
        raise UsageError(
            f"When 4 bit quantization is enabled for {sparse_feature_name}, (i.e., Sparse lookup "
            f"predictor version:{version}), requires arguments blob_size:{blob_size}, "
            f"min_blob_size_4bits:{min_blob_size_4bits}, embedding_dim:{embedding_dim}"
        )
    small = blob_size < min_blob_size_4bits or embedding_dim % 2 == 1
    return "fused_uint8rowwise" if small else version


def get_sparse_lookup_trainer_version(version: str) -> str:
    """Checks how embeddings are stored for training: "fp32" or "fp16"."""
    if version not in ("fp32", "fp16"):
        raise UsageError(f"Unexpected version of sparse_lookup layer {version}")
    return version


def get_trainer_version_based_on_optim(optim_def: Any) -> str:
    """ "fp16" for optimizers with an engine for float16, else "fp32"."""
    return "fp16" if getattr(optim_def, "engine", None) in FP16_ENGINES else "fp32"


class RowwiseQuantized8BitsWeight(NamedTuple):
    """Embeddings to be kept in 8 bits: the rows, and the scale and bias of each."""

    w: BlobReference
    scale_bias: BlobReference


class QuantizedEmbeddingTable(NamedTuple):
    """Embeddings to be kept in 8 bits, each row with its scale and bias in it."""

    w: BlobReference


class SparseLookup(ModelLayer):
    """Embeddings: for each example, the rows of W that its ids name, put together.

    input_record   an IdList or IdScoreList, with `categorical_limit`, the number of rows of W, in
                   the metadata of the ids.  Rows of ids in the column of evicted values are filled
                   anew while training.
    inner_shape    the shape of a row
    reducer        Sum, Mean, Sqrt (sum / sqrt(number of ids)), Max, LogSumExp, LogMeanExp; None:
                   the rows one by one.  For IdScoreList: Sum, Mean, None; WeightedSum, rows times
                   scores; PositionWeighted and RecencyWeighted, the same with a gradient for the
                   scores
    weight_init    default: uniform within sqrt(uniform_weight_init_scale_numerator / rows)
    use_external_weights   Sum of an IdScoreList is weighed by its scores, which have a gradient
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        inner_shape: int | Sequence[int],
        reducer: str,
        weight_init: tuple[str, dict[str, Any]] | None = None,
        weight_optim: Any = None,
        name: str = "sparse_lookup",
        regularizer: Any = None,
        use_external_weights: bool = False,
        uniform_weight_init_scale_numerator: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        self.sparse_key = get_key(input_record)()
        self.input_dim = get_categorical_limit(input_record)
        if self.input_dim <= 0:
            raise UsageError(f"'{self.sparse_key}' has categorical_limit {self.input_dim}, not > 0")
        scored = is_id_score_list(input_record)
        self.reducer = self._checked_reducer(reducer, scored, use_external_weights)
        self.use_external_weights = use_external_weights
        if use_external_weights or reducer in ("PositionWeighted", "RecencyWeighted"):
            self.external_weights = input_record["values:values"]()
        inner = [inner_shape] if isinstance(inner_shape, int) else list(inner_shape)
        self.shape = [self.input_dim, *inner]
        self.uniform_weight_init_scale_numerator = uniform_weight_init_scale_numerator
        self.trainer_version = get_trainer_version_based_on_optim(weight_optim)
        self.weight_init = weight_init or self._default_init()
        lengths = input_record["lengths"]
        average = get_avg_length(input_record) if lengths.metadata is not None else None
        self.w = self.create_param(
            param_name="w",
            shape=self.shape,
            initializer=self.weight_init,
            optimizer=weight_optim,
            ps_param=LayerPsParam(sparse_key=self.sparse_key, average_length=average),
            regularizer=regularizer,
        )
        self.evicted_values = None
        if isinstance(input_record, ListWithEvicted):
            self.evicted_values = input_record["_evicted_values"]
            self.reinit_vec = self.create_param(
                param_name="reinit_vec",
                shape=inner,
                initializer=self.weight_init,
                optimizer=model.NoOptim,
            )
        self.scale_bias_init = ("ConstantFill", {"value": 0.0})
        self.scale_bias = self.create_param(
            param_name="scale_bias",
            shape=[],
            initializer=self.scale_bias_init,
            optimizer=model.NoOptim,
        )
        self.output_schema = self.output_scalar((np.float32, tuple(inner)))

    def _checked_reducer(self, reducer: str, scored: bool, use_external_weights: bool) -> str:
        key = self.sparse_key
        if use_external_weights:
            if not scored:
                raise UsageError(
                    "Use_external_weights only supports IdScoreList, while the sparse feature "
                    f"{key} is not."
                )
            if reducer != "Sum":
                raise UsageError(
                    "Use_external_weights only supports Sum reducer, while the reducer is "
                    f"{reducer}."
                )
        if scored:
            if reducer not in _SCORED_REDUCERS:
                raise UsageError(f"Unsupported reducer: {reducer} for ID_SCORE_LIST {key}")
            return reducer
        if reducer in ("PositionWeighted", "RecencyWeighted"):
            raise UsageError(
                f"{reducer} only supports IdScoreList, while the sparse feature {key} is not."
            )
        # Without scores, weighed and plain are the same.
        plain = {"WeightedSum": "Sum", "WeightedMean": "Mean"}.get(reducer, reducer)
        if plain not in _ID_LIST_REDUCERS:
            raise UsageError(f"Unsupported reducer: {reducer} for ID_LIST {key}")
        return plain

    def _default_init(self) -> tuple[str, dict[str, Any]]:
        scale = math.sqrt(self.uniform_weight_init_scale_numerator / self.input_dim)
        half = self.trainer_version == "fp16"
        return ("Float16UniformFill" if half else "UniformFill", {"min": -scale, "max": scale})

    def get_memory_usage(self) -> int:
        return math.prod(self.shape) * 4

    def get_fp16_compatible_parameters(self) -> list[Any]:
        return [self.w]

    def support_8bit(self) -> bool:
        """Whether the embeddings can be kept in 8 bits: where a row has one axis."""
        return len(self.shape) == 2

    def get_8bits_compatible_parameters(self, fused: bool = True) -> list[Any]:
        """The parameters that can be kept in 8 bits."""
        if not self.support_8bit():
            return []
        if fused:
            return [QuantizedEmbeddingTable(self.w)]
        return [RowwiseQuantized8BitsWeight(self.w, self.scale_bias)]

    def _predictor_version(self) -> str:
        name = get_sparse_lookup_predictor_version.__name__
        scope = {"version": "fp32", **get_current_scope().get(name, {})}
        version = get_sparse_lookup_predictor_version(
            **scope,
            blob_size=self.get_memory_usage(),
            embedding_dim=self.shape[1],
            sparse_feature_name=str(self.sparse_key),
        )
        return "fp32" if "uint" in version and not self.support_8bit() else version

    def _lookup(self, net: Net, version: str, output: Any) -> None:
        """The rows, one by one."""
        if version == "fp32":
            net.Gather([self.w, self.sparse_key], [output])
            return
        rows = net.Gather([self.w, self.sparse_key], [net.NextScopedBlob("gathered_w")])
        if version == "fp16":
            net.HalfToFloat([rows], [output])
        elif version == "uint8rowwise":
            scales = net.Gather(
                [self.scale_bias, self.sparse_key], [net.NextScopedBlob("gathered_scale_bias")]
            )
            net.Rowwise8BitQuantizedToFloat([rows, scales], [output])
        elif version == "fused_uint8rowwise":
            net.Fused8BitRowwiseQuantizedToFloat([rows], [output])
        else:
            net.Fused4BitRowwiseQuantizedToFloat([rows], [output])

    def _reduce(
        self, net: Net, version: str, kind: str, weights: Any = None, grad_on_weights: int = 0
    ) -> None:
        """The operators SparseLengths<kind>."""
        inputs = [self.w, self.sparse_key, self.input_record.lengths()]
        options: dict[str, Any] = {}
        if weights is not None:
            inputs.insert(1, weights)
            options["grad_on_weights"] = grad_on_weights
            if version == "fp16":
                options["engine"] = "FP16"
        if version == "uint8rowwise":
            inputs.append(self.scale_bias)
        suffix = {
            "uint8rowwise": "8BitsRowwise",
            "fused_uint8rowwise": "Fused8BitRowwise",
            "fused_uint4rowwise": "Fused4BitRowwise",
        }.get(version, "")
        make = getattr(net, f"SparseLengths{kind}{suffix}")
        make(inputs, self.output_schema.field_blobs(), **({} if suffix else options))

    def _add_ops(self, net: Net, version: str) -> None:
        output = self.output_schema()
        if self.use_external_weights or self.reducer in ("PositionWeighted", "RecencyWeighted"):
            self._reduce(net, version, "WeightedSum", self.external_weights, grad_on_weights=1)
        elif self.reducer == "WeightedSum":
            self._reduce(net, version, "WeightedSum", self.input_record["values:values"]())
        elif self.reducer == "Sqrt":
            lengths = self.input_record.lengths()
            name = net.NextScopedBlob("lengths_sqrt")
            weights = net.LengthsToWeights([lengths], [name], power=0.5)
            self._reduce(net, version, "WeightedSum", weights)
        elif self.reducer in ("Sum", "Mean"):
            self._reduce(net, version, self.reducer)
        elif self.reducer == "None":
            self._lookup(net, version, output)
        else:
            rows = net.NextScopedBlob("table_rows")
            self._lookup(net, version, rows)
            lengths = self.input_record.lengths()
            segments = net.LengthsToSegmentIds([lengths], net.NextScopedBlob("lengths_sid"))
            getattr(net, f"SortedSegmentRange{self.reducer}")([rows, segments], [output])

    def add_train_ops(self, net: Net) -> None:
        if self.evicted_values is not None:
            net.CopyRowsToTensor([self.w, self.evicted_values(), self.reinit_vec], [self.w])
        self._add_ops(net, "fp32")

    def add_ops(self, net: Net) -> None:
        self._add_ops(net, self._predictor_version())
