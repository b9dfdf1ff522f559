"""Solvers that every method of training shares, each once.

A ridge that grows where it is too small for a factorization, the standardization of columns, the pseudo-inverse, and
the choice of a ridge by generalized cross-validation. A ridge is relative to the mean of a Gram matrix's diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import gram, solve, solve_batched
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Array

__all__ = [
    "Standardization",
    "column_standardization",
    "cross_validation_errors",
    "eigenvalue_errors",
    "inverse_errors",
    "offset_limit",
    "pseudo_inverse",
    "solve_growing",
    "standardization",
    "with_growing_ridge",
]

GROWTH, LEAST_GROWN_EPS, LARGEST_EPS = 10, 1e-12, 1e3
"""The factor by which a ridge grows, the smallest ridge that it grows to, and the one beyond which no data is left."""

LARGE_SYSTEM = 256
"""Unknowns from which on a fit on the GPU solves there; smaller systems are little work for many launches."""

LARGEST_OFFSET, LARGEST_FLOAT32_OFFSET = 1e4, 30.0
"""Distance of a column's mean from zero, in standard deviations, beyond which a Gram matrix hides its variance."""

PSEUDO_INVERSE_EPS = 1e-13
"""The ridge of a pseudo-inverse where W has full rank: hardly above rounding."""

LEAST_EIGENVALUE = 1e-15
"""Eigenvalues of a Gram matrix below this share of the largest are rounding."""

ROUNDING_FLOOR = 100
"""A residual counts as no less than this many machine epsilons of the squares it is the difference of."""


def with_growing_ridge(
    solve_with: Callable[[float], Array],
    eps: float,
    on_growth: Callable[[float, Exception], None] = lambda eps, reason: None,
) -> Array:
    """Return `solve_with(eps)`, with a ridge that grows until the factorization succeeds.

    `on_growth` receives every larger ridge and the error that made it necessary.
    """
    while True:
        try:
            return solve_with(eps)
        except np.linalg.LinAlgError as error:
            if eps >= LARGEST_EPS:
                raise
            eps = max(GROWTH * eps, LEAST_GROWN_EPS)
            on_growth(eps, error)


def solve_growing(
    G: Array, C: Array, context: FitContext, share: float = 1.0
) -> NDArray[np.float64]:
    """Solve (G + share·eps·I) W = C with the ridge of a fit, which grows where it is too small, and stays grown."""
    if not G.diagonal().any():
        return np.zeros_like(C)  # nothing enters the layer: the solution of least norm
    backend = context.backend if len(G) >= LARGE_SYSTEM else "cpu"
    return with_growing_ridge(
        lambda eps: solve(G, C, eps=share * eps, backend=backend), context.eps, context.grow_ridge
    )


class Standardization(NamedTuple):
    """The map T from data to standardized data: columns minus `center`, times `scale`.

    Both have an entry for the column of ones of a bias, 0 and 1: ones stay ones.
    """

    center: NDArray[np.float64]
    scale: NDArray[np.float64]

    def apply(self, C: Array) -> Array:
        """Return TᵀC, the cross product of the standardized data."""
        standardized: Array = (C - self.center[:, np.newaxis] * C[-1]) * self.scale[:, np.newaxis]
        return standardized

    def apply_both_sides(self, G: Array) -> Array:
        """Return TᵀGT, the Gram matrix of the standardized data."""
        return self.apply(self.apply(G).T)

    def undo(self, W: Array) -> Array:
        """Return T W: the weights that do to the data what W does to the standardized data."""
        W = W * self.scale[:, np.newaxis]
        W[-1] -= self.center @ W
        return W


def offset_limit(dtype: np.dtype[Any], weighted: bool) -> float:
    """Return how far means may be from zero, in standard deviations, for a Gram matrix to show the variances."""
    exact = dtype == np.float64 or (dtype == np.uint8 and not weighted)
    return LARGEST_OFFSET if exact else LARGEST_FLOAT32_OFFSET


def standardization(G: Array, bias: bool, largest_offset: float) -> Standardization:
    """Return the map that standardizes the data whose Gram matrix is G; without a bias it only scales.

    A column whose mean exceeds `largest_offset` standard deviations is constant but for rounding, and is left out.
    """
    squares = G.diagonal() / (G[-1, -1] if bias else len(G))
    center = G[-1] / G[-1, -1] if bias else np.zeros(len(G))
    if bias:
        center[-1] = 0.0
    variance = squares - np.square(center)
    varies = variance > squares / (1 + largest_offset**2)
    return Standardization(center, np.where(varies, variance, np.inf) ** -0.5)


def column_standardization(
    G: Array, bias: bool, dtype: np.dtype[Any], weighted: bool, standardize: bool
) -> Standardization:
    """Return the standardization of columns whose Gram matrix is G; the identity if `standardize` is False."""
    if not standardize or not G.diagonal().any():
        return Standardization(np.zeros(len(G)), np.ones(len(G)))
    return standardization(G, bias, offset_limit(dtype, weighted))


def pseudo_inverse(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return W⁺ from a solve with the Gram matrix of W's shorter side; a tiny ridge makes up for a missing rank."""
    size = float(np.abs(W).max(initial=0.0))
    if size < np.finfo(np.float64).tiny:
        return np.zeros_like(W.T)
    W = W / size  # its squares neither vanish nor overflow
    columns = W if W.shape[0] >= W.shape[1] else W.T
    G = gram(columns)
    inverse = with_growing_ridge(lambda eps: solve(G, columns.T, eps=eps), PSEUDO_INVERSE_EPS)
    return (inverse if columns is W else inverse.T) / size


def cross_validation_errors(
    residual: NDArray[np.float64],
    freedom: NDArray[np.float64],
    rows: float,
    squares: float,
    dtype: Any,
) -> NDArray[np.float64]:
    """Return the generalized cross-validation errors, residual / (rows - freedom)², of several ridges.

    Parameters
    ----------
    residual : array
        |T - N W|² for each ridge: the difference of |T|² and what N explains.
    freedom : array
        The degrees of freedom that each ridge leaves, Σ s / (s + λ) over the eigenvalues s of NᵀN.
    rows : float
        The number of rows, weights counting as repetitions.
    squares : float
        |T|².
    dtype : dtype
        The type of the features N: a residual below its rounding is rounding.
    """
    residual = np.maximum(residual, ROUNDING_FLOOR * np.finfo(dtype).eps * squares)
    remaining = rows - freedom
    return np.where(remaining >= 1, residual / np.square(remaining), np.inf)


def inverse_errors(
    G: Array, C: Array, grid: NDArray[np.float64], rows: float, squares: float, dtype: Any
) -> NDArray[np.float64]:
    """Return the cross-validation errors of the ridges `grid` in plain solves, from G = NᵀN and C = NᵀT.

    The degrees of freedom come from the traces of the inverses: all systems are solved in one batch.
    """
    n, ridge = len(G), grid * float(G.diagonal().mean())
    systems = np.broadcast_to(G, (len(grid), n, n)).copy()
    systems.reshape(len(grid), -1)[:, :: n + 1] += ridge[:, np.newaxis]
    sides = np.concatenate([C, np.eye(n)], axis=1)
    solved = solve_batched(systems, np.broadcast_to(sides, (len(grid), *sides.shape)), eps=0)
    W, inverses = solved[:, :, : C.shape[1]], solved[:, :, C.shape[1] :]
    residual = squares - np.einsum("kij,ij->k", W, C) - ridge * np.einsum("kij,kij->k", W, W)
    freedom = n - ridge * np.einsum("kii->k", inverses)
    return cross_validation_errors(residual, freedom, rows, squares, dtype)


def eigenvalue_errors(
    G: Array,
    C: Array,
    grid: NDArray[np.float64],
    rows: float,
    squares: float,
    dtype: Any,
    iterations: int,
) -> NDArray[np.float64]:
    """Return the cross-validation errors of the ridges `grid` in iterated Tikhonov solves, from G = NᵀN and C = NᵀT.

    Along an eigenvector with eigenvalue s, a solve with ridge λ keeps the share 1 - (λ / (s + λ))^iterations of the
    least-squares fit.
    """
    s, vectors = np.linalg.eigh(G)
    s = np.maximum(s, LEAST_EIGENVALUE * s[-1])
    ridge = grid[:, np.newaxis] * s.mean()
    kept = 1 - (ridge / (s + ridge)) ** iterations
    explained = (2 * kept - kept**2) @ (np.square(vectors.T @ C).sum(axis=1) / s)
    return cross_validation_errors(squares - explained, kept.sum(axis=1), rows, squares, dtype)
