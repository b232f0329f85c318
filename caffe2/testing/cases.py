"""Cases: which inputs and arguments an operator is tested with."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from caffe2 import ops
from caffe2.ops.datatypes import DataType, dtype_of
from caffe2.ops.declaration import Array

# Sizes that meet every path of a vector loop: a single one, full registers and tails.
TAILS = (7, 1, 33, 15, 17)
# Shapes for element-wise operators.
_SHAPES = ((7, 3), (0, 4), (), (1,), (33,), (15, 17), (2, 1, 5), (3, 0), (1, 2, 3, 4))

any_shape = "any shape"


def full_effort() -> bool:
    """Whether CAFFE2_TEST_EFFORT asks for many inputs."""
    return os.environ.get("CAFFE2_TEST_EFFORT", "quick") == "full"


@dataclass
class Draw:
    """One drawn set of inputs: the sizes that names of dimensions stand for, and random numbers."""

    sizes: Mapping[str, int]
    shape: tuple[int, ...]
    rng: np.random.Generator
    number: int
    made: dict[str, Array] = field(default_factory=dict)

    def dims(self, dims: Sequence[int | str]) -> tuple[int, ...]:
        if list(dims) == [any_shape]:
            return self.shape
        return tuple(self.sizes[dim] if isinstance(dim, str) else dim for dim in dims)


@dataclass(frozen=True)
class Maker:
    """Makes one input; `dims` are numbers, names of sizes, or `any_shape` alone.  One that looks
    at other inputs is `late`: it is made after them."""

    dims: tuple[int | str, ...]
    make: Callable[[Draw, tuple[int, ...]], Array]
    late: bool = False

    def __call__(self, draw: Draw) -> Array:
        return self.make(draw, draw.dims(self.dims))


def floats(
    *dims: int | str, low: float = -1.0, high: float = 1.0, away: float = 0.0, dtype: Any = "f4"
) -> Maker:
    """Uniform floats; `away`: none is nearer to 0 than this (for kinks)."""

    def make(draw: Draw, shape: tuple[int, ...]) -> Array:
        values = draw.rng.uniform(low, high, shape)
        near = np.abs(values) < away
        values = np.where(near, np.where(values < 0, values - away, values + away), values)
        return np.asarray(values, dtype=dtype)

    return Maker(dims, make)


def distinct(*dims: int | str) -> Maker:
    """Floats in [-1, 1) of which no two are near each other (for maxima)."""

    def make(draw: Draw, shape: tuple[int, ...]) -> Array:
        size = int(np.prod(shape, dtype=np.int64))
        values = draw.rng.permutation(size).reshape(shape) * 2 / max(size, 1) - 1
        return np.asarray(values, dtype=np.float32)

    return Maker(dims, make)


def integers(*dims: int | str, low: int = -9, high: int = 9, dtype: Any = "i8") -> Maker:
    """Uniform integers, low <= x <= high."""

    def make(draw: Draw, shape: tuple[int, ...]) -> Array:
        return np.asarray(draw.rng.integers(low, high, shape, endpoint=True), dtype=dtype)

    return Maker(dims, make)


def labels(*dims: int | str, classes: int | str) -> Maker:
    """int32 class numbers, 0 <= x < classes."""

    def make(draw: Draw, shape: tuple[int, ...]) -> Array:
        (most,) = draw.dims([classes])
        return np.asarray(draw.rng.integers(0, most, shape), dtype=np.int32)

    return Maker(dims, make)


def probabilities(*dims: int | str) -> Maker:
    """float32 rows (along the last axis) of positive numbers that sum to 1."""

    def make(draw: Draw, shape: tuple[int, ...]) -> Array:
        values = draw.rng.uniform(0.1, 1, shape)
        return np.asarray(values / values.sum(axis=-1, keepdims=True), dtype=np.float32)

    return Maker(dims, make)


def anything(*dims: int | str) -> Maker:
    """Values of a type that changes from draw to draw, strings left out."""
    kinds = [kind for kind in DataType if kind != DataType.STRING]

    def make(draw: Draw, shape: tuple[int, ...]) -> Array:
        dtype = dtype_of(kinds[draw.number % len(kinds)])
        return draw.rng.integers(0, 2, shape).astype(dtype)

    return Maker(dims, make)


def exactly(value: Any, dtype: Any = None) -> Maker:
    """This very array."""
    return Maker((), lambda draw, shape: np.asarray(value, dtype=dtype))


def like(name: str) -> Maker:
    """Floats in [-1, 1) with the shape of another input."""

    def make(draw: Draw, shape: tuple[int, ...]) -> Array:
        return np.asarray(draw.rng.uniform(-1, 1, draw.made[name].shape), dtype=np.float32)

    return Maker((), make, late=True)


def result_of(type: str, *inputs: str, output: int = 0, **args: Any) -> Maker:
    """The output of another operator for other inputs, by its NumPy body."""

    def make(draw: Draw, shape: tuple[int, ...]) -> Array:
        declaration = ops.find(type)
        op = declaration.view(inputs, declaration.outputs.names, args)
        return declaration.run(op, [draw.made[name] for name in inputs])[output]

    return Maker((), make, late=True)


@dataclass(frozen=True)
class Bad:
    """Something the operator refuses: the case with other inputs, arguments or outputs."""

    why: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    args: Mapping[str, Any] = field(default_factory=dict)
    outputs: int | None = None


MakerOrList: TypeAlias = "Maker | list[Maker]"


class Case:
    """One operator with one set of arguments, and how to make its inputs.

    type         the operator
    inputs       by declared name, in the declared order; a list where the name stands for many
    args         arguments
    title        tells apart several cases of one operator
    sizes        for names of dimensions: the sizes they take, the first for numeric gradients and
                 bad input (default: TAILS, and 0 for names that begin with N)
    outputs      how many outputs are named (default: as many as are needed)
    bad          what is refused, besides what the harness finds by itself
    mismatch     input -> the axis along which a longer input is refused (default the last one);
                 None: a longer input is allowed
    types        input -> a type that is refused here, where the declaration allows it
    gradient     whether the gradient is compared with the numeric one
    no_gradient  inputs of floats that get no gradient
    in_place     False: an allowed output overwrites an input only when it has its shape
    loss         the output whose gradient is taken (default: all outputs of floats)
    distribution what a random operator draws from
    tolerance    largest error allowed, as a share of the largest expected value
    """

    def __init__(
        self,
        type: str,
        *,
        args: Mapping[str, Any] | None = None,
        title: str = "",
        sizes: Mapping[str, Sequence[int]] | None = None,
        outputs: int | None = None,
        bad: Sequence[Bad] = (),
        mismatch: Mapping[str, int | None] | None = None,
        in_place: bool = True,
        gradient: bool = True,
        no_gradient: Sequence[str] = (),
        loss: int | None = None,
        distribution: Any = None,
        tolerance: float = 1e-5,
        **inputs: MakerOrList,
    ) -> None:
        self.type, self.inputs, self.args = type, inputs, dict(args or {})
        self.title, self.sizes, self.bad = title, dict(sizes or {}), tuple(bad)
        self.mismatch = dict(mismatch or {})
        self.in_place, self.gradient = in_place, gradient
        self.no_gradient, self.loss = tuple(no_gradient), loss
        self.distribution, self.tolerance = distribution, tolerance
        names = ops.find(type).outputs
        count = names.least if outputs is None else outputs
        self.outputs = tuple(f"out_{names.name(index)}_{index}" for index in range(count))

    def __repr__(self) -> str:
        return f"{self.type}-{self.title}" if self.title else self.type

    def draws(self) -> Iterator[list[tuple[str, str, Array]]]:
        """Drawn inputs: (declared name, blob, array) each.  Few, or many with full effort; every
        size of every dimension is met."""
        pools = self._pools()
        longest = max([len(pool) for pool in pools.values()], default=1)
        shapes = _SHAPES if self._uses_any_shape() else ((),)
        typed = 10 if self._uses_any_shape() else 1
        count = max(longest, len(shapes), typed) * (8 if full_effort() else 1)
        for number in range(count):
            rng = np.random.default_rng([zlib.crc32(repr(self).encode()), number])
            # Dimensions turn at different speeds, so that their sizes meet in different pairs.
            sizes = {
                name: pool[(number * (1 + place) + place * (number // len(pool))) % len(pool)]
                if number >= longest
                else pool[(number + place) % len(pool)]
                for place, (name, pool) in enumerate(pools.items())
            }
            yield self.make(Draw(sizes, shapes[number % len(shapes)], rng, number))

    def small(self) -> list[tuple[str, str, Array]]:
        """Inputs with few elements and none empty, for numeric gradients and bad inputs."""
        sizes = {}
        # All different, so that a mix-up of dimensions is seen.
        turn = itertools.count(2)
        for name, pool in self._pools().items():
            sizes[name] = next(turn) if name not in self.sizes else next(filter(None, pool))
        rng = np.random.default_rng(zlib.crc32(repr(self).encode()))
        return self.make(Draw(sizes, (2, 3), rng, 0))

    def make(self, draw: Draw) -> list[tuple[str, str, Array]]:
        """(declared name, blob, array) of every input."""
        blobs = []
        for name, makers in self.inputs.items():
            if isinstance(makers, list):
                blobs += [(name, f"{name}_{index}", maker) for index, maker in enumerate(makers)]
            else:
                blobs.append((name, name, makers))
        for late in (False, True):
            for _, blob, maker in blobs:
                if maker.late == late:
                    draw.made[blob] = maker(draw)
        return [(name, blob, draw.made[blob]) for name, blob, _ in blobs]

    def _makers(self) -> Iterator[Maker]:
        for makers in self.inputs.values():
            yield from makers if isinstance(makers, list) else [makers]

    def _uses_any_shape(self) -> bool:
        return any(any_shape in maker.dims for maker in self._makers())

    def _pools(self) -> dict[str, Sequence[int]]:
        pools: dict[str, Sequence[int]] = {}
        for maker in self._makers():
            for dim in maker.dims:
                if isinstance(dim, str) and dim != any_shape and dim not in pools:
                    default = (*TAILS, 0) if dim.startswith("N") else TAILS
                    pools[dim] = self.sizes.get(dim, default)
        return pools
