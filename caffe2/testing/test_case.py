"""Base class and small helpers of tests written for the old API."""

from __future__ import annotations

import pathlib
import tempfile
import unittest
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe2.runtime import workspace


def rand_array(*dims: int) -> npt.NDArray[Any]:
    """Random float64 numbers from -1 to 1."""
    return np.random.rand(*dims) * 2 - 1


def randBlob(name: str, type: Any, *dims: int, **kwargs: Any) -> npt.NDArray[Any]:
    """Feeds a blob of random numbers of an element type; `offset` is added to them."""
    values = np.random.rand(*dims) - 0.5 + kwargs.get("offset", 0.0)
    array: npt.NDArray[Any] = values.astype(type)
    workspace.FeedBlob(name, array)
    return array


def randBlobFloat32(name: str, *dims: int, **kwargs: Any) -> npt.NDArray[Any]:
    """randBlob of float32."""
    return randBlob(name, np.float32, *dims, **kwargs)


def randBlobsFloat32(names: Sequence[str], *dims: int, **kwargs: Any) -> None:
    """randBlobFloat32 for several blobs."""
    for name in names:
        randBlobFloat32(name, *dims, **kwargs)


def numOps(net: Any) -> int:
    """The number of operators of a net."""
    return len(net.Proto().op)


def str_compare(a: Any, b: Any, encoding: str = "utf8") -> bool:
    """Whether two texts, of str or bytes, are the same."""
    left, right = (x.decode(encoding) if isinstance(x, bytes) else x for x in (a, b))
    return bool(left == right)


def get_default_test_flags() -> list[str]:
    """What GlobalInit gets before the tests of a class."""
    return ["caffe2", "--caffe2_log_level=0", "--caffe2_cpu_allocator_do_zero_fill=0"]


def is_flaky_test_mode() -> bool:
    """Whether tests that fail now and then are wanted alone: never."""
    return False


def caffe2_flaky(test_method: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a test that fails now and then; it runs as any other."""
    return test_method


class TestCase(unittest.TestCase):
    """A test that begins with an empty workspace."""

    test_flags: Sequence[str] | None = None

    @classmethod
    def setUpClass(cls) -> None:
        workspace.GlobalInit(cls.test_flags or get_default_test_flags())

    def setUp(self) -> None:
        self.ws = workspace.Workspace.current
        workspace.ResetWorkspace()

    def tearDown(self) -> None:
        workspace.ResetWorkspace()

    def make_tempdir(self) -> pathlib.Path:
        """A folder that is gone after the test."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)
