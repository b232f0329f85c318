"""Maps from integers to integers."""

import numpy as np
import pytest

from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace

KINDS = [(k, v) for k in (np.int32, np.int64) for v in (np.int32, np.int64)]
NUMBERS = {np.int32: 2, np.int64: 10}


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def run(type, inputs, outputs, **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, outputs, **args))


def make(keys, values):
    workspace.FeedBlob("k", keys)
    workspace.FeedBlob("v", values)
    run("KeyValueToMap", ["k", "v"], ["map"])


def contents():
    run("MapToKeyValue", ["map"], ["keys", "values"])
    keys, values = workspace.FetchBlobs(["keys", "values"])
    return keys.dtype, values.dtype, list(zip(keys.tolist(), values.tolist(), strict=True))


@pytest.mark.parametrize(("key", "value"), KINDS)
def test_maps_are_made_and_saved(key, value, tmp_path):
    run("CreateMap", [], ["map"], key_dtype=NUMBERS[key], value_dtype=NUMBERS[value])
    assert contents() == (key, value, [])
    make(key([5, -3, 5]), value([1, 2, 9]))
    assert contents() == (key, value, [(-3, 2), (5, 1)])
    where = {"db": str(tmp_path / "maps"), "db_type": "minidb", "absolute_path": 1}
    run("Save", ["map"], [], **where)
    workspace.ResetWorkspace()
    run("Load", [], ["map"], **where)
    assert contents() == (key, value, [(-3, 2), (5, 1)])


def test_maps_are_saved_as_by_the_original():
    make(np.int64([3, 5]), np.int32([7, 1]))
    proto = caffe2_pb2.BlobProto.FromString(workspace.SerializeBlob("map"))
    assert (proto.type, proto.name) == ("(std::unordered_map<int64_t, int32_t>)", "map")
    keys, values = caffe2_pb2.TensorProtos.FromString(proto.content).protos
    assert (list(keys.dims), keys.data_type, list(keys.int64_data)) == ([2], 10, [3, 5])
    assert (list(values.dims), values.data_type, list(values.int32_data)) == ([2], 2, [7, 1])


def test_saved_maps_that_cannot_be():
    make(np.int64([3, 5]), np.int32([7, 1]))
    proto = caffe2_pb2.BlobProto.FromString(workspace.SerializeBlob("map"))
    content = caffe2_pb2.TensorProtos.FromString(proto.content)
    short = caffe2_pb2.TensorProtos(protos=content.protos[:1])
    uneven = caffe2_pb2.TensorProtos(protos=content.protos)
    uneven.protos[1].dims[0] = 1
    del uneven.protos[1].int32_data[1]
    swapped = caffe2_pb2.TensorProtos(protos=content.protos[::-1])
    for bad, text in ((short, "1 tensors"), (uneven, "2 keys and 1"), (swapped, "of int64 holds")):
        proto.content = bad.SerializeToString()
        with pytest.raises(RuntimeError, match=text):
            workspace.DeserializeBlob("other", proto.SerializeToString())


def test_what_is_refused():
    with pytest.raises(RuntimeError, match=r"KeyValueToMap.*2 elements"):
        make(np.int64([1]), np.int64([1, 2]))
    with pytest.raises(RuntimeError, match=r"KeyValueToMap.*type float"):
        make(np.float32([1]), np.int64([1]))
    with pytest.raises(RuntimeError, match=r"key_dtype = 1"):
        run("CreateMap", [], ["map"], key_dtype=1)
    workspace.FeedBlob("map", np.int64([1]))
    with pytest.raises(RuntimeError, match=r"MapToKeyValue.*a tensor"):
        contents()
