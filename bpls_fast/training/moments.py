"""Means and standard deviations: of the columns of X, without a copy of it, and of regression outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.network import Network
from bpls_fast.training.data import Array

__all__ = ["OutputScale", "moments"]

BLOCK_ROWS = 512
"""Rows that are converted to float64 at a time."""

ROUNDING = 1e-12
"""A standard deviation below this share of the mean is rounding: the column is constant."""


def moments(
    X: Array, sample_weight: Array | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means and the standard deviations of the columns in float64."""
    weights = np.ones(len(X)) if sample_weight is None else sample_weight

    def blocks() -> Iterator[tuple[Array, Array]]:
        for begin in range(0, len(X), BLOCK_ROWS):
            part = slice(begin, begin + BLOCK_ROWS)
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
        """Return the scale of the columns of Y."""
        mean, deviation = moments(Y, sample_weight)
        deviation[deviation <= ROUNDING * np.abs(mean)] = 1.0
        return cls(mean, deviation)

    def standardize(self, Y: Array) -> NDArray[np.float64]:
        """Return outputs with mean 0 and standard deviation 1."""
        standardized: NDArray[np.float64] = (Y - self.mean) / self.deviation
        return standardized

    def fold_into(self, net: Network) -> None:
        """Change a network that was trained on standardized outputs so that its outputs have the units of Y."""
        *hidden, output = net.weights
        output = output * self.deviation
        output[-1] += self.mean
        net.weights = [*hidden, output]
