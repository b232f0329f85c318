"""Harness cases of histograms, percentiles, ranges and running sums."""

import numpy as np

from caffe2.testing import Bad, Case, exactly, floats

F4, F8, I4, I8 = np.float32, np.float64, np.int32, np.int64
SAMPLES = F4([[1, 0.1], [2, 0.5], [2, 0.7], [3, 0.9], [2, 0.2], [5, 0.6]])
BISECT = {
    "percentile_raw": [1.0, 2.0, 3.0, 2.0, 5.0],
    "percentile_mapping": [0.1, 0.5, 0.9, 0.2, 0.6],
    "percentile_lower": [0.05, 0.4, 0.8, 0.1, 0.5],
    "percentile_upper": [0.2, 0.6, 1.0, 0.3, 0.7],
    "lengths": [3, 2],
}
EDGES = [-0.5, 0.0, 0.25, 0.9]

HISTOGRAMS = [
    Case(
        "Histogram",
        title=dtype,
        args={"bin_edges": EDGES},
        X=[floats("N", dtype=dtype), floats(2, 3, dtype=dtype)],
        mismatch={"X": None},
        bad=[
            Bad("one edge", args={"bin_edges": [0.0]}),
            Bad("falling edges", args={"bin_edges": [1.0, 0.0]}),
        ],
    )
    for dtype in ("f4", "f8")
] + [
    Case(
        "Quantile",
        args={"quantile": 0.3},
        X=[floats("C"), floats(2, 3)],
        mismatch={"X": None},
        bad=[
            Bad("quantile 2", args={"quantile": 2.0}),
            Bad("NaN", {"X_0": F4([np.nan, 1])}),
            Bad("infinity", {"X_0": F4([np.inf, 1])}),
        ],
    ),
    Case(
        "Quantile",
        title="signed",
        args={"quantile": 0.8, "abs": 0, "tol": 0.0},
        X=[floats("C", dtype="f8")],
        mismatch={"X": None},
    ),
]

PERCENTILES = [
    Case(
        "Percentile",
        original_values=floats("N", 2, low=0, high=6),
        value_to_pct=exactly(SAMPLES),
        lengths=exactly(I4([4, 2])),
        bad=[
            Bad("lengths that sum to less", {"lengths": I4([3, 2])}),
            Bad("a negative length", {"lengths": I4([7, -1])}),
            Bad("falling samples", {"value_to_pct": SAMPLES[::-1].copy()}),
        ],
    ),
    Case(
        "BisectPercentile",
        args=BISECT,
        raw_values=floats("N", 2, low=0, high=6),
        mismatch={"raw_values": 1},
        bad=[
            Bad("lengths that sum to less", args={"lengths": [3, 1]}),
            Bad("lengths that sum to more", args={"lengths": [3, 3]}),
            Bad("falling samples", args={"percentile_raw": [3.0, 2.0, 1.0, 2.0, 5.0]}),
            Bad("too few of a kind", args={"percentile_upper": [1.0]}),
        ],
    ),
]

RANGES = [
    Case(
        "Range",
        title=title,
        **{
            name: exactly(value, dtype)
            for name, value in zip(("start", "stop", "step"), values, strict=False)
        },
        mismatch=dict.fromkeys(("start", "stop", "step")[: len(values)], None),
        bad=[Bad("two elements", {"start": np.ones(2, dtype)})],
    )
    for title, dtype, values in (
        ("stop", F4, (4.5,)),
        ("two", I8, (3, 9)),
        ("backwards", I4, (9, 2, -3)),
        ("empty", F8, (1, 3, -0.5)),
        ("widest", I4, (-(2**31), 2**31 - 1, 2**30)),
    )
] + [
    Case(
        "Range",
        title="steps",
        start=exactly(1, F4),
        stop=exactly(2, F4),
        step=exactly(0.3, F4),
        mismatch={"start": None, "stop": None, "step": None},
        bad=[
            Bad("no step", {"step": F4(0)}),
            Bad("NaN", {"stop": F4(np.nan)}),
            Bad("too many", {"stop": F4(3e38), "step": F4(1e-9)}),
        ],
    ),
]

CASES = [*HISTOGRAMS, *PERCENTILES, *RANGES]
# Their runs add up.
SPECIAL = dict.fromkeys(["Accumulate", "AccumulateHistogram"], "tests/ops/test_recorded_losses.py")
