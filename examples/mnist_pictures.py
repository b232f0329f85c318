"""Pictures of the demo: the net and the loss.  Needs the extra `pictures`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from caffe2.python import core, net_drawer


def draw_net(net: core.Net, folder: Path) -> Path:
    """Draws boxes for operators and ovals for blobs, from the input at the top downwards.

    Writes net.svg with Graphviz; where that is not installed, its input net.dot.
    """
    graph = net_drawer.GetPydotGraph(net, rankdir="TB")
    if shutil.which("dot") is None:
        graph.write_raw(folder / "net.dot")
        return folder / "net.dot"
    graph.write_svg(folder / "net.svg")
    return folder / "net.svg"


def draw_loss(losses: Sequence[float], folder: Path) -> Path:
    """Draws the loss of each batch and the mean of 25 batches, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("Agg")  # draws into files; needs no screen
    from matplotlib import pyplot

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
