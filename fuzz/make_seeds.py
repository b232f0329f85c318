"""Writes seeds for the fuzzers: python fuzz/make_seeds.py FOLDER [MODELS ...]

Messages of every kind in which every field is set, a small net and a greedy operator, in the form
that wire_fuzz takes: one byte for the kind, then the wire form.  And files of small nets for
file_fuzz: our own, and those in the folders of models; and models in one file.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from model_fuzz import models
from model_fuzz import seeds as files

from caffe2.proto import caffe2_pb2

# Their order is that of kCheckers in wire_fuzz.cc; its last one takes a TensorProto again.
KINDS = [
    "Argument",
    "BlobProto",
    "DeviceOption",
    "ExecutionStep",
    "ModelDef",
    "NetDef",
    "OperatorDef",
    "PlanDef",
    "QTensorProto",
    "TensorProto",
    "TensorProtos",
    "TensorProto",
]
VALUES = {
    FieldDescriptor.TYPE_BOOL: True,
    FieldDescriptor.TYPE_BYTES: b"bytes",
    FieldDescriptor.TYPE_DOUBLE: 0.5,
    FieldDescriptor.TYPE_ENUM: 1,
    FieldDescriptor.TYPE_FLOAT: 0.5,
    FieldDescriptor.TYPE_INT32: -1,
    FieldDescriptor.TYPE_INT64: 1 << 40,
    FieldDescriptor.TYPE_STRING: "name",
    FieldDescriptor.TYPE_UINT32: 1,
}


def fill(message: Message, depth: int) -> None:
    """Sets every field of `message`, down to `depth` messages inside messages."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if hasattr(value, "add"):
            if depth > 0:
                fill(value.add(), depth - 1)
        elif isinstance(value, Message):
            if depth > 0:
                fill(value, depth - 1)
        elif hasattr(value, "update"):
            value["key"] = "value"
        elif hasattr(value, "extend"):
            value.extend([VALUES[field.type]] * 2)
        else:
            setattr(message, field.name, VALUES[field.type])


def seeds() -> list[bytes]:
    """All seeds."""
    net = caffe2_pb2.NetDef(name="net", type="simple", external_input=["x", "w", "b"])
    net.op.add(type="FC", input=["x", "w", "b"], output=["y"]).arg.add(name="axis", i=1)
    net.op.add(type="Relu", input=["y"], output=["y"], engine="EIGEN")
    result = [bytes([KINDS.index("NetDef")]) + net.SerializeToString()]
    # Two bytes stand for a whole message inside: input that asks for much memory.
    result.append(bytes([KINDS.index("OperatorDef")]) + b"\x2a\x00" * 1000)
    for number, kind in enumerate(KINDS):
        for depth in range(4):
            message = getattr(caffe2_pb2, kind)()
            fill(message, depth)
            result.append(bytes([number]) + message.SerializePartialToString())
    return result


def main() -> None:
    """Writes the seeds into the folder named on the command line."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (folder / f"wire-{number:03}").write_bytes(seed)
    for number, file in enumerate(files(sys.argv[2:]) + models()):
        (folder / f"file-{number:03}").write_bytes(file)


if __name__ == "__main__":
    main()
