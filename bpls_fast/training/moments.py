"""Means and standard deviations: of the columns of X, without a copy of it, and of regression outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.network import Network
from bpls_fast.training.data import Array

__all__ = ["OutputScale", "moments"]

BLOCK_ROWS, BLOCK_NUMBERS = 512, 1 << 17
"""Rows, and numbers, that are converted to float64 at a time."""

ROUNDING = 1e-12
"""A standard deviation below this share of the mean is rounding: the column is constant."""


def moments(
    X: Array, sample_weight: Array | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means and the standard deviations of the columns in float64."""
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    rows = max(1, min(BLOCK_ROWS, BLOCK_NUMBERS // X.shape[1]))

    def blocks() -> Iterator[tuple[Array, Array]]:
        for begin in range(0, len(X), rows):
            part = slice(begin, begin + rows)
            yield weights[part], X[part].astype(np.float64)

    # einsum, not @: the threads that BLAS starts for a product keep spinning and slow down our own.
    total = weights.sum()
    mean = sum(np.einsum("i,ij->j", w, x) for w, x in blocks()) / total
    variance = sum(np.einsum("i,ij->j", w, np.square(x - mean)) for w, x in blocks()) / total
    return mean, np.sqrt(variance)


class OutputScale(NamedTuple):
    """The units of regression outputs: their means and standard deviations, 1 for outputs that do not vary."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, Y: Array, sample_weight: Array | None) -> OutputScale:
        """Return the scale of the columns of Y, in float64; their squares may be beyond its range."""
        Y = Y.astype(np.float64)
        _, exponents = np.frexp(np.abs(Y).max(axis=0))
        mean, deviation = moments(np.ldexp(Y, -exponents), sample_weight)
        varies = deviation > ROUNDING * np.abs(mean)
        deviation = np.where(varies, np.ldexp(deviation, exponents), 1.0)
        return cls(np.ldexp(mean, exponents), deviation)

    def standardize(self, Y: Array) -> NDArray[np.float64]:
        """Return outputs with mean 0 and standard deviation 1."""
        standardized: NDArray[np.float64] = (Y - self.mean) / self.deviation
        return standardized

    def restore(self, outputs: Array) -> NDArray[np.float64]:
        """Return standardized outputs in the units of Y, in float64."""
        restored: NDArray[np.float64] = outputs.astype(np.float64) * self.deviation + self.mean
        return restored

    def folded(self, net: Network) -> Network:
        """Return a network that was trained on standardized outputs with outputs in the units of Y."""
        *hidden, output = net.weights
        output = output * self.deviation
        output[-1] += self.mean
        return net.with_weights([*hidden, output])
