"""Harness cases of ConvTranspose."""

import numpy as np

from caffe2.testing import Bad, Case, floats, result_of

F4 = np.float32


def transposed(title, x, w, outputs, *, bias=True, **args):
    """ConvTranspose and its gradient for the same data."""
    channels = -1 if args.get("order") == "NHWC" else 1
    inputs = {"X": floats(*x), "filter": floats(*w)}
    common = {"title": title, "sizes": {"N": (2, 0, 1)}, "mismatch": {"X": channels, "filter": 0}}
    biased = {"bias": floats(outputs)} if bias else {}
    no_bias = {} if bias else {"no_bias": 1}
    return [
        Case("ConvTranspose", args=args, **common, **inputs, **biased),
        Case(
            "ConvTransposeGradient",
            args={**args, **no_bias},
            outputs=3 if bias else 2,
            **common,
            **inputs,
            dY=result_of("ConvTranspose", "X", "filter", **args),
        ),
    ]


CASES = [
    *transposed("2x2", ("N", 3, 2, 3), (3, 4, 2, 2), 4, kernel=2, stride=2),
    *transposed("pad", ("N", 3, 3, 4), (3, 2, 3, 3), 2, kernel=3, stride=1, pad=1),
    *transposed("uneven", ("N", 2, 3, 2), (2, 3, 4, 3), 3, kernels=[4, 3], strides=[2, 3],
                pads=[1, 0, 2, 1], adjs=[1, 2]),
    *transposed("sides", ("N", 2, 3, 2), (2, 3, 2, 3), 3, kernel_h=2, kernel_w=3, stride_h=1,
                stride_w=2, pad_t=1, pad_l=0, pad_b=0, pad_r=2, adj_h=0, adj_w=1),
    *transposed("gaps", ("N", 2, 3, 2), (2, 1, 1, 1), 1, kernel=1, stride=3, adj=2),
    *transposed("no bias", ("N", 2, 3, 3), (2, 3, 3, 3), 3, bias=False, kernel=3, stride=2),
    *transposed("group", ("N", 4, 3, 2), (4, 3, 3, 3), 6, kernel=3, stride=2, group=2),
    *transposed("NHWC", ("N", 3, 2, 4), (4, 3, 2, 5), 5, kernel_h=3, kernel_w=2, stride=2, pad=1,
                adj=1, order="NHWC"),
    *transposed("NHWC group", ("N", 3, 2, 4), (4, 2, 2, 3), 6, kernel=2, stride=2, group=2,
                order="NHWC"),
]  # fmt: skip
CASES[0].bad += (
    Bad("no kernel", args={"kernels": [2]}),
    Bad("adj as large as the stride", args={"adj": 2}),
    Bad("pads that cut off all", args={"pad": 3}),
    Bad("half of the adj", args={"adj_h": 1}),
    Bad("a group that does not fit", args={"group": 2}),
    Bad("another kernel", args={"kernel": 3}),
    Bad("a flat X", {"X": np.ones((1, 3, 2), F4)}),
    Bad("a flat filter", {"filter": np.ones((3, 4, 2), F4)}),
    Bad("an empty picture", {"X": np.ones((1, 3, 0, 2), F4)}),
)
CASES[1].bad += (Bad("four outputs with no_bias", args={"no_bias": 1}),)
