"""Layers that put columns together, take them apart, or choose among them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from caffe2.data.records import NewRecord, RawTuple, data_type_for_dtype, dtype_for_core_type
from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.records import (
    FeatureSpec,
    Field,
    List,
    Metadata,
    Scalar,
    Struct,
    equal_schemas,
)
from caffe2.graph.scope import NameScope
from caffe2.layers.dense import row_shape
from caffe2.layers.layer import InstantiationContext, ModelLayer
from caffe2.runtime.shape_inference import InferShapesAndTypes

_log = logging.getLogger(__name__)


class Functional(ModelLayer):
    """A layer that is a function: `function(net, input_record, output_record, **kwargs)` adds the
    operators.

    output_names_or_num  how many columns it puts out (called field_0, ...), or their names; 1 or
                         a single name give a Scalar, others a Struct.  Or a record.
    output_dtypes        the types of the columns, or one for all; default: they are inferred, and
                         unknown where they depend on values
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        output_names_or_num: Any,
        function: Callable[..., Any],
        name: str = "functional",
        output_dtypes: Any = None,
        tags: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, tags=tags)
        self._function = function
        self._kwargs = kwargs
        if isinstance(output_names_or_num, Field):
            record: Any = output_names_or_num
            if not record.has_blobs():
                record = self._new_record(record)
            self.output_schema = record
            return
        if isinstance(output_names_or_num, int):
            record = self._new_record(RawTuple(output_names_or_num))
            single = output_names_or_num == 1
        else:
            single = isinstance(output_names_or_num, str)
            names = [output_names_or_num] if single else output_names_or_num
            record = self._new_record(Struct(*((column, np.void) for column in names)))
        scalars = record.all_scalars()
        if output_dtypes is None:
            self._infer_types(record)
        else:
            types = output_dtypes if isinstance(output_dtypes, list) else [output_dtypes]
            if len(types) == 1 and not isinstance(output_dtypes, list):
                types = types * len(scalars)
            if len(types) != len(scalars):
                raise UsageError(
                    f"layer '{self.name}': output_dtypes has {len(types)} types for "
                    f"{len(scalars)} outputs"
                )
            for scalar, dtype in zip(scalars, types, strict=True):
                scalar.set_type(dtype)
        self.output_schema = record[0].clone() if single else record

    def _new_record(self, schema: Any) -> Any:
        with NameScope(self.name, reset=True):
            return NewRecord(self.model.net, schema)

    def _infer_types(self, record: Any) -> None:
        """Types from a batch of no rows: what has no rows then is a batch, too."""
        net = Net("type_inference")
        inputs = {str(scalar()): scalar.field_type() for scalar in self.input_record.all_scalars()}
        shapes = {blob: (0, *dtype.shape) for blob, dtype in inputs.items()}
        try:
            types = {blob: data_type_for_dtype(dtype) for blob, dtype in inputs.items()}
        except TypeError as error:
            _log.info("layer '%s': types are not inferred: %s", self.name, error)
            return
        outputs = record[0] if len(record.fields) == 1 else record
        with NameScope(self.name):
            self._function(net, self.input_record, outputs, **self._kwargs)
        found, found_types = InferShapesAndTypes([net], shapes, blob_types=types)
        for scalar in record.all_scalars():
            blob = str(scalar())
            shape = found.get(blob)
            if shape is None or (shape and shape[0] != 0):
                _log.info("layer '%s': the type of '%s' is not known", self.name, blob)
                continue
            dtype = dtype_for_core_type(found_types[blob])
            scalar.set_type((dtype, tuple(shape[1:])) if shape[1:] else dtype)

    def add_ops(self, net: Net) -> None:
        self._function(net, self.input_record, self.output_schema, **self._kwargs)


def get_concatenated_feature_to_index(
    blobs_to_concat: Sequence[Scalar],
) -> dict[Any, list[int]] | None:
    """Where each feature is in a concatenation, from the `feature_to_index` of its parts; None
    where no part says it."""
    merged: dict[Any, list[int]] = {}
    start = 0
    for scalar in blobs_to_concat:
        specs = scalar.metadata.feature_specs if scalar.metadata is not None else None
        for feature, indices in ((specs and specs.feature_to_index) or {}).items():
            own = [indices] if isinstance(indices, int) else indices
            merged.setdefault(feature, []).extend(start + index for index in own)
        start += scalar.field_type().shape[0]
    return merged or None


class Concat(ModelLayer):
    """Puts columns side by side along an axis (0 is the batch); with add_axis=1, a new one.

    input_record   a Struct of columns of one shape, but for the size along the axis
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        axis: int = 1,
        add_axis: int = 0,
        name: str = "concat",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if not isinstance(input_record, Struct):
            raise UsageError(
                f"Incorrect input type. Expected Struct, but received: {input_record!r}"
            )
        self.axis = axis
        self.add_axis = add_axis
        scalars = []
        for field, scalar in input_record.fields.items():
            if not isinstance(scalar, Scalar):
                raise UsageError(
                    f"Incorrect input type for {field}. Expected Scalar, but got: {scalar!r}"
                )
            if not scalar.field_type().shape:
                raise UsageError("Concat expects that limited dimensions of the input tensor")
            scalars.append(scalar)
        if not scalars:
            raise UsageError("Concat needs at least one column")
        metadata = None
        features = get_concatenated_feature_to_index(scalars)
        if features is not None:
            metadata = Metadata(feature_specs=FeatureSpec(feature_to_index=features))
        shape = self._output_shape([scalar.field_type().shape for scalar in scalars])
        base = scalars[0].field_type().base
        self.output_schema = self.output_scalar((base, shape), metadata=metadata)

    def _output_shape(self, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
        first = shapes[0]
        if not 0 <= self.axis <= len(first) + bool(self.add_axis):
            raise UsageError(f"Concat: axis {self.axis} does not exist in rows of shape {first}")
        where = self.axis - 1
        for shape in shapes:
            same = list(shape) == list(first)
            if not same and not self.add_axis and len(shape) == len(first) and where >= 0:
                others = [s[:where] + s[where + 1 :] for s in (shape, first)]
                same = others[0] == others[1]
            if not same:
                raise UsageError(f"Shapes {first} and {shape} are not compatible for Concat")
        if where < 0:
            return first
        if self.add_axis:
            return (*first[:where], len(shapes), *first[where:])
        total = sum(shape[where] for shape in shapes)
        return (*first[:where], total, *first[where + 1 :])

    def add_ops(self, net: Net) -> None:
        output = self.output_schema()
        net.Concat(
            self.input_record.field_blobs(),
            [output, output + "_concat_dims"],
            axis=self.axis,
            add_axis=self.add_axis,
        )


class Split(ModelLayer):
    """Takes a column apart along an axis (from 1) into a Struct of field_0, field_1, ...

    split   the sizes of the parts; default: `num_splits` equal ones
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        num_splits: int = 1,
        axis: int = 1,
        name: str = "split",
        split: Sequence[int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        self.axis = axis
        if not isinstance(input_record, Scalar):
            raise UsageError(
                f"Incorrect input type. Expected Scalar, but received: {input_record!r}"
            )
        shape = row_shape("Split", input_record)
        if not 1 <= axis <= len(shape):
            raise UsageError(f"Split: axis {axis} does not exist in rows of shape {shape}")
        size = shape[axis - 1]
        self.split = list(split) if split is not None else None
        if self.split is not None and (sum(self.split) != size or min(self.split) < 0):
            raise UsageError(f"Split: parts of {self.split} do not make up {size}")
        if self.split is None and (num_splits < 1 or size % num_splits):
            raise UsageError(f"Split: {size} cannot be split into {num_splits} equal parts")
        sizes = self.split or [size // num_splits] * num_splits
        base = input_record.field_type().base
        columns = [
            self.output_scalar((base, (*shape[: axis - 1], part, *shape[axis:])), f"output_{index}")
            for index, part in enumerate(sizes)
        ]
        self.output_schema = Struct(*((f"field_{i}", column) for i, column in enumerate(columns)))

    def add_ops(self, net: Net) -> None:
        sizes = {"split": self.split} if self.split is not None else {}
        net.Split(
            self.input_record.field_blobs(),
            self.output_schema.field_blobs(),
            **sizes,
            axis=self.axis,
        )


class PairwiseSimilarity(ModelLayer):
    """The inner products of embeddings.

    input_record   `all_embeddings` (N, D), for all pairs of them; or `x_embeddings` (N, D) and
                   `y_embeddings` (M, D); and `indices_to_gather`, those products that are wanted
    output_dim     the number of products
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        output_dim: int,
        pairwise_similarity_func: str = "dot",
        name: str = "pairwise_similarity",
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if not isinstance(input_record, Struct):
            raise UsageError(
                f"Incorrect input type. Expected Struct, but received: {input_record!r}"
            )
        if "all_embeddings" in input_record.fields:
            x = y = input_record.all_embeddings
        elif {"x_embeddings", "y_embeddings"} <= set(input_record.fields):
            x, y = input_record.x_embeddings, input_record.y_embeddings
        else:
            raise UsageError(
                "either (all_embeddings) xor (x_embeddings and y_embeddings) should be given, "
                f"got {', '.join(input_record.fields)}"
            )
        shapes = [row_shape("PairwiseSimilarity", scalar) for scalar in (x, y)]
        if any(len(shape) != 2 for shape in shapes) or shapes[0][1] != shapes[1][1]:
            raise UsageError(
                f"PairwiseSimilarity: embeddings of shapes {shapes[0]} and {shapes[1]} have no "
                "products"
            )
        self.x_embeddings = x
        self.y_embeddings = y
        self.indices_to_gather = input_record.get("indices_to_gather")
        if pairwise_similarity_func != "dot":
            raise NotImplementedError(
                f"pairwise_similarity_func={pairwise_similarity_func} is not valid"
            )
        self.pairwise_similarity_func = pairwise_similarity_func
        self.output_schema = self.output_scalar((np.float32, (output_dim,)))

    def add_ops(self, net: Net) -> None:
        pair = [self.x_embeddings(), self.y_embeddings()]
        products = net.BatchMatMul(pair, [net.NextScopedBlob(f"{pair[0]}_matmul")], trans_b=1)
        output = self.output_schema.field_blobs()
        if self.indices_to_gather is None:
            net.Flatten([products], output)
            return
        flat = net.Flatten([products], [products + "_flatten"])
        net.BatchGather([flat, self.indices_to_gather()], output)


class GatherRecord(ModelLayer):
    """The examples of `record` that `indices` names; lists in it keep their lengths, to any
    depth."""

    def __init__(
        self, model: Any, input_record: Any, name: str = "gather_record", **kwargs: Any
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        for field in ("indices", "record"):
            if not isinstance(input_record, Struct) or field not in input_record.fields:
                raise UsageError(f"GatherRecord: the input record has no field '{field}'")
        self.output_schema = NewRecord(model.net, input_record.record.clone_schema())
        self._indices = input_record.indices()

    def _gather(self, net: Net, record: Any, output: Any, lengths: Any = None) -> None:
        """`lengths`: how many rows of this part belong to each example; one, where None."""
        if isinstance(record, Scalar):
            if lengths is None:
                net.Gather([record(), self._indices], output.field_blobs())
            else:
                net.LengthsGather([record(), lengths, self._indices], output.field_blobs())
        elif isinstance(record, List):
            self._gather(net, record.lengths, output.lengths, lengths)
            inner = record.lengths()
            if lengths is not None:
                inner = self._nested_lengths(net, inner, lengths)
            self._gather(net, record.items, output.items, inner)
        else:
            for (_, part), (_, target) in zip(
                record.fields.items(), output.fields.items(), strict=True
            ):
                self._gather(net, part, target, lengths)

    @staticmethod
    def _nested_lengths(net: Net, inner: Any, outer: Any) -> Any:
        """How many values of a list in a list belong to each example."""
        # LengthsSum sums floats.
        values = net.Cast([inner], net.NextScopedBlob(f"{inner}_float"), to=1)
        sums = net.LengthsSum([values, outer], net.NextScopedBlob(f"{inner}_nested_float"))
        return net.Cast([sums], net.NextScopedBlob(f"{inner}_nested"), to=2)

    def add_ops(self, net: Net) -> None:
        self._gather(net, self.input_record.record, self.output_schema)


class SelectRecordByContext(ModelLayer):
    """One record in the training net, another in that for prediction.

    input_record   a Struct of records of one schema, called as the contexts of
                   InstantiationContext
    check_field_metas  whether their metadata have to be the same
    use_copy       copies instead of aliases
    default_output_record_field  which of them stands for contexts that are not named
    """

    def __init__(
        self,
        model: Any,
        input_record: Any,
        name: str = "select_record_by_context",
        check_field_metas: bool = True,
        use_copy: bool = False,
        default_output_record_field: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, name, input_record, **kwargs)
        if not isinstance(input_record, Struct) or len(input_record.fields) < 2:
            raise UsageError(f"a Struct of at least two records is needed, got {input_record!r}")
        records = list(input_record.fields.values())
        for record in records[1:]:
            if not equal_schemas(record, records[0], check_field_metas=check_field_metas):
                raise UsageError(f"the records differ:\n{records[0]!r}\n{record!r}")
        self.use_copy = use_copy
        self.default_output_record = (
            input_record[default_output_record_field]
            if default_output_record_field is not None
            else None
        )
        self.output_schema = NewRecord(model.net, records[0].clone_schema())

    def _set_output(self, net: Net, context: str) -> None:
        record = self.input_record.get(context, self.default_output_record)
        if record is None:
            raise UsageError(
                f"{context} context is not in input record without providing default output"
            )
        pass_on = net.Copy if self.use_copy else net.Alias
        for source, target in zip(
            record.field_blobs(), self.output_schema.field_blobs(), strict=True
        ):
            pass_on([source], [target])

    def add_ops(self, net: Net) -> None:
        self._set_output(net, InstantiationContext.PREDICTION)

    def add_eval_ops(self, net: Net) -> None:
        self._set_output(net, InstantiationContext.EVAL)

    def add_train_ops(self, net: Net) -> None:
        self._set_output(net, InstantiationContext.TRAINING)

    def add_ops_to_accumulate_pred(self, net: Net) -> None:
        self._set_output(net, InstantiationContext.ACCUMULATE_PRED)
