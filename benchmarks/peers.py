"""Inference beside other frameworks on the same machine: one call, NumPy array in and out.

    python benchmarks/peers.py                      every row, 1 and 2 threads
    python benchmarks/peers.py --quick              three small nets, 1 thread, few rounds
    python benchmarks/peers.py --start resnet50     start of a process, 6 calls, end: time, memory
    python benchmarks/peers.py --python P           peers from another Python; may be repeated
    python benchmarks/peers.py --json FILE          figures for programs
    python benchmarks/peers.py --picture FILE       a bar for each ratio (needs matplotlib)

Peers: ONNX Runtime, OpenVINO (float32 forced), PyTorch (eager), ncnn, MNN (high precision), LiteRT;
those that no Python has are left out with a note.  Each has a process of its own and the same
weights; they take turns, and a figure is the median of the rounds.  Answers must agree to 1e-3 of
their range.  A row that did not get its share of the processors is marked: measure it again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import nets  # noqa: E402
from exchange import save_graph, save_onnx  # noqa: E402

from caffe2 import passes  # noqa: E402
from caffe2.graph.model_file import save_model  # noqa: E402
from caffe2.graph.predictor import add_tensor  # noqa: E402
from caffe2.proto import caffe2_pb2  # noqa: E402

PEERS = ("onnxruntime", "openvino", "torch", "ncnn", "mnn", "litert")
QUICK = ("squeezenet", "lenet", "mlp")
ROWS = (*nets.NETS, "resnet50:16")
ENOUGH_CPU = 0.95


class Worker:
    """A process that answers with seconds per call: peer_worker.py."""

    def __init__(self, system: str, python: str, folder: Path, threads: int) -> None:
        self.system = system
        self.seconds: list[float] = []
        self.cpu: list[float] = []
        self.process = subprocess.Popen(
            command(system, python, folder, threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(threads),
        )
        self.hello: dict[str, Any] = self._answer() or {"error": "the process ended"}

    def _answer(self) -> Any:
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        return None

    def run(self, seconds: float) -> None:
        """One round of about so many seconds."""
        assert self.process.stdin
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        answer = self._answer()
        if answer is None:
            raise RuntimeError(f"{self.system} ended with exit code {self.process.wait()}")
        self.seconds.append(answer["seconds"])
        self.cpu.append(answer["cpu"])

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def command(system: str, python: str, folder: Path, threads: int) -> list[str]:
    return [python, str(HERE / "peer_worker.py"), system, str(folder), str(threads)]


def environment(threads: int) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


def prepare(row: str, folder: Path) -> None:
    """Writes the input of a row, `net` or `net:batch`, and its net in every form."""
    name, _, batch = row.partition(":")
    shape = (int(batch or 1), *nets.NETS[name][1])
    predict, params = nets.build(name)
    np.save(folder / "x.npy", np.random.default_rng(2).normal(size=shape).astype(np.float32))
    (folder / "predict.pb").write_bytes(predict.SerializeToString())
    (folder / "init.pb").write_bytes(filled(params).SerializeToString())
    folded = dict(params)
    optimized, _ = passes.optimize(predict, folded)
    used = {name: value for name, value in folded.items() if name in optimized.external_input}
    save_model(filled(used), optimized, folder / "model.pb")
    save_graph(predict, params, folder)
    try:
        save_onnx(predict, params, shape, folder / "net.onnx")
    except ImportError:
        print("onnx is not installed here: only LiteRT is a peer", file=sys.stderr)


def filled(params: dict[str, Any]) -> caffe2_pb2.NetDef:
    init = caffe2_pb2.NetDef(name="init")
    for name, value in params.items():
        add_tensor(init, name, value)
    return init


def find(pythons: Sequence[str], folder: Path, threads: int) -> list[Worker]:
    """Ours, and each peer out of the first Python that has it."""
    ours = Worker("caffe2", sys.executable, folder, threads)
    if "error" in ours.hello:
        raise RuntimeError(ours.hello["error"])
    found, wanted = [ours], np.asarray(ours.hello["answer"])
    for peer in PEERS:
        errors = []
        for python in pythons:
            worker = Worker(peer, python, folder, threads)
            if "error" not in worker.hello:
                answer = np.asarray(worker.hello["answer"])
                if answer.shape != wanted.shape:
                    raise RuntimeError(f"{peer} gives {answer.size} values, not {wanted.size}")
                error = np.abs(answer - wanted).max()
                if error > 1e-3 * np.ptp(wanted):
                    raise RuntimeError(f"{peer} answers something else, by {error:.2g}")
                found.append(worker)
                break
            errors.append(worker.hello["error"])
            worker.close()
        else:
            print(f"{peer} left out: {'; '.join(dict.fromkeys(errors))}", file=sys.stderr)
    return found


def compare(
    row: str, threads: int, folder: Path, pythons: Sequence[str], rounds: int, seconds: float
) -> dict[str, Any]:
    """One row: our time, that of the best peer, and their ratio round by round."""
    workers = find(pythons, folder, threads)
    for _ in range(rounds):
        for worker in workers:
            worker.run(seconds)
    for worker in workers:
        worker.close()
    times = {worker.system: 1e3 * statistics.median(worker.seconds) for worker in workers}
    cpu = {worker.system: statistics.median(worker.cpu) / threads for worker in workers}
    name, _, batch = row.partition(":")
    result: dict[str, Any] = {"name": f"{name} batch {batch}" if batch else name}
    result |= {"threads": threads, "ours_ms": times.pop("caffe2"), "peers_ms": times, "cpu": cpu}
    if times:
        best = min(times, key=lambda peer: times[peer])
        theirs = next(worker for worker in workers if worker.system == best)
        pairs = zip(theirs.seconds, workers[0].seconds, strict=True)
        result |= {"best_peer": best, "best_peer_ms": times[best]}
        result["ratio"] = statistics.median(peer / ours for peer, ours in pairs)
    return result


def show(row: dict[str, Any]) -> None:
    peers = ", ".join(f"{peer} {ms:.3g}" for peer, ms in row["peers_ms"].items())
    ratio = f"ratio {row['ratio']:.2f}; " if "ratio" in row else ""
    text = f"{row['name']:18} {row['threads']} thread(s)  ours {row['ours_ms']:.3g} ms  "
    # A pool that sleeps between small pieces of work never has all processors; one thread should.
    busy = [name for name, share in row["cpu"].items() if share < ENOUGH_CPU]
    mark = f"  (processor share below {ENOUGH_CPU}: {', '.join(busy)})"
    print(f"{text}{ratio}{peers}{mark if busy and row['threads'] == 1 else ''}", flush=True)


def start(
    row: str, folder: Path, pythons: Sequence[str], rounds: int
) -> dict[str, dict[str, float]]:
    """Seconds from the start of a process to its end, with six calls, and its peak memory: the best
    of the rounds, after one that fills the caches of the file system."""
    systems = [("caffe2", [sys.executable]), ("caffe2_file", [sys.executable])]
    best: dict[str, dict[str, float]] = {}
    for number in range(rounds + 1):
        for system, places in [*systems, *((peer, list(pythons)) for peer in PEERS)]:
            for python in places:
                begin = time.perf_counter()
                done = subprocess.run(
                    [*command(system, python, folder, 1), "once"],
                    env=environment(1),
                    capture_output=True,
                    text=True,
                    check=False,
                )
                taken = time.perf_counter() - begin
                answers = [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]
                if not answers or "peak_mb" not in answers[-1]:
                    continue
                peak = answers[-1]["peak_mb"]
                known = best.get(system, {"seconds": taken, "peak_mb": peak})
                if number > 0:
                    best[system] = {
                        "seconds": min(taken, known["seconds"]),
                        "peak_mb": min(peak, known["peak_mb"]),
                    }
                break
    return best


def picture(rows: list[dict[str, Any]], path: str) -> None:
    """A bar for each row: how many times as fast as the best peer."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.4 * len(rows) + 1))
    labels = [f"{row['name']}, {row['threads']} thread(s)" for row in rows]
    bars = axes.barh(labels, [row["ratio"] for row in rows])
    axes.bar_label(bars, [f"{row['ratio']:.2f} x {row['best_peer']}" for row in rows], padding=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlim(0, 1.25 * max(row["ratio"] for row in rows))
    axes.invert_yaxis()
    axes.set_xlabel("time of the best peer / ours (right of the line we are faster)")
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--start", metavar="NET", help="measure this instead")
    parser.add_argument("--python", action="append", help="the Python of peers; may be repeated")
    parser.add_argument("--rows", help=f"of {', '.join(ROWS)}, or others with a batch")
    parser.add_argument("--threads", help="numbers, separated by commas")
    parser.add_argument("--rounds", type=int, help="default 9; 3 with --quick and --start")
    parser.add_argument("--seconds", type=float, default=0.5, help="of one system in one round")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--picture", metavar="FILE")
    options = parser.parse_args()
    default = QUICK if options.quick else ROWS
    names = options.rows.split(",") if options.rows else list(default)
    for name in [*names, *([options.start] if options.start else [])]:
        net, _, batch = name.partition(":")
        if net not in nets.NETS or not (batch or "1").isdecimal() or batch == "0":
            parser.error(f"no row {name!r}: a net of {', '.join(nets.NETS)}, and :batch")
    threads = (options.threads or ("1" if options.quick else "1,2")).split(",")
    if not all(number.isdecimal() and int(number) > 0 for number in threads):
        parser.error(f"--threads {options.threads}: numbers from 1, separated by commas")

    pythons = options.python or [sys.executable]
    few = options.quick or options.start
    rounds = options.rounds or (3 if few else 9)
    result: dict[str, Any] = {"rows": []}
    if options.start:
        with tempfile.TemporaryDirectory() as folder:
            prepare(options.start, Path(folder))
            result = {"start": start(options.start, Path(folder), pythons, rounds)}
        for system, row in sorted(result["start"].items(), key=lambda item: item[1]["seconds"]):
            print(f"{system:13} {row['seconds']:6.2f} s {row['peak_mb']:6.0f} MB")
    else:
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                prepare(name, Path(folder))
                for number in map(int, threads):
                    row = compare(name, number, Path(folder), pythons, rounds, options.seconds)
                    result["rows"].append(row)
                    show(row)
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1))
    if options.picture:
        compared = [row for row in result.get("rows", []) if "ratio" in row]
        if compared:
            picture(compared, options.picture)
        else:
            print("no picture: nothing was compared with a peer", file=sys.stderr)


if __name__ == "__main__":
    main()
