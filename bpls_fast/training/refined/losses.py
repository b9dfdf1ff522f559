"""The squared loss of refined sweeps: its output layer is always solved exactly for the current features.

N are the values of the last hidden layer, T the targets of the outputs; the ridge is relative to the mean of NᵀN's
diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import gram, solve
from bpls_fast.kernels.backend import arrays_to_numpy
from bpls_fast.network import Network
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Array, Batch
from bpls_fast.training.solvers import (
    column_standardization,
    inverse_errors,
    with_growing_ridge,
)

__all__ = ["CHUNK_RIDGE_SHARE", "LEAST_OUTPUT_EPS", "Output", "SquaredLoss"]

LEAST_OUTPUT_EPS = 1e-6
"""The ridge where cross-validation is not used: as small as rounding allows."""

OUTPUT_EPS = np.logspace(1, -6, 8)
"""The ridges that cross-validation chooses from, the largest first."""

SIGNAL = 0.9
"""The share of a constant's error that features must fall below to be informative, so that cross-validation is used."""

UNINFORMATIVE_EPS = 1e-4
"""The ridge for features that are not informative yet: small, so that they can be learnt."""

NEARLY_BEST = 1.05
"""Cross-validation takes the largest ridge with an error of at most NEARLY_BEST times the smallest error."""

CHUNK_RIDGE_SHARE = 0.1
"""The ridge of sweeps over chunks, as a share of the chosen one: learnt features need less than those of the start."""


class Output(NamedTuple):
    """The best output layer W for the values N of the last hidden layer.

    `G` is NᵀN with the ridge on its diagonal, `C` is NᵀT, `loss` the least value of |T - N W|² + ridge·|W|².
    """

    W: NDArray[np.float64]
    G: NDArray[np.float64]
    C: NDArray[np.float64]
    ridge: float
    loss: float


class SquaredLoss:
    """The output layer of a network under the squared loss.

    Parameters
    ----------
    net : Network
    context : FitContext
    eps : float
        The ridge of the output layer.
    standardize : bool
        Whether the ridge of an output layer on the inputs is that of standardized columns.
    """

    def __init__(self, net: Network, context: FitContext, eps: float, standardize: bool) -> None:
        self.net, self.context = net, context
        self.eps, self.standardize = eps, standardize

    def solve(self, N: Array, batch: Batch) -> Output:
        """Return the best output layer for the values N of the last hidden layer."""
        with self.context.phase("gram"):
            sums = gram(N, batch.T, bias=self.net.bias, sample_weight=batch.sample_weight)
            G, C = arrays_to_numpy(sums)
        return self.solve_sums(G, C, batch)

    def solve_sums(self, G: Array, C: Array, batch: Batch) -> Output:
        """Return the best output layer from G = NᵀN, to which the ridge is added in place, and C = NᵀT."""
        with self.context.phase("solve"):
            diagonal = G.reshape(-1)[:: len(G) + 1]
            mean, ridge = float(diagonal.mean()), 0.0
            if not mean > 0:
                diagonal += 1.0
                return Output(np.zeros_like(C), G, C, 1.0, batch.squares())

            def solved(eps: float) -> Array:
                nonlocal ridge
                diagonal[:] += eps * mean - ridge
                ridge = eps * mean
                return solve(G, C, eps=0)

            W = with_growing_ridge(solved, self.eps)
            explained = float(np.einsum("ij,ij->", C, W))
            return Output(W, G, C, ridge, max(batch.squares() - explained, 0.0))

    def solve_on_inputs(self, G: Array, C: Array, batch: Batch) -> Output:
        """Return the best output layer of a network without hidden layers, from XᵀX and XᵀT."""
        weighted = batch.sample_weight is not None
        T = column_standardization(G, self.net.bias, batch.X.dtype, weighted, self.standardize)
        output = self.solve_sums(T.apply_both_sides(G), T.apply(C), batch)
        return output._replace(W=T.undo(output.W))

    def choose_ridge(
        self, output: Output, batch: Batch, repetitions: float, share: float
    ) -> Output | None:
        """Choose the ridge by generalized cross-validation on the features of `output`, and return its output layer.

        Parameters
        ----------
        output : Output
            Its G is changed in place.
        batch : Batch
        repetitions : float
            The number of rows, weights counting as repetitions.
        share : float
            The ridge to take, as a share of the chosen one.

        Returns
        -------
        Output or None
            None where all features are 0.
        """
        G, C, n = output.G, output.C, len(output.G)
        G.reshape(-1)[:: n + 1] -= output.ridge
        with self.context.phase("solve"):
            if float(G.diagonal().mean()) == 0:
                return None
            rounding = n * float(np.finfo(batch.T.dtype).eps)
            grid, squares = OUTPUT_EPS[rounding <= OUTPUT_EPS], batch.squares()
            errors = inverse_errors(G, C, grid, repetitions, squares, batch.T.dtype)
            constant = squares  # what a constant leaves of the targets
            if self.net.bias:
                constant -= float(np.square(C[-1]).sum()) / G[-1, -1]
            chosen = UNINFORMATIVE_EPS
            if errors.min() < SIGNAL * constant / max(repetitions - 1, 1) ** 2:
                chosen = float(grid[np.argmax(errors <= NEARLY_BEST * errors.min())])
            self.eps = max(share * chosen, rounding)
        return self.solve_sums(G, C, batch)
