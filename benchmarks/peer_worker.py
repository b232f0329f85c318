"""One system of benchmarks/peers.py: `peer_worker.py SYSTEM FOLDER NET THREADS`.

Says {"answer": [...]} or {"error": "..."} in a line; then, for each line with a number of seconds,
{"seconds": s}, the mean of calls that took about as long in all.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Step = Callable[[], Any]


def caffe2(folder: Path, x: Any, threads: int) -> Step:
    from caffe2.proto import caffe2_pb2
    from caffe2.python import core, workspace

    workspace.GlobalInit(["caffe2", f"--caffe2_omp_num_threads={threads}"])
    init = caffe2_pb2.NetDef(name="init")
    for name, value in np.load(folder / "params.npz").items():
        init.op.append(
            core.CreateOperator("GivenTensorFill", [], [name], shape=value.shape, values=value)
        )
    predictor = workspace.Predictor(init, (folder / "net.pb").read_bytes())
    return lambda: predictor.run([x])[0]


def onnxruntime(folder: Path, x: Any, threads: int) -> Step:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(
        str(folder / "net.onnx"), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, {"x": x})[0]


def openvino(folder: Path, x: Any, threads: int) -> Step:
    import openvino as ov

    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
    config |= {"PERFORMANCE_HINT": "LATENCY"}
    request = (
        ov.Core().compile_model(str(folder / "net.onnx"), "CPU", config).create_infer_request()
    )

    def step() -> Any:
        return request.infer({0: x})[0].copy()

    return step


def mnn(folder: Path, x: Any, threads: int) -> Step:
    import subprocess

    import MNN
    from MNN import expr, nn

    command = [sys.executable, "-m", "MNN.tools.mnnconvert", "-f", "ONNX", "--bizCode", "MNN"]
    files = ["--modelFile", str(folder / "net.onnx"), "--MNNModel", str(folder / "net.mnn")]
    done = subprocess.run([*command, *files], check=False, capture_output=True, text=True)
    if not (folder / "net.mnn").exists():
        raise RuntimeError(f"MNN {MNN.version()} cannot convert the net: {done.stderr[-200:]}")
    manager = nn.create_runtime_manager(
        ({"backend": "CPU", "precision": "high", "numThread": threads},)
    )
    net = nn.load_module_from_file(str(folder / "net.mnn"), ["x"], [], runtime_manager=manager)
    shape = list(x.shape)

    def step() -> Any:
        return np.array(net.forward(expr.const(x, shape, expr.NCHW)).read(), copy=True)

    return step


def torch(folder: Path, x: Any, threads: int) -> Step:
    import onnx
    import torch as t
    from onnx import numpy_helper

    t.set_num_threads(threads)
    graph = onnx.load(folder / "net.onnx").graph
    constants = {c.name: t.from_numpy(numpy_helper.to_array(c).copy()) for c in graph.initializer}
    f = t.nn.functional

    def forward(data: Any) -> Any:
        values = {**constants, "x": data}
        for node in graph.node:
            a = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
            v = [values[name] for name in node.input]
            pad = a.get("pads", [0])[0]
            if node.op_type == "Conv":
                bias = v[2] if len(v) > 2 else None
                y = f.conv2d(v[0], v[1], bias, a["strides"], pad, 1, a["group"])
            elif node.op_type == "BatchNormalization":
                y = f.batch_norm(v[0], v[3], v[4], v[1], v[2], False, 0.1, a["epsilon"])
            elif node.op_type == "MaxPool":
                y = f.max_pool2d(v[0], a["kernel_shape"], a["strides"], pad)
            elif node.op_type == "GlobalAveragePool":
                y = v[0].mean((2, 3), keepdim=True)
            elif node.op_type == "Flatten":
                y = v[0].flatten(1)
            elif node.op_type == "Gemm":
                y = f.linear(*v)
            elif node.op_type == "Clip":
                y = t.clamp(v[0], float(v[1]), float(v[2]))
            elif node.op_type == "Concat":
                y = t.cat(v, 1)
            else:
                y = f.relu(v[0]) if node.op_type == "Relu" else v[0] + v[1]
            values[node.output[0]] = y
        return values[graph.output[0].name]

    def step() -> Any:
        with t.inference_mode():
            return forward(t.from_numpy(x)).numpy()

    return step


def main() -> None:
    system, folder, _, threads = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    x = np.load(folder / "x.npy")
    try:
        step = globals()[system](folder, x, threads)
        answer = np.asarray(step(), np.float64).ravel()
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}), flush=True)
        return
    print(json.dumps({"answer": answer.tolist()}), flush=True)
    one = min(_seconds(step, 3) for _ in range(3))
    for line in sys.stdin:
        runs = max(1, round(float(line) / one))
        one = _seconds(step, runs)
        print(json.dumps({"seconds": one}), flush=True)


def _seconds(step: Step, runs: int) -> float:
    begin = time.perf_counter()
    for _ in range(runs):
        step()
    return (time.perf_counter() - begin) / runs


if __name__ == "__main__":
    main()
