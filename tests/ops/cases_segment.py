"""Harness cases of reductions over segments."""

import numpy as np

from caffe2.testing import Bad, Case, distinct, exactly, floats, result_of

F4, I4, I8 = np.float32, np.int32, np.int64
# What says the segments of six rows; three segments, or four of unsorted ones.
SEGMENTS = {
    "Lengths": ("LENGTHS", I4([2, 0, 4])),
    "SortedSegment": ("SEGMENT_IDS", I4([0, 0, 1, 1, 1, 2])),
    "UnsortedSegment": ("SEGMENT_IDS", I4([3, 0, 3, 1, 0, 0])),
}
BAD = {
    "Lengths": [("a negative length", [3, -1, 4]), ("too long", [2, 1, 4]), ("short", [2, 0, 3])],
    "SortedSegment": [("a gap", [0, 0, 2, 2, 2, 2]), ("unsorted", [0, 1, 0, 1, 1, 1]),
                      ("no 0", [1, 1, 1, 1, 1, 1]), ("negative", [-1, 0, 0, 0, 0, 0])],
    "UnsortedSegment": [("negative", [-1, 0, 0, 0, 0, 0])],
}  # fmt: skip
REDUCERS = ("Sum", "Mean", "WeightedSum")


def bad_segments(kind):
    name = SEGMENTS[kind][0]
    return [*(Bad(why, {name: I4(values)}) for why, values in BAD[kind]),
            Bad("2-d segments", {name: SEGMENTS[kind][1][None]})]  # fmt: skip


def reduction(kind, reducer, sparse, data=None, **case):
    name, segments = SEGMENTS[kind]
    inputs = {"DATA": data or floats(7 if sparse else 6, "C")}
    if reducer == "WeightedSum":
        inputs["SCALARS"] = floats(6)
    if reducer == "PositionalWeightedSum":
        inputs["WEIGHT"] = floats(5)
    bad = bad_segments(kind)
    if sparse:
        inputs["INDICES"] = exactly([6, 0, 0, 3, 1, 6], I8 if kind == "Lengths" else I4)
        bad += [
            Bad("an index too large", {"INDICES": I8([7, 0, 0, 3, 1, 6])}),
            Bad("a negative index", {"INDICES": I8([-1, 0, 0, 3, 1, 6])}),
            Bad("2-d indices", {"INDICES": I8([[1, 0, 0, 3, 1, 6]])}),
        ]
    inputs[name] = exactly(segments)
    mismatch = {"DATA": None if sparse else 0, "WEIGHT": None}
    type = case.pop("type", f"{'Sparse' * sparse}{kind}{reducer}")
    no_gradient = ["SCALARS"] if reducer == "WeightedSum" and "args" not in case else []
    return Case(type, mismatch=mismatch, bad=bad, no_gradient=no_gradient, **case, **inputs)


def spread(kind, reducer, sparse, inside="", like=None):
    name, segments = SEGMENTS[kind]
    inputs = {"SCALARS": floats(6)} if reducer == "WeightedSum" else {}
    inputs |= {"dY": floats(4 if kind == "UnsortedSegment" else 3, "C"), name: exactly(segments)}
    if like:
        inputs[like] = floats(6) if like == "DATA" else exactly(range(6), I8)
    counted = kind != "Lengths" or like or reducer == "WeightedSum"
    mismatch = {"dY": None if kind == "UnsortedSegment" else 0, name: None}
    type = f"{'Sparse' * sparse}{kind}{inside}{reducer}Gradient"
    return Case(type, mismatch=mismatch, bad=bad_segments(kind) if counted else [], **inputs)


def weighted(type, sparse):
    inputs = {"SCALARS": floats(6), "dY": floats(3, "C"), "LENGTHS": exactly(I4([2, 0, 4])),
              "DATA": floats(7 if sparse else 6, "C")}  # fmt: skip
    if sparse:
        inputs["INDICES"] = exactly([6, 0, 0, 3, 1, 6], I8)
    return Case(type, outputs=2, bad=bad_segments("Lengths"), **inputs)


def forward(type, reducer, kind, order):
    name, segments = SEGMENTS[kind]
    of = f"SortedSegmentRange{reducer}" if kind == "SortedSegment" else "LengthsMax"
    known = {"X": distinct(6, "C"), "Y": result_of(of, "X", name), "dY": floats(3, "C"),
             name: exactly(segments)}  # fmt: skip
    inputs = {key: known[key] for key in order}
    return Case(type, mismatch=dict.fromkeys(inputs, 0), bad=bad_segments(kind), **inputs)


RANGE = ("Sum", "Mean", "Max", "LogSumExp", "LogMeanExp")
KINDS = [(kind, sparse, reducer)
         for kind in SEGMENTS for sparse in (False, True) for reducer in REDUCERS]  # fmt: skip

CASES = [
    *(reduction(kind, reducer, sparse) for kind, sparse, reducer in KINDS),
    *(spread(kind, reducer, sparse) for kind, sparse, reducer in KINDS),
    *(reduction("Lengths", "WeightedSum", sparse, title="grad_on_weights",
                args={"grad_on_weights": 1}) for sparse in (False, True)),
    *(reduction("UnsortedSegment", "Mean", sparse, title="num_segments", args={"num_segments": 6})
      for sparse in (False, True)),
    *(reduction("Lengths", reducer, True, title="half", gradient=False,
                data=floats(7, "C", dtype="f2"))
      for reducer in (*REDUCERS, "PositionalWeightedSum")),
    reduction("Lengths", "PositionalWeightedSum", True),
    reduction("Lengths", "Sum", False, title="deep", data=floats(6, 2, "C", 1)),
    reduction("Lengths", "Sum", True, title="flat", data=floats(7)),
    reduction("Lengths", "Max", False, data=distinct(6, "C")),
    *(reduction("SortedSegment", reducer, False, data=distinct(6, "C"),
                type=f"SortedSegmentRange{reducer}") for reducer in RANGE),
    *(spread("Lengths", reducer, True, "IndicesInGradient", "INDICES") for reducer in REDUCERS),
    *(spread("Lengths", reducer, False, "IndicesInGradient", "DATA") for reducer in REDUCERS[:2]),
    weighted("LengthsWeightedSumWithMainInputGradient", False),
    weighted("SparseLengthsWeightedSumWithMainInputGradient", True),
    weighted("SparseLengthsIndicesInGradientWeightedSumWithMainInputGradient", True),
    forward("LengthsMaxWithMainInputAndForwardOutputGradient", "Max", "Lengths",
            ("Y", "dY", "LENGTHS", "X")),
    *(forward(f"SortedSegmentRange{reducer}Gradient", reducer, "SortedSegment",
              ("X", "Y", "dY", "SEGMENT_IDS")) for reducer in RANGE),
    *(Case(type, title="empty", DATA=floats(0, "C"), **{SEGMENTS[kind][0]: exactly([], I4)},
           mismatch={"DATA": None, SEGMENTS[kind][0]: None}, gradient=False)
      for kind, type in (("Lengths", "LengthsSum"), ("SortedSegment", "SortedSegmentMean"),
                         ("UnsortedSegment", "UnsortedSegmentSum"))),
]  # fmt: skip

LOOSER = {
    "LengthsWeightedSumWithMainInputGradient": "two outputs are written",
    "SparseLengthsWeightedSumWithMainInputGradient": "two outputs are written",
    "LengthsMaxWithMainInputAndForwardOutputGradient": "one output is written",
}
