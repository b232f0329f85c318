"""Harness cases of the relatives of Relu and Sigmoid."""

import numpy as np

from caffe2.testing import Bad, Case, any_shape, floats

F4 = np.float32

# (name, title, arguments, range of X, how far from 0, range of Y where the gradient takes Y)
FUNCTIONS = [
    ("Clip", "", {"min": -0.5, "max": 0.6}, (-0.45, 0.55), 0, (-1, 1)),
    ("Clip", "no bounds", {}, (-9, 9), 0, (-9, 9)),
    ("LeakyRelu", "", {}, (-3, 3), 0.1, (-3, 3)),
    ("LeakyRelu", "alpha", {"alpha": 0.3}, (-3, 3), 0.1, (-3, 3)),
    ("ThresholdedRelu", "", {"alpha": 0.2}, (0.3, 2), 0, (0.2, 3)),
    ("ReluN", "", {"n": 1.5}, (0.1, 1.4), 0, (0, 2)),
    ("HardSigmoid", "", {"alpha": 0.25, "beta": 0.4}, (-1.5, 2.3), 0, (0, 1)),
    ("Elu", "", {"alpha": 1.5}, (-9, 9), 0.1, (-1.4, 3)),
    ("Selu", "", {}, (-9, 9), 0.1, (-1.7, 3)),
    ("Selu", "scale", {"alpha": 1.2, "scale": 0.8}, (-3, 3), 0.1, (-0.9, 3)),
    ("Softplus", "", {}, (-9, 9), 0, (0, 9)),
    ("Softsign", "", {}, (-9, 9), 0.1, None),
    ("Swish", "", {}, (-9, 9), 0, None),
    ("Mish", "", {}, (-9, 9), 0, None),
    ("Gelu", "", {}, (-5, 5), 0, None),
    ("Gelu", "fast", {"fast_gelu": 1}, (-5, 5), 0, None),
]
WITH_Y = {"Swish", "Mish"}
BEYOND = {
    "Clip": {"min": -0.5, "max": 0.6},
    "ThresholdedRelu": {},
    "ReluN": {},
    "HardSigmoid": {},
    "Softplus": {},
    "Mish": {},
    "Gelu": {},
}


def gradient(name, title, args, x, away, y):
    slopes = {"dY": floats(any_shape)}
    if y is not None:
        inputs = {"Y": floats(any_shape, low=y[0], high=y[1], away=away), **slopes}
    else:
        values = {"X": floats(any_shape, low=x[0], high=x[1], away=away)}
        if name in WITH_Y:
            values["Y"] = floats(any_shape)
        inputs = {**slopes, **values} if name == "Gelu" else {**values, **slopes}
    return Case(f"{name}Gradient", title=title, args=args, **inputs)


def prelu(title, dims, slope, **args):
    bad = Bad("5 slopes", {"Slope": np.ones(5, F4)})
    x = floats(*dims, away=0.1)
    sizes = {"N": (2, 0, 1), "C": (3, 1, 17)}
    common = {"title": title, "args": args, "sizes": sizes, "bad": [bad]}
    return [
        Case("PRelu", X=x, Slope=floats(*slope), mismatch={"X": 0 if slope == () else None},
             **common),
        Case("PReluGradient", Y=floats(*dims), dY=floats(*dims), X=x, Slope=floats(*slope),
             **common),
    ]  # fmt: skip


CASES = [
    *(
        Case(name, title=title, args=args, X=floats(any_shape, low=x[0], high=x[1], away=away))
        for name, title, args, x, away, _ in FUNCTIONS
    ),
    *(gradient(*row) for row in FUNCTIONS),
    *(
        Case(name, title="far", args=args, gradient=False, X=floats(any_shape, low=-99, high=99))
        for name, args in BEYOND.items()
    ),
    Case("Mish", title="double", X=floats(any_shape, low=-9, high=9, dtype="f8")),
    Case("MishGradient", title="double", X=floats(any_shape, low=-9, high=9, dtype="f8"),
         Y=floats(any_shape, dtype="f8"), dY=floats(any_shape, dtype="f8")),
    *prelu("", ("N", "C", 3, 2), ("C",)),
    *prelu("one", ("N", 3), (1,)),
    *prelu("flat", ("N", "C"), ("C",)),
    *prelu("NHWC", ("N", 2, 2, "C"), ("C",), order="NHWC"),
    Case("Glu", X=floats("N", 6), bad=[Bad("odd", {"X": np.ones((2, 5), F4)}),
                                       Bad("a scalar", {"X": F4(1)}),
                                       Bad("dim=2 of 2", args={"dim": 2})]),
    Case("Glu", title="dim=1", args={"dim": 1}, X=floats("N", 4, "C", low=-9, high=9)),
]  # fmt: skip
