"""Cases of linear systems. The ridge is already in G, for every contender."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import bpls_fast as bf

from ..measure.case import Array, Call, Case
from ..measure.libraries import scipy_linalg, torch


def solve_error(G: Array, C: Array) -> Callable[[Array], float]:
    def largest_row(M: Array) -> Any:
        return np.abs(M).sum(-1).max(-1)

    def backward_error(W: Array) -> float:
        residual = largest_row(G @ W - C)
        return float((residual / (largest_row(G) * largest_row(W) + largest_row(C))).max())

    return backward_error


def numpy_solve(G: Array, C: Array) -> Sequence[Call]:
    return [lambda: np.linalg.solve(G, C)]


def scipy_solve(G: Array, C: Array) -> Sequence[Call]:
    A, B = np.asfortranarray(G), np.asfortranarray(C)

    def solve(lower: bool) -> Any:
        factor = scipy_linalg.cho_factor(A, lower=lower, check_finite=False)
        return scipy_linalg.cho_solve(factor, B, check_finite=False)

    posv = scipy_linalg.lapack.dposv
    return [
        lambda: solve(False),
        lambda: solve(True),
        lambda: posv(A, B)[1],
        lambda: posv(A, B, lower=True)[1],
    ]


def torch_cholesky(G: Array, C: Array) -> Sequence[Call]:
    X, Y = torch.from_numpy(G), torch.from_numpy(C)
    return [lambda: torch.cholesky_solve(Y, torch.linalg.cholesky(X))]


def torch_solve(G: Array, C: Array) -> Sequence[Call]:
    X, Y = torch.from_numpy(G), torch.from_numpy(C)
    return [lambda: torch.linalg.solve(X, Y), *torch_cholesky(G, C)]


def with_ridge(G: Array) -> Array:
    mean = np.einsum("...ii", G)[..., None, None] / G.shape[-1]
    ridge: Array = 1e-6 * mean * np.eye(G.shape[-1])
    return G + ridge


def system_case(kernel: str, size: str, **fields: Any) -> Case:
    """Return a case in float64 whose answers are checked by their backward error."""
    return Case(
        kernel,
        "float64",
        size,
        make_error=solve_error,
        tolerance=1e-12,
        arithmetic="float64",
        **fields,
    )


def solve_case(
    n: int, sides: int, *, make_gram: Callable[[], Array] | None = None, rounds: int = 15
) -> Case:
    """Return the case of `n` unknowns, by default with the Gram matrix of random rows."""

    def arrays() -> tuple[Array, ...]:
        rng = np.random.default_rng(0)
        G = make_gram() if make_gram else bf.gram(rng.standard_normal((2 * n, n)))
        return with_ridge(G), G @ rng.standard_normal((n, sides))

    return system_case(
        "solve",
        f"n = {n}, {sides} columns",
        make_arrays=arrays,
        ours=functools.partial(bf.solve, eps=0),
        others={"numpy": numpy_solve, "scipy": scipy_solve, "torch": torch_cholesky},
        operations=n**3 / 3 + 2 * n * n * sides,
        rounds=rounds,
        rows=n,
        cols=n,
    )


def solve_batched_case(n: int, systems: int) -> Case:
    def arrays() -> tuple[Array, ...]:
        X = np.random.default_rng(0).standard_normal((systems, 2 * n, n))
        G = with_ridge(X.transpose(0, 2, 1) @ X)
        return G, G.sum(-1, keepdims=True)

    return system_case(
        "solve_batched",
        f"{systems} of n = {n}",
        make_arrays=arrays,
        ours=functools.partial(bf.solve_batched, eps=0),
        others={"numpy": numpy_solve, "torch": torch_solve},
        operations=systems * (n**3 / 3 + 2 * n * n),
    )
