"""Cases of matrix products: the Gram matrix, the cross product, and components of bytes."""

import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import bpls_fast as bf
from bpls_fast import _core
from bpls_fast.kernels import linear_bytes

from ..contenders import NUMKONG, NUMKONG_TRANSPOSING
from ..measure.case import Array, Call, Case, relative_error
from ..measure.libraries import blas, numkong, torch
from . import images

ERROR_BLOCK = images.ROWS
"""Rows that are converted to float64 at a time."""


# ---- gram


def gram_error(A: Array) -> Callable[[Array], float]:
    exact = np.zeros((A.shape[1], A.shape[1]))
    for first in range(0, len(A), ERROR_BLOCK):
        wide = A[first : first + ERROR_BLOCK].astype(np.float64)
        exact += wide.T @ wide
    # syrk fills one triangle only.
    return lambda G: relative_error(np.triu(G), np.triu(exact))


def numpy_gram(A: Array) -> Sequence[Call]:
    return [lambda: A.T @ A]


def scipy_gram(A: Array) -> Sequence[Call]:
    by_columns = np.asfortranarray(A)
    syrk, gemm = blas("syrk", A.dtype), blas("gemm", A.dtype)
    return [
        lambda: syrk(1.0, A.T),
        lambda: syrk(1.0, by_columns, trans=1),
        lambda: gemm(1.0, A.T, A.T, trans_b=True),
    ]


def torch_gram(A: Array) -> Sequence[Call]:
    X = torch.from_numpy(A)
    G = torch.empty((A.shape[1], A.shape[1]), dtype=X.dtype)
    return [lambda: X.T @ X, lambda: torch.mm(X.T, X, out=G)]


def row_ranges(n: int, parts: int) -> list[tuple[int, int]]:
    """Split the rows of an upper triangle so that every part has as many elements."""
    cuts = [round(n * (1 - math.sqrt(1 - part / parts))) for part in range(parts + 1)]
    return list(itertools.pairwise(cuts))


def numkong_product(cols: int, n_threads: int) -> Callable[[Array], Any]:
    """Return the Gram matrix of transposed bytes, as a function; NumKong leaves threads to the caller."""
    G = numkong.empty((cols, cols), dtype="uint32")
    if n_threads == 1:
        return lambda by_columns: numkong.dots_symmetric(by_columns, out=G)
    pool, ranges = ThreadPoolExecutor(n_threads), row_ranges(cols, n_threads)

    def product(by_columns: Array) -> Any:
        def part(rows: tuple[int, int]) -> None:
            numkong.dots_symmetric(by_columns, out=G, start_row=rows[0], end_row=rows[1])

        list(pool.map(part, ranges))
        return G

    return product


def numkong_gram(A: Array, n_threads: int) -> Sequence[Call]:
    product, by_columns = numkong_product(A.shape[1], n_threads), np.ascontiguousarray(A.T)
    return [lambda: product(by_columns)]


def numkong_transposing(A: Array, n_threads: int) -> Sequence[Call]:
    product = numkong_product(A.shape[1], n_threads)
    return [lambda: product(np.ascontiguousarray(A.T))]


NUMKONG_ROWS = 66_051
"""Beyond this many rows of bytes NumKong's sums can overflow."""


def gram_case(
    dtype: str,
    rows: int,
    cols: int,
    *,
    of_images: bool = False,
    bare: bool = False,
    rounds: int = 15,
) -> Case:
    return Case(
        kernel="gram",
        dtype=dtype,
        size=images.shape_text(rows, cols, of_images=of_images),
        make_arrays=lambda: (images.rows_of(dtype, rows, cols, of_images=of_images),),
        ours=bf.gram,
        others={"numpy": numpy_gram, "scipy": scipy_gram, "torch": torch_gram},
        of_bytes={NUMKONG: numkong_gram, NUMKONG_TRANSPOSING: numkong_transposing}
        if dtype == "uint8" and rows <= NUMKONG_ROWS
        else {},
        make_error=gram_error,
        tolerance=1e-12 if dtype == "float64" else 1e-4,
        summed=rows,
        operations=0 if of_images else rows * cols * cols,
        arithmetic=dtype,
        exact=dtype == "uint8",
        bare=_core.time_gram if bare else None,
        rounds=rounds,
        rows=None if of_images else rows,
        cols=None if of_images else cols,
    )


# ---- cross


def cross_error(A: Array, D: Array) -> Callable[[Array], float]:
    exact = A.T.astype(np.float64) @ D
    return lambda C: relative_error(C, exact)


def numpy_cross(A: Array, D: Array) -> Sequence[Call]:
    return [lambda: A.T @ D, lambda: (D.T @ A).T]


def scipy_cross(A: Array, D: Array) -> Sequence[Call]:
    gemm, gemv = blas("gemm", A.dtype), blas("gemv", A.dtype)
    if D.shape[1] == 1:
        d = D.ravel()
        return [lambda: gemv(1.0, A.T, d)[:, None]]
    return [
        lambda: gemm(1.0, A.T, D.T, trans_b=True),
        lambda: gemm(1.0, D.T, A.T, trans_b=True).T,
    ]


def torch_cross(A: Array, D: Array) -> Sequence[Call]:
    X, Y = torch.from_numpy(A), torch.from_numpy(D)
    if D.shape[1] == 1:
        y = Y.ravel()
        return [lambda: X.T @ Y, lambda: torch.mv(X.T, y)[:, None]]
    return [lambda: X.T @ Y, lambda: (Y.T @ X).T]


def cross_case(
    dtype: str, rows: int, outputs: int, *, cols: int = images.PIXELS, of_images: bool = True
) -> Case:
    def arrays() -> tuple[Array, ...]:
        # Of one sign: no sum cancels, however few there are.
        D = np.random.default_rng(1).random((rows, outputs), np.float32)
        D = D.astype(np.float64) if dtype == "float64" else D
        return images.rows_of(dtype, rows, cols, of_images=of_images), D

    return Case(
        kernel="cross",
        dtype=dtype,
        size=f"{images.shape_text(rows, cols, of_images=of_images)}, {outputs} columns",
        make_arrays=arrays,
        ours=bf.cross,
        others={"numpy": numpy_cross, "scipy": scipy_cross, "torch": torch_cross},
        make_error=cross_error,
        tolerance=1e-4,
        summed=rows,
        operations=0 if of_images else 2 * rows * cols * outputs,
        arithmetic="float64" if dtype == "float64" else "float32",
    )


# ---- components: bytes times int8, which has a unit for each column


def integer_product(A: Array, W: Array, units: Array, floats: Array, n_threads: int) -> Array:
    if A.dtype == np.uint8:
        return linear_bytes(A, W, units, n_threads=n_threads)
    return bf.linear(A, floats, n_threads=n_threads)


def numpy_components(A: Array, W: Array, units: Array, floats: Array) -> Sequence[Call]:
    return [lambda: A @ floats]


def torch_components(A: Array, W: Array, units: Array, floats: Array) -> Sequence[Call]:
    X, V = torch.from_numpy(A), torch.from_numpy(floats)
    return [lambda: X @ V]


def components_error(A: Array, W: Array, units: Array, floats: Array) -> Callable[[Array], float]:
    exact = (A.astype(np.float64) @ W) * units
    return lambda P: relative_error(P, exact)


def components_case(rows: int, components: int, *, of_images: bool = True) -> Case:
    def arrays() -> tuple[Array, ...]:
        random = np.random.default_rng(1)
        W = random.integers(-127, 128, (images.PIXELS, components)).astype(np.int8)
        units = random.uniform(0.5, 1.5, components).astype(np.float32)
        return images.rows_of("uint8", rows, of_images=of_images), W, units, W * units

    return Case(
        kernel="components",
        dtype="uint8",
        size=f"{images.shape_text(rows, of_images=of_images)} -> {components}",
        make_arrays=arrays,
        ours=integer_product,
        others={"numpy": numpy_components, "torch": torch_components},
        make_error=components_error,
        tolerance=1e-4,
        operations=0 if of_images else 2 * rows * images.PIXELS * components,
        arithmetic="uint8",
    )
