"""The messages against the facts of Caffe2's own: fields, numbers, defaults, bytes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, message, text_format

from caffe2.proto import (
    caffe2_legacy_pb2,
    caffe2_pb2,
    generate,
    hsm_pb2,
    metanet_pb2,
    predictor_consts_pb2,
    prof_dag_pb2,
    torch_pb2,
)

ROOT = Path(__file__).resolve().parents[2]
FACTS = ROOT.parent / "shared/reference/caffe2_messages.json"
MODULES = {
    "caffe2_legacy_pb2": caffe2_legacy_pb2,
    "caffe2_pb2": caffe2_pb2,
    "hsm_pb2": hsm_pb2,
    "metanet_pb2": metanet_pb2,
    "predictor_consts_pb2": predictor_consts_pb2,
    "prof_dag_pb2": prof_dag_pb2,
    "torch_pb2": torch_pb2,
}

# Written by Caffe2: an FC on a CUDA device, a Conv and a ConstantFill with dtype=-1.
NET = bytes.fromhex(
    "0a016e12240a01780a01770a01621201791a00220246432a080a04617869731801320608011002180712430a0161"
    "0a01631201641a002204436f6e762a0a0a066b65726e656c18032a0e0a047061647330013001300130012a0d0a05"
    "6f7264657222044e4348573a054355444e4e12421201711a00220c436f6e7374616e7446696c6c2a0b0a05736861"
    "7065300230032a0c0a0576616c7565150000003f2a120a05647479706518ffffffffffffffffff011a0364616720"
    "023a01783a01773a01623a01613a0163420179"
)
PLAN = bytes.fromhex(
    "0a02706c123a0a016912351201771a00220f476976656e54656e736f7246696c6c2a090a05736861706530022a12"
    "0a0676616c7565732d0000003f2d0000c0bf1a080a01731a01692003"
)
# Written by Caffe2: the blob "b" of three numbers, or two strings, of each type.
BLOBS = {
    "FLOAT": (
        "0a0162120654656e736f721a21080310011a0c0000803f00000000000040403a0162420208005a0408001003"
        "7800",
        "float_data",
        [1.0, 0.0, 3.0],
    ),
    "INT32": (
        "0a0162120654656e736f721a27080210022214ffffffffffffffffff01feffffffffffffffff013a01624202"
        "08005a0408001002",
        "int32_data",
        [-1, -2],
    ),
    "BOOL": (
        "0a0162120654656e736f721a160803100522030100033a0162420208005a0408001003",
        "int32_data",
        [1, 0, 3],
    ),
    "UINT8": (
        "0a0162120654656e736f721a160803100622030100033a0162420208005a0408001003",
        "int32_data",
        [1, 0, 3],
    ),
    "FLOAT16": (
        "0a0162120654656e736f721a190803100c22068078008084013a0162420208005a0408001003",
        "int32_data",
        [0x3C00, 0, 0x4200],
    ),
    "INT64": (
        "0a0162120654656e736f721a160803100a3a01624202080052030100035a0408001003",
        "int64_data",
        [1, 0, 3],
    ),
    "DOUBLE": (
        "0a0162120654656e736f721a2b0803100d3a0162420208004a18000000000000f03f00000000000000000000"
        "0000000008405a0408001003",
        "double_data",
        [1.0, 0.0, 3.0],
    ),
    "STRING": (
        "0a0162120654656e736f721a190802100432026162320263003a0162420208005a0408001002",
        "string_data",
        [b"ab", b"c\0"],
    ),
}

LABELS = {1: "optional", 2: "required", 3: "repeated"}
OUR_FIELD = ("NetDef", "metadata")


def field_facts(field: descriptor_pb2.FieldDescriptorProto) -> dict:
    kind = descriptor_pb2.FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    facts = {
        "name": field.name,
        "number": field.number,
        "label": LABELS[field.label],
        "type": kind,
    }
    if kind in ("message", "enum"):
        facts["type_name"] = field.type_name.removeprefix(".")
    if field.HasField("default_value"):
        text = field.default_value
        facts["default"] = text if kind in ("string", "enum") else json.loads(text)
    if facts["label"] == "repeated" and kind not in ("message", "string", "bytes"):
        facts["packed"] = field.options.packed
    if field.options.deprecated:
        facts["deprecated"] = True
    return facts


def enum_facts(enums) -> dict:
    return {enum.name: {value.name: value.number for value in enum.value} for enum in enums}


def message_facts(proto: descriptor_pb2.DescriptorProto) -> dict:
    fields = [f for f in proto.field if (proto.name, f.name) != OUR_FIELD]
    return {
        "fields": {f.name: field_facts(f) for f in fields},
        "messages": {
            inner.name: message_facts(inner)
            for inner in proto.nested_type
            if not inner.options.map_entry
        },
        "enums": enum_facts(proto.enum_type),
    }


def normalized(facts: dict) -> dict:
    """A message of the facts file, in the form of message_facts."""
    return {
        "fields": {f["name"]: f for f in facts["fields"]},
        "messages": {name: normalized(m) for name, m in facts.get("messages", {}).items()},
        "enums": facts.get("enums", {}),
    }


@pytest.mark.parametrize("name", MODULES)
def test_every_message_is_that_of_caffe2(name):
    if not FACTS.exists():
        pytest.skip(f"no facts of the messages at {FACTS}")
    facts = json.loads(FACTS.read_text())[name]
    file = descriptor_pb2.FileDescriptorProto()
    MODULES[name].DESCRIPTOR.CopyToProto(file)
    assert file.name == facts["proto_file"]
    assert file.package == facts["package"]
    assert (file.syntax or "proto2") == facts["syntax"]
    assert list(file.dependency) == facts["imports"]
    assert enum_facts(file.enum_type) == facts["enums"]
    made = {m.name: message_facts(m) for m in file.message_type}
    if name == "caffe2_pb2":
        del made["ModelDef"]  # ours
    assert made == {m: normalized(f) for m, f in facts["messages"].items()}


def test_numbers_and_defaults():
    def number(cls, field):
        return cls.DESCRIPTOR.fields_by_name[field].number

    assert number(caffe2_pb2.Argument, "n") == 8
    assert number(caffe2_pb2.TensorProto, "raw_data") == 13
    assert number(caffe2_pb2.ExecutionStep, "should_stop_blob") == 9
    assert number(caffe2_pb2.NetDef, "metadata") == 1000
    assert caffe2_pb2.TensorProto().data_type == caffe2_pb2.TensorProto.FLOAT == 1
    assert caffe2_pb2.QTensorProto().data_type == caffe2_pb2.TensorProto.INT32 == 2
    assert caffe2_pb2.TensorProto.FLOAT16 == 12
    assert caffe2_legacy_pb2.CAFFE_LEGACY_POOLING == 3
    assert metanet_pb2.ModelInfo().predictorType == "SINGLE_PREDICTOR"
    constants = predictor_consts_pb2.PredictorConsts()
    assert constants.META_NET_DEF == "!!META_NET_DEF"
    assert constants.DEFERRED_BLOB_READER == "__DEFERRED_BLOB_READER__"
    assert torch_pb2.PROTO_VERSION_NEWEST == 6


def test_devices_have_their_short_names():
    names = ["CPU", "CUDA", "MKLDNN", "OPENGL", "OPENCL", "IDEEP", "HIP"]
    assert [getattr(caffe2_pb2, name) for name in names] == list(range(7))
    assert caffe2_pb2.COMPILE_TIME_MAX_DEVICE_TYPES == 11
    assert caffe2_pb2.CUDA == caffe2_pb2.PROTO_CUDA


def test_a_net_of_caffe2():
    net = caffe2_pb2.NetDef.FromString(NET)
    fc, conv, fill = net.op
    assert (net.name, net.type, net.num_workers) == ("n", "dag", 2)
    assert list(net.external_input) == ["x", "w", "b", "a", "c"]
    assert (fc.type, fc.arg[0].name, fc.arg[0].i) == ("FC", "axis", 1)
    assert fc.HasField("name") and fc.name == ""
    assert fc.device_option.device_type == caffe2_pb2.CUDA
    assert (fc.device_option.device_id, fc.device_option.random_seed) == (2, 7)
    assert conv.engine == "CUDNN"
    assert list(conv.arg[1].ints) == [1, 1, 1, 1]
    assert conv.arg[2].s == b"NCHW"
    assert fill.arg[1].f == 0.5
    assert fill.arg[2].i == -1
    assert net.SerializeToString() == NET


def test_a_plan_of_caffe2():
    plan = caffe2_pb2.PlanDef.FromString(PLAN)
    assert list(plan.network[0].op[0].arg[1].floats) == [0.5, -1.5]
    assert (plan.execution_step[0].name, plan.execution_step[0].num_iter) == ("s", 3)
    assert plan.SerializeToString() == PLAN


@pytest.mark.parametrize("data_type", BLOBS)
def test_blobs_of_caffe2(data_type):
    written, field, values = BLOBS[data_type]
    blob = caffe2_pb2.BlobProto.FromString(bytes.fromhex(written))
    assert (blob.name, blob.type) == ("b", "Tensor")
    assert blob.tensor.data_type == caffe2_pb2.TensorProto.DataType.Value(data_type)
    assert list(getattr(blob.tensor, field)) == values
    assert (blob.tensor.segment.begin, blob.tensor.segment.end) == (0, len(values))
    assert blob.SerializeToString().hex() == written


def test_unknown_fields_survive():
    unknown = bytes.fromhex("a0060baa06026869")  # numbers 100 and 101
    net = caffe2_pb2.NetDef.FromString(NET + unknown)
    assert net.SerializeToString() == NET + unknown
    operator = caffe2_pb2.OperatorDef.FromString(unknown)
    net.op.add().CopyFrom(operator)
    assert (
        caffe2_pb2.NetDef.FromString(net.SerializeToString()).op[3].SerializeToString() == unknown
    )


def test_metadata_and_models():
    net = caffe2_pb2.NetDef.FromString(NET)
    net.metadata["version"] = "1.0.3"
    model = caffe2_pb2.ModelDef(name="m", metadata={"author": "me"})
    model.net.extend([net, caffe2_pb2.NetDef(name="init")])
    # The map is one entry of field 1000, behind all that other readers know.
    assert net.SerializeToString() == NET + b"\xc2\x3e\x10\x0a\x07version\x12\x051.0.3"
    for back in (
        caffe2_pb2.ModelDef.FromString(model.SerializeToString()),
        text_format.Parse(text_format.MessageToString(model), caffe2_pb2.ModelDef()),
    ):
        assert back == model
        assert [n.name for n in back.net] == ["n", "init"]
        assert dict(back.net[0].metadata) == {"version": "1.0.3"}
        assert dict(back.metadata) == {"author": "me"}


def test_required_fields():
    segment = caffe2_pb2.TensorProto.Segment(begin=1)
    with pytest.raises(message.EncodeError):
        segment.SerializeToString()


def test_the_import_is_silent_and_needs_protobuf_only():
    code = (
        "import sys; from caffe2.proto import caffe2_pb2, metanet_pb2, predictor_consts_pb2;"
        "assert 'numpy' not in sys.modules; assert caffe2_pb2.CPU == 0"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_generated_files_are_up_to_date():
    try:
        assert generate.main(["--check"]) == 0
    except (OSError, SystemExit) as error:
        pytest.skip(f"no protoc to compare with: {error}")


def test_generated_files_ask_for_no_protobuf_version():
    for path in (ROOT / "caffe2/proto").glob("*_pb2.py"):
        assert "runtime_version" not in path.read_text()
