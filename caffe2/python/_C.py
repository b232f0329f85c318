"""What scripts and tests of old reach as `core.C` and `workspace.C`."""  # noqa: N999

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe2 import ops
from caffe2.ops.datatypes import data_type_of, dtype_of
from caffe2.ops.declaration import Declaration, Spec
from caffe2.proto import caffe2_pb2
from caffe2.runtime.engine import new_workspace
from caffe2.runtime.workspace import StringifyBlobName, StringifyProto

has_hip_support = False
has_mkldnn = False

_NO_LIMIT = 2**31 - 1


def num_cuda_devices() -> int:
    """The number of GPUs: none."""
    return 0


def get_cudnn_version() -> int:
    """0: there is no cuDNN."""
    return 0


class Blob:
    """A blob of a Workspace."""

    def __init__(self, workspace: Any, name: str) -> None:
        self._workspace, self._name = workspace, name

    def feed(self, array: Any, device_option: Any = None) -> bool:
        self._workspace.feed(self._name, array)
        return True

    def fetch(self) -> Any:
        return self._workspace.fetch(self._name)


class Workspace:
    """A workspace apart from those that have a name."""

    def __init__(self) -> None:
        self._workspace = new_workspace()

    @property
    def blobs(self) -> dict[str, Blob]:
        return {name: Blob(self._workspace, name) for name in self._workspace.blobs()}

    def create_blob(self, name: Any) -> Blob:
        self._workspace.create_blob(StringifyBlobName(name))
        return Blob(self._workspace, StringifyBlobName(name))

    def has_blob(self, name: Any) -> bool:
        return self._workspace.has_blob(StringifyBlobName(name))

    def feed_blob(self, name: Any, array: Any, device_option: Any = None) -> bool:
        return self.create_blob(name).feed(array)

    def fetch_blob(self, name: Any) -> Any:
        return self._workspace.fetch(StringifyBlobName(name))

    def run(self, operator_or_net: Any) -> None:
        """Runs an OperatorDef, a NetDef or a Net once."""
        message = StringifyProto(operator_or_net)
        if isinstance(operator_or_net, caffe2_pb2.OperatorDef):
            self._workspace.run_operator(message)
        else:
            self._workspace.run_net_once(message)


class OpSchema:
    """The declaration of an operator as the old API shows it."""

    inf = _NO_LIMIT

    def __init__(self, declaration: Declaration) -> None:
        self._declaration = declaration
        self.doc = declaration.doc
        self.min_input = declaration.inputs.least
        self.min_output = declaration.outputs.least
        self.max_input = _NO_LIMIT if declaration.inputs.variadic else declaration.inputs.most
        self.max_output = _NO_LIMIT if declaration.outputs.variadic else declaration.outputs.most

    @staticmethod
    def get(op_type: str) -> OpSchema | None:
        """The schema of an operator type; None when there is none."""
        try:
            return OpSchema(ops.find(op_type))
        except ops.UnknownOperatorError:
            return None

    def num_inputs_allowed(self, number: int) -> bool:
        return self.min_input <= number <= (self.max_input or 0)

    def num_outputs_allowed(self, number: int) -> bool:
        return self.min_output <= number <= (self.max_output or 0)

    def num_inputs_outputs_allowed(self, inputs: int, outputs: int) -> bool:
        return self.num_inputs_allowed(inputs) and self.num_outputs_allowed(outputs)

    def inplace_enforced(self, input_index: int, output_index: int) -> bool:
        return self._declaration.enforces_inplace(input_index, output_index)

    def infer_tensor(
        self, op: caffe2_pb2.OperatorDef, shapes: Sequence[caffe2_pb2.TensorShape]
    ) -> list[caffe2_pb2.TensorShape]:
        """The shapes of the outputs; `unknown_shape` where they depend on values."""
        specs = [Spec(tuple(shape.dims), dtype_of(shape.data_type)) for shape in shapes]
        found = self._declaration.infer(self._declaration.view_of(op), specs)
        return [_tensor_shape(spec) for spec in found]


def _tensor_shape(spec: Spec | None) -> caffe2_pb2.TensorShape:
    if spec is None:
        return caffe2_pb2.TensorShape(unknown_shape=True)
    shape = caffe2_pb2.TensorShape(dims=spec.shape)
    shape.data_type = int(data_type_of(spec.dtype))  # type: ignore[assignment]
    return shape
