"""Harness cases of buckets, hashes, values that occur again, and masks of sequences."""

import numpy as np

from caffe2.testing import Bad, Case, exactly, floats, integers

F4, I4, I8 = np.float32, np.int32, np.int64
BOUNDS = exactly([0, 0.5, -0.25, 0.25, 1, 1], F4)


def mask(mode, title="", data=("N", 3, "C"), lengths=None, gradient=True, **args):
    more = {} if lengths is None else {"sequence_lengths": lengths}
    return Case("SequenceMask", title=f"{mode} {title}".strip(), args={"mode": mode, **args},
                input=floats(*data), **more, gradient=gradient,
                mismatch={"input": None, "sequence_lengths": None})  # fmt: skip


LENGTHS = exactly([1, 9, -1, 2, 0, 3, 1, 1], I4)

CASES = [
    Case(
        "Bucketize",
        args={"boundaries": [-0.5, 0.0, 0.0, 0.7]},
        data=floats("N", "C"),
        bad=[Bad("not in order", args={"boundaries": [1.0, 0.0]})],
        gradient=False,
    ),
    Case(
        "Bucketize",
        title="at boundaries",
        args={"boundaries": [0.0, 1.0]},
        gradient=False,
        data=exactly([-1, 0, 0.5, 1, np.nan, np.inf], F4),
    ),
    Case(
        "BatchBucketOneHot",
        data=floats("N", 2),
        lengths=exactly([2, 4], I4),
        boundaries=BOUNDS,
        gradient=False,
        mismatch={"data": 1},
        bad=[
            Bad("no boundary", {"lengths": I4([6, 0])}),
            Bad("too short", {"lengths": I4([2, 3])}),
            Bad("not in order", {"boundaries": F4([1, 0, 0, 1, 2, 3])}),
            Bad("1-d", {"data": F4([1, 2])}),
        ],
    ),
    Case(
        "IndexHash",
        args={"seed": 5, "modulo": 100},
        Indices=integers("N", "C", dtype="i4"),
        bad=[Bad("no modulo", args={"modulo": 0}), Bad("not int32", args={"modulo": 2**31})],
    ),
    Case(
        "IndexHash",
        title="int64",
        args={"seed": -3, "modulo": 2**62},
        Indices=exactly([0, 2**40, -(2**50), 2**63 - 1, -(2**63)], I8),
    ),
    *(
        Case(
            "FindDuplicateElements",
            title=dtype,
            gradient=False,
            mismatch={"data": None},
            data=integers("N", low=0, high=4, dtype=dtype),
        )
        for dtype in ("f4", "f8", "i4", "i8")
    ),
    Case(
        "FindDuplicateElements",
        title="strings",
        mismatch={"data": None},
        bad=[Bad("2-d", {"data": I4([[1]])})],
        data=exactly(
            np.array([b"a", b"a text, on the heap", b"a", b"a text, on the heap"], object)
        ),
    ),
    mask("upper", fill_val=0.5),
    mask("lower", "axis", axis=2, fill_val=0.5),
    mask("upperdiag", "minus infinity", gradient=False),
    mask("lowerdiag", "batch", batch=0, axis=2, fill_val=0.5),
    mask("sequence", "", (4, "C", 2), LENGTHS, fill_val=0.5),
    mask("sequence", "repeat", (2, 2, 3, "C"), LENGTHS, axis=2, repeat_from_axis=-1, fill_val=1.5),
    mask("sequence", "batch", (3, 2, "C"), LENGTHS, axis=-1, batch=0, gradient=False),
    mask("window", "", (4, 3), LENGTHS, radius=1, fill_val=0.5),
    mask("sequence", "gradient", (4, 3), LENGTHS, grad=True, gradient=False),
    Case(
        "SequenceMask",
        title="what is refused",
        args={"mode": "sequence", "axis": 1},
        input=floats(2, 3),
        sequence_lengths=exactly([1, 2], I4),
        gradient=False,
        mismatch={"input": None, "sequence_lengths": None},
        bad=[
            Bad("too few", {"sequence_lengths": I4([1])}),
            Bad("2-d", {"sequence_lengths": I4([[1, 2]])}),
            Bad("another mode", args={"mode": "all"}),
            Bad("axis=2 of 2", args={"axis": 2}),
            Bad("a batch behind the axis", args={"batch": 1}),
            Bad("repeats before the axis", args={"repeat_from_axis": 1}),
            Bad("repeats", args={"mode": "upper", "repeat_from_axis": 1}),
        ],
    ),
]
