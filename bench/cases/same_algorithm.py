"""Algorithm 2 as an expert would write it with NumPy (and SciPy's Cholesky) or with PyTorch: softmax, joint target.

Each step is that of `bpls_fast.fit_classifier` with given margins: the Gram matrix of X is computed once for the
sweeps over all rows, products run in float32, factors in float64. Arrays have a last column of ones for the bias.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..measure.libraries import scipy_linalg, torch
from .layers import numpy_centred_log, numpy_softmax, torch_centred_log

Array = Any  # of either library


class Library(Protocol):
    """What the algorithm needs of a library."""

    def array(self, values: Any) -> Array: ...
    def with_ones(self, A: Array) -> Array: ...
    def softmax(self, Z: Array) -> Array: ...
    def centred_log(self, N: Array) -> Array: ...
    def at_least(self, N: Array, margin: float) -> Array: ...
    def pinv(self, W: Array) -> Array: ...
    def solve(self, G: Array, C: Array) -> Array: ...
    def misses(self, Z: Array, labels: Array) -> Array: ...


class InNumpy:
    """NumPy, with SciPy for the Cholesky factor; in place where that saves a temporary."""

    array = staticmethod(np.asarray)
    softmax = staticmethod(numpy_softmax)
    centred_log = staticmethod(numpy_centred_log)

    def with_ones(self, A: Array) -> Array:
        return np.hstack([A, np.ones((len(A), 1), A.dtype)])

    def at_least(self, N: Array, margin: float) -> Array:
        return np.maximum(N, np.float32(margin), out=N)

    def pinv(self, W: Array) -> Array:
        return np.linalg.pinv(W)

    def solve(self, G: Array, C: Array) -> Array:
        G = G.astype(np.float64)
        G[np.diag_indices_from(G)] += 1e-6 * G.trace() / len(G)
        factor = scipy_linalg.cho_factor(G, overwrite_a=True, check_finite=False)
        return scipy_linalg.cho_solve(factor, C.astype(np.float64), check_finite=False)

    def misses(self, Z: Array, labels: Array) -> Array:
        return np.flatnonzero(Z.argmax(1) != labels)


class InTorch:
    """PyTorch on its own BLAS and LAPACK."""

    def array(self, values: Any) -> Array:
        return torch.as_tensor(np.asarray(values))

    def with_ones(self, A: Array) -> Array:
        return torch.cat([A, A.new_ones((len(A), 1))], dim=1)

    def softmax(self, Z: Array) -> Array:
        return torch.softmax(Z, 1)

    def centred_log(self, N: Array) -> Array:
        return torch_centred_log(N)

    def at_least(self, N: Array, margin: float) -> Array:
        return N.clamp_(min=margin)

    def pinv(self, W: Array) -> Array:
        return torch.linalg.pinv(W)

    def solve(self, G: Array, C: Array) -> Array:
        G = G.double()
        G.diagonal().add_(1e-6 * G.diagonal().mean())
        return torch.cholesky_solve(C.double(), torch.linalg.cholesky(G))

    def misses(self, Z: Array, labels: Array) -> Array:
        return (Z.argmax(1) != labels).nonzero()[:, 0]


def narrow(W: Array, like: Array) -> Array:
    """Return float64 weights in the type of the data."""
    return W.astype(like.dtype) if isinstance(W, np.ndarray) else W.to(like.dtype)


def layer_inputs(lib: Library, X: Array, weights: Sequence[Array]) -> list[Array]:
    """Return what enters each layer, its ones included."""
    A = [X]
    for W in weights[:-1]:
        A.append(lib.with_ones(lib.softmax(A[-1] @ narrow(W, X))))
    return A


def sweep(
    lib: Library,
    A: Sequence[Array],
    B: Array,
    margins: Sequence[float],
    input_gram: Array | None = None,
) -> tuple[list[Array], Array]:
    """Solve every layer from the last to the first, pulling the target back; return weights and the Gram of X."""
    weights: list[Array] = [None] * len(A)
    for layer in range(len(A) - 1, 0, -1):
        W = weights[layer] = lib.solve(A[layer].T @ A[layer], A[layer].T @ B)
        R = B - A[layer] @ narrow(W, B)
        N = A[layer][:, :-1] + R @ narrow(lib.pinv(W[:-1]), B)
        B = lib.centred_log(lib.at_least(N, margins[layer - 1]))
    G = A[0].T @ A[0] if input_gram is None else input_gram
    weights[0] = lib.solve(G, A[0].T @ B)
    return weights, G


def fit(
    lib: Library,
    X: Array,
    B: Array,
    labels: Array,
    weights: Sequence[Array],
    margins: Sequence[float],
    max_iter: int,
    full_sweeps: int,
) -> list[Array]:
    """Run Algorithm 2: full sweeps, then sweeps over the misses, blended; return the best weights."""
    now, input_gram = list(weights), None
    A, fewest, best = layer_inputs(lib, X, now), len(X) + 1, now
    missed: Array = None
    for iteration in range(1, max_iter + 1):
        if iteration <= full_sweeps:
            now, input_gram = sweep(lib, A, B, margins, input_gram)
        else:
            miss_weights, _ = sweep(lib, [a[missed] for a in A], B[missed], margins)
            m = len(missed) / len(X)
            now = [(1 - m) * W + m * V for W, V in zip(now, miss_weights, strict=True)]
        A = layer_inputs(lib, X, now)
        missed = lib.misses(A[-1] @ narrow(now[-1], X), labels)
        if len(missed) < fewest:
            fewest, best = len(missed), now
        elif iteration > full_sweeps:
            break
        if not len(missed):
            break
    return best
