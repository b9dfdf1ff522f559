"""NVIDIA's libraries, by way of CuPy where it is installed: products and factors that are large enough to gain by them.

Each function says whether it did the work; where it did not, our own kernels do.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec
from typing import Any

import numpy as np

from bpls_fast.cuda import runtime
from bpls_fast.cuda.array import Array

__all__ = ["choice", "products", "solve"]

SMALLEST_PRODUCT = 256
"""Columns from which on cuBLAS makes the tiles of a Gram matrix. Not yet measured, like the next."""

SMALLEST_SYSTEM = 256
"""Unknowns from which on cuSOLVER factors."""


def choice() -> dict[str, str]:
    """Say what large float products and large factors are made with."""
    installed = cupy() is not None
    return {
        "gram": f"cuBLAS from {SMALLEST_PRODUCT} columns on, by CuPy"
        if installed
        else "our kernels",
        "solve": f"cuSOLVER from {SMALLEST_SYSTEM} unknowns on, by CuPy"
        if installed
        else "our kernels",
        "uint8 gram": "our kernels",
    }


@functools.cache
def cupy() -> Any:
    """Give the module, or None where it is not installed."""
    if runtime.simulated or find_spec("cupy") is None:
        return None
    import cupy

    return cupy


def triangular() -> Any:
    """Give the solver of triangular systems that belongs to `cupy`."""
    from cupyx.scipy.linalg import solve_triangular

    return solve_triangular


def raising() -> Any:
    """Give the context in which `cupy` raises where a matrix is not definite; by itself it does not say so."""
    from cupyx import errstate

    return errstate(linalg="raise")


def shared(library: Any, array: Array) -> Any:
    """Give an array to `cupy`, which works on the stream in use like our kernels: nothing is to be waited for."""
    interface = {**array.__cuda_array_interface__, "stream": None}
    return library.asarray(runtime.Described(interface, array))


def products(
    A: Array, B: Array, weight: Array | None, partial: Array, place: slice, ones: int, ones_B: int
) -> bool:
    """Make the tiles [A 1]ᵀ W [B 1] of some blocks of rows by cuBLAS; A and B must be floats of one type."""
    library = cupy()
    count, n, m = len(partial), A.shape[1], B.shape[1]
    alike = A.dtype == B.dtype == partial.dtype
    if library is None or n < SMALLEST_PRODUCT or not alike or (place.stop - place.start) % count:
        return False
    try:
        with library.cuda.ExternalStream(runtime.stream_handle()):
            a, b, tiles = (shared(library, x) for x in (A, B, partial))
            a, b = a[place], b[place]
            left = library.ones((len(a), 1), a.dtype)
            if weight is not None:
                left *= shared(library, weight)[place, None].astype(a.dtype)
                a = a * left
            a, b, left = (x.reshape(count, -1, x.shape[1]) for x in (a, b, left))
            tiles[:, :n, :m] = library.matmul(a.transpose(0, 2, 1), b)
            if ones:
                tiles[:, n:, :m] = library.matmul(left.transpose(0, 2, 1), b)
            if ones_B:
                tiles[:, :n, m:] = a.sum(axis=1)[:, :, None]
                tiles[:, n:, m:] = left.sum(axis=1)[:, :, None]
    except MemoryError:  # our kernels need none
        return False
    return True


def solve(S: Array, n: int) -> bool:
    """Solve the system in S by cuSOLVER; what is not clearly definite is left to our kernels: they name the pivot."""
    library = cupy()
    if library is None or n < SMALLEST_SYSTEM:
        return False
    try:
        with library.cuda.ExternalStream(runtime.stream_handle()), raising():
            system = shared(library, S)[0]
            lower = library.tril(system[:n])
            factor = library.linalg.cholesky(lower + library.tril(lower, -1).T)
            pivots, least = factor.diagonal(), n * float(np.finfo(float).eps)
            if not bool(((pivots > 0) & (pivots**2 > least * lower.diagonal())).all()):
                return False
            solve_triangular = triangular()
            half = solve_triangular(factor, system[n:].T, lower=True)
            system[n:] = solve_triangular(factor.T, half, lower=False).T
    except (np.linalg.LinAlgError, MemoryError):
        return False
    return True
