"""What both workers start from, and how they answer the driver."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np

LEARNING_RATE = 0.01
MOMENTUM = 0.9
SHAPES = {  # of the weights; the bias of each layer has as many numbers as the weight has rows
    "conv1": (20, 1, 5, 5),
    "conv2": (50, 20, 5, 5),
    "fc3": (500, 800),
    "pred": (10, 500),
}


def weights() -> dict[str, np.ndarray]:
    """`<layer>_w` and `<layer>_b`, float32."""
    rng = np.random.default_rng(1)
    found = {}
    for layer, shape in SHAPES.items():
        scale = 1 / np.sqrt(np.prod(shape[1:]))
        found[f"{layer}_w"] = (scale * rng.uniform(-1, 1, shape)).astype(np.float32)
        found[f"{layer}_b"] = np.zeros(shape[0], np.float32)
    return found


def batch_of(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (count, 1, 28, 28), float32, and labels (count), int32."""
    rng = np.random.default_rng(2)
    images = rng.random((count, 1, 28, 28), np.float32)
    return images, rng.integers(0, 10, count, np.int32)


def serve(version: str, step: Callable[[], None], loss: Callable[[], float]) -> None:
    """Says hello with the first losses; then, for each number read, runs as many steps and writes
    the seconds that they took."""
    losses = []
    for _ in range(4):
        step()
        losses.append(loss())
    print(json.dumps({"version": version, "losses": losses}), flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            step()
        print(time.perf_counter() - start, flush=True)
