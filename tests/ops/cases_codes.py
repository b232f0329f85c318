"""Harness cases of pictures, encoded positions, rows written in place and decoded values."""

import numpy as np

from caffe2.testing import Bad, Case, any_shape, exactly, floats, integers

F4, I4, I8 = np.float32, np.int32, np.int64
ROWS = [
    [2, 3, 0, 0, 0, 0, 0, 0, 128, 64, 56, 9],
    [2, 3, 0, 0, 128, 191, 0, 0, 128, 63, 56, 13],
]
PIXELS = {"H": (3, 1, 8), "W": (5, 7, 1)}

CASES = [
    Case("IntegralImage", X=floats("N", 2, "H", "W"), gradient=False),
    Case("IntegralImageGradient", X=floats("N", 2, 3, 4), dY=floats("N", 2, 4, 5),
         mismatch={"X": 1}),
    *(Case("RMACRegions", title=str(scales), args={"scales": scales, "overlap": 0.3},
           sizes=PIXELS, X=floats("N", 1, "H", "W"), mismatch={"X": None},
           bad=[Bad("no pixel", {"X": np.zeros((1, 1, 0, 2), F4)})])
      for scales in (1, 4)),
    Case("NormalizePlanarYUV", X=floats("N", 3, 2, 2), mean=floats("N", 3),
         std=floats("N", 3, low=0.5, high=2), mismatch={"X": 1}),
    Case("SinusoidPositionEncoding", args={"embedding_size": 5, "alpha": 10.0, "amplitude": 0.5},
         positions=integers("T", "N", low=0, high=9), sizes={"T": (3, 1, 0)},
         mismatch={"positions": None}),
    *(Case(name, title=f"{use}", args={"use_max_norm": use, "norm": 1.5},
           param=exactly([[3, 4], [0.1, 0.2], [6, 8], [0, 0]], dtype),
           indices=exactly([[0, 1], [3, 0]], I4), gradient=False,
           mismatch={"param": None, "indices": None}, tolerance=tolerance,
           bad=[Bad("no row", {"indices": I4([4])}), Bad("negative", {"indices": I4([-1])})])
      for name, dtype, tolerance in (("SparseNormalize", F4, 1e-5),
                                     ("Float16SparseNormalize", np.float16, 1e-3))
      for use in (0, 1)),
    Case("CopyRowsToTensor", input_tensor=floats(4, "C"), indices=exactly([2, 0], I8),
         row=floats("C"), gradient=False, mismatch={"indices": None, "input_tensor": 1},
         bad=[Bad("no row", {"indices": I8([4])}), Bad("negative", {"indices": I8([-1])}),
              Bad("another type", {"row": np.ones(2)})]),
    Case("CopyRowsToTensorGradient", output_grad=floats("N", "C")),
    Case("QuantDecode", outputs=2, codebook=floats(4),
         codes=[integers("N", 2, low=0, high=3, dtype="u1"),
                integers(3, low=0, high=3, dtype="i4")],
         mismatch={"codebook": None, "codes": None},
         bad=[Bad("no code", {"codes_0": np.uint8([[4, 0]])}), Bad("one output", outputs=1),
              Bad("negative", {"codes_1": I4([-1, 0, 0])})]),
    Case("QuantDecodeGradient", codebook=floats(4),
         codes_or_grads=[integers("N", 2, low=0, high=3, dtype="u1"), floats("N", 2)],
         mismatch={"codebook": None},
         bad=[Bad("no code", {"codes_or_grads_0": np.full((2, 2), 4, np.uint8)})]),
    Case("ByteWeightDequant", args={"min": -1.0, "max": 2.5, "shape": [3, 2]},
         WI=integers(6, low=0, high=255, dtype="u1"),
         bad=[Bad("another shape", args={"shape": [3, 3]})]),
    Case("RangeFill", X=floats(any_shape), in_place=False, mismatch={"X": None}),
    Case("RangeFill", title="shape", args={"shape": [2, 3]}),
    Case("Float16ConstantFill", args={"shape": [2, 3], "value": 2.6}),
    Case("FusedRandRowwiseQuantizedToFloat", quantized_input=exactly(ROWS, np.uint8),
         mismatch={"quantized_input": None},
         bad=[Bad("3 bits", {"quantized_input": np.uint8([[3, *ROWS[0][1:]]])}),
              Bad("two kinds", {"quantized_input": np.uint8([ROWS[0], [4, *ROWS[1][1:]]])}),
              Bad("a tail of 4", {"quantized_input": np.uint8([[2, 4, *ROWS[0][2:]]])}),
              Bad("no data", {"quantized_input": np.uint8([ROWS[0][:10]])})]),
]  # fmt: skip

LOOSER = {
    "QuantDecodeGradient": "pairs of codes and gradients",
    "QuantDecode": "codes, one at least",
}
SPECIAL = dict.fromkeys(
    ["FloatToFusedRandRowwiseQuantized", "Float16UniformFill"],
    "tests/ops/test_recorded_sampling.py",
)
