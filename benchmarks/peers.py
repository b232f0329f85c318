"""Inference beside other frameworks on the same machine: one call, NumPy array in and out.

    python benchmarks/peers.py                      every net, 1 and 2 threads
    python benchmarks/peers.py --quick              three small nets, 1 thread, few rounds
    python benchmarks/peers.py --python P           peers from another Python (it needs onnx, too)
    python benchmarks/peers.py --json FILE          figures for programs
    python benchmarks/peers.py --picture FILE       a bar for each ratio (needs matplotlib)

Peers: ONNX Runtime, OpenVINO (float32 forced), PyTorch (eager and compiled), MNN; those that are
not installed are left out with a note.  Each has a process of its own and the same weights; they
take turns, and a figure is the median of the rounds.  Answers must agree to 1e-3 of their range.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
PEERS = ("onnxruntime", "openvino", "torch", "mnn")
QUICK = ("squeezenet", "lenet", "mlp")


class Worker:
    """A process that answers with seconds per call: peer_worker.py."""

    def __init__(self, system: str, python: str, folder: Path, net: str, threads: int) -> None:
        self.system = system
        self.seconds: list[float] = []
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        environment.pop("OPENBLAS_CORETYPE", None)
        self.process = subprocess.Popen(
            [python, str(HERE / "peer_worker.py"), system, str(folder), net, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
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

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def compare(net: str, threads: int, python: str, rounds: int, seconds: float) -> dict[str, Any]:
    """One row: our time, that of the best peer, and their ratio round by round."""
    sys.path.insert(0, str(HERE))
    import nets
    from exchange import save_onnx

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        predict, params = nets.build(net)
        shape = (1, *nets.NETS[net][1])
        np.save(folder / "x.npy", np.random.default_rng(2).normal(size=shape).astype(np.float32))
        np.savez(folder / "params.npz", **params)
        (folder / "net.pb").write_bytes(predict.SerializeToString())
        try:
            save_onnx(predict, params, shape, folder / "net.onnx")
        except ImportError:
            print("onnx is not installed here: no peers", file=sys.stderr)
        workers = [Worker("caffe2", sys.executable, folder, net, threads)]
        if (folder / "net.onnx").exists():
            workers += [Worker(peer, python, folder, net, threads) for peer in PEERS]
        for worker in workers[1:]:
            if "error" in worker.hello:
                print(f"{worker.system} left out: {worker.hello['error']}", file=sys.stderr)
        if "error" in workers[0].hello:
            raise RuntimeError(workers[0].hello["error"])
        wanted = np.asarray(workers[0].hello["answer"])
        alive = [worker for worker in workers if "error" not in worker.hello]
        for worker in alive:
            error = np.abs(np.asarray(worker.hello["answer"]) - wanted).max()
            if error > 1e-3 * np.ptp(wanted):
                raise RuntimeError(f"{worker.system} answers something else, by {error:.2g}")
        for _ in range(rounds):
            for worker in alive:
                worker.run(seconds)
        for worker in workers:
            worker.close()
    times = {worker.system: 1e3 * statistics.median(worker.seconds) for worker in alive}
    row: dict[str, Any] = {"name": net, "threads": threads, "ours_ms": times.pop("caffe2")}
    row["peers_ms"] = times
    if times:
        best = min(times, key=lambda peer: times[peer])
        theirs = next(worker for worker in alive if worker.system == best)
        pairs = zip(theirs.seconds, alive[0].seconds, strict=True)
        row["best_peer"], row["best_peer_ms"] = best, times[best]
        row["ratio"] = statistics.median(peer / ours for peer, ours in pairs)
    return row


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
    axes.invert_yaxis()
    axes.set_xlabel("time of the best peer / ours (right of the line we are faster)")
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--python", default=sys.executable, help="the Python of the peers")
    parser.add_argument("--nets", help="names, separated by commas")
    parser.add_argument("--threads", help="numbers, separated by commas")
    parser.add_argument("--rounds", type=int, help="default 9; 3 with --quick")
    parser.add_argument("--seconds", type=float, default=0.5, help="of one system in one round")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--picture", metavar="FILE")
    options = parser.parse_args()
    sys.path.insert(0, str(HERE))
    import nets

    names = options.nets.split(",") if options.nets else QUICK if options.quick else nets.NETS
    threads = options.threads or ("1" if options.quick else "1,2")
    rounds = options.rounds or (3 if options.quick else 9)
    rows = []
    for net in names:
        for number in map(int, threads.split(",")):
            row = compare(net, number, options.python, rounds, options.seconds)
            rows.append(row)
            peers = ", ".join(f"{peer} {ms:.3g}" for peer, ms in row["peers_ms"].items())
            ratio = f"ratio {row['ratio']:.2f}; " if "ratio" in row else ""
            print(f"{net:13} {number} thread(s)  ours {row['ours_ms']:.3g} ms  {ratio}{peers}")
    if options.json:
        Path(options.json).write_text(json.dumps({"rows": rows}, indent=1))
    if options.picture:
        picture([row for row in rows if "ratio" in row], options.picture)


if __name__ == "__main__":
    main()
