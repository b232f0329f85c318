"""One system of benchmarks/peers.py: `peer_worker.py SYSTEM FOLDER THREADS [once]`.

Says {"answer": [...]} or {"error": "..."} in a line; then, for each line with a number of seconds,
{"seconds": s, "cpu": c}, the mean of calls that took about as long in all, and the processor time
over the time.  With `once`, five more calls instead, then {"peak_mb": ...}, and the process ends.
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
    from caffe2.python import workspace

    workspace.GlobalInit(["caffe2", f"--caffe2_omp_num_threads={threads}"])
    nets = [(folder / name).read_bytes() for name in ("init.pb", "predict.pb")]
    predictor = workspace.Predictor(*nets)
    return lambda: predictor.run([x])[0]


def caffe2_file(folder: Path, x: Any, threads: int) -> Step:
    from caffe2.python import workspace

    workspace.GlobalInit(["caffe2", f"--caffe2_omp_num_threads={threads}"])
    predictor = workspace.Predictor.from_file(folder / "model.pb")
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
    from MNN import expr, nn

    files = ["--modelFile", str(folder / "net.onnx"), "--MNNModel", str(folder / "net.mnn")]
    command = ["-m", "MNN.tools.mnnconvert", "-f", "ONNX", "--bizCode", "MNN"]
    _convert(folder / "net.mnn", [*command, *files])
    manager = nn.create_runtime_manager(
        ({"backend": "CPU", "precision": "high", "numThread": threads},)
    )
    net = nn.load_module_from_file(str(folder / "net.mnn"), ["x"], [], runtime_manager=manager)
    shape = list(x.shape)

    def step() -> Any:
        return np.array(net.forward(expr.const(x, shape, expr.NCHW)).read(), copy=True)

    return step


def ncnn(folder: Path, x: Any, threads: int) -> Step:
    import ncnn as library

    if len(x) > 1:
        raise RuntimeError("it takes one image at a time")
    shape = ",".join(map(str, x.shape))
    if not (folder / "net.ncnn.bin").exists():
        import pnnx

        program = Path(pnnx.__file__).parent / "bin" / "pnnx"
        program = program if program.exists() else Path(sys.executable).parent / "pnnx"
        arguments = [str(folder / "net.onnx"), f"inputshape=[{shape}]f32", "fp16=0"]
        _convert(folder / "net.ncnn.bin", arguments, str(program))
    net = library.Net()
    net.opt.num_threads = threads
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = False
    net.load_param(str(folder / "net.ncnn.param"))
    net.load_model(str(folder / "net.ncnn.bin"))
    given, wanted = net.input_names()[0], net.output_names()[0]

    def step() -> Any:
        run = net.create_extractor()
        run.input(given, library.Mat(x[0]))
        return np.array(run.extract(wanted)[1])

    return step


def litert(folder: Path, x: Any, threads: int) -> Step:
    from ai_edge_litert.interpreter import Interpreter

    path = folder / "net.tflite"
    if not path.exists():
        from exchange_tflite import convert

        path.write_bytes(convert(folder, x.shape))
    net = Interpreter(model_path=str(path), num_threads=threads)
    net.allocate_tensors()
    given, wanted = net.get_input_details()[0]["index"], net.get_output_details()[0]["index"]
    if x.ndim == 4:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))

    def step() -> Any:
        net.set_tensor(given, x)
        net.invoke()
        return net.get_tensor(wanted)

    return step


def _convert(result: Path, arguments: list[str], program: str = sys.executable) -> None:
    """Lets a program of a peer write its file, where that is not there yet."""
    import subprocess

    if result.exists():
        return
    done = subprocess.run(
        [program, *arguments], check=False, capture_output=True, text=True, cwd=result.parent
    )
    if not result.exists():
        raise RuntimeError(f"the net cannot be converted: {(done.stdout + done.stderr)[-200:]}")


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
    system, folder, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    x = np.load(folder / "x.npy")
    try:
        step = globals()[system](folder, x, threads)
        answer = np.asarray(step(), np.float64).ravel()
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}), flush=True)
        return
    print(json.dumps({"answer": answer.tolist()}), flush=True)
    if sys.argv[4:] == ["once"]:
        _time(step, 5)
        status = Path("/proc/self/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line)
        print(json.dumps({"peak_mb": peak / 1024}), flush=True)
        return
    one = min(_time(step, 3)["seconds"] for _ in range(3))
    for line in sys.stdin:
        taken = _time(step, max(1, round(float(line) / one)))
        one = taken["seconds"]
        print(json.dumps(taken), flush=True)


def _time(step: Step, runs: int) -> dict[str, float]:
    begin, processor = time.perf_counter(), time.process_time()
    for _ in range(runs):
        step()
    taken = time.perf_counter() - begin
    return {"seconds": taken / runs, "cpu": (time.process_time() - processor) / taken}


if __name__ == "__main__":
    main()
