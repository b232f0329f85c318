"""Harness cases of tables in 8, 4 and 2 bits per value."""

import numpy as np

from caffe2 import ops
from caffe2.testing import Bad, Case, exactly, floats, integers

F4, I4, I8, U1 = np.float32, np.int32, np.int64, np.uint8
INDICES, LENGTHS = exactly([4, 0, 1, 4], I4), exactly([3, 0, 1], I4)


def table(type, columns=12, rows=5):
    """A table as this operator makes it."""
    found = ops.find(type)
    values = np.random.default_rng(columns).uniform(-2, 3, (rows, columns)).astype(F4)
    return exactly(found.run(found.view(["x"], ["y"]), [values])[0])


def lookup(type, data, weighted, apart=()):
    bad = [
        Bad("too large", {"INDICES": I4([5, 0, 1, 4])}),
        Bad("negative", {"INDICES": I4([-1, 0, 1, 4])}),
        Bad("a negative length", {"LENGTHS": I4([5, -1])}),
        Bad("too short", {"LENGTHS": I4([3])}),
    ]
    weights = {"WEIGHTS": floats("W")} if weighted else {}
    ends = {"scale_bias": exactly(np.arange(10).reshape(5, 2) / 8, F4)} if apart else {}
    mismatch = {"DATA": 1 if apart else None}
    if apart:
        data, mismatch = integers(5, "C", low=0, high=255, dtype="u1"), {"DATA": 0}
        bad.append(Bad("one end", {"scale_bias": F4([[1], [2], [3], [4], [5]])}))
        if weighted:
            mismatch["WEIGHTS"] = None
            bad.append(Bad("a weight too few", {"WEIGHTS": F4([1, 2, 3])}))
    else:
        bad.append(Bad("no room", {"DATA": np.zeros((5, 3), U1)}))
    return Case(type, DATA=data, **weights, INDICES=INDICES, LENGTHS=LENGTHS, **ends, bad=bad,
                sizes={"W": (4, 6) if apart else (4,)}, mismatch=mismatch,
                gradient=False)  # fmt: skip


def pruned(type, data, weighted=False, mapping=(0, -1, 1, -1, 2, 3, -1, 4), **more):
    bad = [
        Bad("too large", {"INDICES": I4([8, 0, 1, 4])}),
        Bad("negative", {"INDICES": I4([-1, 0, 1, 4])}),
        Bad("too short", {"LENGTHS": I4([3])}),
        Bad("below -1", {"COMPRESSED_INDICES_MAPPING": I4([-2] * 8)}),
        Bad("2-d", {"COMPRESSED_INDICES_MAPPING": I4([[0] * 8])}),
    ]
    mismatch = {"COMPRESSED_INDICES_MAPPING": None, **({"DATA": None} if data else {})}
    if data:
        bad.append(Bad("no row", {"COMPRESSED_INDICES_MAPPING": I4([5] * 8)}))
    tables = {"DATA": data} if data else {}
    weights = {"WEIGHTS": floats("W")} if weighted else {}
    before, behind = (weights, {}) if data else ({}, weights)
    return Case(type, **tables, **before, INDICES=INDICES, LENGTHS=LENGTHS,
                COMPRESSED_INDICES_MAPPING=exactly(mapping, I4), **behind, mismatch=mismatch,
                sizes={"W": (4,)}, gradient=False, **{"bad": bad, **more})  # fmt: skip


FUSED_8, HALF_8 = (
    "FloatToFused8BitRowwiseQuantized",
    "FloatToFused8BitRowwiseQuantizedHalfScaleBias",
)
TABLES = {
    8: table(FUSED_8, 17),
    4: table("FloatToFused4BitRowwiseQuantized", 34),
    2: table("FloatToFused2BitRowwiseQuantized", 36),
}
ANY_ROWS = {"input": None}

CASES = [
    *(Case(type, input=floats("N", "C", dtype=dtype), mismatch=ANY_ROWS, gradient=False,
           sizes={"N": (3, 1, 0)}, bad=[Bad("a scalar", {"input": np.array(1, dtype)})])
      for type, dtype in ((FUSED_8, "f4"), ("HalfFloatToFused8BitRowwiseQuantized", "f2"),
                          (HALF_8, "f4"),
                          ("HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias", "f2"))),
    Case(FUSED_8, title="one value", input=exactly([[2, 2], [0, 0], [1e30, -1e30]], F4),
         mismatch=ANY_ROWS, gradient=False),
    Case(FUSED_8, title="no columns", input=floats(3, 0), mismatch=ANY_ROWS, gradient=False),
    Case(HALF_8, title="beyond float16",
         input=exactly([[1e6, 2e6], [0, 1e-7], [1.0002, 1.0002]], F4), mismatch=ANY_ROWS,
         gradient=False),
    *(Case(f"{kind}ToFused{bits}Bit{fake}RowwiseQuantized", input=floats("N", "C", dtype=dtype),
           sizes={"N": (2, 0), "C": (4, 12, 36, 0)}, gradient=False, mismatch=ANY_ROWS)
      for kind, dtype in (("Float", "f4"), ("Half", "f2")) for bits in (4, 2)
      for fake in ("Fake", "")),
    *(Case(f"FloatToFused{bits}BitRowwiseQuantized", title="columns", input=floats(2, 4),
           mismatch=ANY_ROWS, gradient=False, bad=[Bad("an odd one", {"input": F4([[1, 2, 3]])})])
      for bits in (4, 2)),
    *(Case(type, scale_bias_quantized_input=data, mismatch={"scale_bias_quantized_input": None},
           gradient=False, bad=[Bad("no room", {"scale_bias_quantized_input": U1([[1, 2, 3]])})])
      for type, data in (
          ("Fused8BitRowwiseQuantizedToFloat", TABLES[8]),
          ("Fused8BitRowwiseQuantizedToHalfFloat", TABLES[8]),
          ("Fused8BitRowwiseQuantizedHalfScaleBiasToFloat", table(HALF_8)),
          ("Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat", table(HALF_8)),
          ("Fused4BitRowwiseQuantizedToFloat", TABLES[4]),
          ("Fused4BitRowwiseQuantizedToHalf", TABLES[4]),
          ("Fused2BitRowwiseQuantizedToFloat", TABLES[2]),
          ("Fused2BitRowwiseQuantizedToHalf", TABLES[2]))),
    *(lookup(f"SparseLengths{reducer}Fused{bits}BitRowwise", data, reducer == "WeightedSum")
      for bits, data in TABLES.items() for reducer in ("Sum", "Mean", "WeightedSum")),
    *(lookup(f"SparseLengths{reducer}8BitsRowwise", None, "Weighted" in reducer, apart=True)
      for reducer in ("Sum", "Mean", "WeightedSum", "WeightedMean")),
    *(pruned(f"SparseLengths{reducer}{bits}BitRowwiseSparse", data, reducer == "WeightedSum")
      for bits, data in TABLES.items() for reducer in ("Sum", "Mean", "WeightedSum")),
    pruned("SparseLengthsSum4BitRowwiseSparse", TABLES[4], mapping=(0,), title="nothing pruned",
           bad=[Bad("too large", {"INDICES": I4([5, 0, 1, 4])})]),
    Case("SparseLengthsSum4BitRowwiseSparse", title="no rows", gradient=False,
         DATA=exactly(np.zeros((0, 10)), U1), INDICES=exactly([], I4), LENGTHS=exactly([0, 0], I4),
         COMPRESSED_INDICES_MAPPING=exactly([], I4),
         mismatch=dict.fromkeys(["DATA", "INDICES", "LENGTHS", "COMPRESSED_INDICES_MAPPING"])),
    pruned("SparseLengthsSumSparseLookup", None, outputs=2),
    pruned("SparseLengthsSumSparseLookup", None, True, outputs=3, title="weighted"),
    Case("GatherFused8BitRowwise", DATA=TABLES[8], INDICES=INDICES, gradient=False,
         mismatch={"DATA": None, "INDICES": None},
         bad=[Bad("too large", {"INDICES": I8([5])}), Bad("negative", {"INDICES": I8([-1])}),
              Bad("no room", {"DATA": np.zeros((5, 3), U1)})]),
    Case("FloatToRowwiseQuantized8Bits", outputs=2, input=floats("N", "C", 2), mismatch=ANY_ROWS,
         gradient=False, bad=[Bad("a scalar", {"input": F4(1)})]),
    Case("FloatToRowwiseQuantized8Bits", title="one value", outputs=2, gradient=False,
         input=exactly([[2, 2], [0, 0]], F4), mismatch=ANY_ROWS),
    Case("Rowwise8BitQuantizedToFloat", quantized_input=integers(3, "C", low=0, dtype="u1"),
         scale_bias=floats(3, 2), mismatch={"quantized_input": 0}, gradient=False),
]  # fmt: skip
