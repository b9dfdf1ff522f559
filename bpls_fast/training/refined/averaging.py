"""What sweeps over chunks remember of earlier ones: the running mean of weights, and sums of rows that fade.

A fit over chunks returns the mean in place of the last weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bpls_fast.training.data import Weights

__all__ = ["LEAST_KEPT", "DecayedSum", "averaged", "kept_share"]

LEAST_KEPT, WINDOW = 0.8, 0.25
"""The least share of the mean that a sweep keeps, and the share of all sweeps that the mean reaches back over."""


def kept_share(sweeps: int) -> float:
    """Return the share of the mean that the latest of so many sweeps over chunks keeps."""
    return max(LEAST_KEPT, 1 - 1 / (WINDOW * sweeps))


def averaged(mean: Weights, latest: Weights, kept: float) -> Weights:
    """Return a mean of weights that keeps a share of the one before."""
    if not kept:
        return latest
    pairs = zip(mean, latest, strict=True)
    return [kept * earlier + (1 - kept) * later for earlier, later in pairs]


class DecayedSum:
    """A sum over rows in which earlier terms count less."""

    def __init__(self) -> None:
        self.updates = 0
        self.total: NDArray[np.float64] = np.zeros(())
        self.weight = 0.0  # of the rows in the sum

    def add(self, kept: float, term: NDArray[np.float64], weight: float) -> None:
        """Add the term of new rows with a weight, after keeping a share of the sum."""
        self.total = kept * self.total + term
        self.weight = kept * self.weight + weight
        self.updates += 1
