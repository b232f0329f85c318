# mypy: disable-error-code="misc, no-any-return"
"""Tables whose rows are kept in 8, 4 or 2 bits per value, each row with its scale and bias.

A value is q * scale + bias.  In a fused table the scale and the bias lie behind the values of their
row, as bytes of two floats or of two float16; otherwise they are a tensor of their own.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np

from caffe2.ops.arguments import OperatorError
from caffe2.ops.datatypes import FLOAT, FLOAT16, INT32, INTS, UINT8
from caffe2.ops.declaration import NO_GRADIENT, Array, Spec, operator
from caffe2.ops.shapes import require_dimensions, require_rank, require_same_shape

_BYTE, _HALF, _FLOAT = np.dtype(np.uint8), np.dtype(np.float16), np.dtype(np.float32)


class _Format(NamedTuple):
    """How rows are fused: the bits of a value, those it takes, and what scale and bias are.

    rounded: scale and bias have the precision of float16, whatever their type is.
    """

    bits: int
    stored: int
    scale: np.dtype[np.float16] | np.dtype[np.float32]
    rounded: bool

    @property
    def per_byte(self) -> int:
        return 8 // self.stored

    @property
    def tail(self) -> int:
        """Bytes of scale and bias."""
        return 2 * self.scale.itemsize

    def about(self) -> str:
        packed = f", {self.per_byte} to a byte, the first lowest" if self.per_byte > 1 else ""
        kind = "float16" if self.scale == _HALF else "floats"
        return f"values of {self.bits} bits{packed}, then scale and bias as {kind}"


_FUSED_8 = _Format(8, 8, _FLOAT, False)
_FUSED_8_HALF = _Format(8, 8, _HALF, True)


def _levels(X: Array, form: _Format) -> tuple[Array, Array, Array]:
    """The numbers that stand for values, and scale and bias of each row."""
    top = np.float32((1 << form.bits) - 1)
    rows = X.astype(_FLOAT)
    empty = X.shape[-1] == 0
    low = np.zeros((*X.shape[:-1], 1), _FLOAT) if empty else rows.min(axis=-1, keepdims=True)
    high = low if empty else rows.max(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        if form.rounded:
            low = low.astype(_HALF).astype(_FLOAT)
            scale = ((high - low) / top).astype(_HALF).astype(_FLOAT)
            scale[scale == 0] = 1
            factor = 1 / scale
        else:
            scale = (high - low) / top
            factor = top / (high - low + np.float32(1e-8))
        scaled = (rows - low) * factor
        return np.where(scaled > 0, np.minimum(np.rint(scaled), top), 0).astype(_BYTE), scale, low


def _fuse(X: Array, form: _Format) -> Array:
    levels, scale, bias = _levels(X, form)
    shifts = np.arange(form.per_byte, dtype=_BYTE) * form.stored
    groups = levels.reshape(*X.shape[:-1], X.shape[-1] // form.per_byte, form.per_byte)
    packed = (groups << shifts).sum(axis=-1, dtype=_BYTE)
    with np.errstate(over="ignore"):
        ends = np.concatenate([scale, bias], axis=-1).astype(form.scale)
    return np.concatenate([packed, ends.view(_BYTE)], axis=-1)


def _values(rows: Array, form: _Format) -> Array:
    """What fused rows stand for, as float."""
    packed = rows[..., : rows.shape[-1] - form.tail, np.newaxis]
    shifts = np.arange(form.per_byte, dtype=_BYTE) * form.stored
    shape = (*rows.shape[:-1], packed.shape[-2] * form.per_byte)
    levels = (packed >> shifts & ((1 << form.stored) - 1)).reshape(shape)
    ends = np.ascontiguousarray(rows[..., rows.shape[-1] - form.tail :]).view(form.scale)
    scale, bias = ends[..., :1].astype(_FLOAT), ends[..., 1:].astype(_FLOAT)
    with np.errstate(invalid="ignore"):
        return levels.astype(_FLOAT) * scale + bias


def _columns(name: str, rows: Spec, form: _Format) -> int:
    require_dimensions(name, rows, 1)
    if rows.shape[-1] < form.tail:
        problem = f"has shape {rows.shape}; scale and bias take {form.tail} bytes of a row"
        raise OperatorError(name, problem)
    return (rows.shape[-1] - form.tail) * form.per_byte


def _declare_fuse(name: str, half: bool, form: _Format) -> None:
    class Fuse:
        gradient = NO_GRADIENT

        def shape(input: Spec) -> Spec:
            require_dimensions("input", input, 1)
            columns = input.shape[-1]
            if columns % form.per_byte:
                problem = f"has shape {input.shape}; rows have a multiple of {form.per_byte} values"
                raise OperatorError("input", problem)
            return Spec((*input.shape[:-1], columns // form.per_byte + form.tail), _BYTE)

        def reference(input: Array) -> Array:
            return _fuse(input, form)

    rounding = "\n    Scale and bias are rounded to float16 before values are." * form.rounded
    Fuse.__doc__ = f"""output = the rows of input as {form.about()}.

    bias is the smallest value of the row, scale the range of its values / {(1 << form.bits) - 1}.
    {rounding.strip() or "Values are rounded to the nearest, ties to even."}
    input: {"float16" if half else "float"}, (..., columns).  output: uint8 (..., bytes of a row).
    """
    operator(name, inputs="input", outputs="output", types={"input": FLOAT16 if half else FLOAT})(
        Fuse
    )


def _declare_open(name: str, half: bool, form: _Format) -> None:
    dtype = _HALF if half else _FLOAT

    class Open:
        gradient = NO_GRADIENT

        def shape(scale_bias_quantized_input: Spec) -> Spec:
            spec = scale_bias_quantized_input
            columns = _columns("scale_bias_quantized_input", spec, form)
            return Spec((*spec.shape[:-1], columns), dtype)

        def reference(scale_bias_quantized_input: Array) -> Array:
            with np.errstate(over="ignore"):
                return _values(scale_bias_quantized_input, form).astype(dtype)

    Open.__doc__ = f"""float_output = the values of fused rows: {form.about()}.

    scale_bias_quantized_input: uint8 (..., bytes of a row).
    float_output: {"float16" if half else "float"} (..., columns).
    """
    operator(
        name,
        inputs="scale_bias_quantized_input",
        outputs="float_output",
        types={"scale_bias_quantized_input": UINT8},
    )(Open)


_declare_fuse("FloatToFused8BitRowwiseQuantized", False, _FUSED_8)
_declare_fuse("HalfFloatToFused8BitRowwiseQuantized", True, _FUSED_8)
_declare_fuse("FloatToFused8BitRowwiseQuantizedHalfScaleBias", False, _FUSED_8_HALF)
_declare_fuse("HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias", True, _FUSED_8_HALF)
_declare_open("Fused8BitRowwiseQuantizedToFloat", False, _FUSED_8)
_declare_open("Fused8BitRowwiseQuantizedToHalfFloat", True, _FUSED_8)
_declare_open("Fused8BitRowwiseQuantizedHalfScaleBiasToFloat", False, _FUSED_8_HALF)
# Its name notwithstanding the original gives float, and so do nets that were saved for it.
_declare_open("Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat", False, _FUSED_8_HALF)
_FORMATS = {8: _FUSED_8}
for _bits in (4, 2):
    _FORMATS[_bits] = _Format(_bits, _bits, _HALF, True)
    for _half, _kind in ((False, "Float"), (True, "Half")):
        _declare_fuse(f"{_kind}ToFused{_bits}BitRowwiseQuantized", _half, _FORMATS[_bits])
        _fake = _Format(_bits, 8, _FLOAT, True)
        _declare_fuse(f"{_kind}ToFused{_bits}BitFakeRowwiseQuantized", _half, _fake)
        _declare_open(f"Fused{_bits}BitRowwiseQuantizedTo{_kind}", _half, _FORMATS[_bits])


# Rows that are looked up


def _check_indices(name: str, indices: Array, rows: int) -> None:
    if indices.size and not (indices.min() >= 0 and indices.max() < rows):
        problem = f"holds {indices.min()} to {indices.max()}; there are {rows} rows"
        raise OperatorError(name, problem)


@operator(
    "GatherFused8BitRowwise",
    inputs="DATA INDICES",
    outputs="OUTPUT",
    types={"DATA": UINT8, "INDICES": INTS},
)
class GatherFused8BitRowwise:
    """OUTPUT = the values of the rows of DATA with these numbers.

    DATA: uint8 (rows, columns + 8), as FloatToFused8BitRowwiseQuantized makes them.
    INDICES: int32 or int64, 1-d, in range.  OUTPUT: float (numbers, columns).
    """

    def shape(DATA: Spec, INDICES: Spec) -> Spec:
        require_rank("DATA", DATA, 2)
        require_rank("INDICES", INDICES, 1)
        return Spec((*INDICES.shape, _columns("DATA", DATA, _FUSED_8)), _FLOAT)

    def reference(DATA: Array, INDICES: Array) -> Array:
        _check_indices("INDICES", INDICES, len(DATA))
        return _values(DATA[INDICES], _FUSED_8)


def _reduce(reducer: str, rows: Array, weights: Array | None, lengths: Array) -> Array:
    """Sums or means of rows by lengths; rows are those that were looked up."""
    if lengths.size and lengths.min() < 0:
        raise OperatorError("LENGTHS", f"holds {lengths.min()}; lengths are not negative")
    if lengths.sum(dtype=np.int64) != len(rows):
        problem = f"sums to {lengths.sum(dtype=np.int64)}; there are {len(rows)} rows"
        raise OperatorError("LENGTHS", problem)
    wide = rows.astype(np.float64) * (1 if weights is None else weights.reshape(-1, 1))
    result = np.zeros((len(lengths), rows.shape[1]))
    np.add.at(result, np.repeat(np.arange(len(lengths)), lengths), wide)
    if reducer.endswith("Mean"):
        result /= np.maximum(lengths, 1).reshape(-1, 1)
    return result.astype(_FLOAT)


def _check_lookup(DATA: Spec, INDICES: Spec, LENGTHS: Spec) -> None:
    require_rank("DATA", DATA, 2)
    require_rank("INDICES", INDICES, 1)
    require_rank("LENGTHS", LENGTHS, 1)


def _declare_fused_lookup(name: str, reducer: str, form: _Format) -> None:
    class Weighted:
        def shape(DATA: Spec, WEIGHTS: Spec, INDICES: Spec, LENGTHS: Spec) -> Spec:
            _check_lookup(DATA, INDICES, LENGTHS)
            require_same_shape("WEIGHTS", WEIGHTS, "INDICES", INDICES)
            return Spec((*LENGTHS.shape, _columns("DATA", DATA, form)), _FLOAT)

        def reference(DATA: Array, WEIGHTS: Array, INDICES: Array, LENGTHS: Array) -> Array:
            _check_indices("INDICES", INDICES, len(DATA))
            return _reduce(reducer, _values(DATA[INDICES], form), WEIGHTS, LENGTHS)

    class Plain:
        def shape(DATA: Spec, INDICES: Spec, LENGTHS: Spec) -> Spec:
            _check_lookup(DATA, INDICES, LENGTHS)
            return Spec((*LENGTHS.shape, _columns("DATA", DATA, form)), _FLOAT)

        def reference(DATA: Array, INDICES: Array, LENGTHS: Array) -> Array:
            _check_indices("INDICES", INDICES, len(DATA))
            return _reduce(reducer, _values(DATA[INDICES], form), None, LENGTHS)

    weighted = reducer.startswith("Weighted")
    _finish(name, Weighted if weighted else Plain, reducer, form.about(), weighted, "")


def _declare_lookup(name: str, reducer: str) -> None:
    """The same for tables with scale and bias apart."""

    def check(DATA: Spec, weights: Spec | None, INDICES: Spec, LENGTHS: Spec, ends: Spec) -> Spec:
        _check_lookup(DATA, INDICES, LENGTHS)
        if weights is not None:
            require_rank("WEIGHTS", weights, 1)
            if weights.shape[0] < INDICES.shape[0]:
                problem = f"has {weights.shape[0]} elements; {INDICES.shape[0]} are needed"
                raise OperatorError("WEIGHTS", problem)
        if ends.shape != (DATA.shape[0], 2):
            problem = f"has shape {ends.shape}; ({DATA.shape[0]}, 2) is needed"
            raise OperatorError("scale_bias", problem)
        return Spec((*LENGTHS.shape, DATA.shape[1]), _FLOAT)

    def find(DATA: Array, INDICES: Array, ends: Array) -> Array:
        _check_indices("INDICES", INDICES, len(DATA))
        chosen = ends[INDICES]
        return DATA[INDICES].astype(_FLOAT) * chosen[:, :1] + chosen[:, 1:]

    class Weighted:
        def shape(
            DATA: Spec, WEIGHTS: Spec, INDICES: Spec, LENGTHS: Spec, scale_bias: Spec
        ) -> Spec:
            return check(DATA, WEIGHTS, INDICES, LENGTHS, scale_bias)

        def reference(
            DATA: Array, WEIGHTS: Array, INDICES: Array, LENGTHS: Array, scale_bias: Array
        ) -> Array:
            weights = WEIGHTS[: len(INDICES)]
            return _reduce(reducer, find(DATA, INDICES, scale_bias), weights, LENGTHS)

    class Plain:
        def shape(DATA: Spec, INDICES: Spec, LENGTHS: Spec, scale_bias: Spec) -> Spec:
            return check(DATA, None, INDICES, LENGTHS, scale_bias)

        def reference(DATA: Array, INDICES: Array, LENGTHS: Array, scale_bias: Array) -> Array:
            return _reduce(reducer, find(DATA, INDICES, scale_bias), None, LENGTHS)

    weighted = reducer.startswith("Weighted")
    body = Weighted if weighted else Plain
    _finish(name, body, reducer, "values of 8 bits", weighted, " scale_bias")


def _finish(name: str, body: type, reducer: str, about: str, weighted: bool, ends: str) -> None:
    what = "mean" if reducer.endswith("Mean") else "sum"
    further = "; further ones are not used" * bool(ends)
    weights = f"\n    WEIGHTS: float, one for each number{further}." * weighted
    body.gradient = NO_GRADIENT  # type: ignore[attr-defined]
    body.__doc__ = f"""output[k] = the {what} of the rows of segment k{", weighted" * weighted}.

    DATA: uint8 (rows, ...), {about}.
    INDICES: int32 or int64, 1-d, which row of DATA each row is; in range.
    LENGTHS: int32, 1-d, the rows of each segment; they sum to all numbers.
    """ + inspect.cleandoc(f"""
    {weights.strip()}
    {"scale_bias: float (rows, 2)." * bool(ends)}
    output: float (segments, columns); 0 for a segment without rows.
    """)
    inputs = f"DATA{' WEIGHTS' * weighted} INDICES LENGTHS{ends}"
    types = {"DATA": UINT8, "INDICES": INTS, "LENGTHS": INT32}
    types |= dict.fromkeys(["WEIGHTS"] * weighted + ends.split(), FLOAT)
    operator(name, inputs=inputs, outputs="output", types=types)(body)


for _bits, _form in _FORMATS.items():
    for _reducer in ("Sum", "Mean", "WeightedSum"):
        _declare_fused_lookup(f"SparseLengths{_reducer}Fused{_bits}BitRowwise", _reducer, _form)
for _reducer in ("Sum", "Mean", "WeightedSum", "WeightedMean"):
    _declare_lookup(f"SparseLengths{_reducer}8BitsRowwise", _reducer)


# Tables without the rows that were pruned


def _places(indices: Array, mapping: Array, rows: int) -> Array:
    """The row that each number stands for; -1 for one that was pruned."""
    if mapping.shape == (1,) and mapping[0] == 0:  # nothing was pruned
        _check_indices("INDICES", indices, rows)
        return indices
    _check_indices("INDICES", indices, len(mapping))
    places = mapping[indices]
    if places.size and not (places.min() >= -1 and places.max() < rows):
        problem = f"holds {places.min()} to {places.max()}; there are {rows} rows, and -1 is none"
        raise OperatorError("COMPRESSED_INDICES_MAPPING", problem)
    return places


def _check_pruned(INDICES: Spec, LENGTHS: Spec, mapping: Spec, WEIGHTS: Spec | None) -> None:
    require_rank("INDICES", INDICES, 1)
    require_rank("LENGTHS", LENGTHS, 1)
    require_rank("COMPRESSED_INDICES_MAPPING", mapping, 1)
    if WEIGHTS is not None:
        require_same_shape("WEIGHTS", WEIGHTS, "INDICES", INDICES)


_MAPPING = """INDICES: int32 or int64, 1-d, in range of COMPRESSED_INDICES_MAPPING.
    LENGTHS: int32, 1-d, the numbers of each segment; they sum to all numbers.
    COMPRESSED_INDICES_MAPPING: int32, 1-d, the row of each number; -1: it was pruned."""


def _declare_pruned_lookup(name: str, reducer: str, form: _Format) -> None:
    def check(
        DATA: Spec, WEIGHTS: Spec | None, INDICES: Spec, LENGTHS: Spec, mapping: Spec
    ) -> Spec:
        require_rank("DATA", DATA, 2)
        _check_pruned(INDICES, LENGTHS, mapping, WEIGHTS)
        return Spec((*LENGTHS.shape, _columns("DATA", DATA, form)), _FLOAT)

    def find(DATA: Array, INDICES: Array, mapping: Array) -> Array:
        places = _places(INDICES, mapping, len(DATA))
        there = places >= 0
        rows = np.zeros((len(places), _columns("DATA", Spec(DATA.shape, _BYTE), form)), _FLOAT)
        rows[there] = _values(DATA[places[there]], form)
        return rows

    class Weighted:
        def shape(
            DATA: Spec,
            WEIGHTS: Spec,
            INDICES: Spec,
            LENGTHS: Spec,
            COMPRESSED_INDICES_MAPPING: Spec,
        ) -> Spec:
            return check(DATA, WEIGHTS, INDICES, LENGTHS, COMPRESSED_INDICES_MAPPING)

        def reference(
            DATA: Array,
            WEIGHTS: Array,
            INDICES: Array,
            LENGTHS: Array,
            COMPRESSED_INDICES_MAPPING: Array,
        ) -> Array:
            rows = find(DATA, INDICES, COMPRESSED_INDICES_MAPPING)
            return _reduce(reducer, rows, WEIGHTS, LENGTHS)

    class Plain:
        def shape(
            DATA: Spec, INDICES: Spec, LENGTHS: Spec, COMPRESSED_INDICES_MAPPING: Spec
        ) -> Spec:
            return check(DATA, None, INDICES, LENGTHS, COMPRESSED_INDICES_MAPPING)

        def reference(
            DATA: Array, INDICES: Array, LENGTHS: Array, COMPRESSED_INDICES_MAPPING: Array
        ) -> Array:
            rows = find(DATA, INDICES, COMPRESSED_INDICES_MAPPING)
            return _reduce(reducer, rows, None, LENGTHS)

    weighted = reducer == "WeightedSum"
    what = "mean" if reducer == "Mean" else "sum"
    body: Any = Weighted if weighted else Plain
    body.gradient = NO_GRADIENT
    body.__doc__ = f"""output[k] = the {what} of the rows of segment k{", weighted" * weighted}.

    DATA: uint8 (rows, ...), {form.about()}; without the rows that were pruned, which count as 0.
    {"WEIGHTS: float, one for each number." * weighted}
    {_MAPPING}
    A mapping of one 0 says that no row was pruned; numbers are those of rows then.
    output: float (segments, columns); 0 for a segment without rows.
    """
    types = {"DATA": UINT8, "INDICES": INTS, "LENGTHS": INT32, "COMPRESSED_INDICES_MAPPING": INT32}
    operator(
        name,
        inputs=f"DATA{' WEIGHTS' * weighted} INDICES LENGTHS COMPRESSED_INDICES_MAPPING",
        outputs="output",
        types=types | ({"WEIGHTS": FLOAT} if weighted else {}),
    )(body)


for _bits, _form in _FORMATS.items():
    for _reducer in ("Sum", "Mean", "WeightedSum"):
        _declare_pruned_lookup(f"SparseLengths{_reducer}{_bits}BitRowwiseSparse", _reducer, _form)


@operator(
    "SparseLengthsSumSparseLookup",
    inputs="INDICES LENGTHS COMPRESSED_INDICES_MAPPING WEIGHTS?",
    outputs="output_indices output_lengths output_weights?",
    types={
        "INDICES": INTS,
        "LENGTHS": INT32,
        "COMPRESSED_INDICES_MAPPING": INT32,
        "WEIGHTS": FLOAT,
    },
)
class SparseLengthsSumSparseLookup:
    """output_indices = the rows of a pruned table that numbers stand for, without pruned ones.

    INDICES: int32 or int64, 1-d, in range of COMPRESSED_INDICES_MAPPING.
    LENGTHS: int32, 1-d, the numbers of each segment; they sum to all numbers.
    COMPRESSED_INDICES_MAPPING: int32, 1-d, the row of each number; -1: it was pruned.
    WEIGHTS: float, one for each number; output_weights has them, and is there only with WEIGHTS.
    output_indices: INDICES' type.  output_lengths: int32, what is left of each segment.
    """

    gradient = NO_GRADIENT

    def shape(
        INDICES: Spec, LENGTHS: Spec, COMPRESSED_INDICES_MAPPING: Spec, WEIGHTS: Spec | None
    ) -> tuple[None, Spec, None]:
        _check_pruned(INDICES, LENGTHS, COMPRESSED_INDICES_MAPPING, WEIGHTS)
        return None, LENGTHS, None

    def reference(
        INDICES: Array, LENGTHS: Array, COMPRESSED_INDICES_MAPPING: Array, WEIGHTS: Array | None
    ) -> tuple[Array, ...]:
        _check_indices("INDICES", INDICES, len(COMPRESSED_INDICES_MAPPING))
        places = COMPRESSED_INDICES_MAPPING[INDICES].astype(INDICES.dtype)
        if places.size and places.min() < -1:
            raise OperatorError("COMPRESSED_INDICES_MAPPING", f"holds {places.min()}; -1 is no row")
        there = places >= 0
        left = _reduce("Sum", there.reshape(-1, 1), None, LENGTHS)[:, 0].astype(np.int32)
        kept = (places[there], left)
        return kept if WEIGHTS is None else (*kept, WEIGHTS[there])


# Scale and bias apart


@operator(
    "FloatToRowwiseQuantized8Bits",
    inputs="input",
    outputs="quantized_input scale_bias",
    types={"input": FLOAT},
)
class FloatToRowwiseQuantized8Bits:
    """quantized_input = round((input - bias) / scale), scale_bias = scale and bias of each row.

    A row is all that belongs to one index of the first dimension; its bias is its smallest value,
    its scale its range / 255, or 1 where all its values are equal.
    input: float, at least 1-d.  quantized_input: uint8, shaped like input.
    scale_bias: float (rows, 2).
    """

    gradient = NO_GRADIENT

    def shape(input: Spec) -> tuple[Spec, Spec]:
        require_dimensions("input", input, 1)
        return Spec(input.shape, _BYTE), Spec((input.shape[0], 2), _FLOAT)

    def reference(input: Array) -> tuple[Array, Array]:
        rows = input.reshape(len(input), int(np.prod(input.shape[1:])))
        if rows.shape[1] == 0:
            return np.zeros(input.shape, _BYTE), np.tile(np.array([1, 0], _FLOAT), (len(rows), 1))
        low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            scale = np.where(high == low, np.float32(1), (high - low) / np.float32(255))
            scaled = (rows - low) * (1 / scale)
        levels = np.where(scaled > 0, np.minimum(np.rint(scaled), 255), 0).astype(_BYTE)
        return levels.reshape(input.shape), np.concatenate([scale, low], axis=1).astype(_FLOAT)


@operator(
    "Rowwise8BitQuantizedToFloat",
    inputs="quantized_input scale_bias",
    outputs="output",
    types={"quantized_input": UINT8, "scale_bias": FLOAT},
)
class Rowwise8BitQuantizedToFloat:
    """output = quantized_input * scale + bias, with a scale and a bias for each row.

    quantized_input: uint8, at least 1-d.  scale_bias: float (rows, 2).
    output: float, shaped like quantized_input.
    """

    gradient = NO_GRADIENT

    def shape(quantized_input: Spec, scale_bias: Spec) -> Spec:
        require_dimensions("quantized_input", quantized_input, 1)
        if scale_bias.shape != (quantized_input.shape[0], 2):
            problem = f"has shape {scale_bias.shape}; ({quantized_input.shape[0]}, 2) is needed"
            raise OperatorError("scale_bias", problem)
        return Spec(quantized_input.shape, _FLOAT)

    def reference(quantized_input: Array, scale_bias: Array) -> Array:
        shape = (-1, *[1] * (quantized_input.ndim - 1))
        scale, bias = scale_bias[:, 0].reshape(shape), scale_bias[:, 1].reshape(shape)
        return quantized_input.astype(_FLOAT) * scale + bias
