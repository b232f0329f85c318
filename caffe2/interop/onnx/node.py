"""One node of an ONNX graph on its way to operators, and what is known of the graph around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import numpy_helper

from caffe2.graph.blob import BlobReference
from caffe2.graph.fills import given_tensor
from caffe2.graph.operator import CreateOperator
from caffe2.graph.scope import EmptyDeviceScope
from caffe2.ops.datatypes import DataType, data_type_of
from caffe2.proto import caffe2_pb2


class Unsupported(RuntimeError):  # noqa: N818 - the name of old
    """A node, attribute or operator that has no counterpart."""


def data_type(elem_type: int) -> int:
    """The number of DataType for one of ONNX.  Unsupported when there is none."""
    try:
        return int(data_type_of(onnx.helper.tensor_dtype_to_np_dtype(elem_type)))
    except (ValueError, KeyError, TypeError):
        name = onnx.TensorProto.DataType.Name(elem_type)
        raise Unsupported(f"there are no blobs of {name} values") from None


def fill_operators(name: str, array: Any) -> list[caffe2_pb2.OperatorDef]:
    """The operators that fill a blob with an array: one, and a Cast where no fill has its type."""
    out = [BlobReference(name)]
    try:
        op_type, arguments = given_tensor(array)
        return [CreateOperator(op_type, [], out, **arguments)]
    except ValueError:
        wide = np.asarray(array, np.float32 if array.dtype.kind == "f" else np.int64)
    op_type, arguments = given_tensor(wide)
    between = [BlobReference(f"{name}_wide")]
    return [
        CreateOperator(op_type, [], between, **arguments),
        CreateOperator("Cast", between, out, to=int(data_type_of(array.dtype))),
    ]


class Graph:
    """What is known while a graph is converted.

    opset      version of the operators
    constants  values of initializers and constants
    shapes     dimensions of values, None for one that is not known
    """

    def __init__(self, opset: int, device: caffe2_pb2.DeviceOption | None = None) -> None:
        self.opset, self.device = opset, device
        self.constants: dict[str, Any] = {}
        self.shapes: dict[str, list[int | None]] = {}
        self.ops: list[caffe2_pb2.OperatorDef] = []
        self.init_ops: list[caffe2_pb2.OperatorDef] = []
        self.used: set[str] = set()

    def new_name(self, base: str) -> str:
        """A name that no value of the graph has."""
        name, number = base, 0
        while name in self.used:
            number += 1
            name = f"{base}_{number}"
        self.used.add(name)
        return name

    def constant(self, name: str, array: Any) -> str:
        """Makes a value that is the same in each run."""
        self.used.add(name)
        self.constants[name] = np.asarray(array)
        self.shapes[name] = list(self.constants[name].shape)
        self.init_ops.extend(self._placed(fill_operators(name, self.constants[name])))
        return name

    def add(self, ops: Iterable[caffe2_pb2.OperatorDef]) -> None:
        self.ops.extend(self._placed(ops))

    def _placed(self, ops: Iterable[caffe2_pb2.OperatorDef]) -> list[caffe2_pb2.OperatorDef]:
        placed = list(ops)
        for op in placed:
            if self.device is not None:
                op.device_option.CopyFrom(self.device)
        return placed

    def add_shape(self, info: onnx.ValueInfoProto) -> None:
        """Takes note of the shape of a value, if it has one."""
        kind = info.type.tensor_type
        if info.type.HasField("tensor_type") and kind.HasField("shape"):
            self.shapes[info.name] = [
                dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim
            ]


class Node:
    """A node: `take` gives its attributes, each once; `emit` appends an operator."""

    def __init__(self, proto: onnx.NodeProto, graph: Graph) -> None:
        self.type, self.graph, self.opset = proto.op_type, graph, graph.opset
        self.inputs, self.outputs = list(proto.input), list(proto.output)
        self.where = f"{proto.op_type} '{', '.join(proto.output)}'"
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
        graph.used.update(name for name in (*proto.input, *proto.output) if name)

    def refuse(self, what: str) -> NoReturn:
        raise Unsupported(f"{self.where}: {what}")

    def take(self, name: str, default: Any = None) -> Any:
        """An attribute; strings as str, tensors as arrays."""
        value = self.attributes.pop(name, default)
        if isinstance(value, onnx.TensorProto):
            return numpy_helper.to_array(value)
        return value.decode() if isinstance(value, bytes) else value

    def expect(self, name: str, allowed: Sequence[Any]) -> None:
        """Takes an attribute that only has a counterpart with some values."""
        value = self.take(name, allowed[0])
        if value not in allowed:
            self.refuse(f"{name}={value} has no counterpart; {allowed} have")

    def ignore(self, *names: str) -> None:
        """Takes attributes that make no difference here."""
        for name in names:
            self.attributes.pop(name, None)

    def finish(self) -> None:
        """Unsupported for attributes that nobody took."""
        for name in self.attributes:
            self.refuse(f"Don't know how to map unexpected argument {name}")

    def has_input(self, index: int) -> bool:
        return index < len(self.inputs) and bool(self.inputs[index])

    def constant_input(self, index: int) -> Any:
        """The value of an input that is the same in each run; None where there is no input.
        Unsupported for one that is computed."""
        if not self.has_input(index):
            return None
        if self.inputs[index] not in self.graph.constants:
            self.refuse(f"input {index} '{self.inputs[index]}' has to be constant")
        return self.graph.constants[self.inputs[index]]

    def attribute_or_input(self, name: str, index: int) -> Any:
        """What was an attribute in older operator sets and is a constant input in newer ones: a
        list of numbers, or None."""
        value = self.take(name)
        if value is None and self.has_input(index):
            value = self.constant_input(index).reshape(-1).tolist()
            del self.inputs[index:]
        return value

    def shape(self, index: int = 0) -> list[int | None] | None:
        """The shape of an input; None when it is not known."""
        return self.graph.shapes.get(self.inputs[index]) if self.has_input(index) else None

    def rank(self, index: int = 0) -> int:
        """The number of dimensions of an input.  Unsupported when it is not known."""
        shape = self.shape(index)
        if shape is None:
            self.refuse(f"the number of dimensions of '{self.inputs[index]}' is not known")
        return len(shape)

    def axis(self, value: int, index: int = 0, more: int = 0) -> int:
        """An axis counted from the front."""
        return value if value >= 0 else value + self.rank(index) + more

    def new(self, what: str) -> str:
        return self.graph.new_name(f"{self.outputs[0]}_{what}")

    def emit(
        self,
        op_type: str,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | str | None = None,
        **arguments: Any,
    ) -> str:
        """Appends an operator (default: from all inputs to the first output); its first output."""
        if inputs is None:
            inputs = [name for name in self.inputs if name]
        if outputs is None:
            outputs = self.outputs[:1]
        names = [outputs] if isinstance(outputs, str) else list(outputs)
        with EmptyDeviceScope():
            op = CreateOperator(
                op_type,
                [BlobReference(name) for name in inputs],
                [BlobReference(name) for name in names],
                **{key: value for key, value in arguments.items() if value is not None},
            )
        self.graph.add([op])
        return names[0]

    def step(self, op_type: str, inputs: Sequence[str], **arguments: Any) -> str:
        """Appends an operator in between, with an output of a new name."""
        return self.emit(op_type, inputs, self.new(op_type.lower()), **arguments)


Converter = Callable[[Node], Any]
BOOL = int(DataType.BOOL)
