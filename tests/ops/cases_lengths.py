"""Harness cases of lengths, segment ids and packed segments."""

import numpy as np

from caffe2.testing import Bad, Case, anything, exactly, floats

F4, I4, I8 = np.float32, np.int32, np.int64
L = exactly([2, 0, 4], I4)
TEXTS = exactly(np.array([b"a", b"", b"a longer text, on the heap"], dtype=object))


def of_lengths(type, title="", lengths=(2, 0, 4), bad=(), **args):
    always = [Bad("negative", {"lengths": I4([3, -1])}), Bad("2-d", {"lengths": I4([[1]])})]
    return Case(type, title=title, args=args, lengths=exactly(lengths, I4), bad=[*always, *bad])


CASES = [
    *(of_lengths(type, title, lengths) for type in
      ("LengthsToSegmentIds", "LengthsRangeFill", "LengthsToRanges", "LengthsToOffsets")
      for title, lengths in (("", (2, 0, 4)), ("none", ()))),
    of_lengths("LengthsToOffsets", "last", include_last_offset=1),
    Case("LengthsToShape", X=exactly([3, 3], I4), bad=[
        Bad("different ones", {"X": I4([3, 2])}), Bad("empty", {"X": I4([])}),
        Bad("negative", {"X": I4([-1, -1])}), Bad("2-d", {"X": I4([[3]])})]),
    *(Case(type, title=title, segment_ids=exactly(ids, dtype), bad=[
        Bad("unsorted", {"segment_ids": dtype([1, 0])}), Bad("2-d", {"segment_ids": dtype([[1]])}),
        Bad("negative", {"segment_ids": dtype([-1, 0])})])
      for type in ("SegmentIdsToLengths", "SegmentIdsToRanges")
      for title, ids, dtype in (("", [1, 1, 3], I4), ("none", [], I8))),
    *(Case(type, title="data", segment_ids=exactly([0, 0, 2], I8), data=floats(4),
           mismatch={"segment_ids": None, "data": None},
           bad=[Bad("too few rows", {"data": F4([1, 2])})])
      for type in ("SegmentIdsToLengths", "SegmentIdsToRanges")),
    Case("LengthsTile", DATA=floats(3, "C"), LENGTHS=L, mismatch={"DATA": 0},
         bad=[Bad("negative", {"LENGTHS": I4([2, -1, 4])})]),
    Case("LengthsTile", title="strings", gradient=False, DATA=TEXTS, LENGTHS=L),
    Case("PackSegments", lengths=L, tensor=floats(6, "C"), mismatch={"tensor": 0}, bad=[
        Bad("negative", {"lengths": I4([2, -1, 5])}), Bad("2-d", {"lengths": I4([[6]])}),
        Bad("too short", {"lengths": I4([2, 0, 3])}), Bad("a mask", outputs=2)]),
    Case("PackSegments", title="mask", args={"return_presence_mask": 1, "max_length": 5},
         outputs=2, gradient=False, lengths=L, tensor=anything(6, "C"), mismatch={"tensor": 0}),
    Case("PackSegments", title="cut", args={"max_length": 3, "pad_minf": 1}, gradient=False,
         lengths=exactly([2, 0, 4], I8), tensor=floats(6, 2, "C"), mismatch={"tensor": 0},
         bad=[Bad("integers", {"tensor": np.ones((6, 2), I4)})]),
    Case("PackSegments", title="none", args={"return_presence_mask": 1}, outputs=2,
         gradient=False, lengths=exactly([], I4), tensor=floats(0),
         mismatch={"lengths": None, "tensor": None}),
    Case("PackSegments", title="strings", gradient=False, lengths=exactly([1, 2], I4),
         tensor=TEXTS),
    Case("UnpackSegments", lengths=L, tensor=floats(3, 4, "C"), mismatch={"tensor": 0},
         bad=[Bad("too long", {"lengths": I4([2, 0, 5])}),
              Bad("negative", {"lengths": I4([2, -1, 2])}),
              Bad("2-d", {"lengths": I4([[2, 0, 3]])}),
              Bad("another length", args={"max_length": 3})]),
    Case("UnpackSegments", title="cut", args={"max_length": 3}, lengths=L,
         tensor=floats(3, 3, 2), gradient=False, mismatch={"tensor": 0}),
    Case("UnpackSegments", title="strings", lengths=exactly([1], I8), gradient=False,
         tensor=exactly(np.array([[b"a", b"b"]], object)), mismatch={"tensor": 0}),
]  # fmt: skip
