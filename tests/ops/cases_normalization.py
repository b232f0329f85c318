"""Harness cases of LayerNorm, RMSNorm, InstanceNorm, GroupNorm and LRN."""

import numpy as np

from caffe2.testing import Bad, Case, floats, like

F4 = np.float32
ROWS = {"N": (3, 0, 1), "K": (6, 33, 17)}
BATCH = {"N": (2, 0, 1)}


LAYERS = [
    Case("LayerNorm", outputs=3, loss=0, sizes=ROWS, tolerance=1e-4, X=floats("N", "K"),
         bad=[Bad("axis=2 of 2", args={"axis": 2}), Bad("two outputs", outputs=2),
              Bad("no gamma", args={"elementwise_affine": 1})]),
    Case("LayerNorm", title="axis=-1", args={"axis": -1, "epsilon": 0.5}, outputs=3, loss=0,
         sizes=ROWS, X=floats("N", 2, "K")),
    Case("LayerNorm", title="axis=0", args={"axis": 0}, outputs=3, loss=0, sizes=ROWS,
         X=floats(3, "K")),
    Case("LayerNorm", title="affine", args={"axis": 2, "elementwise_affine": 1}, outputs=3,
         sizes=ROWS, loss=0, X=floats("N", 2, "K"), gamma=floats("K"), beta=floats("K")),
    Case("LayerNormGradient", sizes=ROWS, dY=floats("N", "K"), Y=like("dY"), mean=floats("N", 1),
         std=floats("N", 1, low=0.5), X=like("dY"), mismatch={"Y": None, "mean": 0, "std": 0}),
    Case("LayerNormGradient", title="affine", args={"elementwise_affine": 1, "axis": 2}, outputs=3,
         sizes=ROWS, dY=floats("N", 2, "K"), Y=like("dY"), mean=floats("N", 2, 1),
         std=floats("N", 2, 1, low=0.5), X=like("dY"), gamma=floats("K"),
         mismatch={"Y": None, "mean": 0, "std": 0},
         bad=[Bad("one output", outputs=1), Bad("not affine", args={"elementwise_affine": 0})]),
    Case("RMSNorm", outputs=2, sizes=ROWS, loss=0, X=floats("N", "K"), gamma=floats("K"),
         beta=floats("K")),
    Case("RMSNorm", title="axis=2", args={"axis": 2, "eps": 0.1}, outputs=2, sizes=ROWS, loss=0,
         X=floats("N", 2, "K", 2), gamma=floats("K", 2), beta=floats("K", 2)),
    Case("RMSNorm", title="double", outputs=2, sizes=ROWS, loss=0,
         X=floats("N", "K", dtype="f8"), gamma=floats("K", dtype="f8"),
         beta=floats("K", dtype="f8")),
    Case("RMSNormGradient", outputs=3, sizes=ROWS, dY=floats("N", "K", 2), X=like("dY"),
         gamma=floats("K", 2), rrms=floats("N", low=0.5)),
    Case("RMSNormGradient", title="double", outputs=3, sizes=ROWS,
         dY=floats("N", "K", dtype="f8"), X=floats("N", "K", dtype="f8"),
         gamma=floats("K", dtype="f8"), rrms=floats("N", low=0.5, dtype="f8")),
]  # fmt: skip


def groups(type, title, shape, group, *, sizes=None, **args):
    """InstanceNorm (no group) or GroupNorm, with gradient."""
    affine = ("gamma", "beta") if group else ("scale", "bias")
    args = {"group": group, **args} if group else args
    channels = shape[-1] if args.get("order") == "NHWC" else shape[1]
    moment = ("N", group or channels)
    data = {"X": floats(*shape), **{name: floats(channels) for name in affine}}
    saved = {
        ("mean" if group else "saved_mean"): floats(*moment),
        ("inv_std" if group else "saved_inv_std"): floats(*moment, low=0.5),
    }
    sizes = {**BATCH, **(sizes or {})}
    axis = -1 if args.get("order") == "NHWC" else 1
    common = {"title": title, "args": args, "sizes": sizes, "tolerance": 3e-5}
    dy = {"dY": like("X")}
    gradient = {**dy, **data, **saved} if group else {**data, **dy, **saved}
    return [
        Case(type, outputs=3, loss=0, mismatch={"X": axis}, **common, **data),
        Case(f"{type}Gradient", outputs=3, mismatch={"X": axis}, **common, **gradient),
    ]


GROUPS = [
    *groups("InstanceNorm", "NCHW", ("N", 3, 4, 5), 0, epsilon=0.01),
    *groups("InstanceNorm", "NHWC", ("N", 4, 5, 3), 0, order="NHWC"),
    *groups("InstanceNorm", "1 axis", ("N", 2, 33), 0),
    Case("InstanceNorm", title="one output", sizes=BATCH, mismatch={"X": 1},
         X=floats("N", 3, 4, 5), scale=floats(3), bias=floats(3), gradient=False,
         bad=[Bad("an empty picture", {"X": np.ones((2, 3, 0, 4), F4)})]),
    Case("InstanceNormGradient", title="nothing saved", sizes=BATCH, mismatch={"X": 1},
         X=floats("N", 3, 4, 5), scale=floats(3), bias=floats(3), dY=like("X"), tolerance=3e-5),
    *groups("GroupNorm", "NCHW", ("N", 6, 3, 5), 2),
    *groups("GroupNorm", "NHWC", ("N", 3, 5, 6), 3, order="NHWC", epsilon=0.1),
    *groups("GroupNorm", "3 axes", ("N", 4, 2, 3, 2), 4),
    *groups("GroupNorm", "flat", ("N", 16), 2),
    Case("GroupNorm", title="default", outputs=1, sizes=BATCH, X=floats("N", 64, 3),
         gamma=floats(64), beta=floats(64), gradient=False, tolerance=3e-5, mismatch={"X": 1},
         bad=[Bad("channels that do not fit", args={"group": 3}), Bad("two outputs", outputs=2)]),
]  # fmt: skip


def lrn(title, shape, **args):
    common = {"title": title, "args": args, "sizes": {"N": (2, 0, 1)}}
    return [
        Case("LRN", outputs=2, loss=0, **common, X=floats(*shape)),
        Case("LRNGradient", **common, X=floats(*shape), Y=like("X"), dY=like("X")),
    ]


RESPONSES = [
    *lrn("NCHW", ("N", 7, 3, 5), size=3, alpha=0.5, beta=0.75, bias=1.5),
    *lrn("NHWC", ("N", 3, 5, 7), size=5, alpha=0.5, beta=0.75, order="NHWC"),
    *lrn("even", ("N", 6, 4), size=4, alpha=2.0, beta=0.5, bias=2.0),
    *lrn("none", ("N", 4, 3)),
    Case("LRN", title="one output", args={"size": 3, "alpha": 0.1, "beta": 0.75},
         sizes={"N": (2, 0)}, X=floats("N", 5, 2, 3),
         bad=[Bad("no window", args={"size": 0}), Bad("a flat X", {"X": np.ones(3, F4)})]),
]  # fmt: skip

CASES = [*LAYERS, *GROUPS, *RESPONSES]
