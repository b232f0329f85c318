"""Harness cases of products of batches of matrices."""

import numpy as np

from caffe2.testing import Bad, Case, exactly, floats

SIZES = {"N": (3, 0, 1), "M": (7, 1, 33), "K": (5, 17, 0), "C": (6, 1, 15)}
EITHER = {"A": 0, "B": 0}


def product(title, a, b, bad=(), gradient=True, mismatch=None, **args):
    return Case(
        "BatchMatMul",
        title=title,
        args=args,
        sizes=SIZES,
        bad=bad,
        gradient=gradient,
        mismatch=mismatch,
        A=floats(*a),
        B=floats(*b),
    )


LOOSER = {"ConcatBatchMatMulBatchGatherOp": "indices and at least one tensor"}

CASES = [
    Case(
        "ConcatBatchMatMulBatchGatherOp",
        sizes=SIZES,
        indices=exactly([0, 1, 7, 8], np.int32),
        vectors=[floats("N", "K")] * 3,
        mismatch={"indices": None},
        bad=[
            Bad("no pair", {"indices": np.int32([0, 9, 1, 1])}),
            Bad("negative", {"indices": np.int32([0, -1, 1, 1])}),
        ],
    ),
    product(
        "",
        ("N", "M", "K"),
        ("N", "K", "C"),
        mismatch={"B": 1},
        bad=[Bad("other batches", {"B": np.ones((1, 5, 6), np.float32)})],
    ),
    product("A^T", ("N", "K", "M"), ("N", "K", "C"), mismatch=EITHER, trans_a=1),
    product("B^T", ("N", "M", "K"), ("N", "C", "K"), trans_b=1),
    product("A^T B^T", ("N", "K", "M"), ("N", "C", "K"), mismatch={"A": 0}, trans_a=1, trans_b=1),
    product("deep", (2, "N", "M", "K"), (2, "N", "K", "C"), mismatch={"B": 2}),
    product("matrices", ("M", "K"), ("K", "C"), mismatch={"B": 0}),
    product(
        "broadcast",
        (2, 1, "M", "K"),
        ("N", "K", "C"),
        mismatch={"B": 1},
        gradient=False,
        broadcast=1,
    ),
    product("row", ("K",), ("N", "K", "C"), mismatch={"B": 1}, gradient=False, trans_a=1),
    product("column", ("N", "M", "K"), ("K",), gradient=False),
    product("vectors", ("K",), ("K",), gradient=False),
]
