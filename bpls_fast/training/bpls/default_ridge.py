"""The ridge of Algorithm 1 where none is given: generalized cross-validation of the output layer of the start."""

from __future__ import annotations

import numpy as np

from bpls_fast.kernels import gram
from bpls_fast.training.bpls.algorithm1 import REFINEMENTS
from bpls_fast.training.data import Array, float_of
from bpls_fast.training.start import Start

__all__ = ["EPS_GRID", "cross_validated_eps"]

EPS_GRID = np.logspace(1, -8, 19)
"""The ridges to choose from; the first of equals is taken."""


def cross_validated_eps(start: Start, Y: Array, weights: Array | None) -> float:
    """Return the ridge with the smallest generalized cross-validation error of the output layer of the start.

    Along an eigenvector of the Gram matrix with eigenvalue s, a solve with ridge λ keeps the share
    f = 1 - (λ / (s + λ))^(1 + refinements) of the least-squares fit; the error is |residual|² / (rows - Σf)². Weights
    count as repetitions, but the rows never as fewer than they are.
    """
    smallest = _smallest_eps(start, weights)
    if len(start.net.weights) == 1:
        return max(1e-6, smallest)
    grid = EPS_GRID[smallest <= EPS_GRID]
    A = start.net.layer_inputs(start.X)[-1]
    G, C = gram(A, Y, bias=True, sample_weight=weights)
    counts = np.ones(len(Y)) if weights is None else weights
    s, vectors = np.linalg.eigh(G)
    s = np.maximum(s, 1e-15 * s[-1])
    ridge = grid[:, np.newaxis] * s.mean()
    kept = 1 - (ridge / (s + ridge)) ** (1 + REFINEMENTS)
    total = (counts @ np.square(Y)).sum()
    explained = (2 * kept - kept**2) @ (np.square(vectors.T @ C).sum(axis=1) / s)
    residual = np.maximum(total - explained, 100 * np.finfo(A.dtype).eps * total)
    freedom = max(counts.sum(), np.count_nonzero(counts)) - kept.sum(axis=1)
    error = np.where(freedom >= 1, residual / np.square(freedom), np.inf)
    return float(grid[np.argmin(error)])


def _smallest_eps(start: Start, weights: Array | None) -> float:
    """Return a ridge above the rounding of every layer's Gram matrix: n machine epsilons of its mean diagonal at most.

    Sums of bytes are exact.
    """
    exact = start.X.dtype == np.uint8 and weights is None
    widest = max((len(W) for W in start.net.weights[exact:]), default=0)
    return widest * float(np.finfo(float_of(start.X)).eps)
