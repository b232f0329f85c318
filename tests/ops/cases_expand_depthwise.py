"""Harness cases of ExpandDepthwise."""

import numpy as np

from caffe2.testing import Bad, Case, floats

F4 = np.float32
NOT_OF_THE_ORIGINAL = {"ExpandDepthwise": "a pass makes it of operators of the original"}


def case(title, c, e, size, window, project=0, **args):
    projected = {}
    if project:
        projected = {"project_filter": floats(project, e, 1, 1), "project_bias": floats(project)}
    return Case(
        "ExpandDepthwise",
        title=title,
        args=args,
        sizes={"N": (2, 0, 1)},
        mismatch={
            **{"X": 1, "expand_filter": 0, "expand_bias": 0, "filter": 0, "bias": 0},
            **({"project_filter": 1, "project_bias": 0} if project else {}),
        },
        X=floats("N", c, *size),
        expand_filter=floats(e, c, 1, 1),
        expand_bias=floats(e),
        filter=floats(e, 1, *window),
        bias=floats(e),
        **projected,
    )


CASES = [
    case("3x3", 3, 8, (5, 6), (3, 3), kernel=3, pad=1, min=0.0, max=1.0),
    case("stride", 18, 40, (7, 6), (3, 3), kernel=3, pad=1, stride=2, min=-0.5),
    case("sides", 2, 5, (4, 5), (2, 5), kernel_h=2, kernel_w=5, stride_h=3, stride_w=1, pad_t=1,
         pad_l=0, pad_b=0, pad_r=2),
    case("dilation", 4, 3, (6, 5), (3, 2), kernels=[3, 2], dilations=[2, 3], pads=[2, 1, 1, 3],
         min=float("nan"), max=0.25),
    case("projected", 3, 20, (5, 6), (3, 3), 4, kernel=3, pad=1, max=1.0, filtered_min=0.0,
         filtered_max=0.75),
    case("projected, stride", 5, 70, (6, 7), (3, 3), 33, kernel=3, stride=2, filtered_min=-0.25),
]  # fmt: skip
CASES[0].bad += (
    Bad("another kernel", args={"kernel": 2}),
    Bad("channels last", args={"order": "NHWC"}),
    Bad("a flat X", {"X": np.ones((1, 3, 2), F4)}),
    Bad("a wide expand_filter", {"expand_filter": np.ones((8, 3, 3, 3), F4)}),
    Bad("an empty picture", {"X": np.ones((1, 3, 0, 2), F4)}),
)
CASES[4].bad += (Bad("a wide project_filter", {"project_filter": np.ones((4, 20, 1, 2), F4)}),)
