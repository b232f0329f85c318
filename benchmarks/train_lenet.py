"""One step of training LeNet: this project beside PyTorch's eager mode.

    python benchmarks/train_lenet.py                     both, if torch can be imported here
    python benchmarks/train_lenet.py --torch-python P    torch from another Python
    python benchmarks/train_lenet.py --json FILE         figures for programs

A step is forward, backward and SGD with momentum on one batch that is in place already.  Both
start from the same weights and must come to the same losses.  Each has a process of its own; they
take turns, so that a busy moment of the machine hits both.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROUND_SECONDS = 0.25


class Worker:
    """A process that trains: lenet_caffe2.py or lenet_torch.py."""

    def __init__(self, name: str, python: str, batch: int, threads: int) -> None:
        self.name = name
        self.seconds: list[float] = []  # of one step, once per round
        command = [python, str(HERE / f"lenet_{name}.py"), str(batch), str(threads)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.hello: dict[str, Any] = self._answer()
        self.steps = 1

    def _answer(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with exit code {self.process.wait()}")
        return json.loads(line)

    def run(self, steps: int) -> float:
        """The seconds that a step takes, as the mean of `steps` steps."""
        assert self.process.stdin
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return float(self._answer()) / steps

    def warm_up(self) -> None:
        self.steps = max(1, round(ROUND_SECONDS / min(self.run(5) for _ in range(3))))

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def compare(workers: list[Worker], rounds: int) -> dict[str, Any]:
    """Runs all workers in turn and gives the figures."""
    for worker in workers:
        worker.warm_up()
    for _ in range(rounds):
        for worker in workers:
            worker.seconds.append(worker.run(worker.steps))
    report: dict[str, Any] = {
        worker.name: {
            **worker.hello,
            "ms_per_step": 1e3 * statistics.median(worker.seconds),
            "quartiles_ms": [1e3 * q for q in statistics.quantiles(worker.seconds, n=4)[::2]],
        }
        for worker in workers
    }
    if len(workers) == 2:
        ours, theirs = (worker.seconds for worker in workers)
        pairs = zip(ours, theirs, strict=True)
        report["ratio"] = statistics.median(our / their for our, their in pairs)
    return report


def check_losses(workers: list[Worker]) -> None:
    """RuntimeError when the workers do not train the same net in the same way."""
    first = workers[0].hello["losses"]
    for worker in workers[1:]:
        if any(abs(a - b) > 1e-3 for a, b in zip(first, worker.hello["losses"], strict=True)):
            raise RuntimeError(
                f"losses differ: {workers[0].name} {first}, {worker.name} {worker.hello['losses']}"
            )


def as_text(report: dict[str, Any]) -> str:
    lines = []
    for name, row in report.items():
        if name == "ratio":
            lines.append(f"ratio {row:.2f} (median over the rounds; below 1 we are faster)")
        else:
            low, high = row["quartiles_ms"]
            lines.append(
                f"{name:8s} {row['ms_per_step']:7.2f} ms a step (quartiles {low:.2f} and "
                f"{high:.2f})  {row['version']}"
            )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--torch-python", default=sys.executable, help="a Python that has torch")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    for name, least in (("batch", 1), ("threads", 1), ("rounds", 2)):
        if getattr(options, name) < least:
            parser.error(f"--{name} is {getattr(options, name)}; allowed are numbers from {least}")

    workers = [Worker("caffe2", sys.executable, options.batch, options.threads)]
    has_torch = subprocess.run(
        [options.torch_python, "-c", "import torch"], check=False, capture_output=True
    )
    if has_torch.returncode == 0:
        workers.append(Worker("torch", options.torch_python, options.batch, options.threads))
    else:
        print(f"torch is left out: {options.torch_python} cannot import it", file=sys.stderr)
    check_losses(workers)
    report = compare(workers, options.rounds)
    for worker in workers:
        worker.close()
    print(as_text(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
