"""Hypothesis strategies for tensors, lengths and segments; for tests of the old API."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import numpy as np

from caffe2.proto import caffe2_pb2


def is_sandcastle() -> bool:
    """Whether the tests run on the original's own servers: no."""
    return False


def is_travis() -> bool:
    """Whether the tests run on Travis CI."""
    return "TRAVIS" in os.environ


def to_float32(x: float) -> float:
    """The float32 next to a number."""
    return float(np.float32(x))


def floats(*args: Any, **kwargs: Any) -> Any:
    """Numbers that float32 holds; none that is infinite or no number, unless asked for."""
    bounds = ("min_value", "max_value")
    named = {**dict(zip(bounds, args, strict=False)), **kwargs}
    for bound in bounds:
        if named.get(bound) is not None:
            named[bound] = to_float32(named[bound])
    return st.floats(**{"width": 32, "allow_nan": False, "allow_infinity": False, **named})


def lengths(
    size: int, min_segments: int | None = None, max_segments: int | None = None, **kwargs: Any
) -> Any:
    """Lengths (int32) of segments that cover `size` rows."""
    if min_segments is None:
        min_segments = 0 if size == 0 else 1
    if max_segments is None:
        max_segments = size
    assert 0 <= min_segments <= max_segments
    if size == 0 and max_segments == 0:
        return st.just(np.empty(0, np.int32))
    cuts = st.integers(max(min_segments, 1), max(max_segments, 1)).flatmap(
        lambda count: st.lists(st.integers(0, size), min_size=count - 1, max_size=count - 1)
    )
    return cuts.map(lambda found: np.diff([0, *sorted(found), size]).astype(np.int32))


def segment_ids(size: int, is_sorted: bool) -> Any:
    """The segment (int32, from 0, none left out) of each of `size` rows."""
    if size == 0:
        return st.just(np.empty(0, np.int32))
    if is_sorted:
        steps = st.lists(st.booleans(), min_size=size, max_size=size)
        return steps.map(lambda found: np.cumsum(found, dtype=np.int32) - np.int32(found[0]))
    ids = st.integers(0, 2 * size)
    return arrays([size], np.int32, ids).map(
        lambda found: np.unique(found, return_inverse=True)[1].reshape(-1).astype(np.int32)
    )


def dims(min_value: int = 1, max_value: int = 5) -> Any:
    """The size of a dimension."""
    return st.integers(min_value, max_value)


def elements_of_type(dtype: Any = np.float32, filter_: Callable[[Any], bool] | None = None) -> Any:
    """Elements of a type: numbers of -1 to 1, integers of -1 to 1 (or 0 to 2), bool."""
    kinds = {
        "f": floats(min_value=-1.0, max_value=1.0),
        "i": st.integers(-1, 1) if np.dtype(dtype) == np.int8 else st.integers(0, 2**31 - 1),
        "u": st.integers(0, 255),
        "b": st.booleans(),
    }
    kind = np.dtype(dtype).kind
    if kind not in kinds:
        raise ValueError(f"unexpected dtype {np.dtype(dtype)} without elements provided")
    if np.dtype(dtype) == np.int64:
        kinds["i"] = st.integers(0, 2**63 - 1)
    elements = kinds[kind]
    return elements if filter_ is None else elements.filter(filter_)


def arrays(dims: Any, dtype: Any = np.float32, elements: Any = None, unique: bool = False) -> Any:
    """Arrays of a shape."""
    if elements is None:
        elements = elements_of_type(dtype)
    return hypothesis.extra.numpy.arrays(dtype, tuple(dims), elements=elements, unique=unique)


def _shapes(min_dim: int, max_dim: int, **kwargs: Any) -> Any:
    return st.lists(dims(**kwargs), min_size=min_dim, max_size=max_dim)


def tensor(
    min_dim: int = 1,
    max_dim: int = 4,
    dtype: Any = np.float32,
    elements: Any = None,
    unique: bool = False,
    **kwargs: Any,
) -> Any:
    """Arrays of some dimensions; `kwargs` (min_value, max_value) are about their sizes."""
    shapes = _shapes(min_dim, max_dim, **kwargs)
    return shapes.flatmap(lambda shape: arrays(shape, dtype, elements, unique))


def tensor1d(
    min_len: int = 1, max_len: int = 64, dtype: Any = np.float32, elements: Any = None
) -> Any:
    """Arrays of one dimension."""
    return tensor(1, 1, dtype, elements, min_value=min_len, max_value=max_len)


def tensors(
    n: int,
    min_dim: int = 1,
    max_dim: int = 4,
    dtype: Any = np.float32,
    elements: Any = None,
    **kwargs: Any,
) -> Any:
    """Lists of n arrays of one shape."""
    shapes = _shapes(min_dim, max_dim, **kwargs)
    return shapes.flatmap(
        lambda shape: st.lists(arrays(shape, dtype, elements), min_size=n, max_size=n)
    )


def tensors1d(
    n: int,
    min_len: int = 1,
    max_len: int = 64,
    dtype: Any = np.float32,
    elements: Any = None,
) -> Any:
    """Lists of n arrays of one dimension and length."""
    return tensors(n, 1, 1, dtype, elements, min_value=min_len, max_value=max_len)


def segmented_tensor(
    min_dim: int = 1,
    max_dim: int = 4,
    dtype: Any = np.float32,
    is_sorted: bool = True,
    elements: Any = None,
    segment_generator: Callable[..., Any] = segment_ids,
    allow_empty: bool = False,
    **kwargs: Any,
) -> Any:
    """An array, and what `segment_generator` gives for its first dimension."""
    rows = st.integers(0 if allow_empty else 1, 5)
    shapes = st.tuples(rows, _shapes(min_dim - 1, max_dim - 1, **kwargs))
    return shapes.flatmap(
        lambda shape: st.tuples(
            arrays([shape[0], *shape[1]], dtype, elements),
            segment_generator(shape[0], is_sorted=is_sorted),
        )
    )


def lengths_tensor(
    min_segments: int | None = None, max_segments: int | None = None, *args: Any, **kwargs: Any
) -> Any:
    """An array, and lengths of segments of its rows."""

    def generate(size: int, is_sorted: bool) -> Any:
        return lengths(size, min_segments, max_segments)

    return segmented_tensor(*args, **{**kwargs, "segment_generator": generate})


def sparse_segmented_tensor(
    min_dim: int = 1,
    max_dim: int = 4,
    dtype: Any = np.float32,
    is_sorted: bool = True,
    elements: Any = None,
    allow_empty: bool = False,
    segment_generator: Callable[..., Any] = segment_ids,
    itype: Any = np.int64,
    **kwargs: Any,
) -> Any:
    """An array, indices of its rows, and what `segment_generator` gives for the indices."""

    def with_indices(data: Any) -> Any:
        indices = st.integers(0 if allow_empty else 1, 10).flatmap(
            lambda count: arrays([count], itype, st.integers(0, len(data) - 1))
        )
        return indices.flatmap(
            lambda found: st.tuples(
                st.just(data), st.just(found), segment_generator(len(found), is_sorted=is_sorted)
            )
        )

    return tensor(min_dim, max_dim, dtype, elements, **kwargs).flatmap(with_indices)


def sparse_lengths_tensor(**kwargs: Any) -> Any:
    """An array, indices of its rows, and lengths of segments of the indices."""

    def generate(size: int, is_sorted: bool) -> Any:
        return lengths(size)

    return sparse_segmented_tensor(segment_generator=generate, **kwargs)


cpu_do = caffe2_pb2.DeviceOption()
cuda_do = gpu_do = caffe2_pb2.DeviceOption(device_type=caffe2_pb2.PROTO_CUDA)
hip_do = caffe2_pb2.DeviceOption(device_type=caffe2_pb2.PROTO_HIP)
device_options = [cpu_do]
# Two on one machine with one kind of device, so that results of two runs are compared.
expanded_device_options = [cpu_do]


def device_checker_device_options() -> Any:
    """The devices that a DeviceChecker compares."""
    return st.just(device_options)


def gradient_checker_device_option() -> Any:
    """The device that a GradientChecker runs on."""
    return st.sampled_from(device_options)


# For `@given(**gcs)`: `gc` is a device for gradients, `dc` the devices to compare.
gcs = {"gc": gradient_checker_device_option(), "dc": device_checker_device_options()}
gcs_cpu_only = {"gc": st.sampled_from([cpu_do]), "dc": st.just([cpu_do])}
gcs_cuda_only = {"gc": st.sampled_from([cuda_do]), "dc": st.just([cuda_do])}
gcs_gpu_only = {"gc": st.sampled_from([gpu_do]), "dc": st.just([gpu_do])}
gcs_no_hip = gcs


def settings(*args: Any, **kwargs: Any) -> Any:
    """hypothesis.settings without those that this version does not know."""
    known = {name for name in kwargs if hasattr(hypothesis.settings, name)}
    return hypothesis.settings(*args, **{name: kwargs[name] for name in known})
