"""Solvers that every method of training shares: a ridge that grows where it is too small, standardized columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import gram, solve
from bpls_fast.training.report import Recorder

Array = NDArray[Any]

LARGEST_EPS = (
    1e3  # relative to the mean of a Gram's diagonal: beyond it a ridge leaves nothing of the data
)


LARGE_SYSTEM = 256
"""Unknowns from which on a fit on the GPU solves there: fewer are little work for many launches. Not yet measured."""

LARGEST_OFFSET, LARGEST_FLOAT32_OFFSET = 1e4, 30.0
"""Standard deviations that the mean of a column may be from zero before a Gram matrix says little of its variance."""


def solve_growing(G: Array, C: Array, record: Recorder, share: float = 1.0) -> NDArray[np.float64]:
    """Solve (G + eps·I) W = C by a share of the ridge of a fit, which grows where it is too small, and stays grown."""
    if not G.diagonal().any():
        return np.zeros_like(C)  # nothing enters the layer: the solution of least norm
    backend = record.report.backend if len(G) >= LARGE_SYSTEM else "cpu"
    while True:
        eps = record.report.eps
        try:
            return solve(G, C, eps=share * eps, backend=backend)
        except np.linalg.LinAlgError as error:
            if eps >= LARGEST_EPS:
                raise
            record.grow_eps(max(10 * eps, 1e-12), error)


class Standardization(NamedTuple):
    """The map T from data to standardized data: the columns less `center`, times `scale`; ones stay ones.

    Both have an entry for the column of ones of a bias, 0 and 1.
    """

    center: NDArray[np.float64]
    scale: NDArray[np.float64]

    def onto(self, C: Array) -> Array:
        """Give TᵀC, the cross product of the standardized data."""
        standardized: Array = (C - self.center[:, np.newaxis] * C[-1]) * self.scale[:, np.newaxis]
        return standardized

    def between(self, G: Array) -> Array:
        """Give TᵀGT, the Gram matrix of the standardized data."""
        return self.onto(self.onto(G).T)

    def back(self, W: Array) -> Array:
        """Give T W: the weights that do to the data what W does to the standardized data."""
        W = W * self.scale[:, np.newaxis]
        W[-1] -= self.center @ W
        return W


def offset_limit(dtype: np.dtype[Any], weighted: bool) -> float:
    """Give how far means may be from zero, in standard deviations, for variances to show in a Gram of such data."""
    exact = dtype == np.float64 or (dtype == np.uint8 and not weighted)
    return LARGEST_OFFSET if exact else LARGEST_FLOAT32_OFFSET


def standardization(G: Array, bias: bool, largest_offset: float) -> Standardization:
    """Give the map that standardizes the data whose Gram matrix is G; without a bias it only scales.

    A column whose mean is more than `largest_offset` standard deviations is constant but for rounding, and left out.
    """
    squares = G.diagonal() / (G[-1, -1] if bias else len(G))
    center = G[-1] / G[-1, -1] if bias else np.zeros(len(G))
    if bias:
        center[-1] = 0.0
    variance = squares - np.square(center)
    varies = variance > squares / (1 + largest_offset**2)
    return Standardization(center, np.where(varies, variance, np.inf) ** -0.5)


def pseudo_inverse(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give W⁺ by a solve with the Gram of W's shorter side; a tiny ridge serves where a rank is not full."""
    size = float(np.abs(W).max(initial=0.0))
    if size < np.finfo(np.float64).tiny:
        return np.zeros_like(W.T)
    W = W / size  # its squares neither vanish nor overflow
    columns = W if W.shape[0] >= W.shape[1] else W.T
    eps = 1e-13
    while True:
        try:
            inverse = solve(gram(columns), columns.T, eps=eps)
        except np.linalg.LinAlgError:
            eps *= 10
        else:
            return (inverse if columns is W else inverse.T) / size
