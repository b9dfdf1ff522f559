"""The directions of the inputs that a fit has time to learn: rows get few components in place of many columns.

With a large ridge ε a step learns the share λ / (λ + ε) of what a direction with eigenvalue λ of XᵀX has to tell. Those
with λ < ε / sweeps would not be learnt in a whole fit; what they add to the pre-activations is the noise of the start.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import cross, gram, linear, linear_bytes, solve
from bpls_fast.network import Network
from bpls_fast.training.data import float_of

__all__ = ["Components", "leading_components", "variance"]

Array = NDArray[Any]

PROBES = 64
"""Directions are counted with so many random vectors."""

ROUND = 16
"""Components are a multiple of so many: vectors of the kernels are full."""

FLOAT32_SPAN, LARGEST_SPAN = 1e6, 1e12
"""Eigenvalues, in units of the least that counts, up to which float32 tells them from its rounding, and float64."""

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
            return linear_bytes(X, self.integers, factors)
        return linear(X, (scale * self.M[:inputs, :count]).astype(float_of(X)))

    def network(self, net: Network, G: NDArray[np.float64]) -> tuple[Network, NDArray[np.float64]]:
        """Give the network on components whose first layer is closest to that of `net`, and their Gram matrix, MᵀGM.

        It is closest over inputs with XᵀX = G.
        """
        first, *others = net.weights
        inner = copy.copy(net)
        inner.layer_sizes = (self.M.shape[1] - self.bias, *net.layer_sizes[1:])
        inner.input_scale = 1.0
        GM = linear(G, self.M)
        small = cross(self.M, GM)
        # The scales of inputs and ones may be far apart.
        scale = 1 / np.sqrt(np.where(small.diagonal() > 0, small.diagonal(), 1.0))[:, np.newaxis]
        closest = scale * solve(small * scale * scale.T, scale * cross(GM, first), eps=1e-9)
        inner.weights = [closest, *others]
        return inner, small

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
    dtype: Any,
) -> Components | None:
    """Give the leading directions of inputs of a type with XᵀX = G, or None where more than `most` count.

    A direction with eigenvalue λ counts λ / (λ + μ), where μ = ridge / sweeps. With G in units of μ they are found by a
    filter, G²V (VᵀG²V + nI)⁻¹, of random signs V: it stops small λ and passes all large ones alike, so that the basis
    need not be orthogonal to be well conditioned.
    """
    n, mu = len(G) - bias, ridge / sweeps
    if not 0 < mu < np.inf or most < ROUND:
        return None
    span = float(G.diagonal()[:n].sum()) / mu  # no eigenvalue is larger
    if not span < LARGEST_SPAN:
        return None
    G = G[:n, :n] / mu
    arithmetic = np.float64 if dtype == np.float64 or span > FLOAT32_SPAN else np.float32

    def signs(count: int) -> Array:
        return 2.0 * random.integers(0, 2, (n, count), dtype=np.int8) - 1

    try:
        probes = signs(PROBES)
        stopped = float(np.einsum("ij,ij->", probes, solve(G, probes, eps=1.0, relative=False)))
        freedom = n - stopped / PROBES  # the trace of (G + I)⁻¹G
        count = max(ROUND, ROUND * -(-int(np.ceil(freedom)) // ROUND))
        if count > most:
            return None
        narrow = G.astype(arithmetic)
        once = linear(narrow, signs(count).astype(arithmetic)).astype(np.float64)
        flat = solve(gram(once), once.T, eps=n, relative=False).T
    except np.linalg.LinAlgError:
        return None  # a ridge that is too small for its rounding is grown without components
    basis = linear(narrow, flat.astype(arithmetic)).astype(np.float64)
    sizes = np.sqrt(np.einsum("ij,ij->j", basis, basis))
    basis /= np.where(sizes > 0, sizes, 1.0)
    integers = units = None
    if dtype == np.uint8:
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
    GW = linear(G, W)
    squares = float(np.einsum("ij,ij->", W, GW))
    return squares - float(np.square(GW[-1]).sum()) / G[-1, -1] if bias else squares
