"""Memory that runs out: at whatever call it does, operators end cleanly."""

import os
from pathlib import Path

import numpy as np
import pytest
from operator_cases import CASES

from caffe2 import ops
from caffe2.testing import EngineRunner, Operation
from caffe2.testing.runners import _message

UNAVAILABLE = EngineRunner.unavailable()
pytestmark = pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))

SENTINEL = np.array([3.25, -1.5], dtype=np.float32)
NATIVE = [case for case in CASES if ops.find(case.type).native and case.title != "3-d"]


def feed(space, name, array):
    if array.dtype.hasobject:
        space.feed_strings(name, array)
    else:
        space.feed(name, array)


@pytest.mark.parametrize("case", NATIVE, ids=repr)
def test_every_allocation_may_fail(case):
    from caffe2 import _native
    from caffe2.runtime.engine import new_workspace

    engine = _native.Engine(threads=2)
    drawn = max(case.draws(), key=lambda d: sum(array.size for _, _, array in d))
    inputs = tuple(blob for _, blob, _ in drawn)
    outputs = list(case.outputs)
    for source, target in ops.find(case.type).enforced_inplace:
        if source < len(inputs) and target < len(outputs):
            outputs[target] = inputs[source]
    message = _message(Operation(case.type, inputs, tuple(outputs), case.args), "")
    failures = 0
    while True:
        space = new_workspace(engine)
        for _, blob, array in drawn:
            feed(space, blob, array)
        for name in set(outputs) - set(inputs):
            space.feed(name, SENTINEL)
        engine.fail_at_allocation(failures + 1)
        try:
            space.run_operator(message)
        except _native.EngineError as error:
            assert error.code == "out of memory" and error.operator == case.type
        else:
            break
        finally:
            engine.fail_at_allocation(0)
        failures += 1
        assert failures < 50
        for name in set(outputs) - set(inputs):
            np.testing.assert_array_equal(space.fetch(name), SENTINEL)
        for _, blob, array in drawn:
            np.testing.assert_array_equal(space.fetch(blob), array)
        space.reset()
        assert engine.memory_used == 0
    space.reset()
    assert engine.memory_used == 0


I4, I8 = np.int32, np.int64
ROWS = np.ones((2, 4), np.float32)
# One number of the data, or an argument, asks for more than there is: type, inputs, outputs,
# arguments. The first pieces of memory are there, the last one is not.
GREEDY = [
    ("UnsortedSegmentSum", [ROWS, I4([0, 30_000_000])], 1, {}),
    ("UnsortedSegmentMean", [ROWS, I4([0, 3])], 1, {"num_segments": 30_000_000}),
    ("SparseUnsortedSegmentSum", [ROWS, I8([0, 1]), I4([30_000_000, 0])], 1, {}),
    ("UniqueUniformFill", [], 1, {"shape": [20_000_000], "min": 0, "max": 2**31 - 1}),
    (
        "CTCBeamSearchDecoder",
        [np.full((1, 2, 3), 1 / 3, np.float32)],
        3,
        {"beam_width": 30_000_000, "num_candidates": 30_000_000},
    ),
]


@pytest.mark.parametrize("greedy", GREEDY, ids=lambda greedy: greedy[0])
def test_what_asks_for_too_much_is_refused_before_memory_is_touched(greedy):
    from caffe2 import _native
    from caffe2.runtime.engine import new_workspace

    type, inputs, outputs, args = greedy
    engine = _native.Engine(threads=1, memory_limit=1 << 28)
    space = new_workspace(engine)
    names = tuple(f"x{number}" for number in range(len(inputs)))
    for name, value in zip(names, inputs, strict=True):
        space.feed(name, value)
    made = tuple(f"y{number}" for number in range(outputs))
    before = resident()
    with pytest.raises(_native.EngineError, match="would pass the memory limit"):
        space.run_operator(_message(Operation(type, names, made, args), ""))
    assert resident() - before < 100 << 20


MOST, HALF = 2**31 - 1, 2**30 - 1
ONES = {size: np.ones((1, 2, size, size), np.float32) for size in (1, 2, 3)}
SIDES = {"kernel": 3, "dilation": MOST, "pad": MOST}
BIAS = np.zeros(2, np.float32)
# Pads and dilation, or strides and pads, that leave the output small: type, inputs, outputs,
# arguments.
PADDED = [
    ("Conv", [ONES[2], np.ones((4, 2, 3, 3), np.float32)], 1, SIDES),
    ("Conv", [ONES[2], np.ones((2, 1, 3, 3), np.float32)], 1, {**SIDES, "group": 2}),
    ("ConvGradient", [ONES[2], np.ones((2, 2, 3, 3), np.float32), ONES[2]], 2, SIDES),
    (
        "ConvTranspose",
        [ONES[2], np.ones((2, 1, 1, 1), np.float32)],
        1,
        {"kernel": 1, "stride": MOST, "pad": HALF},
    ),
    (
        "ExpandDepthwise",
        [ONES[2], np.ones((2, 2, 1, 1), np.float32), BIAS, ONES[3][0][:, None], BIAS],
        1,
        SIDES,
    ),
]


@pytest.mark.parametrize("padded", PADDED, ids=lambda padded: padded[0])
def test_padded_images_of_uncountable_size_are_refused(padded):
    from caffe2 import _native
    from caffe2.runtime.engine import new_workspace

    type, inputs, outputs, args = padded
    space = new_workspace(_native.Engine(threads=1))
    names = tuple(f"x{number}" for number in range(len(inputs)))
    for name, value in zip(names, inputs, strict=True):
        space.feed(name, value)
    made = tuple(f"y{number}" for number in range(outputs))
    with pytest.raises(_native.EngineError, match="with pads an image is"):
        space.run_operator(_message(Operation(type, names, made, args), ""))


EMPTY = np.zeros((1 << 40, 3, 0), np.float32)
# Nothing to compute, but sizes and arguments that would keep loops busy for hours.
NOTHING = [
    ("SequenceMask", [EMPTY], {"mode": "upper", "axis": 2}),
    ("ChannelShuffle", [EMPTY], {"group": 3}),
    ("ChannelShuffleGradient", [np.zeros((1, 0), np.float32)], {"group": MOST}),
    ("SpaceToBatch", [np.zeros((1, 1 << 40, 0, 0), np.float32)], {"block_size": 2}),
    ("Im2Col", [np.zeros((0, 2, 3, 4), np.float32)], {"kernel": 2, "pad": HALF}),
]


@pytest.mark.parametrize("nothing", NOTHING, ids=lambda nothing: nothing[0])
def test_what_has_no_element_takes_no_time(nothing):
    from caffe2 import _native
    from caffe2.runtime.engine import new_workspace

    type, inputs, args = nothing
    space = new_workspace(_native.Engine(threads=1))
    space.feed("x", inputs[0])
    space.run_operator(_message(Operation(type, ("x",), ("y",), args), ""))
    space.run_operator(_message(Operation("Size", ("y",), ("size",), {}), ""))
    assert space.fetch("size") == 0


def resident():
    """Bytes of this process that are in memory; 0 where nobody says."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return 0
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_the_failures_are_real():
    """An output that fits in no present memory needs one allocation at least."""
    from caffe2 import _native
    from caffe2.runtime.engine import new_workspace

    engine = _native.Engine(threads=1)
    space = new_workspace(engine)
    space.feed("x", np.zeros(100, np.float32))
    engine.fail_at_allocation(1)
    with pytest.raises(_native.EngineError, match="failure asked for"):
        space.run_operator(_message(Operation("Relu", ("x",), ("y",), {}), ""))
