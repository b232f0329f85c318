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
    """A distribution, given by its probability of values <= x and its moments."""

    def at_most(self, values: Array) -> Array:
        raise NotImplementedError

    def below(self, values: Array) -> Array:
        """Probability of values < x."""
        return self.at_most(values)

    def moments(self) -> tuple[float, float, float]:
        """Mean, variance and kurtosis (3 for a normal distribution)."""
        raise NotImplementedError

    def difference(self, sample: Array) -> str | None:
        """What tells the sample from the distribution, or None: mean, variance, Kolmogorov's
        statistic and, for independence, the correlation of neighbours."""
        flat = sample.reshape(-1).astype(np.float64)
        count = flat.size
        if not np.isfinite(flat).all():
            return "some values are not finite"
        mean, variance, kurtosis = self.moments()
        off = float(flat.mean()) - mean
        if abs(off) > _SIGMAS * math.sqrt(variance / count):
            return f"its mean is off by {off:.4g} ({count} values)"
        ratio = float(((flat - mean) ** 2).mean()) / variance
        if abs(ratio - 1) > _SIGMAS * math.sqrt((kurtosis - 1) / count):
            return f"its variance is {ratio:.4g} times what is right ({count} values)"
        values, times = np.unique(flat, return_counts=True)
        reached = np.cumsum(times) / count
        gap = max(
            float(np.abs(reached - self.at_most(values)).max()),
            float(np.abs(reached - times / count - self.below(values)).max()),
        )
        if gap > _KOLMOGOROV / math.sqrt(count):
            return f"its cumulated share is off by {gap:.4f} somewhere ({count} values)"
        centred = (flat - mean) / math.sqrt(variance)
        correlation = float(centred[1:] @ centred[:-1]) / count
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

    def moments(self) -> tuple[float, float, float]:
        return (self.low + self.high) / 2, (self.high - self.low) ** 2 / 12, 1.8


@dataclass(frozen=True)
class Normal(Distribution):
    """Normal with this mean and standard deviation."""

    mean: float
    std: float

    def at_most(self, values: Array) -> Array:
        scaled = (values - self.mean) / (self.std * math.sqrt(2))
        return np.array([0.5 * math.erfc(-x) for x in scaled])

    def moments(self) -> tuple[float, float, float]:
        return self.mean, self.std**2, 3.0


@dataclass(frozen=True)
class Integers(Distribution):
    """Each integer from low to high with the same probability."""

    low: int
    high: int

    def at_most(self, values: Array) -> Array:
        return np.clip((np.floor(values) - self.low + 1) / (self.high - self.low + 1), 0, 1)

    def below(self, values: Array) -> Array:
        return self.at_most(np.ceil(values) - 1)

    def moments(self) -> tuple[float, float, float]:
        centred = np.arange(self.low, self.high + 1) - (self.low + self.high) / 2
        variance = float((centred**2).mean())
        return (self.low + self.high) / 2, variance, float((centred**4).mean()) / variance**2


@dataclass(frozen=True)
class Share(Distribution):
    """`value` with this probability, otherwise 0 (value > 0)."""

    value: float
    probability: float

    def at_most(self, values: Array) -> Array:
        return np.where(values < 0, 0, np.where(values < self.value, 1 - self.probability, 1))

    def below(self, values: Array) -> Array:
        return np.where(values <= 0, 0, np.where(values <= self.value, 1 - self.probability, 1))

    def moments(self) -> tuple[float, float, float]:
        p, q = self.probability, 1 - self.probability
        return p * self.value, p * q * self.value**2, (1 - 3 * p * q) / (p * q)
