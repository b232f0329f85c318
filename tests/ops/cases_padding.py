"""Harness cases of rows before and behind segments."""

import numpy as np

from caffe2.testing import Bad, Case, anything, exactly, floats, integers

F4, I4, I8 = np.float32, np.int32, np.int64
L = exactly([3, 2, 4], I4)
WIDTHS = {"padding_width": 1, "end_padding_width": 1}


def bad(least):
    more = [Bad("a short segment", {"lengths": I4([7, 1, 1])})] if least else []
    return [Bad("negative", {"lengths": I4([3, -1, 7])}), Bad("short", {"lengths": I4([3, 2, 3])}),
            Bad("2-d", {"lengths": I4([[9]])}), *more]  # fmt: skip


CASES = [
    Case("AddPadding", outputs=2, gradient=False, data_in=anything(9, "C"), lengths=L,
         mismatch={"data_in": 0}, bad=bad(0)),
    Case("AddPadding", title="rows", args={"padding_width": 2, "end_padding_width": 1}, outputs=2,
         data_in=floats(9, "C"), lengths=L, start_padding=floats("C"), end_padding=floats("C"),
         mismatch={"data_in": 0}, bad=[Bad("another type", {"start_padding": np.ones(2)})]),
    Case("AddPadding", title="one", args={"padding_width": 2}, outputs=2,
         data_in=floats(9, 2, "C"), lengths=L, start_padding=floats(2, "C"),
         mismatch={"data_in": 0}),
    Case("AddPadding", title="all", data_in=floats(5, "C"),
         bad=[Bad("a scalar", {"data_in": F4(1)})]),
    Case("RemovePadding", outputs=2, args=WIDTHS, data_in=floats(9, "C"), lengths=L,
         mismatch={"data_in": 0}, bad=bad(2)),
    Case("RemovePadding", title="all", args={"padding_width": 2, "end_padding_width": 0},
         gradient=False, data_in=anything(5, "C")),
    Case("GatherPadding", outputs=2, args=WIDTHS, data_in=floats(9, "C"), lengths=L,
         mismatch={"data_in": 0}, bad=bad(2)),
    Case("GatherPadding", title="one", args={"end_padding_width": 0}, data_in=integers(9, 2),
         lengths=L, mismatch={"data_in": 0}),
    Case("ReversePackedSegs", data=floats(4, 3, "C"), lengths=exactly([0, 4, 3], I4),
         mismatch={"data": 1},
         bad=[Bad("too long", {"lengths": I4([0, 5, 1])}),
              Bad("negative", {"lengths": I4([0, -1, 1])}), Bad("2-d", {"data": F4([[1]])})]),
    Case("ReversePackedSegs", title="int64", data=anything(4, 2, 2), gradient=False,
         lengths=exactly([1, 2], I8), mismatch={"data": 1}),
    Case("VariableLengthSequencePadding", input=floats(4, 3, "C"), gradient=False,
         lengths=exactly([0, 3, 9], I4), mismatch={"input": 1},
         bad=[Bad("2-d", {"input": F4([[1, 2, 3]])}), Bad("short", {"lengths": I4([1, 2])})]),
]  # fmt: skip
