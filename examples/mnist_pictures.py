"""Pictures of the demo: the net and the loss.  The second needs the extra `pictures`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from caffe2.python import core, net_drawer


def draw_net(net: core.Net, folder: Path) -> Path:
    """Draws the operators of a net, the input at the top, as net.svg for any web browser."""
    path = folder / "net.svg"
    path.write_text(net_drawer.to_svg(net), encoding="utf-8")
    return path


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
