"""Where a fit starts: a random network for columns in any units, or a network that was trained before.

The random first layer is drawn for standardized columns, and the standardization is folded into its weights: X is not
copied, and prediction costs nothing more. Rows of uint8 are images and not standardized;
the estimators pass a table of bytes as floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.network import Network
from bpls_fast.training.data import Array
from bpls_fast.training.moments import ROUNDING, moments
from bpls_fast.training.solvers import offset_limit

__all__ = ["Start", "fold_offset", "random_start", "shifted", "trained_start"]


class Start(NamedTuple):
    """A network, the rows to train it on, and the offset that was subtracted from their columns, usually 0."""

    net: Network
    X: Array
    offset: NDArray[np.float64]
    seed: int
    is_trained: bool = False
    others: tuple[Network, ...] = ()  # the other members of a committee

    @property
    def standardize(self) -> bool:
        """Whether the first layer is solved as if the columns were standardized."""
        return bool(self.X.dtype != np.uint8)


def random_start(
    nets: Sequence[Network], X: Array, sample_weight: Array | None, *, spread: float, seed: int
) -> Start:
    """Scale random networks to the columns of X.

    Parameters
    ----------
    nets : sequence of Network
        A network, or the members of a committee. Their weights are uniform between -1 and 1; they are changed in place.
    X : (d, inputs) array of uint8, float32 or float64
    sample_weight : (d,) array, optional
    spread : float
        The standard deviation of the first pre-activations.
    seed : int
        For what the fit draws later.
    """
    offset = np.zeros(X.shape[1])
    if X.dtype != np.uint8:
        mean, deviation = moments(X, sample_weight)
        varies = deviation > ROUNDING * np.abs(mean)
        largest = offset_limit(X.dtype, sample_weight is not None)
        offset = np.where(varies & (np.abs(mean) > largest * deviation), mean, 0.0)
    for net in nets:
        first, *_ = weights = net.weights
        for W in weights:
            W *= spread * np.sqrt(3 / len(W))
        if X.dtype != np.uint8:
            first[:-1] /= np.where(varies, deviation, np.inf)[:, np.newaxis]
            first[-1] -= (mean - offset) @ first[:-1]
    return Start(nets[0], shifted(X, offset), offset, seed, others=tuple(nets[1:]))


def trained_start(net: Network, X: Array, *, seed: int) -> Start:
    """Return a start that continues with a copy of a trained network, on rows inside its limits."""
    copy = net.with_weights(net.weights)
    copy.input_limits = None
    return Start(copy, X, np.zeros(X.shape[1]), seed, is_trained=True)


def shifted(X: Array, offset: NDArray[np.float64]) -> Array:
    """Return X less the offset of each column in the dtype of X, or X itself where every offset is 0."""
    if not offset.any():
        return X
    return np.subtract(X, offset, out=np.empty_like(X), casting="same_kind")


def fold_offset(net: Network, offset: NDArray[np.float64]) -> None:
    """Change a network that was trained on rows less an offset so that it takes the rows themselves."""
    if not offset.any():
        return
    first, *others = net.weights
    first = first.copy()
    first[-1] -= offset @ first[:-1]
    net.weights = [first, *others]
