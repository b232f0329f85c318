"""What a call costs: an operator of a compiled net, RunOperatorOnce, feed and fetch of 16 bytes.

    python benchmarks/calls.py

Microseconds, the best of 20 rounds.  The operators are Relu on one element: almost nothing is
computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from caffe2.python import core, workspace

OPERATORS = 100


def best(call: Callable[[], object], times: int) -> float:
    """Microseconds of one call."""
    rounds = []
    for _ in range(20):
        begin = time.perf_counter()
        for _ in range(times):
            call()
        rounds.append((time.perf_counter() - begin) / times)
    return min(rounds) * 1e6


def main() -> None:
    """Prints one line for each kind of call."""
    small = np.zeros(4, np.float32)
    workspace.FeedBlob("y0", np.zeros(1, np.float32))
    net = core.Net("chain")
    for i in range(OPERATORS):
        net.Relu(f"y{i}", f"y{i + 1}")
    workspace.CreateNet(net)
    relu = core.CreateOperator("Relu", ["y0"], ["y"])
    figures = {
        "operator of a net": best(lambda: workspace.RunNet("chain"), 50) / OPERATORS,
        "RunOperatorOnce": best(lambda: workspace.RunOperatorOnce(relu), 500),
        "FeedBlob": best(lambda: workspace.FeedBlob("small", small), 1000),
        "FetchBlob": best(lambda: workspace.FetchBlob("small"), 1000),
    }
    for name, figure in figures.items():
        print(f"{name:20}{figure:6.2f} us")


if __name__ == "__main__":
    main()
