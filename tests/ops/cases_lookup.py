"""Harness cases of rows in another order, taken out, and found by value."""

import numpy as np

from caffe2.testing import Bad, Case, anything, exactly, floats, integers

F4, I4, I8 = np.float32, np.int32, np.int64
ORDER = exactly([2, 0, 3, 1], I4)
WRONG = [Bad("twice", {"indices": I4([0, 1, 1, 3])}),
         Bad("too large", {"indices": I4([0, 1, 2, 4])}),
         Bad("negative", {"indices": I4([0, 1, 2, -1])})]  # fmt: skip

CASES = [
    Case("BatchPermutation", X=floats(4, "C"), indices=ORDER, mismatch={"X": 0}, bad=WRONG),
    Case("BatchPermutation", title="empty", X=floats(0, 4), indices=exactly([], I4),
         mismatch={"X": None, "indices": None}, gradient=False),
    Case("BatchPermutationGradient", indices=ORDER, dY=floats(4, "C"), mismatch={"dY": 0},
         bad=WRONG),
    Case("RemoveDataBlocks", data=anything(5, "C"), indices=exactly([1, 3, 3], I8),
         mismatch={"data": None, "indices": None},
         bad=[Bad("too large", {"indices": I8([5])}), Bad("negative", {"indices": I8([-1])}),
              Bad("2-d", {"indices": I8([[1]])}), Bad("a scalar", {"data": F4(1)})]),
    Case("RemoveDataBlocks", title="strings", data=exactly(np.array([b"a", b"b"], object)),
         indices=exactly([0], I4), mismatch={"data": None, "indices": None}),
    *(Case("Find", title=dtype, args=args, index=integers("N", low=0, high=5, dtype=dtype),
           query=integers(2, "C", low=0, high=5, dtype=dtype),
           mismatch={"index": None, "query": None})
      for dtype, args in (("i4", {}), ("i8", {"missing_value": 7}))),
    Case("SegmentOneHot", lengths=exactly([2, 0, 1], I4), indices=exactly([1, 0, 3], I8),
         index_size_tensor=exactly([4], I8),
         bad=[Bad("too large", {"indices": I8([1, 0, 4])}),
              Bad("2-d", {"indices": I8([[1, 0, 3]])}),
              Bad("negative", {"indices": I8([1, 0, -1])}),
              Bad("negative", {"lengths": I4([2, -1, 2])}),
              Bad("a negative size", {"index_size_tensor": I8([-1])})]),
    *(Case("BatchOneHot", title=dtype, data=integers("N", 3, low=0, high=2, dtype=dtype),
           lengths=exactly([2, 0, 3], I4), values=integers(5, low=0, high=2, dtype=dtype),
           bad=[Bad("another type", {"values": np.int16([1] * 5)}),
                Bad("negative", {"lengths": I4([3, -1, 3])}), Bad("1-d", {"data": I4([1])})])
      for dtype in ("i4", "i8")),
]  # fmt: skip
