"""The ridge of Algorithm 1 where none is given: generalized cross-validation of the output layer of the start."""

from __future__ import annotations

import numpy as np

from bpls_fast.kernels import gram
from bpls_fast.training.bpls.algorithm1 import TIKHONOV_STEPS
from bpls_fast.training.data import Array, float_of
from bpls_fast.training.initial_network import Start
from bpls_fast.training.solvers import eigenvalue_errors

__all__ = ["EPS_GRID", "cross_validated_eps"]

LINEAR_EPS = 1e-6
"""The ridge of a network without hidden layers."""

EPS_GRID = np.logspace(1, -8, 19)
"""The ridges to choose from; the first of equals is taken."""


def cross_validated_eps(start: Start, Y: Array, sample_weight: Array | None) -> float:
    """Return the ridge that generalized cross-validation prefers for the output layer on the features of the start.

    Weights count as repetitions, but never as fewer rows than there are.
    """
    smallest = _smallest_eps(start, sample_weight)
    if len(start.net.weights) == 1:
        return max(LINEAR_EPS, smallest)
    grid = EPS_GRID[smallest <= EPS_GRID]
    A = start.net.layer_inputs(start.X)[-1]
    G, C = gram(A, Y, bias=True, sample_weight=sample_weight)
    counts = np.ones(len(Y)) if sample_weight is None else sample_weight
    rows = max(counts.sum(), np.count_nonzero(counts))
    squares = (counts @ np.square(Y)).sum()
    errors = eigenvalue_errors(G, C, grid, rows, squares, A.dtype, 1 + TIKHONOV_STEPS)
    return float(grid[np.argmin(errors)])


def _smallest_eps(start: Start, sample_weight: Array | None) -> float:
    """Return a ridge above the rounding of every layer's Gram matrix: n machine epsilons of its mean diagonal at most.

    Sums of bytes are exact.
    """
    exact = start.X.dtype == np.uint8 and sample_weight is None
    widest = max((len(W) for W in start.net.weights[exact:]), default=0)
    return widest * float(np.finfo(float_of(start.X)).eps)
