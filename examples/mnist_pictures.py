"""Pictures of the demo: the net and the loss.  Needs the extra `pictures`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from caffe2.python import core, net_drawer


def draw_net(net: core.Net, folder: Path) -> Path:
    """Draws the operators and the blobs between them as net.svg, the input at the top.

    Graphviz draws it, where that is installed; otherwise the operators are drawn one by one.
    """
    path = folder / "net.svg"
    if shutil.which("dot"):
        net_drawer.GetPydotGraph(net, rankdir="TB").write_svg(path)
    else:
        draw_operators(net, path)
    return path


def draw_operators(net: core.Net, path: Path) -> None:
    """Draws the operators of a net in a column, each with its inputs and outputs."""
    pyplot = load_pyplot()
    operators = net.Proto().op
    figure, axes = pyplot.subplots(figsize=(6, 0.8 * len(operators)), layout="constrained")
    for row, op in enumerate(operators):
        box = {"boxstyle": "round", "facecolor": "#0F9D58"}
        axes.text(0.5, row, op.type, ha="center", va="center", color="white", bbox=box)
        axes.text(0.3, row, ", ".join(op.input), ha="right", va="center")
        axes.text(0.7, row, ", ".join(op.output), ha="left", va="center")
        if row:
            arrow = {"arrowstyle": "->", "color": "0.5"}
            axes.annotate("", xy=(0.5, row - 0.3), xytext=(0.5, row - 0.7), arrowprops=arrow)
    axes.set(xlim=(0, 1), ylim=(len(operators) - 0.5, -0.5))
    axes.axis("off")
    figure.savefig(path)
    pyplot.close(figure)


def draw_loss(losses: Sequence[float], folder: Path) -> Path:
    """Draws the loss of each batch and the mean of 25 batches, on a logarithmic scale."""
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    axes.semilogy(losses, color="0.8", label="one batch")
    width = min(25, len(losses))
    mean = np.convolve(losses, np.ones(width) / width, mode="valid")
    axes.semilogy(np.arange(width - 1, len(losses)), mean, label=f"mean of {width} batches")
    axes.set(xlabel="batch", ylabel="loss", title="LeNet on 4,000 digits")
    axes.legend()
    figure.savefig(folder / "loss.png", dpi=120)
    pyplot.close(figure)
    return folder / "loss.png"


def load_pyplot() -> Any:
    """matplotlib, set to draw into files, which needs no screen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
