"""Harness cases of decoders, of tensors of strings, of piecewise functions and of the histogram
that finds its bins; random choices are tested by hand."""

import numpy as np

from caffe2.testing import Bad, Case, exactly, floats, integers

F4, F8, I4 = np.float32, np.float64, np.int32
SCORES = {"low": 0, "high": 1}
TEXTS = exactly(np.array([[b"abc", b"", b"a"], [b"\xff\x00z", b"ab", b"a longer text"]], object))

DECODING = [
    Case("CTCGreedyDecoder", INPUTS=floats("T", "N", 3, **SCORES), sizes={"T": (7, 1, 0)},
         mismatch={"INPUTS": None}, bad=[Bad("no id", {"INPUTS": np.zeros((2, 2, 0), F4)})]),
    Case("CTCGreedyDecoder", title="lengths", args={"merge_repeated": 0}, sizes={"N": (4, 1, 0)},
         INPUTS=floats(5, "N", 3, **SCORES), SEQ_LEN=integers("N", low=0, high=5, dtype="i4"),
         mismatch={"INPUTS": 1},
         bad=[Bad("too long", {"SEQ_LEN": I4([5, 6, 0, 0])}),
              Bad("negative", {"SEQ_LEN": I4([5, -1, 0, 0])})]),
    Case("CTCBeamSearchDecoder", outputs=3, args={"beam_width": 3, "num_candidates": 3},
         INPUTS=floats("T", 2, 3, **SCORES), sizes={"T": (4, 1, 0)}, mismatch={"INPUTS": None},
         bad=[Bad("more candidates than beams", args={"num_candidates": 4})]),
    Case("CTCBeamSearchDecoder", title="lengths", args={"prune_threshold": 0.3},
         INPUTS=floats(5, 2, 4, **SCORES), SEQ_LEN=exactly([0, 5], I4), mismatch={"INPUTS": 1},
         bad=[Bad("too long", {"SEQ_LEN": I4([5, 6])})]),
    Case("ViterbiPath", predictions=floats("T", 4), transitions=floats(4, 4),
         sizes={"T": (5, 1)}, mismatch={"predictions": 1},
         bad=[Bad("no step", {"predictions": np.zeros((0, 4), F4)})]),
    Case("SwapBestPath", predictions=floats("N", 3),
         bestPath=integers("N", low=0, high=2, dtype="i4"), mismatch={"predictions": 0},
         bad=[Bad("no label", {"bestPath": I4([0, 3])}),
              Bad("negative", {"bestPath": I4([0, -1])})]),
]  # fmt: skip

STRINGS = [
    Case("StringPrefix", strings=TEXTS, bad=[Bad("a negative length", args={"length": -1})]),
    Case("StringPrefix", title="2", args={"length": 2}, strings=TEXTS),
    Case("StringSuffix", title="2", args={"length": 2}, strings=TEXTS),
    Case("StringSuffix", title="0", args={"length": 0}, strings=TEXTS),
    Case("StringStartsWith", args={"prefix": "ab"}, strings=TEXTS),
    Case("StringEndsWith", args={"suffix": "b"}, strings=TEXTS),
    Case("StringEquals", args={"text": "a"}, strings=TEXTS),
    Case("StringJoin", input=TEXTS, bad=[Bad("axis 2", args={"axis": 2})]),
    Case("StringJoin", title="columns", args={"axis": 1, "delimiter": "--"},
         input=exactly([[1, -2.5, 1e-7], [123456789, np.inf, 0]], F4)),
    *(Case("StringJoin", title=dtype, input=integers("N", 2, low=0, high=1, dtype=dtype))
      for dtype in ("i4", "i8", "?", "u1")),
    Case("StringJoin", title="1-d", input=exactly([1.5, 2], F8)),
]  # fmt: skip

LINES = {"bounds": [0.0, 0.4, 0.4, 1.0], "slopes": [1.0, -2.0, 3.0], "intercepts": [0.0, 0.5, 1.0]}
PIECEWISE = [
    Case("PiecewiseLinearTransform", title="arguments", args=LINES,
         predictions=floats("N", 1, low=-1, high=2),
         bad=[Bad("falling", args={"bounds": [0.0, 0.5, 0.4, 1.0]}),
              Bad("too few bounds", args={"bounds": [0.0, 0.5, 1.0]}),
              Bad("no slopes", args={"slopes": []})]),
    Case("PiecewiseLinearTransform", title="binary", args={**LINES, "binary": 1},
         predictions=floats("N", 2, low=0, high=1),
         bad=[Bad("three columns", {"predictions": np.ones((2, 3), F4)})]),
    Case("PiecewiseLinearTransform", title="binary 1-d", args={**LINES, "binary": 1},
         predictions=floats("N", low=0, high=1), mismatch={"predictions": None}),
    Case("PiecewiseLinearTransform", title="inputs", predictions=floats("N", 2),
         bounds=exactly([[-1, 0, 1], [0, 0.1, 0.2]], F4), slopes=floats(2, 2),
         intercepts=floats(2, 2), gradient=False,
         bad=[Bad("falling", {"bounds": F4([[-1, 0, 1], [0.3, 0.1, 0.2]])})]),
    *(Case("SelfBinningHistogram", title=f"{spacing} {dtype}",
           args={"num_bins": 5, "bin_spacing": spacing, "abs": int(dtype == "f8")},
           X=[floats("N", dtype=dtype), floats(2, 3, dtype=dtype)], mismatch={"X": None},
           tolerance=1e-4 if spacing == "logarithmic" else 1e-5,  # powers of small numbers
           bad=[Bad("no bins", args={"num_bins": 0}),
                Bad("no spacing", args={"bin_spacing": "cubic"}),
                Bad("NaN", {"X_0": np.array([np.nan], dtype)})])
      for spacing in ("linear", "logarithmic") for dtype in ("f4", "f8")),
    Case("SelfBinningHistogram", title="alike", args={"num_bins": 3}, X=[exactly([2, 2], F4)],
         mismatch={"X": None}),
    Case("SelfBinningHistogram", title="empty", args={"num_bins": 3}, X=[exactly([], F4)],
         mismatch={"X": None}),
]  # fmt: skip

CASES = [*DECODING, *STRINGS, *PIECEWISE]
SPECIAL = dict.fromkeys(
    [
        "WeightedSample",
        "WeightedMultiSampling",
        "SparseDropoutWithReplacement",
        "SparseItemwiseDropoutWithReplacement",
    ],
    "tests/ops/test_recorded_sampling.py",
)
LOOSER = {
    "SparseDropoutWithReplacement": "two outputs",
    "SparseItemwiseDropoutWithReplacement": "two outputs",
    "PiecewiseLinearTransform": "one input or four",
}
