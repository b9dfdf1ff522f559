"""The directions of the inputs that a fit has time to learn: rows get few components in place of many columns.

With a large ridge ε a step learns the share λ / (λ + ε) of what a direction with eigenvalue λ of XᵀX has to tell. Those
with λ < ε / sweeps would not be learnt in a whole fit; what they add to the pre-activations is the noise of the start.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast import _core
from bpls_fast.kernels import cross, linear, solve
from bpls_fast.network import Network
from bpls_fast.samples import float_of

__all__ = ["Components", "leading_components", "variance"]

Array = NDArray[Any]

PROBES = 64
"""Directions are counted with so many random vectors at least."""

POWERS = 4
"""The filter that passes the directions that count is applied so many times."""

ROUND = 16
"""Components are a multiple of so many: vectors of the kernels are full."""

LARGEST_INTEGER = 127
"""Of bytes, entries of M are multiples of a number for each column, up to so many times: there is a kernel for that."""

MOST_COLUMNS = 65_536
"""It takes so many inputs at most."""


class Components(NamedTuple):
    """A map M from inputs to components, both with the ones of a bias: weights V of these are weights M V of those.

    For bytes M is, but for the ones, `units` times `integers`, column by column.
    """

    M: NDArray[np.float64]
    bias: bool
    integers: NDArray[np.int8] | None = None
    units: NDArray[np.float64] | None = None

    def rows(self, X: Array, scale: float) -> Array:
        """Give the components of rows whose inputs are scale·X."""
        inputs, count = (size - self.bias for size in self.M.shape)
        in_place = isinstance(X, np.ndarray) and X.strides[1] == 1 and inputs <= MOST_COLUMNS
        if self.integers is not None and self.units is not None and in_place:
            factors = (scale * self.units).astype(np.float32)
            return _core.linear_bytes(X, self.integers, factors, None)
        return linear(X, (scale * self.M[:inputs, :count]).astype(float_of(X)))

    def between(self, G: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give MᵀGM, the Gram matrix of the components."""
        return cross(self.M, linear(G, self.M))

    def network(self, net: Network, G: NDArray[np.float64], small: NDArray[np.float64]) -> Network:
        """Give the network on components whose first layer is closest to that of `net`.

        It is over inputs with XᵀX = G, whose components have the Gram matrix `small`.
        """
        first, *others = net.weights
        inner = copy.copy(net)
        inner.layer_sizes = (self.M.shape[1] - self.bias, *net.layer_sizes[1:])
        inner.input_scale = 1.0
        # The scales of inputs and ones may be far apart.
        scale = 1 / np.sqrt(np.where(small.diagonal() > 0, small.diagonal(), 1.0))[:, np.newaxis]
        right = scale * cross(self.M, linear(G, first))
        closest = scale * solve(small * scale * scale.T, right, eps=1e-9)
        inner.weights = [closest, *others]
        return inner

    def whole(self, inner: Network, net: Network) -> Network:
        """Give the network like `net` that does to inputs what `inner` does to their components."""
        first, *others = inner.weights
        return net.with_weights([linear(self.M, first), *others])


def leading_components(
    G: NDArray[np.float64],
    bias: bool,
    ridge: float,
    sweeps: int,
    most: int,
    random: np.random.Generator,
    of_bytes: bool,
) -> Components | None:
    """Give the leading directions of inputs with XᵀX = G, bytes or not, or None where more than `most` count.

    A direction with eigenvalue λ counts λ / (λ + μ), where μ = ridge / sweeps. They are found by a filter,
    (XᵀX + μI)⁻¹XᵀX, of random vectors: it stops small λ and passes all large ones alike, so that the basis need not be
    orthogonal to be well conditioned.
    """
    n, mu = len(G) - bias, ridge / sweeps
    if not 0 < mu < np.inf or most < ROUND:
        return None

    def filtered(vectors: Array) -> Array:
        return vectors - mu * solve(G[:n, :n], vectors, eps=mu, relative=False)

    vectors = random.choice([-1.0, 1.0], size=(n, max(PROBES, most)))
    try:
        basis = filtered(vectors)
        freedom = float(np.einsum("ij,ij->", vectors, basis)) / vectors.shape[1]
        count = max(ROUND, ROUND * -(-int(np.ceil(freedom)) // ROUND))
        if count > most:
            return None
        basis = basis[:, :count]
        for _ in range(POWERS - 1):
            basis = filtered(basis)
    except np.linalg.LinAlgError:
        return None  # a ridge that is too small for its rounding is grown without components
    sizes = np.sqrt(np.einsum("ij,ij->j", basis, basis))
    basis /= np.where(sizes > 0, sizes, 1.0)
    integers = units = None
    if of_bytes:
        largest = np.abs(basis).max(axis=0)
        units = np.where(largest > 0, largest, 1.0) / LARGEST_INTEGER
        integers = np.rint(basis / units).astype(np.int8)
        basis = integers * units
    M = np.zeros((n + bias, count + bias))
    M[:n, :count] = basis
    M[n:, count:] = 1.0
    return Components(M, bias, integers, units)


def variance(G: NDArray[np.float64], W: NDArray[np.float64], bias: bool) -> float:
    """Give the sum of the variances of X W, from XᵀX with or without a column of ones."""
    if bias:
        G = G - np.outer(G[-1], G[-1]) / G[-1, -1]
    return float(np.einsum("ij,ij->", W, linear(G, W)))
