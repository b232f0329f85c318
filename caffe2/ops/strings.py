# mypy: disable-error-code="misc, no-any-return"
"""Tensors of strings: parts, comparisons and joins."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Int, Str
from caffe2.ops.datatypes import ANY, FLOAT16, STRING
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, Array, OpView, Spec, operator, same_as
from caffe2.ops.shapes import require_rank

_LENGTH = {"length": Int(3, min=0)}
_TYPES = {"strings": STRING}


def _each(strings: Array, change: Any, dtype: Any = object) -> Array:
    found = np.empty(strings.shape, dtype)
    found.reshape(-1)[:] = [change(text) for text in strings.reshape(-1)]
    return found


def _bools(strings: Spec) -> Spec:
    return Spec(strings.shape, np.dtype(np.bool_))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@operator(
    "StringPrefix",
    inputs="strings",
    outputs="prefixes",
    args=_LENGTH,
    types=_TYPES,
    shape=same_as("strings"),
)
class StringPrefix:
    """prefixes = the first `length` bytes of each string, or all it has.

    strings, prefixes: strings of one shape.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def reference(strings: Array, op: OpView) -> Array:
        return _each(strings, lambda text: text[: op.args.length])


@operator(
    "StringSuffix",
    inputs="strings",
    outputs="suffixes",
    args=_LENGTH,
    types=_TYPES,
    shape=same_as("strings"),
)
class StringSuffix:
    """suffixes = the last `length` bytes of each string, or all it has.

    strings, suffixes: strings of one shape.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def reference(strings: Array, op: OpView) -> Array:
        return _each(strings, lambda text: text[max(len(text) - op.args.length, 0) :])


@operator(
    "StringStartsWith",
    inputs="strings",
    outputs="bools",
    args={"prefix": Str("")},
    types=_TYPES,
    shape=_bools,
)
class StringStartsWith:
    """bools = whether each string begins with `prefix`.

    strings: strings.  bools: bool of their shape.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def reference(strings: Array, op: OpView) -> Array:
        return _each(strings, lambda text: text.startswith(_bytes(op.args.prefix)), np.bool_)


@operator(
    "StringEndsWith",
    inputs="strings",
    outputs="bools",
    args={"suffix": Str("")},
    types=_TYPES,
    shape=_bools,
)
class StringEndsWith:
    """bools = whether each string ends with `suffix`.

    strings: strings.  bools: bool of their shape.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def reference(strings: Array, op: OpView) -> Array:
        return _each(strings, lambda text: text.endswith(_bytes(op.args.suffix)), np.bool_)


@operator(
    "StringEquals",
    inputs="strings",
    outputs="bools",
    args={"text": Str("")},
    types=_TYPES,
    shape=_bools,
)
class StringEquals:
    """bools = whether each string is `text`.

    strings: strings.  bools: bool of their shape.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def reference(strings: Array, op: OpView) -> Array:
        return _each(strings, lambda text: text == _bytes(op.args.text), np.bool_)


def _text(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (float, np.floating)):
        return f"{float(value):g}".encode()
    return str(int(value)).encode()


@operator(
    "StringJoin",
    inputs="input",
    outputs="strings",
    args={"delimiter": Str(","), "axis": Int(0, min=0, max=1)},
    types={"input": ANY - FLOAT16},
)
class StringJoin:
    """strings = the elements of each row as text, each with the delimiter behind it; with axis=1
    those of each column.

    input: strings or numbers, (rows,) or (rows, columns).  Numbers have up to six digits.
    strings: strings (rows,), or (columns,).
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(input: Spec, op: OpView) -> Spec:
        require_rank("input", input, 1, 2)
        matrix = (*input.shape, 1)[:2]
        return Spec((matrix[op.args.axis],), np.dtype(object))

    def reference(input: Array, op: OpView) -> Array:
        matrix = input.reshape(input.shape[0], -1 if input.size else (*input.shape, 1)[1])
        rows = matrix.T if op.args.axis else matrix
        found = np.empty(len(rows), object)
        end = _bytes(op.args.delimiter)
        found[:] = [b"".join(_text(value) + end for value in row) for row in rows]
        return found
