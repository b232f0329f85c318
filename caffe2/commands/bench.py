"""How long a model takes, and each of its operators."""

from __future__ import annotations

import argparse
import time

import numpy as np

from caffe2.commands.common import (
    add_inputs,
    add_json,
    add_model,
    amount,
    load_model,
    read_inputs,
    show_json,
    show_table,
)
from caffe2.graph.costs import steps
from caffe2.graph.errors import UsageError
from caffe2.graph.nesting import touching_operators
from caffe2.ops.declaration import Spec
from caffe2.runtime.devices import note_devices
from caffe2.runtime.engine import new_workspace, set_threads
from caffe2.runtime.feeding import feed


def add(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_inputs(parser)
    parser.add_argument("--runs", type=int, default=10, help="10 unless given")
    parser.add_argument("--threads", type=int, default=0, help="0, all cores, unless given")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    model = load_model(options.model)
    if options.runs < 1:
        raise UsageError("--runs is 1 or more")
    inputs = read_inputs(options, model)
    touching = [*touching_operators(model.init), *touching_operators(model.predict)]
    if touching:
        raise UsageError(f"not run: {'; '.join(touching)}")
    note_devices(model.predict)
    set_threads(options.threads)
    workspace = new_workspace()
    if model.init.op:
        workspace.run_net_once(model.init.SerializeToString())
    for name, value in inputs.items():
        feed(workspace, name, value)
    net = type(model.predict)()
    net.CopyFrom(model.predict)
    net.name = net.name or "net"
    workspace.create_net(net.SerializeToString())
    workspace.run_net(net.name)
    times = []
    for _ in range(options.runs):
        start = time.perf_counter()
        workspace.run_net(net.name)
        times.append((time.perf_counter() - start) * 1000)
    each = workspace.time_operators(net.name, options.runs)
    known = model.known({name: Spec(v.shape, v.dtype) for name, v in inputs.items()})
    flops = [step.flops for step in steps(net, known)]
    if options.json:
        operators = [
            {"index": index, "type": op.type, "output": list(op.output), "ms": ms, "flops": work}
            for index, (op, ms, work) in enumerate(zip(net.op, each, flops, strict=True))
        ]
        median = float(np.median(times))
        show_json({"ms": median, "fastest_ms": min(times), "operators": operators})
        return 0
    total = sum(each) or 1.0
    rows = [
        (
            *(index, op.type, ", ".join(op.output), f"{ms:.4f}", f"{100 * ms / total:.1f}"),
            amount(work / ms * 1e3) if work and ms else None,
        )
        for index, (op, ms, work) in enumerate(zip(net.op, each, flops, strict=True))
    ]
    show_table(["#", "operator", "outputs", "ms", "%", "flop/s"], rows, right="# ms % flop/s")
    print(f"\n{np.median(times):.4g} ms a run (median of {options.runs}; fastest {min(times):.4g})")
    if 0 in each:
        print("0 ms: another operator does the work on the way")
    return 0
