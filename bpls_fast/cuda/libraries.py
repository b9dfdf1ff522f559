"""cuBLAS and cuSOLVER, through CuPy where it is installed, for large products and factorizations.

Each function returns whether it did the work; where it did not, our own kernels do.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec
from typing import Any

import numpy as np

from bpls_fast.cuda import runtime
from bpls_fast.cuda.array import Array

__all__ = ["chosen_libraries", "products", "solve"]

SMALLEST_PRODUCT = 256
"""The number of columns from which cuBLAS computes the tiles of a Gram matrix. Not yet measured, like the next."""

SMALLEST_SYSTEM = 256
"""The number of unknowns from which cuSOLVER factors."""


def chosen_libraries() -> dict[str, str]:
    """Return which library computes what, as text."""
    ours = "our kernels"
    if cupy() is None:
        return {"gram": ours, "solve": ours, "uint8 gram": ours}
    return {
        "gram": f"cuBLAS from {SMALLEST_PRODUCT} columns on, by CuPy",
        "solve": f"cuSOLVER from {SMALLEST_SYSTEM} unknowns on, by CuPy",
        "uint8 gram": ours,
    }


@functools.cache
def cupy() -> Any:
    """Return the module, or None if it is not installed."""
    if runtime.simulated or find_spec("cupy") is None:
        return None
    import cupy

    return cupy


def triangular_solver() -> Any:
    """Return CuPy's solver of triangular systems."""
    from cupyx.scipy.linalg import solve_triangular

    return solve_triangular


def raise_on_failure() -> Any:
    """Return the context in which CuPy raises if a matrix is not positive definite; by default it does not."""
    from cupyx import errstate

    return errstate(linalg="raise")


def as_cupy(library: Any, array: Array) -> Any:
    """Return an array as CuPy's, without a copy; CuPy works on our stream, so that there is nothing to wait for."""
    interface = {**array.__cuda_array_interface__, "stream": None}
    return library.asarray(runtime.InterfaceOwner(interface, array))


def products(
    A: Array, B: Array, weight: Array | None, partial: Array, place: slice, ones: int, ones_B: int
) -> bool:
    """Compute the tiles [A 1]ᵀ W [B 1] of some blocks of rows by cuBLAS; A and B must be floats of one type."""
    library = cupy()
    count, n, m = len(partial), A.shape[1], B.shape[1]
    alike = A.dtype == B.dtype == partial.dtype
    if library is None or n < SMALLEST_PRODUCT or not alike or (place.stop - place.start) % count:
        return False
    try:
        with library.cuda.ExternalStream(runtime.stream_handle()):
            a, b, tiles = (as_cupy(library, x) for x in (A, B, partial))
            a, b = a[place], b[place]
            left = library.ones((len(a), 1), a.dtype)
            if weight is not None:
                left *= as_cupy(library, weight)[place, None].astype(a.dtype)
                a = a * left
            a, b, left = (x.reshape(count, -1, x.shape[1]) for x in (a, b, left))
            tiles[:, :n, :m] = library.matmul(a.transpose(0, 2, 1), b)
            if ones:
                tiles[:, n:, :m] = library.matmul(left.transpose(0, 2, 1), b)
            if ones_B:
                tiles[:, :n, m:] = a.sum(axis=1)[:, :, None]
                tiles[:, n:, m:] = left.sum(axis=1)[:, :, None]
    except MemoryError:  # our kernels need no more memory
        return False
    return True


def solve(S: Array, n: int) -> bool:
    """Solve the system in S by cuSOLVER, unless it may be indefinite: our kernels name the pivot."""
    library = cupy()
    if library is None or n < SMALLEST_SYSTEM:
        return False
    try:
        with library.cuda.ExternalStream(runtime.stream_handle()), raise_on_failure():
            system = as_cupy(library, S)[0]
            lower = library.tril(system[:n])
            factor = library.linalg.cholesky(lower + library.tril(lower, -1).T)
            pivots, least = factor.diagonal(), n * float(np.finfo(float).eps)
            if not bool(((pivots > 0) & (pivots**2 > least * lower.diagonal())).all()):
                return False
            solve_triangular = triangular_solver()
            half = solve_triangular(factor, system[n:].T, lower=True)
            system[n:] = solve_triangular(factor.T, half, lower=False).T
    except (np.linalg.LinAlgError, MemoryError):
        return False
    return True
