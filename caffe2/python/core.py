"""Nets, blobs, operators and gradients; see `caffe2.graph`."""

import importlib
from typing import Any

from caffe2.graph.backward import IR
from caffe2.graph.blob import BlobReference, ScopedName
from caffe2.graph.cloning import clone_and_bind_net
from caffe2.graph.copies import (
    InferBlobDevices,
    InferOpDeviceAsBlobDevices,
    InjectCrossDeviceCopies,
    InjectDeviceCopiesAmongNets,
    InjectDeviceCopiesAmongNetsWithoutB2D,
    RemapEntry,
    copy_func_between_devices,
    device_equal,
    update_placeholder_op_output,
)
from caffe2.graph.datatype import DataType
from caffe2.graph.device import (
    DeviceOption,
    InferOpBlobDevices,
    InferOpBlobDevicesAsDict,
    IsGPUDeviceType,
    device_option_equal,
)
from caffe2.graph.engine_preference import (
    SetEnginePref,
    SetGlobalEnginePref,
    SetOpEnginePref,
    SetPerOpEnginePref,
)
from caffe2.graph.gradients import GetIndexFromGradientList, GradientRegistry
from caffe2.graph.net import Net, get_net_name, output_to_list
from caffe2.graph.operator import CreateOperator, IsOperator, IsOperatorWithEngine
from caffe2.graph.python_functions import CreatePythonOperator
from caffe2.graph.remapping import (
    DEFAULT_REMAP_FUNCS,
    control_op_remap,
    recurrent_network_op_remap,
    remap_input,
    remap_proto,
)
from caffe2.graph.scope import DeviceScope, NameScope, SetDeviceOption
from caffe2.graph.ssa import get_op_ids_in_path, get_output_producers, get_ssa, get_undefined_blobs
from caffe2.ops.declaration import GradientSlice
from caffe2.plans.plan import Plan
from caffe2.plans.step import (
    ExecutionStep,
    add_nets_in_order,
    execution_step,
    scoped_execution_step,
    to_execution_step,
)
from caffe2.proto import caffe2_pb2
from caffe2.python import scope, utils

__all__ = [
    "DEFAULT_REMAP_FUNCS",
    "IR",
    "BlobReference",
    "CreateOperator",
    "CreatePythonOperator",
    "DataType",
    "DeviceOption",
    "DeviceScope",
    "ExecutionStep",
    "GetIndexFromGradientList",
    "GradientRegistry",
    "GradientSlice",
    "InferBlobDevices",
    "InferOpBlobDevices",
    "InferOpBlobDevicesAsDict",
    "InferOpDeviceAsBlobDevices",
    "InjectCrossDeviceCopies",
    "InjectDeviceCopiesAmongNets",
    "InjectDeviceCopiesAmongNetsWithoutB2D",
    "IsGPUDeviceType",
    "IsOperator",
    "IsOperatorWithEngine",
    "NameScope",
    "Net",
    "Plan",
    "RemapEntry",
    "ScopedName",
    "SetDeviceOption",
    "SetEnginePref",
    "SetGlobalEnginePref",
    "SetOpEnginePref",
    "SetPerOpEnginePref",
    "add_nets_in_order",
    "caffe2_pb2",
    "clone_and_bind_net",
    "control_op_remap",
    "copy_func_between_devices",
    "device_equal",
    "device_option_equal",
    "execution_step",
    "get_net_name",
    "get_op_ids_in_path",
    "get_output_producers",
    "get_ssa",
    "get_undefined_blobs",
    "output_to_list",
    "recurrent_network_op_remap",
    "remap_input",
    "remap_proto",
    "scope",
    "scoped_execution_step",
    "string_types",
    "to_execution_step",
    "update_placeholder_op_output",
    "utils",
]

string_types = (str,)


def __getattr__(name: str) -> Any:
    # These load the engine, which building a net does not need.
    if name == "workspace":
        return importlib.import_module("caffe2.python.workspace")
    if name == "C":
        return importlib.import_module("caffe2.python._C")
    if name == "ScopedBlobReference":
        return importlib.import_module("caffe2.runtime.scoped_blob").ScopedBlobReference
    if name in ("GlobalInit", "GetGlobalInitArgs"):
        return getattr(importlib.import_module("caffe2.runtime.workspace"), name)
    if name == "_REGISTERED_OPERATORS":
        return set(Net.operator_types())
    raise AttributeError(f"module {__name__} has no attribute {name}")
