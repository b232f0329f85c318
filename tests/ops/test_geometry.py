"""Windows of convolution and pooling, against a count of positions one by one."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caffe2.ops import geometry
from caffe2.ops.arguments import OperatorError, fill_arguments
from caffe2.testing.cases import full_effort

settings.register_profile("ops", max_examples=500 if full_effort() else 60, deadline=None)
settings.load_profile("ops")


def arguments(**given_args) -> SimpleNamespace:
    return fill_arguments(geometry.window_arguments(), given_args)[0]


def resolve(size, **given_args):
    return geometry.resolve_window(arguments(**given_args), (size,))


sizes = st.integers(1, 20)
small = st.integers(1, 5)


@given(size=sizes, kernel=small, stride=small, dilation=small, head=st.integers(0, 6),
       tail=st.integers(0, 6))  # fmt: skip
def test_every_window_that_fits_is_counted(size, kernel, stride, dilation, head, tail):
    span = (kernel - 1) * dilation + 1
    padded = size + head + tail
    starts = [start for start in range(0, padded, stride) if start + span <= padded]
    args = {"kernels": [kernel], "strides": [stride], "dilations": [dilation], "pads": [head, tail]}
    if not starts:
        with pytest.raises(OperatorError, match="spans"):
            resolve(size, **args)
        return
    window = resolve(size, **args)
    assert window.output == (len(starts),)
    assert (window.pad_head, window.pad_tail) == ((head,), (tail,))


@given(size=sizes, kernel=small, stride=small)
def test_same(size, kernel, stride):
    """The fewest pads that give ceil(size / stride) windows, the odd one behind."""
    window = resolve(size, kernel=kernel, stride=stride, legacy_pad=geometry.SAME)
    assert window.output == (-(-size // stride),)
    (head,), (tail,) = window.pad_head, window.pad_tail
    assert tail - head in (0, 1)
    if head + tail:
        assert (window.output[0] - 1) * stride + kernel == size + head + tail


@given(size=sizes, kernel=small, stride=small)
def test_valid(size, kernel, stride):
    args = {"kernel": kernel, "stride": stride}
    try:
        expected = resolve(size, **args)
    except OperatorError:
        with pytest.raises(OperatorError):
            resolve(size, **args, legacy_pad=geometry.VALID)
        return
    assert resolve(size, **args, legacy_pad=geometry.VALID) == expected


@given(size=sizes, kernel=small, stride=small, data=st.data())
def test_pooling_windows_meet_data(size, kernel, stride, data):
    """Whatever padding is accepted, no window lies outside the data."""
    pad = data.draw(st.integers(0, 5))
    args = {"kernel": kernel, "stride": stride, "pad": pad, "legacy_pad": geometry.CAFFE_POOLING}
    try:
        window = resolve(size, **args)
        geometry.require_data_in_windows(window, (size,))
    except OperatorError:
        return
    for index in range(window.output[0]):
        start = index * stride - pad
        assert any(0 <= place < size for place in range(start, start + kernel))
    if stride <= kernel:
        assert (window.output[0] - 1) * stride + kernel - pad >= size


@given(size=sizes, kernel=small, stride=small, dilation=small, pad=st.integers(0, 4))
def test_positions_meet_what_they_should(size, kernel, stride, dilation, pad):
    args = {"kernel": kernel, "stride": stride, "dilation": dilation, "pad": pad}
    try:
        window = resolve(size, **args)
    except OperatorError:
        return
    x = np.arange(1, size + 1, dtype=float).reshape(1, 1, size)
    padded = window.padded(x, 0)
    for place, met in window.positions():
        element = place[1]
        expected = []
        for output in range(window.output[0]):
            at = output * stride - pad + element * dilation
            expected.append(at + 1 if 0 <= at < size else 0)
        assert padded[met].reshape(-1).tolist() == expected
    assert window.cropped(padded, (size,)).tolist() == x.tolist()


def test_two_axes():
    args = arguments(kernel_h=2, kernel_w=3, pad_t=1, pad_l=0, pad_b=0, pad_r=2, stride=2)
    window = geometry.resolve_window(args, (6, 7))
    assert window.kernel == (2, 3)
    assert window.stride == (2, 2)
    assert (window.pad_head, window.pad_tail) == ((1, 0), (0, 2))
    assert window.output == (3, 4)


def test_global_pooling_takes_everything():
    window = geometry.resolve_window(arguments(global_pooling=1), (4, 5, 6))
    assert window.kernel == (4, 5, 6)
    assert window.output == (1, 1, 1)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "kernel"),
        ({"kernel_h": 3}, "together"),
        ({"kernel_h": 3, "kernel_w": 3}, "two spatial axes"),
        ({"kernels": [3, 3]}, "2 values; X has 1"),
        ({"kernel": 3, "pads": [1]}, "1 values; 2 are needed"),
        ({"kernel": 3, "legacy_pad": 1, "pad": 1}, "VALID or SAME"),
        ({"global_pooling": 1, "stride": 2}, "cannot be set"),
    ],
)
def test_contradictions(args, text):
    with pytest.raises(OperatorError, match=text):
        resolve(9, **args)
