"""Tables in text files, as records."""

import numpy as np
import pytest

from caffe2.python import core, workspace
from caffe2.python.schema import FetchRecord, List, Scalar, Struct
from caffe2.python.text_file_reader import TextFileReader

SCHEMA = Struct(("text", Scalar(str)), ("number", Scalar(np.float32)))


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def test_records_are_read(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("a\t1\nb\t2\nc\t3\n")
    init, net = core.Net("init"), core.Net("read")
    reader = TextFileReader(init, filename=path, schema=SCHEMA, num_passes=2, batch_size=4)
    stop, record = reader.read_record(net)
    workspace.RunNetOnce(init)
    workspace.CreateNet(net)
    found = []
    while True:
        workspace.RunNet(net)
        if workspace.FetchBlob(stop):
            break
        found.append([blob.tolist() for blob in FetchRecord(record).field_blobs()])
    assert found == [[["a", "b", "c", "a"], [1, 2, 3, 1]], [["b", "c"], [2, 3]]]


def test_one_field(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("1\n2\n")
    init, net = core.Net("init"), core.Net("read")
    reader = TextFileReader(init, path, Struct(("x", Scalar(np.float32))), batch_size=2)
    _, record = reader.read_record(net)
    workspace.RunNetOnce(init)
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob(record.x()).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (Struct(("x", Scalar(np.int64))), "field 'x' .* int64"),
        (Struct(("x", List(Scalar(str)))), "field 'x' .* not a scalar"),
        (Scalar(str), "is a Struct"),
    ],
)
def test_what_is_refused(schema, text):
    with pytest.raises(ValueError, match=text):
        TextFileReader(core.Net("init"), "table.txt", schema)
