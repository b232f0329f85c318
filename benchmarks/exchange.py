"""A net of benchmarks/nets.py as a file that peers read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from caffe2 import ops, passes
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
        window = {"kernel_shape": [args.get("kernel") or 0] * 2, **_window(args)}
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


def _window(args: dict[str, Any]) -> dict[str, list[int]]:
    return {"strides": [args.get("stride") or 1] * 2, "pads": [args.get("pad") or 0] * 4}


def save_graph(net: caffe2_pb2.NetDef, params: dict[str, Any], folder: Path) -> None:
    """Writes the folded net as graph.json and graph.npz, for exchange_tflite.py."""
    import numpy as np

    params = dict(params)
    folded, _ = passes.optimize(net, params, without=["fuse_depthwise"])
    nodes = []
    for op in folded.op:
        args = vars(ops.find(op.type).view_of(op).args)
        kept = {key: args[key] for key in ("kernel", "stride", "pad", "group") if key in args}
        if args.get("global_pooling"):
            kept["kernel"] = 0
        nodes.append({"type": op.type, "in": list(op.input), "out": op.output[0], **kept})
    (folder / "graph.json").write_text(json.dumps(nodes))
    used = {name for op in folded.op for name in op.input}
    np.savez(folder / "graph.npz", **{n: v for n, v in params.items() if n in used})
