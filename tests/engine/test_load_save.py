"""Blobs in databases: Save, Load, Checkpoint and Snapshot."""

import os

import numpy as np
import pytest

from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace

F4 = np.float32
# Written by the original: Save(["x", "s"]) with x = [0, 1, 2], s = "hello".
RECORDED = (
    b"\x04\x00\x00\x00.\x00\x00\x00x#%0\n\x01x\x12\x06Tensor\x1a!\x08\x03\x10\x01\x1a\x0c\x00\x00"
    b"\x00\x00\x00\x00\x80?\x00\x00\x00@:\x01xB\x02\x08\x00Z\x04\x08\x00\x10\x03x\x00\x01\x00\x00"
    b'\x00\x17\x00\x00\x00s\n\x01s\x12\x0bstd::string"\x05hello'
)


@pytest.fixture(autouse=True)
def fresh_workspace(tmp_path):
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace(str(tmp_path))
    yield
    workspace.ResetWorkspace()


def run(type, inputs, outputs, **args):
    args = {"db": "db", "db_type": "minidb", **args}
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, outputs, **args))


def refused(text, *call, **args):
    with pytest.raises(RuntimeError, match=text) as caught:
        run(*call, **args)
    assert caught.value.operator == call[0]


def fetch(*names):
    return [workspace.FetchBlob(name).tolist() for name in names]


def forget():
    for name in workspace.Blobs():
        workspace.RemoveBlob(name)


def test_a_file_of_the_original(tmp_path):
    (tmp_path / "db").write_bytes(RECORDED)
    run("Load", [], ["s", "x"])
    assert workspace.FetchBlob("s") == b"hello"
    found = workspace.FetchBlob("x")
    assert found.tolist() == [0, 1, 2] and found.dtype == F4


@pytest.mark.parametrize("chunk", [-1, 0, 1, 4])
def test_all_types_come_back(chunk):
    rng = np.random.default_rng(1)
    values = {
        dtype: rng.integers(0, 2, (3, 5)).astype(dtype)
        for dtype in ["?", "i1", "u1", "i2", "u2", "i4", "i8", "f2", "f4", "f8"]
    }
    values["i1"][0, 0], values["u2"][0, 0], values["i8"][0, 0] = -128, 65535, -(2**63)
    values["texts"] = np.array([[b"a", b""], [b"\xff\x00", b"d"]], object)
    values["scalar"], values["empty"] = F4(2.5), np.zeros((0, 3), np.int64)
    for name, value in values.items():
        workspace.FeedBlob(name, value)
    workspace.FeedBlob("text", "t\u00e4xt")
    run("CreateCounter", [], ["counter"], init_count=7)
    run("CreateMutex", [], ["mutex"])
    names = [*values, "text", "counter", "mutex"]
    run("Save", names, [], chunk_size=chunk)
    forget()
    run("Load", [], names)
    for name, value in values.items():
        found = workspace.FetchBlob(name)
        assert found.dtype == np.asarray(value).dtype
        np.testing.assert_array_equal(found, value)
    assert workspace.FetchBlob("text").decode() == "t\u00e4xt"
    run("RetrieveCount", ["counter"], ["count"])
    assert workspace.FetchBlob("count") == 7


def test_files_are_in_the_root_folder(tmp_path):
    workspace.FeedBlob("x", F4([1]))
    run("Save", ["x"], [])
    run("Save", ["x"], [], db=str(tmp_path / "absolute"), absolute_path=1)
    assert sorted(os.listdir(tmp_path)) == ["absolute", "db"]
    refused("cannot be written: No such file", "Save", ["x"], [], db="no/db")


def test_a_save_that_fails_leaves_the_old_file(tmp_path):
    workspace.FeedBlob("x", F4([1]))
    run("Save", ["x"], [])
    before = (tmp_path / "db").read_bytes()
    run("CreateBlobsQueue", [], ["queue"], capacity=1, num_blobs=1)
    refused("input 1 .*'queue': a blob that holds .* cannot be saved", "Save", ["x", "queue"], [])
    workspace.CreateBlob("nothing")
    refused("'nothing' is empty", "Save", ["x", "nothing"], [])
    assert (tmp_path / "db").read_bytes() == before and os.listdir(tmp_path) == ["db"]


def test_names():
    workspace.FeedBlob("gpu_0/w", F4([1]))
    workspace.FeedBlob("lr", F4([2]))
    run("Save", ["gpu_0/w", "lr"], [], strip_prefix="gpu_0/")
    forget()
    run("Load", [], [], load_all=1)
    assert workspace.Blobs() == ["lr", "w"] and fetch("lr", "w") == [[2], [1]]
    forget()
    run("Load", [], [], load_all=1, strip_prefix="l", add_prefix="a/")
    assert workspace.Blobs() == ["a/r", "a/w"]
    run("Load", [], ["a/lr"], add_prefix="a/")
    run("Load", [], ["other"], source_blob_names=["lr"])
    assert fetch("a/lr", "other") == [[2], [2]]
    run("Save", ["other", "a/r"], [], blob_name_overrides=["p", "q"])
    run("Load", [], ["q", "p"])
    assert fetch("q", "p") == [[2], [2]]


def test_names_that_do_not_go_together():
    workspace.FeedBlob("x", F4([1]))
    workspace.FeedBlob("a/x", F4([1]))
    run("Save", ["x"], [])
    refused("2 blob_name_overrides for 1 blob", "Save", ["x"], [], blob_name_overrides=["a", "b"])
    refused("exclude each other", "Save", ["x"], [], blob_name_overrides=["a"], strip_prefix="x")
    refused("would be saved as 'x'", "Save", ["x", "a/x"], [], strip_prefix="a/")
    refused("would be saved as 'x'", "Save", ["x", "x"], [])
    refused("2 source_blob_names for 1", "Load", [], ["x"], source_blob_names=["a", "b"])
    refused("names the blob 'x' twice", "Load", [], ["a", "b"], source_blob_names=["x", "x"])
    refused("names the database 'db' twice", "Load", [], ["x"], dbs=["db", "db"])
    refused("names no database", "Load", [], ["x"], db="")
    refused("'db_type' is needed", "Load", [], ["x"], db_type="")


def test_several_databases():
    workspace.FeedBlob("x", F4([1]))
    workspace.FeedBlob("y", F4([2]))
    run("Save", ["x"], [], db="one")
    run("Save", ["y"], [], db="two")
    forget()
    run("Load", [], ["y", "x"], dbs=["one", "two"])
    assert fetch("x", "y") == [[1], [2]]
    run("Save", ["x", "y"], [], db="both")
    text = "blob 'x' of database '.*both': it is in '.*one' already"
    refused(text, "Load", [], ["x", "y"], dbs=["one", "both"])
    refused(text, "Load", [], [], dbs=["one", "both"], load_all=1)


def test_readers_may_load_again_and_again(tmp_path):
    workspace.FeedBlob("x", F4([1]))
    workspace.FeedBlob("y", F4([2]))
    run("Save", ["x", "y"], [])
    run("CreateDB", [], ["reader"], db=str(tmp_path / "db"))
    for name in "yxx":
        run("Load", ["reader"], [name], db="ignored")
    refused("holds a tensor", "Load", ["x"], ["y"])


def test_what_is_missing_is_said_and_nothing_is_changed():
    workspace.FeedBlob("weight", F4([1]))
    workspace.FeedBlob("bias", F4([2]))
    run("Save", ["weight", "bias"], [])
    workspace.FeedBlob("bias", F4([3]))
    text = "blob 'weigth' is not there. Did you mean weight.*; blob 'zzzzzzzzz' is not there"
    refused(text, "Load", [], ["bias", "weigth", "zzzzzzzzz"])
    assert fetch("bias") == [[3]]
    workspace.FeedBlob("none", F4([4]))
    run("Load", [], ["none", "bias"], allow_incomplete=1)
    assert fetch("none", "bias") == [[4], [2]]


def test_what_is_missing_leaves_no_blob_but_where_others_wait_for_it():
    workspace.FeedBlob("x", F4([1]))
    run("Save", ["x"], [])
    run("Load", [], ["x", "none"], allow_incomplete=1)
    assert workspace.Blobs() == ["x"]
    net = core.Net("net")
    net.Load([], ["x", "none"], db="db", db_type="minidb", allow_incomplete=1)
    net.Load([], ["later"], db="db", db_type="minidb", allow_incomplete=1)
    net.Copy("x", "later")
    workspace.CreateNet(net)
    for _ in range(2):
        workspace.RunNet(net)
        assert sorted(workspace.Blobs()) == ["later", "x"] and fetch("later") == [[1]]
    workspace.FeedBlob("none", F4([2]))
    workspace.RunNet(net)
    assert fetch("none") == [[2]]


def chunks(*parts, dims=(6,)):
    """The records of a blob x: (first element, values) each."""
    import struct

    content = b""
    for number, (begin, values) in enumerate(parts):
        blob = caffe2_pb2.BlobProto(name="x", type="Tensor")
        blob.tensor.dims.extend(dims)
        blob.tensor.data_type = caffe2_pb2.TensorProto.INT32
        blob.tensor.int32_data.extend(values)
        blob.tensor.segment.begin, blob.tensor.segment.end = begin, begin + len(values)
        key, value = b"x#%%%d" % number, blob.SerializeToString()
        content += struct.pack("<ii", len(key), len(value)) + key + value
    return content


def test_parts_may_come_in_any_order(tmp_path):
    (tmp_path / "db").write_bytes(chunks((4, [4, 5]), (0, [0]), (1, [1, 2, 3])))
    for args in ({"load_all": 1}, {}):
        run("Load", [], ["x"], **args)
        assert fetch("x") == [[0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (chunks((0, [1, 2]), (4, [1])), r"blob 'x' has only 3 of 6 elements in 2 part\(s\)"),
        (chunks((0, [1, 2, 3]), (2, [1, 2, 3])), "blob 'x' of database '.*': its parts overlap"),
        (chunks((0, [1] * 4), (2, [1] * 4)), "its parts overlap"),
        (chunks((5, [1, 2])), r"a part has the elements 5 to 7 of a tensor of shape \(6,\)"),
        (chunks((-1, [1, 2])), "a part has the elements -1 to 1"),
        (chunks((0, [1]), dims=(2**62, 2)), "overflow"),
        (chunks((0, [1]), dims=(2**40,)), "has only 1 of 1099511627776 elements"),
        (chunks((0, [1] * 6)) * 2, "it is there twice"),
        (chunks((0, [1])) + chunks((0, [1]), dims=(7,)), "its parts do not go together"),
    ],
)
def test_parts_that_make_no_tensor(tmp_path, content, text):
    (tmp_path / "db").write_bytes(content)
    workspace.FeedBlob("x", F4([1]))
    refused(text, "Load", [], [], load_all=1)
    assert fetch("x") == [[1]]


def test_checkpoints(tmp_path):
    net = core.Net("checkpoint")
    net.Checkpoint(["iter", "x"], [], db="at_%04d", db_type="minidb", every=2)
    workspace.FeedBlob("x", F4([1]))
    workspace.FeedBlob("iter", np.array([0]))
    workspace.CreateNet(net)
    for number in (0, 1, 4):
        workspace.FeedBlob("iter", np.array([number]))
        workspace.RunNet(net)
    assert sorted(os.listdir(tmp_path)) == ["at_0000", "at_0004"]
    workspace.FeedBlob("iter", np.array([9]))
    run("Load", [], ["iter"], db="at_0004")
    assert fetch("iter") == [[4]]
    run("Snapshot", ["iter", "x"], [], db="%d.snapshot")
    assert (tmp_path / "4.snapshot").exists()
    run("Snapshot", ["iter", "x"], [], db="same", every=4)
    assert (tmp_path / "same").exists()


def test_checkpoints_that_cannot_be():
    workspace.FeedBlob("iter", np.array([1]))
    for pattern in ("%s", "%d%d", "%", "%05", "%n", "%999d", "%dx%"):
        refused("one number can be in it", "Checkpoint", ["iter"], [], db=pattern)
    refused("every", "Checkpoint", ["iter"], [], every=0)
    workspace.FeedBlob("iter", F4([1]))
    refused(r"is float of shape \(1,\); one int64", "Checkpoint", ["iter"], [])


def test_nets_may_be_kept_away_from_files(tmp_path):
    strict = workspace.Workspace()
    strict.allow_files(False)
    strict.feed_blob("x", F4([1]))
    save = core.Net("save")
    save.Save(["x"], [], db=str(tmp_path / "db"), db_type="minidb", absolute_path=1)
    outer = core.Net("outer")
    outer.If(["x"], [], then_net=save.Proto())
    strict.feed_blob("x", np.array(True))
    for net in (save, outer):
        with pytest.raises(RuntimeError, match="reads or writes files, which"):
            strict.run(net)
    assert os.listdir(tmp_path) == []
    strict.allow_files()
    strict.run(save)
    assert os.listdir(tmp_path) == ["db"]


def test_a_predictor_touches_no_files_unless_told(tmp_path):
    workspace.FeedBlob("w", F4([2]))
    run("Save", ["w"], [])
    init, predict = core.Net("init"), core.Net("predict")
    init.Load([], ["w"], db=str(tmp_path / "db"), db_type="minidb", absolute_path=1)
    predict.Mul(["x", "w"], ["y"])
    predict.Proto().external_output.append("y")
    nets = init.Proto(), predict.Proto()
    with pytest.raises(ValueError, match="touches files, which a Predictor allows only"):
        workspace.Predictor(*nets)
    predictor = workspace.Predictor(*nets, allow=["files"])
    assert predictor.run([F4([3])])[0] == 6


def options(*rules):
    return caffe2_pb2.SerializationOptions(
        options=[caffe2_pb2.BlobSerializationOptions(**rule) for rule in rules]
    )


def test_options_say_the_size_of_parts_by_name(tmp_path):
    for name in ("a16", "b16", "c"):
        workspace.FeedBlob(name, np.arange(30, dtype=np.int16))
    rules = options(
        {"blob_name_regex": "a1", "chunk_size": 3},  # fits no whole name
        {"blob_name_regex": "a16", "chunk_size": 10},
        {"blob_name_regex": ".*16", "chunk_size": -1},
        {"blob_name_regex": "b16", "chunk_size": 1},
    )
    run("Save", ["a16", "b16", "c"], [], chunk_size=15, options=rules)
    content = (tmp_path / "db").read_bytes()
    assert [content.count(name + b"#%") for name in (b"a16", b"b16", b"c")] == [3, 1, 2]
    forget()
    run("Load", [], ["a16", "b16", "c"])
    assert fetch("a16", "b16", "c") == [list(range(30))] * 3
    refused("blob_name_regex '\\(':", "Save", ["c"], [], options=options({"blob_name_regex": "("}))
    refused("SerializationOptions", "Save", ["c"], [], options="\n\xff")


def test_floats_may_be_saved_as_bfloat16(tmp_path):
    values = F4([1, -2.5, 3.14159, 0, 1e-40, np.inf, -np.inf, np.nan, 3e38])
    workspace.FeedBlob("x", values)
    workspace.FeedBlob("n", np.arange(4))
    half = options({"blob_name_regex": ".*", "float_format": 2})
    run("Save", ["x", "n"], [], options=half, chunk_size=5)
    forget()
    run("Load", [], ["x", "n"])
    bits = (values.view(np.uint32) + np.where(np.isfinite(values), 0x8000, 0)) & 0xFFFF0000
    expected = bits.astype(np.uint32).view(F4)
    np.testing.assert_array_equal(workspace.FetchBlob("x"), expected)
    np.testing.assert_allclose(expected[:3], values[:3], rtol=2**-8)
    assert fetch("n") == [[0, 1, 2, 3]]
    # As the original has written 1 and 2.
    record = caffe2_pb2.BlobProto(name="y", type="Tensor")
    record.tensor.MergeFrom(
        caffe2_pb2.TensorProto(dims=[2], raw_data=b"\x80\x3f\x00\x40", data_format=1)
    )
    workspace.DeserializeBlob("y", record.SerializeToString())
    assert fetch("y") == [[1, 2]]
    record.tensor.raw_data = b"\x80"
    with pytest.raises(RuntimeError, match="bfloat16 has 1 bytes"):
        workspace.DeserializeBlob("y", record.SerializeToString())
    record.tensor.data_format = 0
    with pytest.raises(RuntimeError, match="raw_data can only be loaded as bfloat16"):
        workspace.DeserializeBlob("y", record.SerializeToString())


def test_sizes_are_estimated():
    """As the original does it: values recorded from it."""
    workspace.FeedBlob("float1", np.zeros(4000, F4))
    workspace.FeedBlob("empty", np.zeros(0, F4))
    workspace.FeedBlob("str", np.array([b"abc", b"defgh"], object))
    workspace.FeedBlob("one", "hello")
    for kind in ("float64", "int32", "int64", "uint8", "int8", "bool", "uint16", "float16"):
        workspace.FeedBlob(f"a_{kind}", np.zeros(100, kind))
    workspace.FeedBlob("big", np.zeros(2500001, F4))
    workspace.RunOperatorOnce(core.CreateOperator("CreateMutex", [], ["mutex"]))

    def estimate(**args):
        run("EstimateAllBlobSizes", [], ["names", "sizes"], **args)
        names, sizes = fetch("names", "sizes")
        return dict(zip([name.decode() for name in names], sizes, strict=True))

    expected = {"float1": 16056, "empty": 0, "str": 153, "one": 28, "mutex": 0, "big": 10000163}
    expected |= {"a_float64": 859, "a_int32": 457, "a_int64": 857, "a_uint8": 257, "a_int8": 256}
    expected |= {"a_bool": 156, "a_uint16": 358, "a_float16": 359}
    found = estimate()
    count = len(expected) + 2
    expected |= {"names": 5 + 50 + 50 * count, "sizes": 5 + 50 + 8 * count}
    assert found == expected
    half = {"blob_name_regex": "float1", "float_format": 2, "chunk_size": 500}
    assert estimate(options=options(half))["float1"] == 8448
