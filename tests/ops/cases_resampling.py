"""Harness cases of operators that pad, resize, and move channels and blocks."""

import numpy as np

from caffe2.testing import Bad, Case, Normal, exactly, floats, result_of

F4 = np.float32
BATCH = {"N": (2, 0, 1)}


def pad(title, shape, padded, **args):
    common = {"title": title, "args": args, "sizes": BATCH}
    return [
        Case("PadImage", **common, X=floats(*shape)),
        Case("PadImageGradient", **common, dY=floats(*padded)),
    ]


PADDING = [
    *pad("constant", ("N", 2, 3, 5), ("N", 2, 6, 6), value=2.5, pads=[1, 0, 2, 1]),
    *pad("reflect", ("N", 2, 3, 5), ("N", 2, 6, 9), mode="reflect", pad_t=2, pad_l=4, pad_b=1,
         pad_r=0),
    *pad("edge", ("N", 3, 1, 2), ("N", 3, 5, 6), mode="edge", pad=2, order="NCHW"),
    *pad("NHWC", ("N", 4, 3, 2), ("N", 6, 5, 2), mode="reflect", pad=1, order="NHWC"),
    *pad("an empty side", ("N", 2, 0, 5), ("N", 2, 3, 6), value=2.5, pads=[1, 0, 2, 1]),
    *pad("crop", ("N", 1, 4, 3), ("N", 1, 4, 2), pads=[-1, 0, 1, -1]),
]  # fmt: skip
PADDING[0].bad += (
    Bad("three pads", args={"pads": [1, 1, 1]}),
    Bad("half of the pads", args={"pads": [], "pad_t": 1}),
    Bad("nothing is left", args={"pads": [-2, 0, -2, 0]}),
    Bad("a flat X", {"X": np.ones((2, 3, 4), F4)}),
    Bad("more than there is to reflect", args={"mode": "reflect", "pads": [3, 0, 0, 0]}),
    Bad("no edge", {"X": np.ones((1, 1, 0, 2), F4)}, {"mode": "edge"}),
)
PADDING[1].bad += (Bad("less than the pads", {"dY": np.ones((1, 1, 1, 9), F4)}),)


def resize(type, title, shape, **args):
    common = {"title": title, "args": args, "sizes": BATCH}
    return [
        Case(type, **common, X=floats(*shape)),
        Case(
            f"{type}Gradient",
            **common,
            mismatch={"X": -1 if args.get("order") == "NHWC" else 1},
            dY=result_of(type, "X", **args),
            X=floats(*shape),
        ),
    ]


def resize_by_input(type, title, scales):
    shape = ("N", 2, 3, 4)
    common = {"title": title, "sizes": BATCH}
    given = {"scales": floats(2, low=scales, high=scales)}
    return [
        Case(type, **common, no_gradient=("scales",), mismatch={"X": None}, X=floats(*shape),
             **given, bad=[Bad("three scales", {"scales": F4([1, 1, 1])}),
                           Bad("a scale of 0", {"scales": F4([1, 0])}),
                           Bad("no scale", {"scales": F4([1, np.nan])})]),
        Case(f"{type}Gradient", **common, mismatch={"X": 1}, dY=result_of(type, "X", "scales"),
             X=floats(*shape), **given),
    ]  # fmt: skip


NOT_OF_THE_ORIGINAL = dict.fromkeys(
    ("UpsampleNearest", "UpsampleNearestGradient"), "of its library of Detectron"
)

RESIZING = [
    *resize("ResizeNearest", "up", ("N", 2, 3, 5), width_scale=2.0, height_scale=1.5),
    *resize("ResizeNearest", "down", ("N", 2, 7, 5), width_scale=0.4, height_scale=0.7),
    *resize("ResizeNearest", "NHWC", ("N", 2, 3, 5), width_scale=2.0, order="NHWC"),
    *resize_by_input("ResizeNearest", "scales", 1.7),
    *resize("ResizeNearest3D", "up", ("N", 2, 2, 3, 2), width_scale=2.0, height_scale=2.0,
            temporal_scale=1.5),
    *resize("ResizeNearest3D", "none", ("N", 1, 2, 3, 2), temporal_scale=0.1),
    Case("UpsampleNearest", sizes=BATCH, X=floats("N", 2, 3, 5),
         bad=[Bad("a scale of 0", args={"scale": 0}), Bad("a flat X", {"X": np.ones((2, 3), F4)})]),
    Case("UpsampleNearest", title="three", args={"scale": 3}, sizes=BATCH, X=floats("N", 2, 1, 4)),
    Case("UpsampleNearestGradient", sizes=BATCH, mismatch={"dY": 2}, X=floats("N", 2, 3, 5),
         dY=result_of("UpsampleNearest", "X")),
    *resize("UpsampleBilinear", "up", ("N", 2, 3, 5), width_scale=2.0, height_scale=1.5),
    *resize("UpsampleBilinear", "down", ("N", 2, 7, 5), width_scale=0.4, height_scale=0.7),
    *resize("UpsampleBilinear", "one row", ("N", 1, 1, 3), width_scale=2.5, height_scale=3.0),
    *resize_by_input("UpsampleBilinear", "scales", 1.7),
]  # fmt: skip
RESIZING[0].bad += (
    Bad("an empty picture", {"X": np.ones((1, 1, 0, 2), F4)}),
    Bad("a flat X", {"X": np.ones((2, 3, 4), F4)}),
)


def shuffle(title, shape, **args):
    common = {"title": title, "args": args, "sizes": BATCH}
    return [
        Case("ChannelShuffle", **common, X=floats(*shape)),
        Case("ChannelShuffleGradient", **common, dY=floats(*shape)),
    ]


MOVING = [
    *shuffle("NCHW", ("N", 6, 3, 2), group=2),
    *shuffle("NHWC", ("N", 3, 2, 6), group=3, order="NHWC"),
    *shuffle("flat", ("N", 8), group=4),
    Case("SpaceToBatch", sizes=BATCH, X=floats("N", 3, 4, 2),
         bad=[Bad("an odd size", {"X": np.ones((1, 1, 3, 2), F4)}),
              Bad("a flat X", {"X": np.ones((2, 4, 4), F4)}),
              Bad("half of the pads", args={"pad_l": 1})]),
    Case("SpaceToBatch", title="pads", sizes=BATCH,
         args={"block_size": 3, "pad_t": 4, "pad_l": 0, "pad_b": 0, "pad_r": 7},
         X=floats("N", 2, 5, 2)),
    Case("BatchToSpace", sizes={"N": (2, 0, 1)}, X=floats(4, "N", 3, 2),
         bad=[Bad("a batch that does not fit", {"X": np.ones((3, 1, 2, 2), F4)}),
              Bad("pads beyond the data", args={"pad": 4})]),
    Case("BatchToSpace", title="pads",
         args={"block_size": 3, "pad_t": 4, "pad_l": 0, "pad_b": 0, "pad_r": 7},
         X=floats(18, 2, 3, 3)),
]  # fmt: skip
MOVING[0].bad += (Bad("channels that do not fit", args={"group": 4}),)


def columns(title, shape, **args):
    common = {"title": title, "args": args, "sizes": BATCH}
    return [
        Case("Im2Col", **common, X=floats(*shape)),
        Case("Col2Im", **common, mismatch={"X": -1 if args.get("order") == "NHWC" else 1},
             no_gradient=("X",), columns=result_of("Im2Col", "X", **args), X=floats(*shape)),
    ]  # fmt: skip


COLUMNS = [
    *columns("NCHW", ("N", 2, 3, 4), kernel=2, pad=1),
    *columns("NHWC", ("N", 3, 4, 2), kernel_h=2, kernel_w=3, stride=2, pad=1, order="NHWC"),
    *columns("dilation", ("N", 2, 5, 4), kernel=2, dilation=2, stride_h=1, stride_w=2),
]
COLUMNS[0].bad += (
    Bad("no kernel", args={"kernel": 9}),
    Bad("a flat X", {"X": np.ones((2, 3, 4), F4)}),
)

STYLIZER = [
    Case("PackedInt8BGRANHWCToNCHWCStylizerPreprocess", args={"noise_std": 3.0},
         distribution=Normal(90, 3), X=exactly(np.full((1, 30, 40, 4), 100, np.uint8)),
         mean=exactly(F4([10, 10, 10])),
         bad=[Bad("three channels", {"X": np.ones((1, 2, 2, 3), np.uint8)}),
              Bad("two means", {"mean": F4([1, 2])})]),
    Case("BRGNCHWCToPackedInt8BGRAStylizerDeprocess", sizes={"N": (2, 0, 1)},
         X=floats("N", 3, 5, 7, low=-200, high=200), mean=floats(3, low=0, high=200),
         mismatch={"X": 1}, bad=[Bad("a flat X", {"X": np.ones((3, 2, 2), F4)})]),
]  # fmt: skip

CASES = [*PADDING, *RESIZING, *MOVING, *COLUMNS, *STYLIZER]
