"""One operator on its way to ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import numpy_helper

from caffe2 import ops
from caffe2.interop.onnx.node import Unsupported
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2

OPSET = 9


class Operator:
    """An operator, its arguments with their defaults, and the nodes and constants that it becomes.

    specs  shapes and types of blobs, as a run of the net has shown them
    """

    def __init__(
        self, op: caffe2_pb2.OperatorDef, specs: Mapping[str, Spec], new_name: Callable[[str], str]
    ) -> None:
        self.type, self.specs, self._new_name = op.type, specs, new_name
        self.inputs, self.outputs = list(op.input), list(op.output)
        self.args: SimpleNamespace = ops.find(op.type).view_of(op).args
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def refuse(self, what: str) -> NoReturn:
        where = f"{self.type} '{', '.join(self.outputs)}'"
        raise Unsupported(f"{where}: {what} has no ONNX counterpart")

    def arg(self, name: str, default: Any = None) -> Any:
        return getattr(self.args, name, default)

    def expect(self, name: str, allowed: Any) -> None:
        """Unsupported when an argument has another value."""
        if self.arg(name, allowed) != allowed:
            self.refuse(f"{name}={self.arg(name)}")

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """The shape of an input.  Unsupported when it is not known."""
        spec = self.specs.get(self.inputs[index])
        if spec is None:
            self.refuse(f"an input '{self.inputs[index]}' of unknown shape")
        return spec.shape

    def axis(self, value: int, index: int = 0) -> int:
        return value if value >= 0 else value + len(self.shape(index))

    def new(self, what: str) -> str:
        return self._new_name(f"{self.outputs[0]}_{what}")

    def constant(self, values: Any, what: str = "constant", dtype: Any = np.int64) -> str:
        """A tensor of its own, its name."""
        name = self.new(what)
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def emit(
        self,
        node_type: str,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | str | None = None,
        **attributes: Any,
    ) -> str:
        """Appends a node (default: from all inputs to the first output); its first output."""
        names = self.outputs[:1] if outputs is None else outputs
        names = [names] if isinstance(names, str) else list(names)
        given = {key: value for key, value in attributes.items() if value is not None}
        sources = self.inputs if inputs is None else inputs
        self.nodes.append(onnx.helper.make_node(node_type, sources, names, **given))
        return names[0]

    def step(self, node_type: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Appends a node in between, with an output of a new name."""
        return self.emit(node_type, inputs, self.new(node_type.lower()), **attributes)
