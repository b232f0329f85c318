"""A net of benchmarks as an ONNX file, for peers that read that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from caffe2 import ops
from caffe2.proto import caffe2_pb2


def save_onnx(
    net: caffe2_pb2.NetDef, params: dict[str, Any], shape: tuple[int, ...], path: Path
) -> None:
    """Writes `net`, whose operators must be among those of benchmarks/nets.py.  Needs onnx."""
    from onnx import TensorProto, helper, numpy_helper, save

    nodes, constants = [], [numpy_helper.from_array(v, name) for name, v in params.items()]
    for op in net.op:
        args = vars(ops.find(op.type).view_of(op).args)
        inputs, outputs = list(op.input), list(op.output)
        kernel = [args.get("kernel") or 0] * 2
        window = {"kernel_shape": kernel, "strides": [args.get("stride") or 1] * 2}
        window["pads"] = [args.get("pad") or 0] * 4
        if op.type == "Conv":
            nodes.append(helper.make_node("Conv", inputs, outputs, group=args["group"], **window))
        elif op.type == "SpatialBN":
            nodes.append(
                helper.make_node("BatchNormalization", inputs, outputs, epsilon=args["epsilon"])
            )
        elif op.type in ("MaxPool", "AveragePool") and args.get("global_pooling"):
            nodes.append(helper.make_node(f"Global{op.type}", inputs, outputs))
        elif op.type in ("MaxPool", "AveragePool"):
            nodes.append(helper.make_node(op.type, inputs, outputs, **window))
        elif op.type == "FC":
            flat = f"{outputs[0]}_flat"
            nodes.append(helper.make_node("Flatten", inputs[:1], [flat]))
            nodes.append(helper.make_node("Gemm", [flat, *inputs[1:]], outputs, transB=1))
        elif op.type == "Clip":
            bounds = [f"{outputs[0]}_{side}" for side in ("min", "max")]
            for name, side in zip(bounds, ("min", "max"), strict=True):
                constants.append(helper.make_tensor(name, TensorProto.FLOAT, [], [args[side]]))
            nodes.append(helper.make_node("Clip", [inputs[0], *bounds], outputs))
        elif op.type == "Concat":
            nodes.append(helper.make_node("Concat", inputs, outputs[:1], axis=1))
        elif op.type in ("Relu", "Sum"):
            nodes.append(helper.make_node(op.type, inputs, outputs))
        else:
            raise ValueError(f"{op.type} is none of the operators of these nets")
    graph = helper.make_graph(
        nodes,
        net.name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(net.external_output[0], TensorProto.FLOAT, None)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, str(path))
