"""Layers for sparse features: lists of ids, and maps of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe2.data.records import NewRecord, attach_metadata_to_scalars
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import FeatureSpec, Field, List, Metadata, Scalar, Struct
from caffe2.layers.features import (
    IdList,
    IdScoreList,
    get_categorical_limit,
    is_id_list,
    is_id_score_list,
)
from caffe2.layers.layer import AccessedFeatures, ModelLayer
from caffe2.layers.losses import check_fields
from caffe2.layers.tags import Tags
from caffe2.proto import caffe2_pb2

_INT32 = int(caffe2_pb2.TensorProto.INT32)
_INT64 = int(caffe2_pb2.TensorProto.INT64)


class PositionWeighted(ModelLayer):
    """A learned weight for each position in a list, 1 at first: `position_weights` (float), one for
    each id.  With the ids, an IdScoreList for SparseLookup with the reducer PositionWeighted.

    There are as many weights as `categorical_limit` in the metadata of the lengths says, or that of
    the ids.
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        weight_optim: Any = None,
        name: str = "position_weights",
    ) -> None:
        super().__init__(model, name, input_record)
        if not isinstance(input_record, List):
            raise UsageError(f"Incorrect input type, a List is needed, got {input_record!r}")
        lengths = input_record.lengths.metadata
        limit = lengths.categorical_limit if lengths is not None else None
        self.shape = limit if limit is not None else get_categorical_limit(input_record)
        self.pos_w = self.create_param(
            param_name="pos_w",
            shape=[self.shape],
            initializer=("ConstantFill", {"value": 1.0}),
            optimizer=weight_optim,
        )
        column = self.output_scalar((np.float32, (self.shape,)), "pos_w_gather")
        self.output_schema = Struct(("position_weights", column))
        self.tags.add(Tags.HANDLE_AS_SPARSE_LAYER)

    def get_memory_usage(self) -> int:
        return self.shape

    def add_ops(self, net: Net) -> None:
        lengths = self.input_record.lengths()
        positions = net.LengthsRangeFill([lengths], [lengths + "_pos_w_seq"])
        net.Gather([self.pos_w, positions], self.output_schema.field_blobs())


class BucketWeighted(ModelLayer):
    """A learned weight for the bucket of each score, 1 at first: `bucket_weights` (float).

    input_record       an IdScoreList
    max_score          scores are buckets 0, ..., max_score - 1; default: `categorical_limit` of ids
    bucket_boundaries  bucket i holds scores above boundary i - 1 and up to boundary i
    hash_buckets       buckets are hashed
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        max_score: int = 0,
        bucket_boundaries: Sequence[float] | None = None,
        hash_buckets: bool = True,
        weight_optim: Any = None,
        name: str = "bucket_weighted",
    ) -> None:
        super().__init__(model, name, input_record)
        if not is_id_score_list(input_record):
            raise UsageError(f"Incorrect input type, IdScoreList is needed, got {input_record!r}")
        self.bucket_boundaries = bucket_boundaries
        self.hash_buckets = hash_buckets
        if bucket_boundaries is not None:
            self.shape = len(bucket_boundaries) + 1
        else:
            self.shape = max_score if max_score > 0 else get_categorical_limit(input_record)
        self.bucket_w = self.create_param(
            param_name="bucket_w",
            shape=[self.shape],
            initializer=("ConstantFill", {"value": 1.0}),
            optimizer=weight_optim,
        )
        column = self.output_scalar((np.float32, (self.shape,)), "bucket_w_gather")
        self.output_schema = Struct(("bucket_weights", column))
        self.tags.add(Tags.HANDLE_AS_SPARSE_LAYER)

    def get_memory_usage(self) -> int:
        return self.shape

    def add_ops(self, net: Net) -> None:
        scores = self.input_record["values:values"]()
        buckets = net.NextScopedBlob("buckets_int")
        if self.bucket_boundaries is not None:
            net.Bucketize([scores], [buckets], boundaries=self.bucket_boundaries)
        else:
            net.Cast([scores], [buckets], to=_INT32)
        if self.hash_buckets:
            name = net.NextScopedBlob("hashed_buckets_int")
            buckets = net.IndexHash([buckets], [name], seed=0, modulo=self.shape)
        net.Gather([self.bucket_w, buckets], self.output_schema.field_blobs())


class SparseFeatureHash(ModelLayer):
    """Ids brought below `modulo`.

    input_record   an IdList or IdScoreList
    modulo         default: `desired_hash_size` of the ids' feature_specs, or categorical_limit
    use_hashing    hashes with `seed`; False: the rest of the division by modulo
    use_divide_mod, divisor   without hashing: ids are first divided by divisor
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        seed: int = 0,
        modulo: int | None = None,
        use_hashing: bool = True,
        use_divide_mod: bool = False,
        divisor: int | None = None,
        name: str = "sparse_feature_hash",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        is_list = isinstance(input_record, List)
        if not (is_list and input_record.field_names() in _PLAIN_NAMES) or not (
            is_id_list(input_record) or is_id_score_list(input_record)
        ):
            raise UsageError(
                f"Input type must be one of (IdList, IdScoreList), got {input_record!r}"
            )
        if use_hashing and use_divide_mod:
            raise UsageError("use_hashing and use_divide_mod exclude each other")
        self.seed = seed
        self.use_hashing = use_hashing
        self.use_divide_mod = use_divide_mod
        key = input_record["values"] if is_id_list(input_record) else input_record["values:keys"]
        self.modulo = modulo or self.extract_hash_size(key.metadata)
        if self.modulo < 1:
            raise UsageError(f"modulo is {self.modulo}; it must be at least 1")
        if use_divide_mod:
            if divisor is None or divisor < 1:
                raise UsageError(f"divisor is {divisor}; use_divide_mod needs one of at least 1")
            self.divisor = self.create_param(
                param_name="divisor",
                shape=[1],
                initializer=("GivenTensorInt64Fill", {"values": [divisor]}),
                optimizer=model.NoOptim,
            )
        specs = key.metadata.feature_specs if key.metadata is not None else None
        expected = key.metadata.expected_value if key.metadata is not None else None
        with_limit = Metadata(self.modulo, expected, specs)
        ids = Scalar(np.int64, metadata=with_limit)
        schema: List = IdList.clone_schema()
        if is_id_list(input_record):
            schema = List(ids)
        else:
            scores = input_record["values:values"].clone_schema()
            schema = List(Struct(("keys", ids), ("values", scores)))
        scalars = schema.named_scalars()
        for field, scalar in scalars:
            scalar.set_value(self.get_next_blob_reference(field))
        self.output_schema = schema
        self.tags.add(Tags.CPU_ONLY)

    def extract_hash_size(self, metadata: Metadata | None) -> int:
        """The size of the hash table that the metadata of the ids ask for."""
        if metadata is not None:
            specs = metadata.feature_specs
            if specs is not None and specs.desired_hash_size:
                return int(specs.desired_hash_size)
            if metadata.categorical_limit is not None:
                return metadata.categorical_limit
        raise UsageError(
            "desired_hash_size or categorical_limit must be set in the metadata, or modulo given"
        )

    def add_ops(self, net: Net) -> None:
        source, output = self.input_record, self.output_schema
        net.Copy([source.lengths()], [output.lengths()])
        if is_id_list(source):
            ids, hashed = source["values"](), output["values"]()
        else:
            net.Copy([source["values:values"]()], [output["values:values"]()])
            ids, hashed = source["values:keys"](), output["values:keys"]()
        if self.use_hashing:
            net.IndexHash([ids], [hashed], seed=self.seed, modulo=self.modulo)
            return
        if self.use_divide_mod:
            ids = net.Div([ids, self.divisor], [net.NextScopedBlob("quotient")])
        net.Mod([ids], [hashed], divisor=self.modulo, sign_follow_divisor=True)


_PLAIN_NAMES = (IdList.field_names(), IdScoreList.field_names())


class MergeIdLists(ModelLayer):
    """The ids of several lists as one, each id once; see the operator of that name.

    input_record   a Struct of IdLists
    """

    def __init__(self, model: Any, input_record: Any, name: str = "merged") -> None:
        super().__init__(model, name, input_record)
        fields = input_record.fields if isinstance(input_record, Struct) else {}
        lists: list[Any] = list(fields.values())
        if not lists or not all(is_id_list(record) for record in lists):
            raise UsageError("Inputs to MergeIdLists should all be IdLists.")
        if any(record["values"].metadata is None for record in lists):
            raise UsageError("Features without metadata are not supported")
        limit = max(get_categorical_limit(record) for record in lists)
        ids = Scalar(np.int64, metadata=Metadata(categorical_limit=limit))
        self.output_schema = NewRecord(model.net, List(ids))

    def add_ops(self, net: Net) -> None:
        inputs = self.input_record.field_blobs()
        net.MergeIdLists(inputs, self.output_schema.field_blobs())


class MapToRange(ModelLayer):
    """Numbers ids 1, 2, ... in the order in which they are first seen while training; outside of
    it, those that are not known are 0.

    max_index   the largest number

    The outputs are `indices` (int64) and the `handler`, the table.
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        max_index: int,
        name: str = "map_to_range",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if not isinstance(input_record, Scalar):
            raise UsageError(f"Incorrect input type, a Scalar is needed, got {input_record!r}")
        if max_index <= 0:
            raise UsageError(f"max_index is {max_index}; it must be positive")
        self.max_index = max_index
        self.handler = self.create_param(
            param_name="handler",
            shape=None,
            initializer=("LongIndexCreate", {"max_elements": max_index}),
            optimizer=model.NoOptim,
        )
        self.output_schema = Struct(
            ("indices", self.output_scalar(np.int64, "indices")),
            ("handler", Scalar(blob=self.handler)),
        )

    def _add_get(self, net: Net) -> None:
        ids = self.input_record()
        if self.input_record.field_type().base != np.int64:
            ids = net.Cast([ids], net.NextScopedBlob("indices_before_mapping"), to=_INT64)
        indices = self.output_schema.indices()
        net.IndexGet([self.handler, ids], [indices])
        net.StopGradient([indices], [indices])

    def add_train_ops(self, net: Net) -> None:
        self._add_get(net)

    def add_eval_ops(self, net: Net) -> None:
        net.IndexFreeze([self.handler], [self.handler])
        self._add_get(net)

    def add_ops(self, net: Net) -> None:
        self.add_eval_ops(net)


class _SparseDropout(ModelLayer):
    """Replaces ids at random; the operator is called as the class."""

    default_name: str

    def __init__(
        self,
        model: Any,
        input_record: Any,
        dropout_prob_train: float,
        dropout_prob_eval: float,
        dropout_prob_predict: float,
        replacement_value: int,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name or self.default_name, input_record, **kwargs)
        if not is_id_list(input_record):
            raise UsageError(f"Incorrect input type, an IdList is needed, got {input_record!r}")
        self.dropout_prob_train = _probability("train", dropout_prob_train)
        self.dropout_prob_eval = _probability("eval", dropout_prob_eval)
        self.dropout_prob_predict = _probability("predict", dropout_prob_predict)
        self.replacement_value = int(replacement_value)
        ids = input_record["values"].clone_schema()
        self.output_schema = NewRecord(model.net, List(ids))

    def _add_dropout(self, net: Net, ratio: float) -> None:
        source, output = self.input_record, self.output_schema
        getattr(net, self.get_type())(
            [source["values"](), source["lengths"]()],
            [output["values"](), output["lengths"]()],
            ratio=ratio,
            replacement_value=self.replacement_value,
        )

    def add_train_ops(self, net: Net) -> None:
        self._add_dropout(net, self.dropout_prob_train)

    def add_eval_ops(self, net: Net) -> None:
        self._add_dropout(net, self.dropout_prob_eval)

    def add_ops(self, net: Net) -> None:
        self._add_dropout(net, self.dropout_prob_predict)


def _probability(when: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise UsageError(f"Expected 0 <= dropout_prob_{when} <= 1, but got {value}")
    return float(value)


class SparseDropoutWithReplacement(_SparseDropout):
    """Replaces all ids of an example by one, `replacement_value`, with a probability of its own for
    each kind of net."""

    default_name = "sparse_dropout"


class SparseItemwiseDropoutWithReplacement(_SparseDropout):
    """Replaces each id by `replacement_value`, with a probability of its own for each kind of
    net."""

    default_name = "sparse_itemwise_dropout"


class FeatureSparseToDense(ModelLayer):
    """Columns for the features of maps from feature ids to values.

    input_record         a Struct of Maps: feature id to a number, to an IdList, to an IdScoreList
                         or to a list of floats
    input_specs          a list of (field, FeatureSpec with feature_type, feature_ids and
                         feature_names); the type is FLOAT, ID_LIST, ID_SCORE_LIST or EMBEDDING
    default_dense_value  of numbers that are missing: 0 or NaN

    A field of numbers becomes a column (batch, features); one of lists becomes `ranges` (batch,
    features, 2), the offset and length of each list in the other columns: `values`, or `ids` and
    `scores`.
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        input_specs: Sequence[tuple[str, FeatureSpec]],
        name: str = "feature_sparse_to_dense",
        default_dense_value: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        self.input_specs = input_specs
        value = 0.0 if default_dense_value is None else float(default_dense_value)
        if value != 0.0 and not math.isnan(value):
            raise UsageError(f"default_dense_value can only be 0.0 or NaN, got {value}")
        constants = model.global_constants
        self.default_float_value = constants["NAN" if math.isnan(value) else "ZERO"]
        self.zero_range = constants["ZERO_RANGE"]
        columns: list[tuple[str, Field]] = []
        for field, spec in input_specs:
            check_fields("FeatureSparseToDense", input_record, field)
            if len(spec.feature_names) != len(spec.feature_ids):
                raise UsageError(
                    f"FeatureSparseToDense: field '{field}' has {len(spec.feature_ids)} feature "
                    f"ids and {len(spec.feature_names)} names"
                )
            columns.append((field, self._column(field, spec)))
        self.output_schema = Struct(*columns)

    def _column(self, field: str, spec: FeatureSpec) -> Field:
        count = len(spec.feature_ids)
        if spec.feature_type == "FLOAT":
            column: Field = self.output_scalar((np.float32, (count,)), f"{field}_output")
        elif spec.feature_type in _RANGED:
            parts = [("ranges", self.output_scalar((np.int32, (count, 2)), f"{field}_ranges"))]
            for part, dtype, _ in _RANGED[spec.feature_type]:
                parts.append((part, self.output_scalar(dtype, f"{field}_{part}")))
            column = Struct(*parts)
        else:
            raise TypeError(f"Unsupported input type: {spec.feature_type}")
        attach_metadata_to_scalars(column, Metadata(feature_specs=spec))
        return column

    def add_ops(self, net: Net) -> None:
        for field, spec in self.input_specs:
            source, output = self.input_record[field], self.output_schema[field]
            keys, lengths = source["values:keys"](), source["lengths"]()
            if spec.feature_type == "FLOAT":
                values = source["values:values"]()
                net.SparseToDenseMask(
                    [keys, values, self.default_float_value, lengths],
                    output.field_blobs(),
                    mask=spec.feature_ids,
                )
                continue
            inner = {"EMBEDDING": "embeddings"}.get(spec.feature_type, spec.feature_type.lower())
            ranges = net.LengthsToRanges(
                [source["values:values:lengths"]()], [net.NextScopedBlob(f"{inner}_ranges")]
            )
            net.SparseToDenseMask(
                [keys, ranges, self.zero_range, lengths], [output.ranges()], mask=spec.feature_ids
            )
            for part, _, path in _RANGED[spec.feature_type]:
                net.Alias([source[f"values:values:{path}"]()], [output[part]()])

    def get_metadata(self) -> list[tuple[dict[str, Any], list[Any], list[Any]]]:
        """For each field: type, names and ids of its features, its blobs, and their types."""
        described = []
        for field, spec in self.input_specs:
            features: dict[str, Any] = {
                "type": spec.feature_type,
                "names": spec.feature_names,
                "ids": spec.feature_ids,
            }
            if spec.feature_type == "FLOAT":
                features["cardinality"] = 1
            column = self.output_schema[field]
            described.append((features, column.field_blobs(), column.field_types()))
        return described

    def get_accessed_features(self) -> dict[str, list[AccessedFeatures]]:
        found: dict[str, list[AccessedFeatures]] = defaultdict(list)
        for field, spec in self.input_specs:
            found[field].append(AccessedFeatures(spec.feature_type, set(spec.feature_ids)))
        return found


# Of each type of lists: the columns, their types, and where in the list they are.
_RANGED: dict[str, list[tuple[str, Any, str]]] = {
    "ID_LIST": [("values", np.int64, "values")],
    "ID_SCORE_LIST": [("ids", np.int64, "values:keys"), ("scores", np.float32, "values:values")],
    "EMBEDDING": [("values", np.float32, "values")],
}
