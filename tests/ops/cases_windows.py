"""Harness cases of the names of convolution and pooling that say how many axes there are, and of
LpPool."""

from cases_nn import conv, pool

from caffe2.testing import Bad

SPATIAL = {"1D": (7,), "2D": (5, 6), "3D": (4, 3, 5)}

NAMED = [
    case
    for axes, sizes in SPATIAL.items()
    for rank in [len(sizes)]
    for case in (
        *pool(f"MaxPool{axes}", "", ("N", 2, *sizes), kernels=[2] * rank, strides=[2] * rank),
        *pool(f"AveragePool{axes}", "", ("N", 2, *sizes), kernels=[2] * rank, pads=[1] * 2 * rank),
        *conv("", ("N", 2, *sizes), (3, 2, *[2] * rank), type=f"Conv{axes}", kernels=[2] * rank),
    )
]

LP = [
    *pool(
        "LpPool",
        "",
        ("N", 3, 6, 7),
        kernel=3,
        stride=2,
        pad=1,
        bad=[Bad("p of 0", args={"p": 0.0}), Bad("dilation", args={"dilation": 2})],
    ),
    *pool("LpPool", "p = 3", ("N", 4, 5, 3), kernel=2, p=3.0, order="NHWC"),
    *pool("LpPool", "p = 1", ("N", 2, 9), kernels=[3], strides=[2], p=1.0),
]

CASES = [*NAMED, *LP]
LOOSER = {f"Conv{axes}Gradient": "three inputs always" for axes in SPATIAL}
