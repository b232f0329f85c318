"""Records of sparse features, and what layers ask of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.data.records import Map, MapWithEvicted
from caffe2.graph.errors import UsageError
from caffe2.graph.records import (
    FeatureSpec,
    Field,
    List,
    ListWithEvicted,
    Metadata,
    Scalar,
    equal_schemas,
)

IdList = List(np.int64)
IdListWithEvicted = ListWithEvicted(np.int64)
IdScoreList = Map(np.int64, np.float32)
IdScoreListWithEvicted = MapWithEvicted(np.int64, np.float32)


def almost_equal_schemas(
    record: Field,
    original_schema: Field,
    check_field_names: bool = True,
    check_field_types: bool = True,
    check_field_metas: bool = False,
) -> bool:
    """Whether a record has the schema, which it also has where it keeps evicted values besides."""
    if original_schema is IdList:
        accepted: tuple[Field, ...] = (IdList, IdListWithEvicted)
    elif original_schema is IdScoreList:
        accepted = (IdScoreList, IdScoreListWithEvicted)
    else:
        accepted = (original_schema,)
    checks = (check_field_names, check_field_types, check_field_metas)
    return any(equal_schemas(record, schema, *checks) for schema in accepted)


def is_id_list(record: Any) -> bool:
    """Whether it is a list of ids (int64) for each example."""
    return isinstance(record, List) and almost_equal_schemas(record, IdList)


def is_id_score_list(record: Any) -> bool:
    """Whether it is a list of ids and scores of any type for each example."""
    if not isinstance(record, List):
        return False
    return almost_equal_schemas(record, IdScoreList, check_field_types=False)


class _NotSparseError(UsageError, NotImplementedError):
    """A record that holds no ids."""


def get_key(record: Field) -> Scalar:
    """The column of the ids of an IdList or IdScoreList.

    UsageError for other records and for ids without metadata.
    """
    if is_id_list(record):
        key = record["values"]  # type: ignore[index]
    elif is_id_score_list(record):
        key = record["values:keys"]  # type: ignore[index]
    else:
        raise _NotSparseError(f"an IdList or IdScoreList is needed, got {record!r}")
    if key.metadata is None:
        raise UsageError(f"Blob {key()} doesn't have metadata")
    return key  # type: ignore[no-any-return]


def get_categorical_limit(record: Field) -> int:
    """The number of different ids that a sparse feature can have, from its metadata."""
    key = get_key(record)
    assert key.metadata is not None
    if key.metadata.categorical_limit is None:
        raise UsageError(f"the metadata of blob {key()} have no categorical_limit")
    return key.metadata.categorical_limit


def get_avg_length(record: Any) -> Any:
    """The mean number of ids of an example, `expected_value` in the metadata of the lengths."""
    metadata = record["lengths"].metadata
    if metadata is None:
        raise UsageError("the lengths of the record have no metadata")
    return metadata.expected_value


def set_request_only(field: Field) -> None:
    """Marks the columns of a field as belonging to a request, and not to an item of it."""
    for scalar in field.all_scalars():
        metadata = scalar.metadata or Metadata()
        specs = (metadata.feature_specs or FeatureSpec())._replace(feature_is_request_only=True)
        scalar.set_metadata(metadata._replace(feature_specs=specs))


def is_request_only_scalar(scalar: Field) -> bool:
    """Whether every column of a field is marked by `set_request_only`."""
    columns = scalar.all_scalars()
    specs = [c.metadata.feature_specs if c.metadata is not None else None for c in columns]
    return bool(columns) and all(s is not None and s.feature_is_request_only for s in specs)
