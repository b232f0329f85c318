"""Comparing drawn numbers with the distribution they should come from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from caffe2.ops.declaration import Array

# A right generator fails a check about once in 10^8 times; seeds are fixed besides.
_SIGMAS = 5.7
_KOLMOGOROV = math.sqrt(-math.log(0.5e-8) / 2)


class Distribution:
    """A distribution given by its probability of values <= x."""

    def at_most(self, values: Array) -> Array:
        raise NotImplementedError

    def below(self, values: Array) -> Array:
        """Probability of values < x."""
        return self.at_most(values)

    def difference(self, sample: Array) -> str | None:
        """What tells the sample from the distribution, or None: Kolmogorov's statistic for the
        distribution, the correlation of neighbours for independence."""
        flat = sample.reshape(-1).astype(np.float64)
        count = flat.size
        if not np.isfinite(flat).all():
            return "some values are not finite"
        values, times = np.unique(flat, return_counts=True)
        reached = np.cumsum(times) / count
        gap = max(
            float(np.abs(reached - self.at_most(values)).max()),
            float(np.abs(reached - times / count - self.below(values)).max()),
        )
        if gap > _KOLMOGOROV / math.sqrt(count):
            return f"its cumulated share is off by {gap:.4f} somewhere ({count} values)"
        centred = flat - flat.mean()
        spread = float(centred @ centred)
        if spread:
            correlation = float(centred[1:] @ centred[:-1]) / spread
            if abs(correlation) > _SIGMAS / math.sqrt(count):
                return f"neighbours are correlated by {correlation:.4f}"
        return None


@dataclass(frozen=True)
class Uniform(Distribution):
    """Uniform in [low, high]."""

    low: float
    high: float

    def at_most(self, values: Array) -> Array:
        return np.clip((values - self.low) / (self.high - self.low), 0, 1)


@dataclass(frozen=True)
class Normal(Distribution):
    """Normal with this mean and standard deviation."""

    mean: float
    std: float

    def at_most(self, values: Array) -> Array:
        scaled = (values - self.mean) / (self.std * math.sqrt(2))
        return np.array([0.5 * math.erfc(-x) for x in scaled])


@dataclass(frozen=True)
class Integers(Distribution):
    """Each integer from low to high with the same probability."""

    low: int
    high: int

    def at_most(self, values: Array) -> Array:
        return np.clip((np.floor(values) - self.low + 1) / (self.high - self.low + 1), 0, 1)

    def below(self, values: Array) -> Array:
        return self.at_most(np.ceil(values) - 1)
