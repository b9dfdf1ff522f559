"""Directions of the inputs: normalized, beside others, those that stand out from noise; and their rows in one array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import cross, gram, linear, solve
from bpls_fast.kernels.backend import backend_of, empty
from bpls_fast.training.data import Array

__all__ = ["normalized", "orthogonal_to", "outstanding", "side_by_side"]

LEAST_SIZE = 1e-3
"""What is left of a direction beside others, as a share of it, that is not rounding."""


def normalized(B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return columns of size 1, or 0."""
    sizes = np.sqrt(np.einsum("ij,ij->j", B, B))
    return B / np.where(sizes > 0, sizes, 1.0)


def orthogonal_to(others: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what is left of columns of size 1 beside others, normalized; 0 where that is rounding."""
    left = B - linear(others, solve(gram(others), cross(others, B), eps=1e-9))
    sizes = np.sqrt(np.einsum("ij,ij->j", left, left))
    return np.where(sizes > LEAST_SIZE, left / np.where(sizes > 0, sizes, 1.0), 0.0)


def outstanding(
    metric: NDArray[np.float64],
    small: NDArray[np.float64],
    total: float,
    rows: int,
    inputs: int,
) -> NDArray[np.float64]:
    """Return combinations of directions, orthonormal, whose eigenvalues are above those of independent columns.

    Parameters
    ----------
    metric, small : array
        BᵀB and BᵀAᵀAB for directions B.
    total : float
        The sum of all eigenvalues of AᵀA.
    rows, inputs : int
        The shape of A.
    """
    sizes, axes = np.linalg.eigh(metric)
    kept = sizes > LEAST_SIZE * sizes[-1]
    axes = axes[:, kept] / np.sqrt(sizes[kept])
    eigenvalues, turn = np.linalg.eigh(cross(axes, linear(small, axes)))
    eigenvalues, turn = eigenvalues[::-1], turn[:, ::-1]
    # The largest eigenvalue of independent columns, by the law of Marchenko and Pastur, if they were what is left.
    edge = (np.sqrt(rows) + np.sqrt(inputs)) ** 2 / (rows * inputs)
    left = total - np.cumsum(eigenvalues)
    count = int(np.argmin([*(eigenvalues > edge * left), False]))
    return linear(axes, np.ascontiguousarray(turn[:, :count]))


def side_by_side(parts: list[Array]) -> Array:
    """Return the columns of all parts in one array, where the first of them is."""
    first = parts[0]
    whole: Array = empty(
        (len(first), sum(p.shape[1] for p in parts)), first.dtype, backend_of(first)
    )
    column = 0
    for part in parts:
        whole[:, column : column + part.shape[1]] = part
        column += part.shape[1]
    return whole
