"""Harness cases of locally connected layers, of Adagrad fused with sums over segments, of tables in
the tensor-train format, and of barriers; queues of examples are tested by hand."""

import numpy as np

from caffe2.testing import Bad, Case, anything, exactly, floats, like, result_of

F4, I4, I8 = np.float32, np.int32, np.int64
BATCH = {"N": (2, 1, 0)}


def lc(axes, title, x, w, *, bias=True, bad=(), **args):
    """A locally connected layer and its gradient."""
    spatial = len(x) - 2
    channels = len(x) - 1 if "order" in args else 1
    common = {"title": title, "sizes": BATCH, "mismatch": {"X": channels}}
    inputs = {"X": floats(*x), "filter": floats(*w)}
    biased = {"bias": floats(*w[: spatial + 1])} if bias else {}
    no_bias = {} if bias else {"no_bias": 1}
    return [
        Case(f"LC{axes}", args=args, bad=bad, **common, **inputs, **biased),
        Case(f"LC{axes}Gradient", args={**args, **no_bias}, outputs=3 if bias else 2, **common,
             **inputs, dY=result_of(f"LC{axes}", "X", "filter", **args)),
    ]  # fmt: skip


LOCAL = [
    *lc("", "", ("N", 2, 4, 3), (3, 2, 3, 2, 2, 2), kernel=2,
        bad=[Bad("another filter", {"filter": np.ones((2, 2, 3, 2, 2, 2), F4)})]),
    *lc("2D", "pads", ("N", 2, 4, 3), (2, 2, 2, 2, 3, 2), bias=False, kernels=[3, 2],
        strides=[2, 1], pads=[1, 0, 0, 0]),
    *lc("", "NHWC group", ("N", 4, 3, 4), (3, 2, 2, 2, 2, 2), kernel=2, order="NHWC", group=2),
    *lc("1D", "", ("N", 2, 5), (4, 3, 2, 2), kernels=[2]),
    *lc("3D", "", ("N", 1, 2, 3, 2), (1, 2, 1, 2, 1, 2, 2, 2), kernels=[2, 2, 2]),
]  # fmt: skip

FUSED = [
    Case(f"{rows}SparseAdagradFusedWithSparseLengths{kind}Gradient{approximate}",
         args={"weight_decay": 0.1}, param=floats(4, 3),
         moment=floats(4, low=0) if rows else floats(4, 3, low=0),
         **({"aux_param": floats(4)} if kind == "WeightedSum" else {}),
         indices=exactly([0, 2, 0, 3], I8), grad=floats(3, 3), lr=exactly([-0.1], F4),
         lengths=exactly([3, 0, 1], I4), mismatch={"param": -1, "indices": 0, "lengths": 0},
         bad=[Bad("no row", {"indices": I8([0, 2, 4, 3])}),
              Bad("a negative row", {"indices": I8([0, 2, -1, 3])}),
              Bad("too short", {"lengths": I4([3, 0, 0])}),
              Bad("negative", {"lengths": I4([5, -2, 1])})])
    for rows in ("", "RowWise") for kind in ("Sum", "Mean", "WeightedSum")
    for approximate in ("", "Approx")
]  # fmt: skip

SIZES = {"factor_i": [3, 4, 5], "factor_j": [2, 3, 2], "ranks": [1, 2, 2, 1], "emb_size": 12}
CORES = {"core0": floats(3, 1, 2, 2), "core1": floats(4, 2, 3, 2), "core2": floats(5, 2, 2, 1)}
INDEX = {"index": exactly([0, 59, 7, 33], I8), "lengths": exactly([1, 0, 3], I4)}
TRAIN = [
    Case("TT", args={"inp_sizes": [2, 3], "out_sizes": [4, 5], "tt_ranks": [1, 2, 1]},
         X=floats("N", 6), b=floats(20), cores=floats(46),
         bad=[Bad("ranks", args={"tt_ranks": [1, 2]}),
              Bad("the end", args={"tt_ranks": [1, 1, 2]})]),
    Case("TTSparseLengthsSum", args=SIZES, outputs=4, loss=0, **CORES, **INDEX,
         mismatch={"index": 0, "lengths": 0},
         bad=[Bad("no row", {"index": I8([0, 60, 7, 33])}),
              Bad("negative", {"index": I8([0, -1, 7, 33])}),
              Bad("too short", {"lengths": I4([1, 0, 2])}),
              Bad("columns", args={"emb_size": 13})]),
    Case("TTSparseLengthsSumGradient", **CORES, lengths=INDEX["lengths"],
         core0_output=floats(4, 2, 2), core1_output=floats(4, 6, 2),
         indices=exactly([[0, 0, 0], [2, 3, 4], [0, 1, 2], [1, 2, 3]], I8), dY=floats(3, 12),
         mismatch={"lengths": 0},
         bad=[Bad("no row", {"indices": I8([[0, 0, 0], [3, 3, 4], [0, 1, 2], [1, 2, 3]])})]),
]  # fmt: skip

BARRIERS = [
    Case("AsyncNetBarrier", outputs=2, X=[anything("N", 2), like("X_0")], mismatch={"X": None},
         gradient=False, bad=[Bad("one output", outputs=1)]),
]  # fmt: skip

CASES = [*LOCAL, *FUSED, *TRAIN, *BARRIERS]
LOOSER = {
    **{f"LC{axes}Gradient": "three inputs always" for axes in ("", "1D", "2D", "3D")},
    "AsyncNetBarrier": "as many outputs as inputs",
    "UnsafeCoalesce": "one output more than inputs",
}
SPECIAL = dict.fromkeys(
    [
        "CreateRebatchingQueue",
        "EnqueueRebatchingQueue",
        "DequeueRebatchingQueue",
        "CloseRebatchingQueue",
        "UnsafeCoalesce",
        "ThrowException",
    ],
    "tests/engine/test_rebatching.py",
)
MORE_IN_PLACE = dict.fromkeys(
    ["AsyncNetBarrier", "UnsafeCoalesce"],
    "for any number of blobs, of which the first were asked about",
)
