"""Harness cases of merged and padded features of examples; records and statistics, whose blobs are
no tensors, are tested by hand."""

import numpy as np

from caffe2 import ops
from caffe2.testing import Bad, Case, any_shape, anything, exactly, floats, integers

F4, I4, I8 = np.float32, np.int32, np.int64
TEXTS = exactly(np.array([b"a", b"bc", b"a longer text, on the heap"], object))


def of(values, dtype=I4):
    return exactly(np.asarray(values, dtype))


def merged(kind, title, sources, gradient, **args):
    """The merge of sources and its gradient, for the values of each."""
    flat = [maker for source in sources for maker in source]
    count = len(args.get("args", {}).get("feature_ids", ())) or 1
    mismatch = {"features": None}
    yield Case(
        f"{kind}FeatureTensors",
        title=title,
        features=flat,
        mismatch=mismatch,
        gradient=False,
        **args,
    )
    yield Case(
        f"{kind}FeatureTensorsGradient",
        title=title,
        outputs=len(sources) or count,
        blobs=gradient,
        mismatch={"blobs": None},
    )


PRESENT = of([1, 0, 1], bool), of([1, 1, 0], bool)
LENGTHS = of([1, 0, 2]), of([0, 2, 0])
IDS = {"args": {"feature_ids": [2**40, 3]}}

MERGED = [
    *merged("MergeSingleScalar", "",
            [(floats(3), PRESENT[0]), (floats(3), PRESENT[1])], [*PRESENT, floats(4)], **IDS,
            bad=[Bad("one id", args={"feature_ids": [1]}),
                 Bad("another type", {"features_2": I4([1, 2, 3])}),
                 Bad("other examples", {"features_3": np.array([True])}),
                 Bad("2-d", {"features_0": F4([[1, 2, 3]])})]),
    *merged("MergeSingleList", "",
            [(of([2, 0, 1]), floats(3), PRESENT[0]), (of([1, 1, 3]), floats(5), PRESENT[1])],
            [of([2, 0, 1]), PRESENT[0], of([1, 1, 3]), PRESENT[1], floats(5)], **IDS,
            bad=[Bad("too short", {"features_0": I4([2, 0, 0])}),
                 Bad("negative", {"features_0": I4([4, -2, 1])}),
                 Bad("int64", {"features_0": I8([2, 0, 1])})]),
    *merged("MergeSingleMap", "",
            [(of([2, 0, 1]), integers(3), floats(3), PRESENT[0])],
            [of([2, 0, 1]), PRESENT[0], floats(3)], args={"feature_ids": [7]},
            bad=[Bad("fewer keys", {"features_1": I8([1, 2])})]),
    *merged("MergeMultiScalar", "",
            [(LENGTHS[0], integers(3), floats(3)), (LENGTHS[1], integers(2), floats(2))],
            [*LENGTHS, floats(5)],
            bad=[Bad("fewer ids", {"features_1": I8([1, 2])}),
                 Bad("too long", {"features_0": I4([1, 0, 2**31 - 1])})]),
    *merged("MergeMultiList", "",
            [(LENGTHS[0], integers(3), of([1, 0, 2]), floats(3)),
             (LENGTHS[1], integers(2), of([0, 1]), floats(1))],
            [LENGTHS[0], of([1, 0, 2]), LENGTHS[1], of([0, 1]), floats(4)],
            bad=[Bad("fewer lengths", {"features_2": I4([1, 2])})]),
    *merged("MergeMultiMap", "",
            [(LENGTHS[0], integers(3), of([1, 0, 2]), integers(3, dtype="i4"), TEXTS)],
            [LENGTHS[0], of([1, 0, 2]), floats(3)]),
    Case("MergeDenseFeatureTensors", args={"feature_ids": [4, 2, 2**40]}, in1=anything("N", 3),
         in1_presence=integers("N", 3, low=0, high=1, dtype=bool),
         bad=[Bad("two ids", args={"feature_ids": [1, 2]})]),
]  # fmt: skip

LISTS = [
    Case("MergeIdLists", lengths_or_values=[of([2, 0, 1]), of([9, 5, 6], I8), of([1, 1, 2]),
                                            of([5, 5, 6, 6], I8)],
         mismatch={"lengths_or_values": None},
         bad=[Bad("too short", {"lengths_or_values_0": I4([2, 0, 0])}),
              Bad("negative", {"lengths_or_values_0": I4([4, -2, 1])}),
              Bad("other examples", {"lengths_or_values_2": I4([2, 2])})]),
    Case("MergeIdLists", title="int32", lengths_or_values=[of([3]), of([5, 6, 5])],
         mismatch={"lengths_or_values": None}),
    Case("KeySplit", args={"categorical_limit": 3}, outputs=3,
         keys=integers("N", 2, low=0, high=2),
         bad=[Bad("too large", {"keys": I8([0, 3])}), Bad("negative", {"keys": I8([-1])}),
              Bad("two outputs", outputs=2)]),
    Case("NGramFromCategorical",
         args={"col_ids": [2, 0], "categorical_limits": [3, 2], "vals": [5, 1, -7, 3, 9]},
         floats=integers("N", 3, low=-9, high=9, dtype="f4"),
         mismatch={"floats": None},
         bad=[Bad("no column", args={"col_ids": [3, 0]}),
              Bad("one limit", args={"categorical_limits": [5]}),
              Bad("too few vals", args={"vals": [5, 1]}),
              Bad("too many", args={"col_ids": [0] * 3, "vals": [],
                                    "categorical_limits": [2**31 - 1] * 3})]),
    Case("BatchBucketize", feature=floats("N", 3, low=0, high=5), indices=of([0, 2, 2]),
         boundaries=of([0.5, 3, 4, 2], F4), lengths=of([2, 1, 1]), mismatch={"feature": None},
         bad=[Bad("no column", {"indices": I4([0, 3, 2])}),
              Bad("negative", {"indices": I4([-1, 0, 0])}),
              Bad("falling", {"boundaries": F4([3, 0.5, 4, 2])}),
              Bad("a negative length", {"lengths": I4([4, -1, 1])})]),
    Case("DenseVectorToIdList", values=integers("N", "C", low=0, high=1, dtype="f4"),
         mismatch={"values": None}),
    Case("PadEmptySamples", outputs=3, lengths=of([1, 0, 2, 0]), features=[anything(3, 2), TEXTS],
         mismatch={"lengths": 0, "features": 0},
         bad=[Bad("negative", {"lengths": I4([-1, 0, 4, 0])}),
              Bad("a scalar", {"features_0": F4(1)}), Bad("two outputs", outputs=2)]),
    Case("PadEmptySamples", title="lengths alone",
         lengths=integers("N", low=0, high=2, dtype="i4")),
    Case("HasElements", X=[anything(any_shape), TEXTS], mismatch={"X": None}),
    Case("HasElements", title="one", X=[anything("N")], mismatch={"X": None}),
    Case("Append", A=anything("N", 3, "C"), B=anything(2, 3, "C"), mismatch={"B": -1},
         gradient=False, bad=[Bad("a scalar", {"B": F4(1)})]),
    Case("Append", title="strings", A=TEXTS, B=TEXTS, mismatch={"A": None, "B": None},
         gradient=False),
]  # fmt: skip

CASES = [*MERGED, *LISTS]
LOOSER = {
    **{case.type: "as many blobs as the sources have" for case in MERGED},
    "MergeIdLists": "lengths and values, a list at least",
    "KeySplit": "as many outputs as categorical_limit says",
    "PadEmptySamples": "as many outputs as inputs",
    "AtomicAppend": "a mutex and a pair of blobs at least",
    "CollectTensor": "two inputs at least",
    "ReadRandomBatch": "a cursor, idx and offsets",
    "Append": "an A without elements may be of any type and shape",
}
SPECIAL = {
    name: "tests/engine/test_records.py"
    for name, declaration in ops.all().items()
    if declaration.module in ("caffe2.ops.dataset", "caffe2.ops.stats")
    and name not in ("Append", "HasElements", "PackRecords", "UnPackRecords")
}
SPECIAL |= dict.fromkeys(("PackRecords", "UnPackRecords"), "tests/engine/test_packed_records.py")
MORE_IN_PLACE = {"AtomicAppend": "for any number of blobs, of which the first were asked about"}
