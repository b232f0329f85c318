"""ONNX graphs as pairs of nets."""

from __future__ import annotations

import contextlib
from typing import Any

import onnx
from onnx import numpy_helper

from caffe2.interop.onnx import elementwise, layers, recurrent, shaping
from caffe2.interop.onnx.node import Graph, Node, Unsupported
from caffe2.proto import caffe2_pb2

CONVERTERS = {
    **elementwise.CONVERTERS,
    **layers.CONVERTERS,
    **recurrent.CONVERTERS,
    **shaping.CONVERTERS,
}


def opset_of(model: onnx.ModelProto) -> int:
    """The version of the operators of a model; 1 where it does not say."""
    versions = [item.version for item in model.opset_import if item.domain in ("", "ai.onnx")]
    return max(versions, default=1)


def convert_node(proto: onnx.NodeProto, graph: Graph) -> None:
    """Appends the operators of one node.  Unsupported for one that has no counterpart."""
    node = Node(proto, graph)
    if proto.domain not in ("", "ai.onnx") or proto.op_type not in CONVERTERS:
        domain = f"{proto.domain}." if proto.domain else ""
        raise Unsupported(f"there is no counterpart of the ONNX operator {domain}{node.where}")
    CONVERTERS[proto.op_type](node)
    node.finish()


def import_model(
    model: onnx.ModelProto, device: caffe2_pb2.DeviceOption | None = None
) -> tuple[caffe2_pb2.NetDef, caffe2_pb2.NetDef]:
    """The net that fills the parameters of a model, and the one that computes its outputs.

    Shapes that follow from those of the inputs are used where a node needs them.  Unsupported, with
    the name of the node, for what has no counterpart.
    """
    with contextlib.suppress(RuntimeError, ValueError, TypeError):
        # What is not known of shapes is missed where it is needed.
        model = onnx.shape_inference.infer_shapes(model)
    source = model.graph
    graph = Graph(opset_of(model), device)
    for info in (*source.input, *source.value_info, *source.output):
        graph.add_shape(info)
        graph.used.add(info.name)
    for tensor in source.initializer:
        graph.constant(tensor.name, numpy_helper.to_array(tensor))
    for node in source.node:
        graph.used.update(name for name in (*node.input, *node.output) if name)
    for node in source.node:
        convert_node(node, graph)
    name = source.name or "onnx"
    init = caffe2_pb2.NetDef(name=f"{name}_init", op=graph.init_ops)
    filled = [output for op in graph.init_ops for output in op.output]
    read = {blob for op in graph.ops for blob in op.input}
    results = [info.name for info in source.output]
    kept = [blob for blob in filled if blob in graph.constants and blob in {*read, *results}]
    init.external_output.extend(kept)
    predict = caffe2_pb2.NetDef(name=name, op=graph.ops)
    inputs = [info.name for info in source.input if info.name not in graph.constants]
    predict.external_input.extend([*inputs, *kept])
    predict.external_output.extend(results)
    return init, predict


def inputs_of(model: onnx.ModelProto) -> list[str]:
    """The inputs of a model that are no parameters."""
    given = {tensor.name for tensor in model.graph.initializer}
    return [info.name for info in model.graph.input if info.name not in given]


def import_node(
    node: onnx.NodeProto, opset: int, shapes: dict[str, Any]
) -> tuple[list[caffe2_pb2.OperatorDef], list[caffe2_pb2.OperatorDef]]:
    """The operators of one node: those that fill constants, and those that compute."""
    graph = Graph(opset)
    graph.shapes.update({name: list(shape) for name, shape in shapes.items()})
    convert_node(node, graph)
    return graph.init_ops, graph.ops
