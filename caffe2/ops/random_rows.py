# mypy: disable-error-code="misc, no-any-return"
"""Rows of floats quantized to few bits with random rounding."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import Bool, Int, OperatorError
from caffe2.ops.datatypes import FLOAT, UINT8
from caffe2.ops.declaration import NO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_rank

_WIDTHS = (1, 2, 4, 8)
_HEADER = 10  # bits, tail, smallest and largest number as floats


def _gap(low: Array, high: Array, bits: int) -> Array:
    return (high - low) / np.float32(2**bits - 1) + np.float32(1e-8)


@operator(
    "FloatToFusedRandRowwiseQuantized",
    inputs="input",
    outputs="output",
    args={"bitwidth": Int(8), "random": Bool(True)},
    types={"input": FLOAT},
    kind="random",
    native=False,
)
class FloatToFusedRandRowwiseQuantized:
    """Each row in `bitwidth` bits per number, between its smallest and its largest number.

    input: float (rows, columns).  bitwidth: 1, 2, 4 or 8.
    random: round up with the probability of what is behind the point, so that the mean is kept;
    else to the nearest number.
    output: uint8 (rows, 10 + ceil(columns / k)), k = 8 / bitwidth numbers to a byte: bitwidth, how
    many places of the last byte are not used, smallest and largest number (floats), then bytes;
    byte b holds the numbers b, b + s, b + 2 s, ... (s bytes in all), the first in the lowest bits.
    """

    gradient = NO_GRADIENT

    def shape(input: Spec, op: OpView) -> Spec:
        require_rank("input", input, 2)
        if op.args.bitwidth not in _WIDTHS:
            raise OperatorError("argument 'bitwidth'", f"is {op.args.bitwidth}; 1, 2, 4 or 8")
        if not input.shape[1]:
            raise OperatorError("input", f"has shape {input.shape}; a row has numbers")
        each = 8 // op.args.bitwidth
        return Spec((input.shape[0], _HEADER + -(-input.shape[1] // each)), np.dtype(np.uint8))

    def reference(input: Array, op: OpView) -> Array:
        bits, (rows, columns) = op.args.bitwidth, input.shape
        each = 8 // bits
        count = -(-columns // each)
        low, high = input.min(axis=1, keepdims=True), input.max(axis=1, keepdims=True)
        scaled = (input - low) / _gap(low, high, bits)
        rounded = np.floor(scaled + op.rng.random(input.shape)) if op.args.random else scaled
        codes = np.clip(np.rint(rounded), 0, 2**bits - 1).astype(np.uint8)
        padded = np.zeros((rows, each * count), np.uint8)
        padded[:, :columns] = codes
        places = (bits * np.arange(each)).astype(np.uint8)
        data = (padded.reshape(rows, each, count) << places[:, None]).sum(axis=1, dtype=np.uint8)
        found = np.zeros((rows, _HEADER + count), np.uint8)
        found[:, 0], found[:, 1] = bits, each * count - columns
        found[:, 2:6] = low.astype("<f4").view(np.uint8).reshape(rows, 4)
        found[:, 6:10] = high.astype("<f4").view(np.uint8).reshape(rows, 4)
        found[:, _HEADER:] = data
        return found


@operator(
    "FusedRandRowwiseQuantizedToFloat",
    inputs="quantized_input",
    outputs="float_input",
    types={"quantized_input": UINT8},
    native=False,
)
class FusedRandRowwiseQuantizedToFloat:
    """The numbers of FloatToFusedRandRowwiseQuantized.

    quantized_input: uint8 (rows, bytes), all rows of one bitwidth and number of columns.
    float_input: float (rows, columns).
    """

    gradient = NO_GRADIENT

    def shape(quantized_input: Spec) -> None:
        require_rank("quantized_input", quantized_input, 2)
        if quantized_input.shape[1] <= _HEADER or not quantized_input.shape[0]:
            problem = f"has shape {quantized_input.shape}; rows of more than {_HEADER} are needed"
            raise OperatorError("quantized_input", problem)

    def reference(quantized_input: Array) -> Array:
        rows, width = quantized_input.shape
        bits, tail = (int(each) for each in quantized_input[0, :2])
        alike = (quantized_input[:, :2] == [bits, tail]).all()
        if bits not in _WIDTHS or tail >= 8 // bits or not alike:
            problem = f"holds rows of {bits} bits and {tail} places too many, or of several kinds"
            raise OperatorError("quantized_input", problem)
        each, count = 8 // bits, width - _HEADER
        low, high = (
            np.ascontiguousarray(quantized_input[:, at : at + 4]).view("<f4") for at in (2, 6)
        )
        places = (bits * np.arange(each)).astype(np.uint8)
        codes = (quantized_input[:, None, _HEADER:] >> places[:, None]) & (2**bits - 1)
        codes = codes.reshape(rows, each * count)[:, : each * count - tail]
        return (codes * _gap(low, high, bits) + low).astype(np.float32)
