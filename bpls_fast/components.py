"""The directions of the inputs that a fit has time to learn: rows get few components in place of many columns.

With a large ridge ε a step learns the share λ / (λ + ε) of what a direction with eigenvalue λ of XᵀX has to tell. Those
with λ < ε / sweeps would not be learnt in a whole fit; what they add to the pre-activations is the noise of the start.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import cross, linear, solve
from bpls_fast.network import Network
from bpls_fast.samples import float_of

__all__ = ["Components", "leading_components"]

Array = NDArray[Any]

PROBES = 64
"""Random vectors with which directions are counted."""

POWERS, SHARPNESS = 3, 0.1
"""The filter that passes directions with λ well above this share of ε is applied so many times."""

ROUND = 16
"""Components are a multiple of so many: vectors of the kernels are full."""


class Components(NamedTuple):
    """A map M from inputs to components, both with the ones of a bias: weights V of these are weights M V of those."""

    M: NDArray[np.float64]
    bias: bool

    def rows(self, X: Array, scale: float) -> Array:
        """Give the components of rows whose inputs are scale·X."""
        inputs, count = np.subtract(self.M.shape, self.bias)
        return linear(X, (scale * self.M[:inputs, :count]).astype(float_of(X)))

    def between(self, G: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give MᵀGM, the Gram matrix of the components."""
        return cross(self.M, linear(G, self.M))

    def network(self, net: Network, G: NDArray[np.float64]) -> Network:
        """Give the network on components whose first layer is closest to that of `net`, over inputs with XᵀX = G."""
        first, *others = net.weights
        inner = copy.copy(net)
        inner.layer_sizes = (self.M.shape[1] - self.bias, *net.layer_sizes[1:])
        inner.input_scale = 1.0
        right = cross(self.M, linear(G, first))
        inner.weights = [solve(self.between(G), right, eps=1e-9), *others]
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
) -> Components | None:
    """Give the leading directions of inputs with XᵀX = G, or None where more than `most` count.

    A direction with eigenvalue λ counts λ / (λ + ridge / sweeps). They are found by a filter (XᵀX + μ)⁻¹XᵀX of random
    vectors, which passes large λ and stops small ones; so their basis need not be orthogonal to be well conditioned.
    """
    n = len(G) - bias
    inputs = G[:n, :n]

    def filtered(vectors: Array, mu: float) -> Array:
        return vectors - mu * solve(inputs, vectors, eps=mu, relative=False)

    least = ridge / sweeps
    if not 0 < least < np.inf or most < ROUND:
        return None
    vectors = random.choice([-1.0, 1.0], size=(n, max(PROBES, most)))
    probes = vectors[:, :PROBES]
    freedom = float(np.einsum("ij,ij->", probes, filtered(probes, least))) / PROBES
    count = ROUND * -(-int(np.ceil(freedom)) // ROUND)
    if count > most:
        return None
    basis = vectors[:, :count]
    for _ in range(POWERS):
        basis = filtered(basis, max(least, SHARPNESS * ridge))
    M = np.zeros((n + bias, count + bias))
    M[:n, :count] = basis / np.sqrt(n)
    M[n:, count:] = 1.0
    return Components(M, bias)
