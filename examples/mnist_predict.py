"""Loads the net that examples/mnist.py saved and reads ten digits with it.

    python examples/mnist_predict.py            show ten digits and what the net says they are
    python examples/mnist_predict.py --json     the same as JSON, for programs

Nothing here knows how the net was trained: two files hold all that is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import mnist_data
import numpy as np

from caffe2.python import workspace


def load(folder: Path) -> workspace.Predictor:
    """A predictor from init_net.pb (the weights) and predict_net.pb (the layers)."""
    init_net = (folder / "init_net.pb").read_bytes()
    predict_net = (folder / "predict_net.pb").read_bytes()
    return workspace.Predictor(init_net, predict_net)


def one_of_each(digits: mnist_data.Digits) -> mnist_data.Digits:
    """The first digit of each kind, 0 to 9."""
    rows = [int(np.argmax(digits.labels == kind)) for kind in range(mnist_data.CLASSES)]
    return mnist_data.Digits(digits.images[rows], digits.labels[rows])


def blocks(image: np.ndarray) -> list[str]:
    """A picture (28, 28), values 0..1, as 7 lines of 14 block characters.

    A block shows 2 x 4 pixels: the upper and the lower half of a character are dark or not.
    """
    half = image.reshape(14, 2, 14, 2).mean(axis=(1, 3)) > 0.3
    return [
        "".join(" ▄▀█"[2 * upper + lower] for upper, lower in zip(*rows, strict=True))
        for rows in half.reshape(7, 2, 14).astype(int)
    ]


def show(digits: mnist_data.Digits, probabilities: np.ndarray) -> str:
    """Five digits beside one another, each with what the net says it is and how surely."""
    lines: list[str] = []
    for start in range(0, len(digits.labels), 5):
        row = range(start, min(start + 5, len(digits.labels)))
        pictures = [blocks(digits.images[i, 0]) for i in row]
        lines += ["  ".join(parts).rstrip() for parts in zip(*pictures, strict=True)]
        lines.append("  ".join(caption(probabilities[i], digits.labels[i]) for i in row))
        lines.append("")
    return "\n".join(lines)


def caption(probabilities: np.ndarray, label: int) -> str:
    said = int(np.argmax(probabilities))
    wrong = "" if said == label else f" not {label}"
    return f"{said} ({probabilities[said]:.1%}){wrong}".center(14)


def main() -> int:
    options = parse_options()
    try:
        _, held_out = mnist_data.load()
        predictor = load(options.folder)
    except FileNotFoundError as error:
        print(f"{error.filename} is missing: run examples/mnist.py first", file=sys.stderr)
        return 1
    except mnist_data.DataError as error:
        print(f"mnist_predict.py: {error}", file=sys.stderr)
        return 1
    digits = one_of_each(held_out)
    [probabilities] = predictor.run({"data": digits.images})
    said = probabilities.argmax(axis=1)
    if options.json:
        report = {
            "labels": digits.labels.tolist(),
            "said": said.tolist(),
            "probabilities": probabilities.tolist(),
        }
        print(json.dumps(report, indent=2))
    else:
        sys.stdout.reconfigure(errors="replace")  # a terminal without block characters
        print(show(digits, probabilities))
        print(f"{(said == digits.labels).sum()} of {len(said)} right")
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Read ten handwritten digits with a saved net.")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where the net lies")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
