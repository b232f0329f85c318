"""Inference of well-known nets, ours alone: time, GFLOP/s, per cent of the processor's peak, and
where the time goes by type of operator.

    python benchmarks/ours.py --kernels PROGRAM     the peak that kernel_benchmark measures first
    python benchmarks/ours.py --peak 117            or a known one, GFLOP/s of one thread
    python benchmarks/ours.py --nets lenet,mlp      some nets, with every operator
    python benchmarks/ours.py --json FILE           figures for programs

GFLOP/s count the multiplications and additions of the definition, so that algorithms which save
some can pass the peak.  Times are medians.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import nets
from peers import filled

from caffe2 import _native
from caffe2.graph.costs import operator_flops
from caffe2.graph.shapes import infer_shapes
from caffe2.ops.declaration import Spec
from caffe2.python import workspace

SECONDS = 1.0  # of one measurement


def flops_by_output(row: str) -> dict[str, float]:
    """Of each blob of a net; what a folded operator writes has the work of the layer before."""
    name, _, batch = row.partition(":")
    net, params = nets.build(name)
    known = {key: Spec(value.shape, value.dtype) for key, value in params.items()}
    known["x"] = Spec((int(batch or 1), *nets.NETS[name][1]), np.dtype(np.float32))
    specs, _ = infer_shapes(net, known)
    found: dict[str, float] = {}
    for op in net.op:
        folded = found.get(op.input[0], 0.0) if op.type == "SpatialBN" else 0.0
        found[op.output[0]] = folded + (operator_flops(op, specs) or 0)
    return found


def measure(row: str, threads: int, peak: float) -> dict[str, Any]:
    name, _, batch = row.partition(":")
    net, params = nets.build(name)
    engine = _native.Engine(threads=threads)
    predictor = workspace.Predictor(filled(params), net, engine)
    shape = (int(batch or 1), *nets.NETS[name][1])
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    times: list[float] = []
    for _ in range(3):
        predictor.run([x])
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        predictor.run([x])
        times.append(1e3 * (time.perf_counter() - start))
    ms = statistics.median(times)
    flops = flops_by_output(row)
    # What folding left over does not count twice.
    total = sum(f for output, f in flops.items() if not output.endswith("_bn"))
    runs = max(3, round(1e3 * SECONDS / ms / 2))
    operators = [
        {"type": kind, "output": output, "ms": taken, "flops": flops.get(output, 0.0)}
        for kind, output, taken in predictor.time_operators([x], runs)
    ]
    rate = 1e-6 * total / ms
    return {
        "name": row,
        "threads": threads,
        "ms": ms,
        "gflops": rate,
        "peak": rate / peak / threads,
        "operators": operators,
    }


def show(result: dict[str, Any], every_operator: bool) -> None:
    print(
        f"{result['name']:14} {result['threads']} thread(s) {result['ms']:10.3f} ms "
        f"{result['gflops']:7.1f} GFLOP/s {100 * result['peak']:4.0f}%"
    )
    total = sum(op["ms"] for op in result["operators"])
    by_type: dict[str, list[float]] = {}
    for op in result["operators"]:
        entry = by_type.setdefault(op["type"], [0, 0.0])
        entry[0] += 1
        entry[1] += op["ms"]
    for kind, (count, ms) in sorted(by_type.items(), key=lambda item: -item[1][1]):
        if ms > 0:
            print(f"    {kind:18} {count:4} {ms:10.3f} ms {100 * ms / total:4.0f}%")
    for op in result["operators"] if every_operator else []:
        rate = f"{1e-6 * op['flops'] / op['ms']:8.1f} GFLOP/s" if op["ms"] and op["flops"] else ""
        if op["ms"]:
            print(f"        {op['type']:14} {op['output']:28} {op['ms']:9.4f} ms {rate}")


def peak_of(program: str) -> float:
    """Runs the benchmark of the kernels, which prints the peak and each kernel."""
    command = [program, _native.Engine(threads=1).isa]
    done = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert done.stdout
    peak = 0.0
    for line in done.stdout:
        print(line, end="", flush=True)
        found = re.search(r"peak ([\d.]+) GFLOP/s", line)
        peak = float(found[1]) if found else peak
    if done.wait() != 0 or not peak:
        raise RuntimeError(f"{program} ended with exit code {done.returncode}")
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kernels", metavar="PROGRAM", help="kernel_benchmark, run first")
    parser.add_argument("--peak", type=float, help="GFLOP/s of one thread")
    parser.add_argument("--nets", help="names, separated by commas; NET:BATCH")
    parser.add_argument("--threads", default="1,2", help="numbers, separated by commas")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if not options.kernels and not options.peak:
        parser.error("give --kernels or --peak")
    peak = options.peak or peak_of(options.kernels)
    results = []
    for row in options.nets.split(",") if options.nets else [*nets.NETS, "resnet50:16"]:
        for threads in map(int, options.threads.split(",")):
            results.append(measure(row, threads, peak))
            show(results[-1], bool(options.nets))
    if options.json:
        Path(options.json).write_text(json.dumps({"peak": peak, "rows": results}, indent=1))


if __name__ == "__main__":
    main()
