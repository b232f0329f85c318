"""Nets as ONNX models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

from caffe2.graph.model import Model
from caffe2.interop.onnx.export_node import OPSET, Operator
from caffe2.interop.onnx.export_ops import EXPORTERS
from caffe2.interop.onnx.node import Unsupported
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2
from caffe2.runtime.engine import new_workspace
from caffe2.runtime.feeding import feed

ValueInfo: TypeAlias = Mapping[str, tuple[int, Sequence[int]]]


def _proto(net: Any) -> caffe2_pb2.NetDef:
    return net.Proto() if hasattr(net, "Proto") else net  # type: ignore[no-any-return]


class Caffe2Frontend:
    """Nets as ONNX models, graphs and nodes of operator set `target_opset_version`."""

    target_opset_version = OPSET

    @classmethod
    def caffe2_net_to_onnx_model(
        cls, predict_net: Any, init_net: Any = None, value_info: ValueInfo | None = None
    ) -> onnx.ModelProto:
        """A model that computes what the nets compute, checked by `onnx.checker`.

        predict_net  a Net or NetDef
        init_net     the net that fills its parameters
        value_info   for each other input (element type of onnx.TensorProto, shape); also for one
                     that the init net fills with a value that stands for it, as `mobile_exporter`
                     has it do

        ValueError for an input that nobody describes, Unsupported for an operator or argument that
        ONNX has no counterpart of.  The nets are run once, on zeros, to see their shapes.
        """
        graph = cls.caffe2_net_to_onnx_graph(predict_net, init_net, value_info)
        model = onnx.helper.make_model(
            graph,
            producer_name="caffe2",
            opset_imports=[onnx.helper.make_opsetid("", cls.target_opset_version)],
            ir_version=4,
        )
        onnx.checker.check_model(model)
        return model

    @classmethod
    def caffe2_net_to_onnx_graph(
        cls, predict_net: Any, init_net: Any = None, value_info: ValueInfo | None = None
    ) -> onnx.GraphProto:
        """The graph of that model."""
        net, infos = caffe2_pb2.NetDef(), dict(value_info or {})
        net.CopyFrom(_proto(predict_net))
        outputs = list(net.external_output)
        tensors = cls.caffe2_init_net_to_initializer(init_net) if init_net is not None else []
        stand_in = _stand_ins(net, init_net, tensors, infos)
        tensors = [tensor for tensor in tensors if tensor.name not in stand_in]
        filled = {tensor.name for tensor in tensors}
        missing = [n for n in net.external_input if n not in filled and n not in infos]
        if missing:
            raise ValueError(f"value_info has to describe the inputs {', '.join(missing)}")
        for op in net.op:
            _check(op)
        cls._ssa_rewrite(net, None, infos)
        _keep_names(net, outputs)
        specs = _specs(net, tensors, infos)
        graph = onnx.GraphProto(name=net.name or "caffe2")
        names = {name for op in net.op for name in (*op.input, *op.output)} | filled

        def new_name(base: str) -> str:
            name, number = base, 0
            while name in names:
                number += 1
                name = f"{base}_{number}"
            names.add(name)
            return name

        constants: list[onnx.TensorProto] = []
        for op in net.op:
            nodes, made = cls._nodes_of(op, specs, new_name)
            graph.node.extend(nodes)
            constants.extend(made)
        read = {name for node in graph.node for name in node.input} | set(net.external_output)
        graph.initializer.extend(t for t in (*tensors, *constants) if t.name in read)
        for name in net.external_input:
            if name not in filled:
                kind, shape = infos[name]
                graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
        for name in net.external_output:
            kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(specs[name].dtype))
            graph.output.append(onnx.helper.make_tensor_value_info(name, kind, specs[name].shape))
        return graph

    @classmethod
    def caffe2_init_net_to_initializer(cls, init_net: Any) -> list[onnx.TensorProto]:
        """What an init net fills, as tensors."""
        proto, workspace = _proto(init_net), new_workspace()
        workspace.run_net_once(proto.SerializeToString())
        written = dict.fromkeys(name for op in proto.op for name in op.output)
        wanted = list(proto.external_output) or list(written)
        return [numpy_helper.from_array(np.asarray(workspace.fetch(n)), n) for n in wanted]

    @classmethod
    def caffe2_op_to_onnx_node(
        cls, op_def: caffe2_pb2.OperatorDef, shapes: Mapping[str, Sequence[int]]
    ) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
        """The nodes of one operator and the constants that they read.

        shapes: of its blobs, where a node needs them
        """
        number = iter(range(2**31))
        specs = {name: Spec(tuple(s), np.dtype(np.float32)) for name, s in shapes.items()}
        return cls._nodes_of(op_def, specs, lambda base: f"{base}_{next(number)}")

    @staticmethod
    def _nodes_of(
        op_def: caffe2_pb2.OperatorDef, specs: Mapping[str, Spec], new_name: Any
    ) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
        if op_def.type in _FILLS and not op_def.input:
            if op_def.output[0] not in specs:
                raise Unsupported(f"the values of '{op_def.output[0]}' are not known")
            workspace = new_workspace()
            workspace.run_operator(op_def.SerializeToString())
            value = np.asarray(workspace.fetch(op_def.output[0]))
            return [], [numpy_helper.from_array(value, op_def.output[0])]
        _check(op_def)
        op = Operator(op_def, specs, new_name)
        EXPORTERS[op_def.type](op)
        return op.nodes, op.constants

    @classmethod
    def _ssa_rewrite(
        cls, net: caffe2_pb2.NetDef, init_net: caffe2_pb2.NetDef | None, value_info: Any
    ) -> None:
        """Gives each value a name of its own: a blob that is written again becomes "x_1", "x_2".

        Blobs that are written once, and those from outside, keep their names; so do init_net and
        value_info.
        """
        written: dict[str, int] = {}
        for op in net.op:
            for name in op.output:
                written[name] = written.get(name, 0) + 1
        again = {n for n, times in written.items() if times > 1 or n in net.external_input}
        taken = {*written, *net.external_input}
        version: dict[str, str] = {}
        counts = dict.fromkeys(again, 0)
        for op in net.op:
            op.input[:] = [version.get(name, name) for name in op.input]
            outputs = []
            for name in op.output:
                if name in again:
                    counts[name] += 1
                    while f"{name}_{counts[name]}" in taken:
                        counts[name] += 1
                    version[name] = f"{name}_{counts[name]}"
                outputs.append(version.get(name, name))
            op.output[:] = outputs
        net.external_output[:] = [version.get(name, name) for name in net.external_output]

    ssa_rewrite = _ssa_rewrite


_FILLS = (
    "ConstantFill",
    "GivenTensorBoolFill",
    "GivenTensorDoubleFill",
    "GivenTensorFill",
    "GivenTensorInt16Fill",
    "GivenTensorInt64Fill",
    "GivenTensorIntFill",
)


def _check(op: caffe2_pb2.OperatorDef) -> None:
    if op.type not in EXPORTERS and (op.type not in _FILLS or op.input):
        raise Unsupported(
            f"the operator {op.type} '{', '.join(op.output)}' has no ONNX counterpart"
        )


def _stand_ins(
    net: caffe2_pb2.NetDef, init_net: Any, tensors: Sequence[onnx.TensorProto], infos: ValueInfo
) -> set[str]:
    """What is filled and yet an input: where all inputs are filled, and where the shape that an
    input is said to have is another one."""
    if init_net is None:
        return set()
    described = {t.name: tuple(infos[t.name][1]) for t in tensors if t.name in infos}
    other = {t.name for t in tensors if described.get(t.name, tuple(t.dims)) != tuple(t.dims)}
    return other.union(Model(_proto(init_net), net).stand_in)


def _keep_names(net: caffe2_pb2.NetDef, outputs: list[str]) -> None:
    """Has the last versions of the outputs keep their names, unless an input has them."""
    free = {
        new: old
        for new, old in zip(net.external_output, outputs, strict=True)
        if old not in net.external_input
    }
    for op in net.op:
        op.input[:] = [free.get(name, name) for name in op.input]
        op.output[:] = [free.get(name, name) for name in op.output]
    net.external_output[:] = [free.get(name, name) for name in net.external_output]


def _specs(
    net: caffe2_pb2.NetDef, tensors: Sequence[onnx.TensorProto], infos: ValueInfo
) -> dict[str, Spec]:
    """Shapes and types of all blobs, as a run on zeros shows them."""
    workspace = new_workspace()
    for tensor in tensors:
        feed(workspace, tensor.name, numpy_helper.to_array(tensor))
    for name, (kind, shape) in infos.items():
        zeros = np.zeros(tuple(shape), onnx.helper.tensor_dtype_to_np_dtype(kind))
        feed(workspace, name, zeros)
    workspace.run_net_once(net.SerializeToString())
    found = {name: workspace.tensor_spec(name) for name in workspace.blobs()}
    return {
        name: Spec(tuple(spec[0]), np.dtype(spec[1]))
        for name, spec in found.items()
        if spec is not None
    }


caffe2_net_to_onnx_model = Caffe2Frontend.caffe2_net_to_onnx_model
caffe2_net_to_onnx_graph = Caffe2Frontend.caffe2_net_to_onnx_graph
caffe2_init_net_to_initializer = Caffe2Frontend.caffe2_init_net_to_initializer
ssa_rewrite = Caffe2Frontend.ssa_rewrite
