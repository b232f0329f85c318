"""Harness cases of the neural network operators."""

import numpy as np

from caffe2.testing import (
    Bad,
    Case,
    any_shape,
    distinct,
    exactly,
    floats,
    integers,
    labels,
    like,
    probabilities,
    result_of,
)

F4, I4, I8 = np.float32, np.int32, np.int64
BATCH = {"N": (2, 0, 1)}
MATRIX = {"N": (7, 1, 0, 33), "K": (15, 1, 33, 0), "M": (17, 1, 7)}


def conv(title, x, w, *, type="Conv", bias=True, sizes=None, bad=(), tolerance=1e-5, **args):
    """A convolution and its gradient for the same data."""
    channels = len(x) - 1 if args.get("order") == "NHWC" else 1
    inputs = {"X": floats(*x), "filter": floats(*w)}
    # A longer image fits as well; more channels do not.
    common = {
        "title": title,
        "sizes": {**BATCH, **(sizes or {})},
        "mismatch": {"X": channels},
        "tolerance": tolerance,
    }
    biased = {"bias": floats(w[0])} if bias else {}
    no_bias = {} if bias else {"no_bias": 1}
    return [
        Case(type, args=args, bad=bad, **common, **inputs, **biased),
        Case(
            f"{type}Gradient",
            args={**args, **no_bias},
            outputs=3 if bias else 2,
            **common,
            **inputs,
            dY=result_of(type, "X", "filter", **args),
        ),
    ]


def pool(type, title, x, *, bad=(), **args):
    """MaxPool or AveragePool and its gradient for the same data."""
    common = {"title": title, "args": args, "sizes": BATCH}
    y = result_of(type, "X", **args)
    return [
        Case(type, bad=bad, **common, X=distinct(*x)),
        Case(
            f"{type}Gradient",
            **common,
            mismatch={"X": None},
            X=distinct(*x),
            Y=y,
            dY=like("Y"),
        ),
    ]


def both_pools(title, x, *, bad=(), **args):
    return [*pool("MaxPool", title, x, bad=bad, **args), *pool("AveragePool", title, x, **args)]


ACTIVATION = [
    Case("Relu", X=floats(any_shape, away=0.1)),
    Case("ReluGradient", Y=floats(any_shape, away=0.1), dY=floats(any_shape)),
    Case("Sigmoid", X=floats(any_shape, low=-9, high=9)),
    Case("SigmoidGradient", Y=floats(any_shape, low=0), dY=floats(any_shape)),
    Case("Tanh", input=floats(any_shape, low=-5, high=5)),
    Case("TanhGradient", Y=floats(any_shape), dY=floats(any_shape)),
    Case(
        "Softmax",
        X=floats("N", "C", low=-9, high=9),
        bad=[
            Bad("a scalar", {"X": F4(1)}),
            Bad("axis=2 of 2", args={"axis": 2}),
            Bad("axis=-3 of 2", args={"axis": -3}),
        ],
    ),
    Case("Softmax", title="axis=0", args={"axis": 0}, X=floats("C")),
    Case("Softmax", title="axis=2", args={"axis": 2}, X=floats("N", 3, "C", low=-90, high=90)),
    Case("Softmax", title="axis=-1", args={"axis": -1}, X=floats("N", 3, "C")),
    Case("Softmax", title="flat", X=floats("N", 3, "C")),
    Case("SoftmaxGradient", Y=probabilities("N", "C"), dY=floats("N", "C")),
    Case(
        "SoftmaxGradient",
        title="axis=2",
        args={"axis": 2},
        Y=probabilities("N", 3, "C"),
        dY=floats("N", 3, "C"),
    ),
]

MATRICES = [
    Case("FC", sizes=MATRIX, X=floats("N", "K"), W=floats("M", "K"), b=floats("M")),
    Case(
        "FC",
        title="axis=2",
        args={"axis": 2, "axis_w": 2},
        X=floats("N", 3, "K"),
        W=floats("M", 2, "K"),
        b=exactly(np.linspace(-1, 1, 6), F4),
        sizes={"M": (3,)},
    ),
    *(
        Case(
            type,
            X=floats("N", "K", low=-4, high=4),
            gradient=False,
            mismatch={"X": None},
            bad=[Bad("a vector", {"X": np.ones(3, F4)})],
        )
        for type in ("FbGemmPack", "FbGemmPackTranspose")
    ),
    Case(
        "FbGemmPack",
        title="beyond 16 bits",
        X=exactly([[1e6, -1e6, 1e-9, 2049]], F4),
        gradient=False,
        mismatch={"X": None},
    ),
    Case(
        "FbFCPacked",
        sizes=MATRIX,
        X=floats("N", "K"),
        W=floats("M", "K"),
        b=floats("M"),
        gradient=False,
    ),
    Case("FC", title="flat", X=floats("N", 3, 5), W=floats("M", 15, 1, 1), b=floats("M")),
    Case(
        "FC",
        title="axis=-1",
        args={"axis": -1},
        X=floats("N", 3, 5),
        W=floats("M", 5),
        b=floats("M"),
        bad=[Bad("axis out of range", args={"axis": 3}), Bad("2-d b", {"b": np.ones((3, 1), F4)})],
    ),
    Case(
        "FCGradient",
        outputs=3,
        sizes=MATRIX,
        X=floats("N", "K"),
        W=floats("M", "K"),
        dY=floats("N", "M"),
    ),
    Case("FCGradient", title="no dX", X=floats("N", 5), W=floats("M", 5), dY=floats("N", "M")),
    Case(
        "FCGradient",
        title="axis=2",
        args={"axis": 2},
        outputs=3,
        X=floats("N", 3, "K"),
        W=floats("M", "K"),
        dY=floats("N", 3, "M"),
    ),
    Case("MatMul", sizes=MATRIX, A=floats("N", "K"), B=floats("K", "M"), mismatch={"B": 0}),
    Case(
        "MatMul",
        title="A^T",
        args={"trans_a": 1},
        A=floats("K", "N"),
        B=floats("K", "M"),
        mismatch={"A": 0, "B": 0},
    ),
    Case("MatMul", title="B^T", args={"trans_b": 1}, A=floats("N", "K"), B=floats("M", "K")),
    Case(
        "MatMul",
        title="A^T B^T",
        args={"trans_a": 1, "trans_b": 1},
        A=floats("K", "N"),
        B=floats("M", "K"),
        mismatch={"A": 0},
    ),
    Case(
        "MatMul",
        title="axes",
        args={"axis_a": 2, "axis_b": 2},
        A=floats("N", 2, 6),
        B=floats(2, 3, "M"),
        mismatch={"B": 0},
    ),
    Case(
        "MatMul",
        title="like",
        A=floats(4, "K"),
        B=floats("K", 3),
        like=floats(2, 6),
        mismatch={"B": 0},
        gradient=False,
        no_gradient=("like",),
    ),
]

CONVOLUTION = [
    *conv("3x3", ("N", "C", 5, 6), ("M", "C", 3, 3), kernel=3, sizes={"C": (1, 3, 8), "M": (4, 9)}),
    *conv("pad", ("N", 3, 5, 7), ("M", 3, 3, 3), kernel=3, pad=1, sizes={"M": (5, 16)}),
    *conv("stride", ("N", 3, 7, 8), (4, 3, 3, 3), kernel=3, stride=2, pad=1),
    *conv(
        "uneven",
        ("N", 2, 7, 8),
        (4, 2, 2, 3),
        kernels=[2, 3],
        strides=[3, 2],
        pads=[1, 0, 2, 1],
        dilations=[2, 1],
    ),
    *conv(
        "sides",
        ("N", 2, 6, 7),
        (3, 2, 2, 3),
        kernel_h=2,
        kernel_w=3,
        stride_h=1,
        stride_w=2,
        pad_t=1,
        pad_l=0,
        pad_b=0,
        pad_r=2,
        bad=[Bad("other kernel", args={"kernel_h": 3})],
    ),
    *conv("1x1", ("N", 5, 3, 4), (6, 5, 1, 1), kernel=1),
    *conv("no bias", ("N", 2, 5, 5), (3, 2, 3, 3), bias=False, kernel=3),
    *conv("dilation", ("N", 2, 7, 7), (3, 2, 3, 3), kernel=3, dilation=2, pad=2),
    *conv("group", ("N", 6, 5, 5), (4, 3, 3, 3), kernel=3, group=2),
    *conv("depthwise", ("N", 4, 5, 5), (4, 1, 3, 3), kernel=3, pad=1, group=4),
    *conv("same", ("N", 2, 6, 7), (3, 2, 3, 3), kernel=3, stride=2, legacy_pad=2),
    *conv("valid", ("N", 2, 6, 7), (3, 2, 3, 3), kernel=3, stride=2, legacy_pad=1),
    *conv("caffe", ("N", 2, 6, 7), (3, 2, 3, 3), kernel=3, stride=2, legacy_pad=3),
    *conv("NHWC", ("N", 5, 6, 3), (4, 3, 3, 3), kernel=3, pad=1, order="NHWC"),
    *conv("NHWC group", ("N", 5, 6, 4), (6, 3, 3, 2), kernel=3, group=2, order="NHWC"),
    *conv("1-d", ("N", 2, 9), (3, 2, 3), kernels=[3], strides=[2], pads=[1, 2]),
    *conv("3-d", ("N", 2, 4, 5, 4), (3, 2, 2, 3, 2), kernels=[2, 3, 2], strides=[1, 2, 1]),
    *conv(
        "3-d pads",
        ("N", 4, 3, 5, 4),
        (6, 2, 2, 3, 2),
        kernels=[2, 3, 2],
        strides=[2, 1, 3],
        pads=[1, 0, 2, 1, 1, 0],
        dilations=[2, 1, 1],
        group=2,
    ),
    *(
        Case(
            "ConvRelu",
            title=title,
            args={"kernels": k},
            gradient=False,
            X=floats(*x),
            filter=floats(*w),
            bias=floats(w[0]),
            mismatch={"X": 1},
            bad=[Bad("a bias too many", {"bias": np.ones(4, F4)})],
        )
        for title, x, w, k in (
            ("2-d", ("N", 2, 5, 6), (3, 2, 3, 3), [3, 3]),
            ("3-d", ("N", 2, 3, 4, 3), (3, 2, 2, 2, 2), [2, 2, 2]),
        )
    ),
    *conv("3-d NHWC", ("N", 4, 5, 4, 2), (3, 2, 1, 3, 2), kernels=[2, 1, 3], order="NHWC"),
]
CONVOLUTION[0].bad += (
    Bad("a kernel that does not fit", {"X": np.ones((1, 1, 2, 6), F4)}),
    Bad("no kernel", args={"kernels": [3, 3, 3]}),
    Bad("a kernel unlike the filter", args={"kernel": 2}),
    Bad("an empty image", {"X": np.ones((1, 1, 0, 6), F4)}),
    Bad("a flat image", {"X": np.ones((1, 1, 6), F4)}),
    Bad("half of the pads", args={"pad_t": 1}),
    Bad("legacy_pad and pad", args={"legacy_pad": 2, "pad": 1}),
    Bad("a group that does not fit", args={"group": 3}),
)

POOLING = [
    *both_pools("2x2", ("N", 3, 6, 7), kernel=2, stride=2),
    *both_pools("3x3", ("N", 3, 7, 8), kernel=3, stride=2, pad=1),
    *both_pools("overlap", ("N", 2, 5, 6), kernels=[2, 3], strides=[2, 1], pads=[1, 0, 0, 2]),
    *both_pools("global", ("N", 3, 4, 5), global_pooling=1, bad=[Bad("pad", args={"pad": 1})]),
    *pool("AveragePool", "kernel 0", ("N", 3, 4, 5), global_pooling=1, kernel=0),
    *both_pools("caffe", ("N", 2, 7, 6), kernel=2, stride=2, legacy_pad=3),
    *both_pools("same", ("N", 2, 7, 6), kernel=2, stride=2, legacy_pad=2),
    *both_pools("NHWC", ("N", 5, 6, 3), kernel=2, order="NHWC"),
    *both_pools("1-d", ("N", 3, 9), kernels=[3], strides=[2]),
    *both_pools("3-d", ("N", 2, 4, 3, 4), kernels=[2, 2, 2], strides=[1, 1, 2]),
    *both_pools("3-d pads", ("N", 2, 4, 3, 5), kernels=[3, 2, 3], pads=[1, 0, 1, 2, 1, 0]),
    *both_pools("3-d NHWC", ("N", 4, 3, 4, 3), kernels=[2, 3, 1], order="NHWC"),
    *both_pools("3-d global", ("N", 2, 4, 3, 2), global_pooling=1),
    *pool("AveragePool", "3-d count", ("N", 1, 4, 3, 4), kernel=2, pad=1, count_include_pad=1),
    *pool("AveragePool", "count", ("N", 2, 5, 5), kernel=3, stride=2, pad=1, count_include_pad=1),
]
POOLING[0].bad += (
    Bad("no kernel", args={"kernels": [2]}),
    Bad("a kernel of 0", args={"kernel": 0}),
    Bad("pads as large as the kernel", args={"pad": 2}),
    Bad("a window beyond the data", {"X": np.ones((1, 1, 5, 5), F4)},
        {"kernel": 1, "stride": 3, "legacy_pad": 3}),
    Bad("dilation", args={"dilation": 2}),
    Bad("no spatial axis", {"X": np.ones((2, 3), F4)}),
)  # fmt: skip

LOSS = [
    Case(
        "LabelCrossEntropy",
        X=probabilities("N", "C"),
        label=labels("N", classes="C"),
        mismatch={"X": 0},
        bad=[
            Bad("a label too large", {"label": I4([0, 3])}),
            Bad("a negative label", {"label": I4([0, -1])}),
            Bad("flat labels", {"label": I4([[0, 1]])}),
        ],
    ),
    Case(
        "LabelCrossEntropy",
        title="4-d",
        X=probabilities("N", 2, 1, 3),
        label=labels("N", 1, classes=3),
        mismatch={"X": 0},
    ),
    Case(
        "LabelCrossEntropy",
        title="1-d",
        X=probabilities(5),
        label=labels(1, classes=5),
        mismatch={"X": None},
    ),
    Case(
        "LabelCrossEntropyGradient",
        X=probabilities("N", "C"),
        label=labels("N", classes="C"),
        dY=floats("N"),
        mismatch={"X": 0},
        bad=[Bad("a label too large", {"label": I4([0, 3])})],
    ),
    Case("AveragedLoss", input=floats(any_shape)),
    Case("AveragedLossGradient", X=floats(any_shape), dY=floats(1), mismatch={"X": None}),
    Case(
        "AveragedLossGradient",
        title="scalar",
        X=floats(any_shape),
        dY=exactly(1.5, F4),
        mismatch={"X": None},
    ),
    Case(
        "SoftmaxWithLoss",
        loss=1,
        logits=floats("N", "C", low=-9, high=9),
        labels=labels("N", classes="C"),
        mismatch={"logits": 0},
        bad=[
            Bad("a label too large", {"labels": I4([0, 3])}),
            Bad("a negative label", {"labels": I4([-1, 0])}),
            Bad("floats as labels", {"labels": F4([0, 1])}),
            Bad("axis=2 of 2", args={"axis": 2}),
        ],
    ),
    Case(
        "SoftmaxWithLoss",
        title="weights",
        args={"scale": 2.5},
        loss=1,
        no_gradient=["weight_tensor"],
        logits=floats("N", 2, 3),
        labels=labels("N", 1, classes=6),
        weight_tensor=floats("N", low=0.5, high=2),
        mismatch={"logits": 0},
    ),
    Case(
        "SoftmaxWithLoss",
        title="probabilities",
        args={"label_prob": 1, "axis": 2},
        loss=1,
        no_gradient=["labels"],
        logits=floats("N", 2, "C"),
        labels=probabilities("N", 2, "C"),
        bad=[
            Bad("sums unlike 1", {"labels": np.full((2, 2, 3), 0.5, F4)}),
            Bad("negative ones", {"labels": np.tile(F4([1.5, -0.5, 0]), (2, 2, 1))}),
            Bad("class numbers", {"labels": np.ones((2, 2, 3), I4)}),
        ],
    ),
    Case(
        "SoftmaxWithLossGradient",
        logits=floats("N", "C"),
        labels=labels("N", classes="C"),
        weight_tensor_or_softmax=probabilities("N", "C"),
        softmax_or_loss_grad=floats(1),
        mismatch={"logits": 0},
        bad=[Bad("a label too large", {"labels": I4([0, 3])})],
    ),
    Case(
        "SoftmaxWithLossGradient",
        title="weights",
        args={"scale": 3.0},
        logits=floats("N", "C"),
        labels=labels("N", classes="C"),
        weight_tensor_or_softmax=floats("N", low=0.5, high=2),
        softmax_or_loss_grad=probabilities("N", "C"),
        loss_grad=exactly(1.5, F4),
        mismatch={"logits": 0},
    ),
    Case(
        "SoftmaxWithLossGradient",
        title="probabilities",
        args={"label_prob": 1},
        logits=floats("N", "C"),
        labels=probabilities("N", "C"),
        weight_tensor_or_softmax=probabilities("N", "C"),
        softmax_or_loss_grad=floats(1),
    ),
    Case(
        "Accuracy",
        predictions=distinct("N", "C"),
        labels=labels("N", classes="C"),
        mismatch={"predictions": 0},
        bad=[
            Bad("a label too large", {"labels": I4([0, 3])}),
            Bad("a negative label", {"labels": I4([0, -1])}),
        ],
    ),
    Case(
        "Accuracy",
        title="ties",
        args={"top_k": 2},
        predictions=integers("N", 5, low=0, high=2, dtype="f4"),
        labels=labels("N", classes=5),
        mismatch={"predictions": 0},
    ),
]

CASES = [*ACTIVATION, *MATRICES, *CONVOLUTION, *POOLING, *LOSS]

LOOSER = {
    "SoftmaxWithLoss": "a third output is never written",
    "SoftmaxWithLossGradient": "four or five inputs",
    "ConvGradient": "three inputs always",
}
