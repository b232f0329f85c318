"""Records of named columns (`schema`), and those of nets."""

import numpy as np
import pytest

from caffe2.python import core, schema, workspace


@pytest.fixture
def record():
    return schema.Struct(
        ("a", np.float32),
        ("b", schema.Scalar((np.int64, (3,)))),
        ("l", schema.List(np.int32)),
        ("m", schema.Map(np.int64, np.float32)),
        ("t", schema.Struct(("x", np.int8), ("y", str))),
    )


def test_columns_are_flat(record):
    assert record.field_names() == [
        "a", "b", "l:lengths", "l:values", "m:lengths", "m:values:keys", "m:values:values",
        "t:x", "t:y",
    ]  # fmt: skip
    assert record.field_types()[:3] == [np.float32, np.dtype((np.int64, (3,))), np.int32]
    assert (record.t.y.id(), record.l.lengths.id(), record.l.items.id()) == (8, 2, 3)
    assert record["m:values:keys"].dtype == np.int64 and record[0] is record.a
    assert record[["a", "t"]].field_names() == ["a", "t:x", "t:y"]
    assert "t:x" in record and "zz" not in record and record.get("zz", 3) == 3
    with pytest.raises(KeyError, match='field "zz" not found'):
        record["zz"]
    with pytest.raises(AttributeError):
        _ = record.zz


def test_structs_are_added_and_taken_away():
    a, b = schema.Struct(("s", schema.Struct(("x", None)))), schema.Struct(("s:y", None))
    assert (a + b).field_names() == ["s:x", "s:y"]
    assert (a + b - a).field_names() == ["s:y"]
    with pytest.raises(TypeError, match="to allow merging of the field, x"):
        a + a
    with pytest.raises(ValueError, match="Duplicate field name: a"):
        schema.Struct(("a", None), ("a", None))
    with pytest.raises(TypeError, match="disabled after __init__"):
        a.s = 1


def test_from_column_list_is_the_way_back(record):
    names, types = record.field_names(), record.field_types()
    assert schema.from_column_list(names, types) == record
    assert schema.from_column_list(["l:lengths", "l:values"]).l.lengths.dtype == np.void


def test_values_of_columns():
    scalar = schema.Scalar(np.int32, [1.5, 2])
    np.testing.assert_array_equal(scalar(), [1, 2])
    assert scalar().dtype == np.int32
    with pytest.raises(ValueError, match="ambiguous"):
        schema.Scalar(np.int32, "blob")
    with pytest.raises(AssertionError, match="Value is not set"):
        schema.Scalar(np.int32)()
    with pytest.raises(AssertionError, match="Expected int32, got float64"):
        scalar.set_value(np.ones(1), throw_on_type_mismatch=True)
    with pytest.raises(AssertionError, match="only in integral fields but got float32"):
        schema.Scalar(np.float32, metadata=schema.Metadata(3))


def test_no_rows_have_the_shape_of_rows():
    """As in the original: a list without elements, but an array as it is."""
    matrix = schema.Struct(("x", schema.Scalar((np.float32, 3))))
    assert schema.from_blob_list(matrix, [[]]).x().shape == (0, 3)
    assert schema.from_blob_list(matrix, [np.zeros(0, np.float32)]).x().shape == (0,)


def test_records_are_fed_and_fetched(record):
    workspace.ResetWorkspace()
    net = core.Net("records")
    small = schema.Struct(("a", np.int32), ("b", schema.List(np.float32)))
    blobs = schema.NewRecord(net, small)
    assert list(map(str, blobs.field_blobs())) == ["a", "b:lengths", "b:values"]
    values = [np.array([1], np.int32), np.array([2], np.int32), np.array([3, 4], np.float32)]
    schema.FeedRecord(blobs, values)
    fetched = schema.FetchRecord(blobs)
    for found, value in zip(fetched.field_blobs(), values, strict=True):
        np.testing.assert_array_equal(found, value)
    with pytest.raises(AssertionError, match="exactly 3 ndarrays, got 1"):
        schema.FeedRecord(blobs, values[:1])
    init = core.Net("init")
    empty = schema.InitEmptyRecord(init, small)
    workspace.RunNetOnce(init)
    assert schema.FetchRecord(empty).b.items().shape == (0,)


def test_records_of_nets():
    net = core.Net("n")
    inputs = net.set_input_record(schema.Struct(("a", np.int32), ("b", np.float32)))
    assert list(map(str, inputs.field_blobs())) == [f"{net}/a", f"{net}/b"]
    y = net.Copy(inputs.a(), "y")
    net.set_output_record(schema.Struct(("y", schema.Scalar(np.int32, y))))
    net.AppendOutputRecordField("z", schema.Scalar(np.int32, net.Copy(y, "z")))
    assert net.output_record().field_names() == ["y", "z"]
    assert net.external_outputs == ["y", "z"]
    with pytest.raises(AssertionError, match="Input schema cannot be reset"):
        net.set_input_record(schema.Struct(("q", np.int32)))
    clone, names = core.clone_and_bind_net(net, "clone", "pre/")
    assert names["y"] == "pre/y" and names[f"{net}/a"] == f"{net}/a"
    assert clone.output_record().z() == "pre/z"
    assert net.Clone("other", {"y": "Y"}).output_record().y() == "Y"
