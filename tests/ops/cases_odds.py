"""Harness cases of EnsureClipped, ScaleBlobs and of operators that change gradients alone."""

import numpy as np

from caffe2.testing import Bad, Case, any_shape, anything, exactly, floats

F4, I4, I8 = np.float32, np.int32, np.int64

CASES = [
    Case("EnsureClipped", args={"min": -0.5, "max": 0.25}, param=floats(any_shape)),
    Case("EnsureClipped", title="no bounds", param=floats(any_shape)),
    *(
        Case("EnsureClipped", title=dtype.__name__, args={"min": -0.5, "max": 0.25},
             param=floats(5, "C"), indices=exactly([[4, 0], [1, 4]], dtype),
             grad=floats(2, 2, "C"), mismatch={"param": 1},
             bad=[Bad("a row too far", {"indices": dtype([[0, 5], [0, 0]])}),
                  Bad("a negative row", {"indices": dtype([[0, -1], [0, 0]])})])
        for dtype in (I4, I8)
    ),
    Case("ScaleBlobs", args={"scale": -2.5}, outputs=2, X=[floats(any_shape), floats("N", 3)],
         mismatch={"X": None}, bad=[Bad("one output", outputs=1)]),
    Case("ScaleBlobs", title="default", X=[floats(any_shape)]),
    Case("NegateGradient", gradient=False, input=anything(any_shape)),
    Case("ZeroGradient", gradient=False, input=anything(any_shape)),
]  # fmt: skip
