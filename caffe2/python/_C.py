"""What scripts and tests of old reach as `core.C` and `workspace.C`."""  # noqa: N999

from __future__ import annotations

from collections.abc import Sequence

from caffe2 import ops
from caffe2._native import Cursor
from caffe2.data.databases import DB, Mode, Transaction, create_db, registered_dbs
from caffe2.interop.onnx.names import DummyName
from caffe2.ops.datatypes import data_type_of, dtype_of
from caffe2.ops.declaration import Declaration, Spec
from caffe2.proto import caffe2_pb2
from caffe2.runtime import machine, transforms, workspace
from caffe2.runtime.handles import Blob, Workspace
from caffe2.runtime.handles import CreatedNet as Net
from caffe2.runtime.handles import Tensor as TensorCPU

__all__ = [
    "DB",
    "Blob",
    "Cursor",
    "DummyName",
    "Mode",
    "Net",
    "OpSchema",
    "TensorCPU",
    "Transaction",
    "Workspace",
    "blobs",
    "create_blob",
    "create_db",
    "current_workspace",
    "get_blob_numa_node",
    "get_blob_size_bytes",
    "get_cuda_version",
    "get_cudnn_version",
    "get_num_numa_nodes",
    "get_stats",
    "global_init",
    "has_blob",
    "has_cuda_support",
    "has_fbgemm",
    "has_gpu_support",
    "has_hip_support",
    "has_mkldnn",
    "is_asan",
    "is_numa_enabled",
    "nets",
    "num_cuda_devices",
    "registered_dbs",
    "registered_operators",
    "reset_workspace",
    "root_folder",
    "switch_workspace",
    "transform_exists",
    "use_mkldnn",
    "workspaces",
]

get_blob_numa_node = machine.GetBlobNUMANode
get_cuda_version = machine.GetCUDAVersion
get_cudnn_version = machine.GetCuDNNVersion
get_num_numa_nodes = machine.GetNumNUMANodes
get_stats = machine.GetStats
is_numa_enabled = machine.IsNUMAEnabled
num_cuda_devices = machine.NumGpuDevices
blobs = workspace.Blobs
create_blob = workspace.CreateBlob
current_workspace = workspace.CurrentWorkspace
get_blob_size_bytes = workspace.GetBlobSizeBytes
global_init = workspace.GlobalInit
has_blob = workspace.HasBlob
nets = workspace.Nets
registered_operators = workspace.RegisteredOperators
reset_workspace = workspace.ResetWorkspace
root_folder = workspace.RootFolder
switch_workspace = workspace.SwitchWorkspace
transform_exists = transforms.transform_exists
workspaces = workspace.Workspaces
has_cuda_support = has_gpu_support = has_hip_support = False
has_mkldnn = use_mkldnn = False
has_fbgemm = True  # what it did is there: files of bfloat16, packed Int8 layers
is_asan = False

_NO_LIMIT = 2**31 - 1


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
