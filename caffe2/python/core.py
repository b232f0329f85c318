"""Nets, blobs, operators and gradients; see `caffe2.graph`."""

import importlib
from typing import Any

from caffe2.graph.backward import IR
from caffe2.graph.blob import BlobReference, ScopedBlobReference, ScopedName
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
from caffe2.graph.scope import DeviceScope, NameScope, SetDeviceOption
from caffe2.graph.ssa import get_output_producers, get_ssa, get_undefined_blobs
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
    "IR",
    "BlobReference",
    "CreateOperator",
    "DataType",
    "DeviceOption",
    "DeviceScope",
    "ExecutionStep",
    "GetIndexFromGradientList",
    "GradientRegistry",
    "GradientSlice",
    "InferOpBlobDevices",
    "InferOpBlobDevicesAsDict",
    "IsGPUDeviceType",
    "IsOperator",
    "IsOperatorWithEngine",
    "NameScope",
    "Net",
    "Plan",
    "ScopedBlobReference",
    "ScopedName",
    "SetDeviceOption",
    "SetEnginePref",
    "SetGlobalEnginePref",
    "SetOpEnginePref",
    "SetPerOpEnginePref",
    "add_nets_in_order",
    "caffe2_pb2",
    "device_option_equal",
    "execution_step",
    "get_net_name",
    "get_output_producers",
    "get_ssa",
    "get_undefined_blobs",
    "output_to_list",
    "scope",
    "scoped_execution_step",
    "to_execution_step",
    "utils",
]


def __getattr__(name: str) -> Any:
    # These load the engine, which building a net does not need.
    if name == "workspace":
        return importlib.import_module("caffe2.python.workspace")
    if name == "C":
        return importlib.import_module("caffe2.python._C")
    if name == "GlobalInit":
        from caffe2.runtime.workspace import GlobalInit

        return GlobalInit
    raise AttributeError(f"module {__name__} has no attribute {name}")
