"""ONNX models run by this engine: `prepare(model).run(x)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from caffe2.graph.device import DeviceOption
from caffe2.interop.onnx.importer import convert_node, import_model, inputs_of
from caffe2.interop.onnx.node import Graph, fill_operators
from caffe2.proto import caffe2_pb2
from caffe2.runtime.engine import new_workspace
from caffe2.runtime.feeding import feed


def get_device_option(device: str) -> caffe2_pb2.DeviceOption:
    """The device that ONNX calls "CPU" or "CUDA:1"."""
    kind, _, number = device.partition(":")
    if kind not in ("CPU", "CUDA"):
        raise ValueError(f"there is no device {device!r}; there are CPU and CUDA")
    types = {"CPU": caffe2_pb2.PROTO_CPU, "CUDA": caffe2_pb2.PROTO_CUDA}
    return DeviceOption(types[kind], int(number or 0))


class Caffe2Rep(BackendRep):  # type: ignore[misc]
    """A model ready to run, in a workspace of its own.

    init_net, predict_net  its nets
    uninitialized          its inputs, in the order in which `run` takes them
    """

    def __init__(
        self,
        init_net: caffe2_pb2.NetDef,
        predict_net: caffe2_pb2.NetDef,
        uninitialized: Sequence[str],
        types: Mapping[str, Any] | None = None,
    ) -> None:
        self.init_net, self.predict_net = init_net, predict_net
        self.uninitialized, self._types = list(uninitialized), dict(types or {})
        self.workspace = new_workspace()
        self.workspace.run_net_once(init_net.SerializeToString())
        self._created = False

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """The outputs, a named tuple: `outputs[0]`, `outputs.y`, `outputs["y"]`.

        inputs: an array, a list of them in the order of the model's inputs, or a dict by name.
        Numbers are converted to the type that the model declares, from float64 to float32 for
        example.  ValueError for inputs that are missing or that there are not.
        """
        given = self._named(inputs)
        for name, value in given.items():
            array = np.asarray(value)
            declared = self._types.get(name, array.dtype)
            if declared.kind in "fiub" and array.dtype.kind in "fiub":
                array = array.astype(declared)
            feed(self.workspace, name, array)
        if not self._created:
            self.workspace.create_net(self.predict_net.SerializeToString())
            self._created = True
        self.workspace.run_net(self.predict_net.name)
        outputs = self.predict_net.external_output
        values = [self.workspace.fetch(name) for name in outputs]
        return namedtupledict("Outputs", list(outputs))(*values)

    def _named(self, inputs: Any) -> Mapping[str, Any]:
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(values) > len(self.uninitialized):
                raise ValueError(f"{len(values)} inputs are given; it takes {self.uninitialized}")
            given = dict(zip(self.uninitialized, values, strict=False))
        missing = [name for name in self.uninitialized if name not in given]
        unknown = [name for name in given if name not in self.predict_net.external_input]
        if missing or unknown:
            raise ValueError(f"missing inputs {missing}, unknown ones {unknown}")
        return given


class Caffe2Backend(Backend):  # type: ignore[misc]
    """This engine as a backend for ONNX."""

    @classmethod
    def prepare(
        cls, model: onnx.ModelProto, device: str = "CPU", raw_values_dict: Any = None, **kwargs: Any
    ) -> Caffe2Rep:
        """A model ready to run.  Unsupported for what has no counterpart."""
        init_net, predict_net = cls.onnx_graph_to_caffe2_net(model, device)
        types = {
            info.name: np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
            for info in model.graph.input
            if (kind := info.type.tensor_type.elem_type)
        }
        return Caffe2Rep(init_net, predict_net, inputs_of(model), types)

    @classmethod
    def onnx_graph_to_caffe2_net(
        cls, model: onnx.ModelProto, device: str = "CPU", opset_version: int = 9
    ) -> tuple[caffe2_pb2.NetDef, caffe2_pb2.NetDef]:
        """The nets of a model: what fills the parameters, and what predicts.

        `opset_version` is for models that do not say theirs.
        """
        if not model.opset_import:
            copy = onnx.ModelProto()
            copy.CopyFrom(model)
            copy.opset_import.add(version=opset_version)
            model = copy
        option = get_device_option(device)
        return import_model(model, option if option.device_type else None)

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> Any:
        """The outputs of a model; see Caffe2Rep.run."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        opset_version: int = 9,
        outputs_info: Any = None,
    ) -> Any:
        """The outputs of one node, for inputs as a list or a dict by name."""
        named = inputs
        if not isinstance(inputs, Mapping):
            named = dict(zip(node.input, inputs, strict=True))
        graph = Graph(opset_version)
        for name, value in named.items():
            array = np.asarray(value)
            graph.shapes[name] = list(array.shape)
            if node.op_type not in _DATA_ONLY and array.dtype.kind in "iu" and array.ndim < 2:
                graph.constants[name] = array
        convert_node(node, graph)
        init = caffe2_pb2.NetDef(name="node_init", op=graph.init_ops)
        net = caffe2_pb2.NetDef(name="node", op=graph.ops)
        filled = [name for op in graph.init_ops for name in op.output]
        net.external_input.extend(dict.fromkeys([*named, *filled]))
        net.external_output.extend(name for name in node.output if name)
        return Caffe2Rep(init, net, list(named)).run(dict(named))

    @classmethod
    def supports_device(cls, device_str: str) -> bool:
        """Whether it runs on a device: on the CPU."""
        return device_str.partition(":")[0] == "CPU"

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether it can try a model; `prepare` says what it cannot."""
        return cls.supports_device(device)

    @classmethod
    def _create_tensor_filling_op(
        cls, onnx_tensor: onnx.TensorProto, name: str | None = None
    ) -> caffe2_pb2.OperatorDef:
        """The operator that fills a blob with a tensor.  ValueError where it takes two."""
        array = onnx.numpy_helper.to_array(onnx_tensor)
        ops = fill_operators(name or onnx_tensor.name, array)
        if len(ops) > 1:
            raise ValueError(f"no single operator fills {array.dtype} values")
        return ops[0]


# Small integers that are inputs of these are data, of others shapes and axes.
_DATA_ONLY = ("Gather", "Add", "Sub", "Mul", "Div", "Equal", "Greater", "Less", "Cast", "Identity")

prepare = Caffe2Backend.prepare
run_model = Caffe2Backend.run_model
run_node = Caffe2Backend.run_node
supports_device = Caffe2Backend.supports_device
is_compatible = Caffe2Backend.is_compatible
