"""Harness cases of SpatialBN, the statistics of channels, and Dropout."""

import numpy as np

from caffe2.testing import Bad, Case, Share, any_shape, exactly, floats, integers, like

F4 = np.float32
BATCH = {"N": (3, 0, 1), "C": (3, 33, 1)}
STATE = ("mean", "var")


def channels(shape, *names, **ranges):
    """X with this shape, and inputs with one value per channel."""
    vectors = {name: floats("C", **ranges) for name in names}
    return {"X": floats(*shape), **vectors}


def variances(*dims):
    return floats(*dims, low=0.5, high=2)


def spatial_bn(title, shape, *, sizes=None, **args):
    """Both forms of SpatialBN and of its gradient."""
    # Another batch or picture fits as well.
    common = {
        "sizes": {**BATCH, **(sizes or {})},
        "mismatch": {"X": -1 if args.get("order") == "NHWC" else 1},
    }
    data = {**channels(shape, "scale", "bias", "mean"), "var": variances("C")}
    gradient = {
        "X": floats(*shape),
        "scale": floats("C"),
        "dY": like("X"),
        "saved_mean": floats("C"),
        "saved_inv_std": variances("C"),
    }
    return [
        Case("SpatialBN", title=f"{title} test", args={"is_test": 1, **args},
             no_gradient=STATE, **common, **data),
        # Of a batch with one element only rounding errors are left.
        Case("SpatialBN", title=title, args={"is_test": 0, "epsilon": 0.01, **args}, outputs=5,
             loss=0, no_gradient=STATE, **common, **data),
        Case("SpatialBNGradient", title=title, args=args, **common, **gradient),
        Case("SpatialBNGradient", title=f"{title} test", args={"is_test": 1, **args}, **common,
             **gradient),
    ]  # fmt: skip


SPATIAL_BN = [
    *spatial_bn("NCHW", ("N", "C", 3, 5), momentum=0.7),
    *spatial_bn("NHWC", ("N", 3, 2, "C"), order="NHWC"),
    *spatial_bn("flat", ("N", "C")),
    *spatial_bn("1 axis", ("N", "C", 17)),
    *spatial_bn("3 axes", ("N", "C", 2, 3, 4)),
    Case(
        "SpatialBN",
        title="parts",
        args={"is_test": 0, "num_batches": 3},
        outputs=5,
        gradient=False,
        sizes={"N": (2, 0, 1), "C": (3, 17)},
        mismatch={"X": 1},
        **channels(("N", "C", 2, 2), "scale", "bias", "mean"),
        var=variances("C"),
        sums=floats("C"),
        sumsq=floats("C", low=1, high=9),
        bad=[Bad("two parts and no sums", args={"num_batches": 1}, outputs=1)],
    ),
    Case(
        "SpatialBNGradient",
        title="parts",
        args={"num_batches": 3},
        sizes=BATCH,
        mismatch={"X": 1},
        X=floats("N", "C", 2, 2),
        scale=floats("C"),
        dY=like("X"),
        saved_mean=floats("C"),
        saved_inv_std=variances("C"),
        scale_grad_sum=floats("C"),
        bias_grad_sum=floats("C"),
    ),
]
SPATIAL_BN[0].bad += (
    Bad("a flat X", {"X": F4([1, 2, 3])}),
    Bad("no test and one output", args={"is_test": 0}),
    Bad("a test and five outputs", outputs=5),
)
SPATIAL_BN[1].bad += (
    Bad("parts without sums", args={"num_batches": 2}),
    Bad("sums without squares", {"sums": np.ones(3, F4)}),
)

STATISTICS = [
    case
    for order, shape in (("NCHW", ("N", "C", 3, 5)), ("NHWC", ("N", 3, 5, "C")))
    for case in (
        Case("ChannelStats", title=order, args={"order": order}, sizes=BATCH, X=floats(*shape)),
        Case(
            "ChannelBackpropStats",
            title=order,
            args={"order": order},
            sizes=BATCH,
            mismatch={"X": 1},
            X=floats(*shape),
            mean=floats("C"),
            inv_std=variances("C"),
            output_grad=like("X"),
        ),
        Case(
            "BatchMoments",
            title=order,
            args={"order": order},
            sizes={"N": (2, 1), "C": (3, 33, 1)},
            X=floats(*shape),
            bad=[Bad("no elements", {"X": np.ones((0, 3, 2), F4)})],
        ),
        Case(
            "BatchMomentsGradient",
            title=order,
            args={"order": order},
            sizes=BATCH,
            mismatch={"X": 1 if order == "NCHW" else -1},
            dmu=floats("C"),
            dvar=floats("C"),
            X=floats(*shape),
        ),
        Case(
            "AffineChannel",
            title=order,
            args={"order": order},
            sizes=BATCH,
            mismatch={"X": 1 if order == "NCHW" else -1},
            no_gradient=("scale", "bias"),
            **channels(shape, "scale", "bias"),
        ),
        Case(
            "AffineChannelGradient",
            title=order,
            args={"order": order},
            sizes=BATCH,
            mismatch={"dY": 1 if order == "NCHW" else -1},
            dY=floats(*shape),
            scale_or_X=floats("C"),
            bad=[Bad("three outputs", outputs=3), Bad("learnable", args={"is_learnable": 1})],
        ),
        Case(
            "AffineChannelGradient",
            title=f"{order} learnable",
            args={"order": order, "is_learnable": 1},
            outputs=3,
            sizes=BATCH,
            mismatch={"dY": 1 if order == "NCHW" else -1},
            dY=floats(*shape),
            scale_or_X=like("dY"),
            scale=floats("C"),
        ),
    )
]

DROPOUT = [
    Case(
        "Dropout",
        args={"ratio": 0.75},
        outputs=2,
        distribution=Share(4, 0.25),
        X=exactly(np.ones((50, 60), F4)),
        bad=[Bad("no mask", outputs=1)],
    ),
    Case(
        "DropoutGrad",
        args={"ratio": 0.25},
        dY=floats(any_shape),
        mask=integers(any_shape, low=0, high=1, dtype=bool),
        mismatch={"dY": None},
    ),
    Case("DropoutGrad", title="test", args={"is_test": 1}, dY=floats(any_shape)),
]

CASES = [*SPATIAL_BN, *STATISTICS, *DROPOUT]

# The original ran them so when asked; without is_test its schema was not met.
MORE_IN_PLACE = {
    "SpatialBN": "Y in the blob of X, saved moments in those of the sums",
    "Dropout": "Y in the blob of X, with is_test=1",
}
