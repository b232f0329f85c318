"""What a file holds is found by its content, whatever its name."""

import fractions
import pickle

import numpy as np
import pytest

from caffe2.graph import files
from caffe2.graph.errors import UsageError
from caffe2.graph.nesting import every_operator, touching_operators, undeclared_operators
from caffe2.graph.reading import read_message
from caffe2.proto import caffe2_pb2, metanet_pb2
from caffe2.python import core, utils


def small_net(name="small", type="Relu"):
    net = caffe2_pb2.NetDef(name=name, external_input=["x"], external_output=["y"])
    net.op.add(type=type, input=["x"], output=["y"])
    return net


NET = small_net()
FORMS = {
    "binary": NET.SerializeToString(),
    "text": str(NET).encode(),
    "text of Windows": b"\xef\xbb\xbf" + str(NET).replace("\n", "\r\n").encode(),
    "UTF-16": str(NET).encode("utf-16"),
    "commented": b"# caf\xc3\xa9\n" + str(NET).encode(),
}


@pytest.mark.parametrize("name", ["net.pb", "net.pbtxt", "net.model", "net"])
@pytest.mark.parametrize("form", FORMS)
def test_a_net_is_read_whatever_its_name(tmp_path, name, form):
    (tmp_path / name).write_bytes(FORMS[form])
    assert files.load_net(tmp_path / name) == NET


def test_a_name_as_long_as_a_control_character_is_still_binary(tmp_path):
    for length in (10, 13, 32, 100):
        net = small_net("n" * length)
        assert read_message(caffe2_pb2.NetDef, net.SerializeToString(), "net") == net


def test_old_names_of_fields_are_taken():
    text = (
        'op { type: "Relu" output: "cuda_gpu_id" device_option { cuda_gpu_id: 3 } }  # cuda_gpu_id'
    )
    net = read_message(caffe2_pb2.NetDef, text.encode(), "net")
    assert net.op[0].device_option.device_id == 3 and net.op[0].output == ["cuda_gpu_id"]


def test_unknown_fields_of_binary_nets_survive(tmp_path):
    unknown = b"\xa2\x06\x03abc"  # field 100
    content = NET.SerializeToString() + unknown
    (tmp_path / "net.pb").write_bytes(content)
    assert files.load_net(tmp_path / "net.pb").SerializeToString() == content


def deep(nets):
    """A net in a net in a net ..."""
    net = small_net()
    for _ in range(nets):
        outer = caffe2_pb2.NetDef()
        outer.op.add(type="Do").arg.add(name="net").n.CopyFrom(net)
        net = outer
    return net


MODEL = caffe2_pb2.ModelDef(name="both", net=[small_net("init"), small_net("predict")])
PLAN = caffe2_pb2.PlanDef(name="plan", network=[NET], execution_step=[{"network": ["small"]}])
META = metanet_pb2.MetaNetDef(nets=[{"key": "predict_net", "value": NET}])
VALUES = utils.NumpyArrayToCaffe2Tensor(np.float32([1, 2]), "w")
LFS = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 244\n"
)
FOREIGN = {
    "minidb": (b"\x01\0\0\0\x02\0\0\0kvv", r"it is a database \(minidb\)"),
    "bzip2": (b"BZh91AY&SY", "bzip2 data"),
    "PDF": (b"%PDF-1.4 ...", "a PDF document"),
    "JSON": (b'{"a": 1}', "JSON"),
    "empty": (b"", r"it is empty \(0 bytes\)"),
    "zeros": (bytes(500), "500 zero bytes"),
    "page": (b"\n<!DOCTYPE html>\n<html><body>", "an HTML page.*download the raw file"),
    "page in capitals": (b"<HTML><HEAD>", "an HTML page"),
    "LFS": (LFS, "a Git LFS pointer to a file of 244 bytes.*git lfs pull"),
    "LFS of Windows": (LFS.replace(b"\n", b"\r\n"), "a Git LFS pointer to a file of 244 bytes"),
    "tar": (b"net.pb".ljust(257, b"\0") + b"ustar\x0000", "a tar archive: unpack it"),
    "ONNX": (b"\x08\x03\x12\x07pytorch:\x03\x12\x01g", "an ONNX model: .*backend.prepare"),
    "TensorFlow": (b"\x0a\x08\x0a\x01x\x12\x03Abs\x22\x02\x08\x16", "a graph of TensorFlow"),
    "weights of Caffe 1": (b"\x0a\x01n\xa2\x06\x03\x0a\x01d", "a net of Caffe 1 with its weights"),
    "zip": (b"PK\x03\x04abcd", "a zip archive"),
    "gzip": (b"\x1f\x8b\x08\x00", "gzip data: unpack it"),
    "pickle": (b"\x80\x02}q\x00", "a Python pickle"),
    "newest pickle": (b"\x80\x05\x95\x0b", "a Python pickle"),
    "old pickle": (pickle.dumps({"w": 1}, 0), "a Python pickle"),
    "old pickle of arrays": (pickle.dumps([NET.op[0].type.encode()], 1), "a Python pickle"),
    "old pickle of a class": (pickle.dumps(fractions.Fraction(1, 2), 0), "a Python pickle"),
    "deep": (deep(40).SerializeToString(), "messages are nested deeper than 100$"),
    "deep text": (b"op {arg {n {" * 2000, "line 1, column 405: .* nested deeper than 100"),
    "no type": (b"\x12\x06\x0a\x01x\x12\x01y", "operator 0 has no type"),
    "database": (b"\x0e\x00\x00\x00\x05\x00\x00\x00!!META_NET_DEF", "prepare_prediction_net reads"),
    "model": (MODEL.SerializeToString(), "it holds a ModelDef with the nets init, predict"),
    "model text": (str(MODEL).encode(), "it holds a ModelDef with the nets init, predict"),
    "plan": (PLAN.SerializeToString(), "it holds a PlanDef: a plan with the nets small"),
    "meta": (META.SerializeToString(), "it holds a MetaNetDef"),
    "operator": (NET.op[0].SerializeToString(), "it holds an OperatorDef"),
    "values": (VALUES.SerializeToString(), "it holds a TensorProto: values"),
    "tensors": (caffe2_pb2.TensorProtos(protos=[VALUES] * 2).SerializeToString(), "TensorProtos"),
    "Caffe 1": (b'name: "LeNet"\nlayer {\n  name: "data"\n}\n', "a net of Caffe 1"),
    "misspelt": (b'op { typ: "Relu" }', r'line 1, column 6: .*no field named "typ"'),
    "unfinished": (b'op {\n type: "Relu"\n', "line "),
    "damaged": (b"\x0a\x02ab\x07", "byte 4 begins no field"),
    "damaged name": (b"\x12\x09\x0a\x01\xff\x22\x04Relu", r"the name b'\\xff' in it is no UTF-8"),
    "damaged within": (
        b"\x12\x02\x0a\x09",
        "it is damaged: field 1 at byte 2 needs 9 bytes, the OperatorDef around it ends at byte 4",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_net_is_named(tmp_path, name):
    content, problem = FOREIGN[name]
    (tmp_path / "net.pb").write_bytes(content)
    with pytest.raises(UsageError, match=rf"net\.pb holds no NetDef: .*{problem}"):
        files.load_net(tmp_path / "net.pb")


def test_where_a_file_breaks_off_is_said():
    content = NET.SerializeToString()
    ends = {0, 1, 7, 21, 24}  # a line without text; after a field, where nothing tells of more
    for end in set(range(len(content))) - ends:
        with pytest.raises(UsageError, match=r"net\.pb holds no NetDef: it is truncated: field"):
            read_message(caffe2_pb2.NetDef, content[:end], "net.pb")
    with pytest.raises(UsageError, match="field 8 at byte 24 needs 1 bytes, the file of 26 bytes"):
        read_message(caffe2_pb2.NetDef, content[:-1], "net.pb")


def test_quoted_nets_that_are_too_deep_are_none():
    net = small_net()
    net.op[0].arg.add(name="step_net", s=b"op {arg {n {" * 2000)
    assert [op.type for _, op in every_operator(net)] == ["Relu"]


def test_the_other_message_is_read_where_it_is_wanted():
    for message in (MODEL, PLAN, META, VALUES):
        assert read_message(type(message), message.SerializeToString(), "x") == message
        assert read_message(type(message), str(message).encode(), "x") == message


def nested():
    net = caffe2_pb2.NetDef(name="outer")
    net.op.add(type="Magic", output=["x"])
    inner = net.op.add(type="If", input=["c"])
    inner.arg.add(name="then_net").n.CopyFrom(small_net("then", "Magic"))
    quoted = net.op.add(type="RecurrentNetwork")
    quoted.arg.add(name="step_net", s=str(small_net("step", "Spell")).encode())
    python = small_net("python", "Python")
    quoted.arg.add(name="backward_step_net", s=python.SerializeToString())
    return net


def test_operators_of_nets_inside_operators_are_found():
    assert [place.where for place in every_operator(nested())] == [
        "#0 Magic",
        "#1 If",
        "#1 If, then_net #0 Magic",
        "#2 RecurrentNetwork",
        "#2 RecurrentNetwork, step_net #0 Spell",
        "#2 RecurrentNetwork, backward_step_net #0 Python",
    ]


def test_operators_that_nobody_declared_are_listed_with_their_places():
    assert undeclared_operators(nested()) == {
        "Magic": ["#0 Magic", "#1 If, then_net #0 Magic"],
        "Spell": ["#2 RecurrentNetwork, step_net #0 Spell"],
    }


def test_operators_that_touch_what_is_outside():
    [line] = touching_operators(nested())
    assert line == "#2 RecurrentNetwork, backward_step_net #0 Python touches code"
    assert touching_operators(nested(), ["code"]) == []
    assert touching_operators(nested(), ["files", "network"]) == [line]
    assert core.IsOperator("Python")
