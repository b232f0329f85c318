"""Harness cases of elementary functions."""

import numpy as np

from caffe2.testing import Bad, Case, any_shape, floats, integers

F4 = np.float32

# Where each is defined and smooth.
RANGES = {
    "Exp": (-9, 9),
    "Log": (0.1, 9),
    "Log1p": (-0.9, 9),
    "Sqr": (-3, 3),
    "Sqrt": (0.1, 9),
    "Rsqrt": (0.5, 9),
    "Cube": (-3, 3),
    "Cbrt": (0.5, 9),
    "Reciprocal": (0.5, 9),
    "Negative": (-3, 3),
    "Sin": (-9, 9),
    "Cos": (-9, 9),
    "Tan": (-1.2, 1.2),
    "Asin": (-0.9, 0.9),
    "Acos": (-0.9, 0.9),
    "Atan": (-9, 9),
    "Sinh": (-4, 4),
    "Cosh": (-4, 4),
    "Erf": (-4, 4),
    "Logit": (0.1, 0.9),
}
BY_OUTPUT = ("Rsqrt", "Cbrt", "Reciprocal")
LAST = {"Rsqrt", "Cbrt", "Cube", "Sinh", "Cosh"}


def gradient(name, low, high, dtype="f4"):
    """The gradient operator, for values of its own."""
    source = "Y" if name in BY_OUTPUT else "X"
    values = {source: floats(any_shape, low=low, high=high, dtype=dtype)}
    slopes = {"dY": floats(any_shape, dtype=dtype)}
    inputs = {**slopes, **values} if name in LAST else {**values, **slopes}
    title = "" if dtype == "f4" else dtype
    return Case(f"{name}Gradient", title=title, **inputs)


CASES = [
    *(Case(name, X=floats(any_shape, low=low, high=high)) for name, (low, high) in RANGES.items()),
    *(
        gradient(name, *RANGES[name])
        for name in (*BY_OUTPUT, "Log1p", "Cube", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan",
                     "Sinh", "Cosh", "Erf", "Logit")
    ),
    gradient("Cube", -3, 3, "f8"),
    Case("CubeGradient", title="int", dY=integers(any_shape, dtype="i4"),
         X=integers(any_shape, dtype="i4")),
    Case("Abs", X=floats(any_shape, away=0.1)),
    Case("AbsGradient", X=floats(any_shape, away=0.1), dY=floats(any_shape)),
    *(
        Case(name, title=dtype, gradient=False, X=integers(any_shape, dtype=dtype))
        for name in ("Sign", "Negative", "Cube")
        for dtype in ("f4", "f8", "i4", "i8")
    ),
    Case("Sqrt", title="double", gradient=False, X=floats(any_shape, low=0, high=9, dtype="f8")),
    Case("Floor", X=floats(any_shape, low=-9, high=9)),
    Case("Ceil", X=floats(any_shape, low=-9, high=9)),
    Case("Logit", title="eps", args={"eps": 0.2}, X=floats(any_shape, low=0.25, high=0.75)),
    Case("Logit", title="outside", gradient=False, X=floats(any_shape, low=-2, high=2)),
    Case("LogitGradient", title="eps", args={"eps": 0.2}, X=floats(any_shape, low=0.01, high=0.99),
         dY=floats(any_shape)),
    *(
        Case("Mod", title=f"{dtype} {divisor} {follow}", X=integers(any_shape, dtype=dtype),
             args={"divisor": divisor, "sign_follow_divisor": follow},
             bad=[Bad("a division by 0", args={"divisor": 0})])
        for dtype, divisor, follow in (("i4", 3, 0), ("i8", 4, 1), ("i8", -3, 1), ("i4", -3, 0),
                                       ("i8", -1, 1))
    ),
]  # fmt: skip

OTHER_GRADIENTS = {
    "Sqr": "it scales dY in place, though dY may be the gradient of other blobs as well (of all "
    "inputs of a Sum, for one), and then gives these a wrong one",
}
