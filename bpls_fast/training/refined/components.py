"""Components: the directions of the inputs that a fit has time to learn, a few in place of many columns.

With a large ridge ε, a step learns the share λ / (λ + ε) of a direction with eigenvalue λ of XᵀX. Directions with
λ < ε / sweeps would not be learnt in a whole fit; what they add to the pre-activations is noise of the start.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import cross, gram, linear, linear_bytes, solve
from bpls_fast.network import Network
from bpls_fast.training.data import Array, Weights, float_of

__all__ = ["Components", "leading_components", "variance"]

PROBES = 64
"""The number of random vectors that estimate the number of directions."""

ROUND = 16
"""The number of components is a multiple of this, which fills the vectors of the kernels."""

FLOAT32_SPAN, LARGEST_SPAN = 1e6, 1e12
"""The largest eigenvalues, in units of the smallest that counts, that float32 and float64 separate from rounding."""

LARGEST_INTEGER = 127
"""For bytes, the entries of a column of M are a unit times integers up to this: there is a kernel for such products."""

MOST_COLUMNS = 65_536
"""The most inputs that this kernel takes."""


class Components(NamedTuple):
    """A map M from inputs to components: weights V of the components are weights M V of the inputs.

    Both include the ones of a bias; what the last row of M adds to components is an offset. For bytes, M without the
    ones is `units` times `integers`, column by column.
    """

    M: NDArray[np.float64]
    bias: bool
    integers: NDArray[np.int8] | None = None
    units: NDArray[np.float64] | None = None

    def rows(self, X: Array, scale: float) -> Array:
        """Return the components of rows whose inputs are scale·X."""
        inputs, count = (size - self.bias for size in self.M.shape)
        dtype, offset = float_of(X), self.M[inputs:, :count]
        in_place = isinstance(X, np.ndarray) and X.strides[1] == 1 and inputs <= MOST_COLUMNS
        if self.integers is not None and self.units is not None and in_place:
            factors = (scale * self.units).astype(np.float32)
            P = linear_bytes(X, self.integers, factors)
            return np.add(P, offset.astype(dtype), out=P) if offset.any() else P
        W = scale * self.M[:inputs, :count]
        if offset.any():
            W = np.concatenate([W, offset])
        return linear(X, W.astype(dtype), bias=bool(offset.any()))

    def network(self, net: Network, G: NDArray[np.float64]) -> tuple[Network, NDArray[np.float64]]:
        """Return a network on components and their Gram matrix MᵀGM.

        Its first layer is the closest to that of `net` over inputs with XᵀX = G.
        """
        first, *others = net.weights
        GM = linear(G, self.M)
        small = cross(self.M, GM)
        # The scales of inputs and ones may be far apart.
        scale = 1 / np.sqrt(np.where(small.diagonal() > 0, small.diagonal(), 1.0))[:, np.newaxis]
        closest = scale * solve(small * scale * scale.T, scale * cross(GM, first), eps=1e-9)
        return self.inner(net, [closest, *others]), small

    def inner(self, net: Network, weights: Weights) -> Network:
        """Return a network like `net`, but on components, with these weights."""
        inner = copy.copy(net)
        inner.layer_sizes = (self.M.shape[1] - self.bias, *net.layer_sizes[1:])
        inner.input_scale, inner.input_limits = 1.0, None
        inner.weights = weights
        return inner

    def whole(self, inner: Network, net: Network) -> Network:
        """Return the network on inputs, like `net`, that is equal to `inner` on their components."""
        first, *others = inner.weights
        return net.owning([linear(self.M, first), *(W.copy() for W in others)])


def leading_components(
    G: NDArray[np.float64],
    bias: bool,
    ridge: float,
    sweeps: int,
    most: int,
    random: np.random.Generator,
    dtype: Any,
) -> Components | None:
    """Return the leading directions of inputs of a type with XᵀX = G, or None if there are more than `most`.

    Their number is estimated by the trace of (G + μI)⁻¹G with μ = ridge / sweeps: a direction with eigenvalue λ counts
    λ / (λ + μ). With G in units of μ they are found by a filter, G²V (VᵀG²V + nI)⁻¹, of random signs V. It stops small
    λ and passes all large ones alike, so the basis is well conditioned without being orthogonal.
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
        return None  # the fit grows a ridge that is too small for rounding, without components
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
    """Return the sum of the variances of X W, from XᵀX with or without a column of ones."""
    GW = linear(G, W)
    squares = float(np.einsum("ij,ij->", W, GW))
    return squares - float(np.square(GW[-1]).sum()) / G[-1, -1] if bias else squares
