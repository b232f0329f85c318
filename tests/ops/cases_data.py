"""Harness cases of arithmetic, reshaping, fillers and training operators."""

import math

import numpy as np

from caffe2.testing import (
    Bad,
    Case,
    Integers,
    Normal,
    Uniform,
    any_shape,
    anything,
    exactly,
    floats,
    integers,
    result_of,
)

F4, I4, I8 = np.float32, np.int32, np.int64
TEXTS = exactly(np.array([b"a", b"", b"\xff\x00z"], dtype=object))


def rate(policy, title="", **args):
    return Case(
        "LearningRate",
        title=policy + title,
        args={"policy": policy, "base_lr": 0.5, **args},
        input=integers("I", low=0, high=40),
        sizes={"I": (1,) * 12},
        bad=[
            Bad("two iterations", {"input": I8([1, 2])}),
            Bad("a negative iteration", {"input": I8([-1])}),
        ],
    )


def cast(to, low=-250, high=250):
    return Case(
        "Cast",
        title=f"to={to}",
        args={"to": to},
        gradient=False,
        X=floats(any_shape, low=low, high=high),
    )


ARITHMETIC = [
    Case("Sum", A=[floats(any_shape)]),
    Case(
        "Sum",
        title="3",
        A=[floats(any_shape)] * 3,
        bad=[Bad("another type", {"A_1": np.ones((2, 3), I4)})],
    ),
    Case("Sum", title="double", A=[floats(any_shape, dtype="f8")] * 2),
    Case("Sum", title="int32", A=[integers(any_shape, dtype="i4")] * 2),
    Case("Sum", title="int64", A=[integers(any_shape, low=-(2**62), high=2**62)] * 2),
    Case(
        "WeightedSum",
        no_gradient=["X_1", "X_3"],
        X=[floats(any_shape), floats(1), floats(any_shape), exactly(0.5, F4)],
        bad=[Bad("a tensor without weight", {"X_4": np.ones((2, 3), F4)})],
    ),
    Case("WeightedSum", title="1", no_gradient=["X_1"], X=[floats(any_shape), floats(1)],
         mismatch={"X": None}),
    Case(
        "WeightedSum",
        title="grad_on_w",
        args={"grad_on_w": 1},
        X=[floats(any_shape), floats(1), floats(any_shape), floats(1)],
    ),
    Case(
        "WeightedSumGradient",
        outputs=2,
        dY=floats(any_shape),
        X=[floats(any_shape), floats(1), floats(any_shape), floats(1)],
        bad=[Bad("too many outputs", outputs=3)],
    ),
    Case(
        "WeightedSumGradient",
        title="grad_on_w",
        args={"grad_on_w": 1},
        outputs=4,
        dY=floats(any_shape),
        X=[floats(any_shape), floats(1), floats(any_shape), floats(1)],
        bad=[Bad("too few outputs", outputs=3)],
    ),
    Case("Scale", args={"scale": -2.5}, X=floats(any_shape)),
    Case("Scale", title="double", args={"scale": 0.1}, X=floats(any_shape, dtype="f8")),
    Case("Scale", title="default", X=floats(any_shape)),
    Case("Copy", input=anything(any_shape)),
    Case("Copy", title="strings", gradient=False, input=TEXTS),
    Case(
        "CopyOnDeviceLike",
        input=anything(any_shape),
        dst=floats(2),
        mismatch={"input": None, "dst": None},
    ),
    Case("StopGradient", input=anything(any_shape)),
    *(cast(to) for to in (1, 2, 5, 7, 8, 9, 10, 13, "double", "INT64")),
    cast(6, low=0),
    Case("Cast", title="gradient", args={"to": 13, "from_type": 1}, X=floats(any_shape)),
    Case(
        "Cast",
        title="limits",
        args={"to": 2},
        gradient=False,
        X=exactly([math.nan, math.inf, -math.inf, 1e20, -3e9, -1.9, 2147483520.0], F4),
        bad=[Bad("no such type", args={"to": to}) for to in (0, 3, 11, 12, 99, "foo", -1)],
    ),
    Case("Cast", title="float to text", args={"to": 4}, gradient=False, X=floats(any_shape)),
    Case("Cast", title="int8 to text", args={"to": "string"}, gradient=False,
         X=integers(any_shape, low=-128, high=127, dtype="i1")),
    Case("Cast", title="int64 to int8", args={"to": 7}, gradient=False, X=integers(any_shape)),
    Case("Cast", title="int32 to float", args={"to": 1}, gradient=False,
         X=integers(any_shape, low=-(2**30), high=2**30, dtype="i4")),
    Case("Cast", title="int64 to bool", args={"to": 5}, gradient=False,
         X=integers(any_shape, low=-1, high=1)),
    Case("Cast", title="bool to float", args={"to": 1}, gradient=False,
         X=integers(any_shape, low=0, high=1, dtype=bool)),
    Case("Cast", title="uint8 to float", args={"to": 1}, gradient=False,
         X=integers(any_shape, low=0, high=255, dtype="u1")),
]  # fmt: skip

BROADCAST = {
    "same": ((any_shape,), (any_shape,), {}),
    "row": (("N", "C"), ("C",), {}),
    "column": (("N", "C"), ("N", 1), {}),
    "outer": (("N", 1), (1, "C"), {}),
    "left": (("C",), ("N", "C"), {}),
    "scalar": (("N", 3), (), {}),
    "legacy": ((2, "N", "C"), ("N", "C"), {"broadcast": 1}),
    "axis": (("N", 3, "C", 2), (3, "C"), {"broadcast": 1, "axis": 1}),
    "axis ones": (("N", 3, "C"), (3, 1), {"broadcast": 1, "axis": 1}),
    "legacy one": (("N", 3), (1, 1, 1), {"broadcast": 1}),
    "legacy ones": (("N", 3, "C"), (1, 3), {"broadcast": 1, "axis": 0}),
    "mixed": ((2, "N", 3, "C"), ("N", 1, "C"), {}),
    "axis_str": (("N", 2, 3, "C"), ("C",), {"broadcast": 1, "axis_str": "C", "order": "NHWC"}),
}


def binary(type):
    """Add, Sub, Mul or Div and its gradient, broadcast in every way."""
    divisor = {"low": 0.5, "high": 2} if type == "Div" else {}
    for title, (a, b, args) in BROADCAST.items():
        common = {
            "title": title,
            "args": args,
            "sizes": {"N": (2, 3, 1), "C": (5, 1, 4)},
            "in_place": False,
        }
        # Only where both have one shape is a larger one no fit.
        loose = {} if title == "same" else {"A": None, "B": None}
        data = {"A": floats(*a), "B": floats(*b, **divisor)}
        bad = [
            Bad("another type", {"B": np.ones((2, 3), I4)}),
            Bad("a negative axis", args={"broadcast": 1, "axis": -2}),
        ]
        yield Case(type, **common, mismatch=loose, bad=bad, **data)
        div = type == "Div"
        names = ("A_or_C", "B_or_dC") if div else ("A", "B")
        last = {"C": result_of("Div", *names, **args)} if div else {}
        inputs = dict(zip(names, data.values(), strict=True))
        yield Case(
            f"{type}Gradient",
            **common,
            mismatch=dict.fromkeys(names) if loose else {},
            **{"dC_or_B" if div else "dC": result_of(type, *names, **args)},
            **inputs,
            **last,
        )
    for kind, dtype in (("double", "f8"), ("int32", "i4"), ("int64", "i8")):
        values = integers(any_shape, low=1, high=99, dtype=dtype)
        by_zero = Bad("a division by zero", {"B": np.zeros((2, 3), dtype)})
        yield Case(
            type,
            title=kind,
            gradient=kind == "double",
            bad=[by_zero] if type == "Div" and kind != "double" else [],
            A=integers(any_shape, low=-999, high=999, dtype=dtype),
            B=values,
        )


def unfit(why, a, b, **args):
    """Shapes that do not fit together."""
    return Bad(why, {"A": np.ones(a, F4), "B": np.ones(b, F4)}, args)


ELEMENTWISE = [
    *(case for type in ("Add", "Sub", "Mul", "Div") for case in binary(type)),
    Case(
        "Add",
        title="unfit",
        A=floats(2, 3),
        B=floats(3),
        in_place=False,
        mismatch={"A": 1},
        bad=[
            unfit("sizes that differ", (2, 3), (2,)),
            unfit("a leading one", (2, 1), (1, 2), broadcast=1),
            unfit("more dimensions", (2,), (2, 2), broadcast=1),
            unfit("an axis too far back", (2, 3), (3,), broadcast=1, axis=2),
            unfit("ones in the middle", (2, 3, 2), (2, 1, 2), broadcast=1),
            unfit("axis twice", (2, 3), (3,), broadcast=1, axis=1, axis_str="C"),
            unfit("an unknown axis_str", (2, 3), (3,), broadcast=1, axis_str="X"),
        ],
    ),
    Case(
        "DivGradient",
        title="B, C, dC",
        dC_or_B=floats(any_shape, low=0.5, high=2),
        A_or_C=floats(any_shape),
        B_or_dC=floats(any_shape),
    ),
    Case(
        "DivGradient",
        title="B, C, dC, row",
        sizes={"N": (2, 3, 0), "C": (5, 1, 4)},
        in_place=False,
        dC_or_B=floats("C", low=0.5, high=2),
        A_or_C=floats("N", "C"),
        B_or_dC=floats("N", "C"),
    ),
]

RESHAPING = [
    Case("Flatten", X=anything("N", 3, "C"), bad=[Bad("axis=4 of 3", args={"axis": 4})]),
    Case("Flatten", title="axis=0", args={"axis": 0}, X=anything(any_shape)),
    Case("Flatten", title="axis=3", args={"axis": 3}, X=anything("N", 3, "C")),
    Case("Flatten", title="strings", gradient=False, X=TEXTS),
    Case("ResizeLike", data=anything("N", 6), shape_tensor=floats("N", 2, 3)),
    Case(
        "Reshape",
        args={"shape": [0, 2, -1]},
        data=anything("N", 6),
        bad=[
            Bad("two unknown dimensions", args={"shape": [-1, -1]}),
            Bad("another size", args={"shape": [5]}),
            Bad("a size that does not divide", args={"shape": [5, -1]}),
            Bad("shape twice", {"new_shape": I8([6, 2])}),
        ],
    ),
    Case("Reshape", title="scalar", args={"shape": []}, data=anything(1, 1)),
    Case("Reshape", title="strings", args={"shape": [-1, 1]}, gradient=False, data=TEXTS),
    Case(
        "Reshape",
        title="new_shape",
        data=floats(2, 6),
        new_shape=exactly([3, -1], I8),
        bad=[
            Bad("2-d new_shape", {"new_shape": I8([[3, 4]])}),
            Bad("empty new_shape", {"new_shape": I8([])}),
            Bad("new_shape of another size", {"new_shape": I8([5, 2])}),
            Bad("a negative new_shape", {"new_shape": I8([-3, -4])}),
            Bad("shape twice", args={"shape": [12]}),
        ],
    ),
    Case("Reshape", title="int32", data=floats(2, 6), new_shape=exactly([0, 3, 2], I4)),
]


def given(type, values, shape=(2, 3), **args):
    wrong = Bad("too few values", args={"values": list(values)[:-1]})
    args = {"shape": list(shape), "values": list(values), **args}
    return Case(type, title="-".join(f"{k}={v}" for k, v in args.items()), args=args, bad=[wrong])


def constant(bad=(), **args):
    title = "-".join(f"{k}={v}" for k, v in args.items())
    return Case("ConstantFill", title=title, args={"shape": [3, 5], **args}, bad=bad)


FILL = [
    constant(value=1.5, bad=[
        Bad("extra_shape without input", args={"extra_shape": [2]}),
        Bad("input_as_shape without input", args={"input_as_shape": 1}),
        Bad("shape and input", {"X": F4([1])}),
        *(Bad("no such type", args={"dtype": dtype}) for dtype in (0, 3, 11, 12, 14, 99)),
        Bad("text as a number", args={"value": "abc"}),
        Bad("a fraction as an integer", args={"dtype": 10}),
    ]),
    constant(),
    constant(value=7),
    constant(value=7.0, shape=[]),
    constant(value=2.0, shape=[0, 4]),
    *(constant(value=1, dtype=dtype) for dtype in (1, 2, 5, 6, 7, 8, 9, 10, 13)),
    constant(value="abc", dtype=4),
    constant(dtype=4),
    constant(value=255, dtype=6, bad=[
        Bad("too large", args={"value": 256}), Bad("negative", args={"value": -1}),
    ]),
    Case("ConstantFill", title="X", args={"value": 2.5}, X=anything(any_shape)),
    Case("ConstantFill", title="extra_shape", args={"value": 2, "extra_shape": [2, 1]},
         X=anything(any_shape)),
    Case("ConstantFill", title="input_as_shape", args={"input_as_shape": 1, "extra_shape": [2]},
         X=exactly([2, 3], I8),
         bad=[Bad("int32", {"X": I4([2, 3])}), Bad("2-d", {"X": I8([[2, 3]])}),
              Bad("a negative dimension", {"X": I8([2, -3])}), Bad("a scalar", {"X": I8(2)})]),
    Case("ConstantFill", title="value", X=floats(any_shape), value=floats(1), mismatch={"X": None},
         bad=[Bad("another type", {"value": I8([1])})]),
    given("GivenTensorFill", [1.5, -2.0, 3.0, 0.0, 1e30, 6.0]),
    given("GivenTensorFill", [1, 2, 3, 4, 5, 6], dtype=10),
    given("GivenTensorFill", [1, 0, 2], [3], dtype=5),
    given("GivenTensorFill", ["a", "bc"], [2], dtype=4),
    given("GivenTensorDoubleFill", [0.1, 2.0], [2]),
    given("GivenTensorIntFill", [1, -(2**31)], [2, 1]),
    given("GivenTensorInt64Fill", [1, 2**40], [1, 2]),
    given("GivenTensorBoolFill", [1, 0, 1], [3]),
    given("GivenTensorStringFill", ["a", "", "bc"], [3]),
    Case("GivenTensorFill", title="input", args={"values": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
         input=floats(2, 3)),
]  # fmt: skip


def random(type, distribution, args=None, **inputs):
    """A filler with enough values to know their distribution; also when it takes X's shape."""
    args = dict(args or {})
    title = "-".join([*(f"{key}={value}" for key, value in args.items()), *inputs])
    if not inputs:
        args["shape"] = [40, 5, 10, 5]
    return Case(type, title=title, distribution=distribution, args=args,
                mismatch={"shape": None}, **inputs)  # fmt: skip


XAVIER, MSRA = math.sqrt(3 / 250), math.sqrt(2 / (40 * 10 * 5))
SHAPE = exactly([40, 5, 10, 5], I8)
RANDOM = [
    random("GaussianFill", Normal(0, 1)),
    random("GaussianFill", Normal(-3, 0.25), {"mean": -3.0, "std": 0.25}),
    random("UniformFill", Uniform(0, 1)),
    random("UniformFill", Uniform(-2, 5), {"min": -2.0, "max": 5.0}),
    random("UniformFill", Uniform(2, 3), {"input_as_shape": 1}, shape=SHAPE,
           min=exactly([2], F4), max=exactly([3], F4)),
    random("UniformIntFill", Integers(0, 1)),
    random("UniformIntFill", Integers(-5, 4), {"min": -5, "max": 4}),
    random("UniformIntFill", Integers(2, 4), shape=floats(50, 100), min=exactly([2], I4),
           max=exactly([4], I4)),
    random("XavierFill", Uniform(-XAVIER, XAVIER)),
    random("XavierFill", Uniform(-XAVIER, XAVIER), input=floats(40, 5, 10, 5)),
    random("MSRAFill", Normal(0, MSRA)),
    random("MSRAFill", Normal(0, MSRA), {"input_as_shape": 1}, input=SHAPE),
]  # fmt: skip
RANDOM[2].bad += (
    Bad("min above max", args={"min": 2.0}),
    Bad("min without max", {"shape": F4([1]), "min": F4([1])}, {"shape": []}),
)
RANDOM[4].bad += (
    Bad("min above max", {"min": F4([4])}),
    Bad("two min", {"min": F4([1, 2])}),
    Bad("int32 shape", {"shape": I4([2])}),
)
RANDOM[2].bad += (Bad("an infinite range", args={"min": -3e38, "max": 3e38}),)
RANDOM[8].bad += (Bad("a scalar", args={"shape": []}),)
RANDOM[10].bad += (Bad("one dimension", args={"shape": [5]}),)

SGD = [
    Case(
        "Iter",
        iter=exactly([41], I8),
        bad=[
            Bad("two counters", {"iter": I8([1, 2])}),
            Bad("a negative counter", {"iter": I8([-1])}),
            Bad("a full counter", {"iter": I8([2**63 - 1])}),
        ],
    ),
    Case("Iter", title="scalar", iter=exactly(0, I8)),
    Case("Iter", title="int32", iter=exactly([2**31 - 1], I4)),
    rate("fixed"),
    rate("step", stepsize=10, gamma=0.5),
    rate("exp", gamma=0.9),
    rate("inv", gamma=0.9, power=2.0),
    rate("poly", power=2.0, max_iter=20),
    rate("linearWarmup", start_multiplier=0.1, num_iter=10),
    rate("constantWarmup", multiplier=0.5, num_iter=10),
    rate("alter", " first", active_first=1, active_period=2, inactive_period=3),
    rate("alter", " last", active_first=0, active_period=2, inactive_period=3),
    rate("hill", num_iter=10, start_multiplier=0.1, gamma=0.9, power=0.5, end_multiplier=0.2),
    rate("gate", multiplier_1=2.0, multiplier_2=0.5, num_iter=10),
    rate("gate", " default", num_iter=10),
    rate("slope", multiplier_1=2.0, multiplier_2=0.5, num_iter_1=10, num_iter_2=20),
    rate("cyclical", max_lr=0.8, stepsize=10, decay=0.9),
    rate("cosine", max_lr=0.8, period=10, lr_shrink=0.9),
    rate("cosine", " longer", max_lr=0.8, min_lr=0.2, period=10, t_mult=2.0, lr_shrink=0.9),
    rate("constantThenLinearWarmup", constant_warmup_num_iter=5, linear_warmup_num_iter=10),
    rate(
        "compositeCyclical",
        start_warmup_multiplier=0.2,
        constant_warmup_num_iter=5,
        linear_warmup_num_iter=5,
        cyclical_max_lr=0.8,
        cyclical_step_size=10,
        cyclical_decay=0.9,
    ),
    rate(
        "compositeCosine",
        constant_warmup_num_iter=5,
        linear_warmup_num_iter=5,
        cosine_period=10,
        cosine_t_mult=2.0,
    ),
    *(
        Case(
            type,
            title=title,
            args=args,
            grad=floats(any_shape),
            moment=floats(any_shape),
            lr=floats(1),
            **more,
        )
        for type, more in (
            ("MomentumSGD", {}),
            # Parameters beyond what is subtracted: one that cancels is rounding and no more.
            ("MomentumSGDUpdate", {"param": floats(any_shape, low=4.0, high=8.0)}),
        )
        for title, args in (
            ("", {"momentum": 0.9}),
            ("nesterov", {"momentum": 0.9, "nesterov": 1}),
            ("default", {}),
        )
    ),
]
SGD[3].bad += (Bad("no stepsize", args={"policy": "poly"}),)

CASES = [*ARITHMETIC, *ELEMENTWISE, *RESHAPING, *FILL, *RANDOM, *SGD]

LOOSER = {
    "UniformFill": "three inputs at most",
    "UniformIntFill": "three inputs at most",
    "WeightedSum": "one pair of inputs at least",
    "WeightedSumGradient": "one pair of inputs at least",
}
