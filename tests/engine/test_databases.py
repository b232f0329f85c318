"""Databases: CreateDB, DBExists, TensorProtosDBInput, and minidb files themselves."""

import os
import struct

import numpy as np
import pytest

from caffe2 import _native
from caffe2.data import databases
from caffe2.data.databases import Mode
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace

F4 = np.float32


@pytest.fixture(autouse=True)
def fresh_workspace(tmp_path):
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace(str(tmp_path))
    yield
    workspace.ResetWorkspace()


def run(type, inputs, outputs, **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, outputs, **args))


def minidb(*records):
    """The bytes of a minidb, written down here once more."""
    return b"".join(struct.pack("<ii", len(k), len(v)) + k + v for k, v in records)


def item(*tensors):
    """A record of TensorProtos: (data_type, dims, field, values) each."""
    message = caffe2_pb2.TensorProtos()
    for data_type, dims, field, values in tensors:
        proto = message.protos.add(data_type=data_type, dims=dims)
        if field == "byte_data":
            proto.byte_data = values
        else:
            getattr(proto, field).extend(values)
    return message.SerializeToString()


def numbered(number, width=2):
    return item((1, (width,), "float_data", [number] * width), (2, (), "int32_data", [number]))


def data_set(path, records):
    path.write_bytes(minidb(*records))
    return str(path)


def open_reader(path, **args):
    run("CreateDB", [], ["db"], db=path, db_type="minidb", **args)


def read(outputs=("a", "b"), **args):
    """Runs a net that is made at the first call and gives the next batch at each."""
    net = core.Net("read")
    net.Proto().op.append(core.CreateOperator("TensorProtosDBInput", ["db"], outputs, **args))
    net.Proto().external_input.append("db")
    net.Proto().name = f"read_{'_'.join(outputs)}_{args}"
    if net.Proto().name not in workspace.Nets():
        workspace.CreateNet(net)
    workspace.RunNet(net.Proto().name)
    return [workspace.FetchBlob(name) for name in outputs]


def five(path, **args):
    open_reader(data_set(path / "five", [(b"key", numbered(i)) for i in range(5)]), **args)


# ------------------------------------------------------------------ data sets


def test_batches_go_round_and_equal_keys_are_records_of_their_own(tmp_path):
    five(tmp_path)
    for wanted in ([0, 1, 2], [3, 4, 0], [1, 2, 3]):
        values, labels = read(batch_size=3)
        assert values.tolist() == [[w, w] for w in wanted] and values.dtype == F4
        assert labels.tolist() == wanted and labels.dtype == np.int32


def test_without_a_batch_there_is_no_dimension_for_it(tmp_path):
    five(tmp_path)
    values, label = read()
    assert values.shape == (2,) and label.shape == () and label == 0
    assert read(batch_size=1)[1].tolist() == [2]  # after the one that is read ahead


def test_shards_take_turns(tmp_path):
    five(tmp_path, num_shards=2, shard_id=1)
    assert [read()[1].item() for _ in range(4)] == [1, 3, 1, 3]
    with pytest.raises(RuntimeError, match="shard_id = 2 is not below num_shards = 2"):
        five(tmp_path, num_shards=2, shard_id=2)
    five(tmp_path, num_shards=9, shard_id=5)
    with pytest.raises(RuntimeError, match="has no record number 5"):
        read()


def test_a_reader_is_shared_by_those_who_read(tmp_path):
    five(tmp_path)
    assert read(("a", "b"))[1] == 0
    assert read(("c", "d"))[1] == 2
    assert read(("a", "b"))[1] == 1


def test_what_is_read_ahead_is_lost_with_the_operator(tmp_path):
    five(tmp_path)
    for wanted in (0, 2, 4):
        run("TensorProtosDBInput", ["db"], ["a", "b"])
        assert workspace.FetchBlob("b") == wanted


def test_another_reader_begins_anew(tmp_path):
    five(tmp_path)
    assert read()[1] == 0
    five(tmp_path)
    assert read()[1] == 0


def test_elements_of_all_types(tmp_path):
    half = np.array([1.5, -2], np.float16)
    records = [
        item(
            (3, (2,), "byte_data", b"\x00\xff"),
            (6, (2,), "int32_data", [7, 255]),
            (12, (2,), "byte_data", half.tobytes()),
            (4, (2,), "string_data", [b"", b"\xff"]),
            (5, (2,), "int32_data", [0, 2]),
            (10, (1, 2), "int64_data", [-1, 2**62]),
            (13, (2,), "double_data", [0.1, 2]),
        )
    ] * 2
    open_reader(data_set(tmp_path / "all", [(b"", record) for record in records]))
    found = read(list("abcdefg"), batch_size=2)
    wanted = [
        np.array([0, 255], np.uint8),
        np.array([7, 255], np.uint8),
        half,
        np.array([b"", b"\xff"], object),
        np.array([False, True]),
        np.array([[-1, 2**62]], np.int64),
        np.array([0.1, 2]),
    ]
    for array, one in zip(found, wanted, strict=True):
        assert array.dtype == one.dtype
        np.testing.assert_array_equal(array, np.stack([one, one]))


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (item((1, (2,), "float_data", [1, 2])), r"it has 1 tensor\(s\) for 2 output\(s\)"),
        (numbered(1, width=3), r"tensor 0 is float of shape \(3,\), in the first record of the"),
        (item((1, (2,), "float_data", [1]), (2, (), "int32_data", [1])), "holds 1 values of float"),
        (item((1, (2**40,), "float_data", [1]), (2, (), "int32_data", [1])), "holds 1 values of"),
        (b"\xff\xff", 'record "bad": '),
        (item((14, (1,), "int32_data", [1]), (2, (), "int32_data", [1])), "cannot be loaded"),
        (item((6, (1,), "int32_data", [256]), (2, (), "int32_data", [1])), "holds 256"),
    ],
)
def test_records_that_do_not_fit(tmp_path, record, text):
    path = data_set(tmp_path / "odd", [(b"good", numbered(0)), (b"bad", record)])
    open_reader(path)
    workspace.FeedBlob("a", F4([7]))
    with pytest.raises(RuntimeError, match=text) as caught:
        read(batch_size=2)
    assert path in str(caught.value) and 'record "bad"' in str(caught.value)
    assert workspace.FetchBlob("a") == 7


def test_a_blob_that_is_no_reader():
    workspace.FeedBlob("db", F4([1]))
    with pytest.raises(RuntimeError, match=r"input 0 \(data\) 'db' holds a tensor"):
        read()


def test_nobody_reads_a_database_that_is_not_there(tmp_path):
    missing = str(tmp_path / "none")
    with pytest.raises(RuntimeError, match=f"'{missing}' cannot be opened: No such file"):
        open_reader(missing)
    with pytest.raises(RuntimeError, match="no databases of type 'leveldb' here; minidb is always"):
        run("CreateDB", [], ["db"], db=missing, db_type="leveldb")
    with pytest.raises(RuntimeError, match="is no file"):
        open_reader(str(tmp_path))


def test_db_exists(tmp_path):
    (tmp_path / "there").touch()
    for name, absolute, wanted in [
        ("there", 0, True),
        (str(tmp_path / "there"), 1, True),
        ("none", 0, False),
        (str(tmp_path / "there"), 0, False),  # in the root folder, whatever it looks like
    ]:
        run("DBExists", [], ["e"], db_name=name, db_type="minidb", absolute_path=absolute)
        found = workspace.FetchBlob("e")
        assert found.shape == () and found.dtype == bool and bool(found) == wanted


def test_a_reader_cannot_be_saved_and_readers_are_closed_with_their_blob(tmp_path):
    five(tmp_path)
    with pytest.raises(RuntimeError, match="caffe2::db::DBReader cannot be saved"):
        workspace.SerializeBlob("db")
    before = len(os.listdir("/proc/self/fd"))
    workspace.RemoveBlob("db")
    assert len(os.listdir("/proc/self/fd")) == before - 1


# ------------------------------------------------------------------ files


def records_of(path):
    cursor = databases.create_db("minidb", str(path), Mode.read).new_cursor()
    found = []
    while cursor.valid():
        found.append((cursor.key(), cursor.value()))
        cursor.next()
    return found


def written(path, mode, *records):
    transaction = databases.create_db("minidb", str(path), mode).new_transaction()
    for key, value in records:
        transaction.put(key, value)
    transaction.commit()


def test_minidb_is_what_the_original_writes(tmp_path):
    path = tmp_path / "db"
    written(path, Mode.new, ("a", "b"), (b"", b"\x00"))
    written(path, Mode.write, ("a", "c"))
    # Recorded.
    assert path.read_bytes() == (
        b"\x01\0\0\0\x01\0\0\0ab\0\0\0\0\x01\0\0\0\0\x01\0\0\0\x01\0\0\0ac"
    )
    assert records_of(path) == [(b"a", b"b"), (b"", b"\x00"), (b"a", b"c")]
    assert os.listdir(tmp_path) == ["db"]


def test_cursors(tmp_path):
    path = tmp_path / "db"
    path.write_bytes(minidb((b"a", b"b")))
    database = databases.create_db("minidb", str(path), Mode.read)
    cursor = database.new_cursor()
    assert (cursor.key(), cursor.value(), cursor.valid()) == (b"a", b"b", True)
    cursor.next()
    with pytest.raises(RuntimeError, match="behind the last record"):
        cursor.key()
    cursor.next()
    assert not cursor.valid()
    cursor.seek_to_first()
    assert cursor.key() == b"a" and not cursor.supports_seek()
    database.close()
    with pytest.raises(RuntimeError, match="was closed"):
        database.new_cursor()
    assert databases.create_db("no such type", str(path), Mode.read) is None
    assert "minidb" in databases.registered_dbs()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"hello", "record 0 at byte 0 is cut off within its lengths"),
        (b"<html><body>not here</body></html>", "record 0 at byte 0 has .* bytes, but only 26"),
        (minidb((b"a", b"b")) + b"\x01\0\0\0\x09\0\0\0cd", "record 1 at byte 10 has 10 bytes, but"),
        (struct.pack("<ii", -1, 2) + b"ab", "has the length -1"),
        (struct.pack("<ii", 2**31 - 1, 2**31 - 1), "has 4294967294 bytes, but only 0 are left"),
    ],
)
def test_damaged_files(tmp_path, content, text):
    path = tmp_path / "db"
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match=text) as caught:
        records_of(path)
    assert f"'{path}' is no minidb, or damaged" in str(caught.value)


def test_a_new_file_takes_its_place_when_it_is_whole(tmp_path):
    path = tmp_path / "db"
    path.write_bytes(minidb((b"old", b"")))
    database = databases.create_db("minidb", str(path), Mode.new)
    transaction = database.new_transaction()
    transaction.put("new", "n" * 3_000_000)  # more than is kept in memory
    assert records_of(path) == [(b"old", b"")]
    transaction.commit()
    assert [key for key, _ in records_of(path)] == [b"new"]
    transaction.put("more", "")
    del transaction, database  # writes what is left
    assert [key for key, _ in records_of(path)] == [b"new", b"more"]


def test_what_is_never_committed_leaves_no_trace(tmp_path):
    path = tmp_path / "db"
    database = _native.open_database(databases.default_engine(), "minidb", str(path), "new")
    database.put(b"a", b"b")
    del database
    assert os.listdir(tmp_path) == []


def test_a_database_is_open_for_one_purpose(tmp_path):
    path = tmp_path / "db"
    with pytest.raises(RuntimeError, match="open for writing, not for reading"):
        databases.create_db("minidb", str(path), Mode.new).new_cursor()
    path.touch()
    with pytest.raises(RuntimeError, match="open for reading, not for writing"):
        written(path, Mode.read, ("a", "b"))
    with pytest.raises(RuntimeError, match="cannot be written: No such file"):
        written(tmp_path / "none" / "db", Mode.new, ("a", "b"))


def test_lmdb(tmp_path):
    lmdb = pytest.importorskip("lmdb", reason="the package lmdb is not there")
    path = str(tmp_path / "lmdb")
    with lmdb.open(path, map_size=1 << 20) as environment, environment.begin(write=True) as put:
        for number in range(3):
            put.put(b"%03d" % number, numbered(number))
    run("CreateDB", [], ["db"], db=path, db_type="lmdb")
    assert read(batch_size=4)[1].tolist() == [0, 1, 2, 0]
    new = str(tmp_path / "new")
    workspace.FeedBlob("x", F4([1, 2]))
    run("Save", ["x"], [], db=new, db_type="lmdb", absolute_path=1)
    run("Load", [], ["x"], db=new, db_type="lmdb", absolute_path=1)
    assert workspace.FetchBlob("x").tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="FileExistsError: there is a database"):
        run("Save", ["x"], [], db=new, db_type="lmdb", absolute_path=1)
    with pytest.raises(RuntimeError, match="FileNotFoundError: there is no database"):
        run("CreateDB", [], ["db"], db=str(tmp_path / "none"), db_type="lmdb")
