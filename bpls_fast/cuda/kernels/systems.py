"""Regularized linear systems on the GPU: `solve`, `solve_batched` and `solve_layer`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.cuda import libraries, runtime
from bpls_fast.cuda.array import Array, asarray, empty, zeros
from bpls_fast.cuda.device import systems
from bpls_fast.cuda.kernels.arguments import (
    check_apart,
    checked_floats,
    checked_out,
    checked_rows,
    checked_targets,
    write_result,
)
from bpls_fast.cuda.kernels.products import gram
from bpls_fast.cuda.kernels.rows import check_finite

__all__ = ["solve", "solve_batched", "solve_layer"]


def solve(
    G: Any,
    C: Any,
    *,
    eps: float = 1e-6,
    relative: bool = True,
    out: Any = None,
    check_finite: bool = True,
) -> Any:
    """Solve (G + ridge·I) W = C for W, float64; the upper triangle of G is used."""
    g, c = checked_floats(G, "G", 2), checked_floats(C, "C", 2)
    check_apart(checked_out(out, c.shape, np.float64), G=G, C=C)
    W = _solve(_batch(g), _batch(c), eps, relative, check_finite, single=True)
    return write_result(W.reshape(*W.shape[1:]), out, G, C)


def solve_batched(
    G: Any,
    C: Any,
    *,
    eps: float = 1e-6,
    relative: bool = True,
    out: Any = None,
    check_finite: bool = True,
) -> Any:
    """Solve (G[k] + ridge[k]·I) W[k] = C[k] for W, float64; a small system takes one block of threads."""
    g, c = checked_floats(G, "G", 3), checked_floats(C, "C", 3)
    check_apart(checked_out(out, c.shape, np.float64), G=G, C=C)
    W = _solve(g, c, eps, relative, check_finite, single=False)
    return write_result(W, out, G, C)


def solve_layer(
    A: Any,
    B: Any,
    *,
    bias: bool = False,
    eps: float = 1e-6,
    relative: bool = True,
    sample_weight: Any = None,
    out: Any = None,
    check_finite: bool = True,
) -> Any:
    """Return the least-squares solution of A W = B: `gram` and `solve`."""
    rows = checked_rows(A, "A")
    targets = checked_targets(B, rows, "B")
    given = checked_out(out, (rows.shape[1] + bias, targets.shape[1]), np.float64)
    check_apart(given, A=A, B=B, sample_weight=sample_weight)
    sums = gram(rows, targets, bias=bias, sample_weight=sample_weight, check_finite=check_finite)
    W = solve(*sums, eps=eps, relative=relative, check_finite=check_finite)
    return write_result(W, out, A, B, sample_weight)


def _solve(G: Array, C: Array, eps: float, relative: bool, finite: bool, *, single: bool) -> Array:
    count, n, width = G.shape
    if n != width or n == 0:
        raise ValueError(f"G is {n} x {width}; expected a square matrix")
    if C.shape[:2] != (count, n):
        raise ValueError(f"C has shape {C.shape}; expected {(count, n)} rows like G, then columns")
    if not isinstance(eps, (int, float, np.integer, np.floating)):
        raise TypeError(f"eps is a {type(eps).__name__}; expected a number")
    if not (np.isfinite(eps) and eps >= 0):
        raise ValueError(f"eps is {eps!r}; expected a finite number >= 0")
    if finite:
        check_finite(G, "G")
        check_finite(C, "C")
    m = C.shape[2]
    if count == 0 or m == 0:
        return zeros((count, n, m))
    large = systems.BLOCKS[-1]
    fitting = next((block for block in systems.BLOCKS if n <= block.size), large)
    S, diagonal, ridge = empty((count, n + m, n), float), empty((count, n), float), zeros((count,))
    failed = asarray(np.full(count, -1, np.int64))
    find_ridge = systems.ridge_kernel(systems.RIDGE_THREADS)
    numbers = (float(eps), int(relative))
    runtime.launch(find_ridge, count, systems.RIDGE_THREADS, G.data, *numbers, ridge.data)
    arrays = (G.data, C.data, ridge.data, S.data, diagonal.data)
    grid = (count, _tiles(n + m, fitting), _tiles(n, fitting))
    runtime.launch(systems.assemble_kernel(fitting), grid, fitting.threads, *arrays)
    least = n * float(np.finfo(float).eps)
    if n <= large.size:
        kernel, grid_of_sides = systems.small_kernel(fitting), (count, _tiles(m, fitting))
        arguments = (S.data, diagonal.data, least, failed.data)
        runtime.launch(kernel, grid_of_sides, fitting.threads, *arguments)
    elif not (single and libraries.solve(S, n)):
        _factor(S, diagonal, least, failed)
    _check_pivots(np.asarray(failed), np.asarray(ridge), n, single)
    W = empty((count, n, m), float)
    grid = (count, _tiles(n, fitting), _tiles(m, fitting))
    runtime.launch(systems.solution_kernel(fitting), grid, fitting.threads, S.data, W.data)
    return W


def _factor(S: Array, diagonal: Array, least: float, failed: Array) -> None:
    """Turn the last rows of every system in S, the right-hand sides, into the solution."""
    block, per = systems.BLOCKS[-1], systems.PER_THREAD
    size, (count, height, n) = block.size, S.shape
    inverses = empty((count, _tiles(n, block) * size, size), float)
    panel, update = systems.panel_kernel(block), systems.update_kernel(size, per)
    for first in range(0, n, size):
        end = min(first + size, n)
        below = _tiles(height - end, block)
        arguments = (S.data, diagonal.data, least, first, inverses.data, failed.data)
        runtime.launch(panel, (count, below), block.threads, *arguments)
        if end < n:
            grid = (count, below, _tiles(n - end, block))
            runtime.launch(update, grid, (size // per) ** 2, S.data, first)
    sides, back = -(-(height - n) // block.lines), systems.back_kernel(block)
    runtime.launch(back, (count, sides), block.threads, S.data, inverses.data)


def _tiles(length: int, block: systems.Block) -> int:
    return -(-length // block.size)


def _check_pivots(failed: NDArray[Any], ridge: NDArray[Any], n: int, single: bool) -> None:
    bad = np.flatnonzero(failed >= 0)
    if len(bad):
        system = int(bad[0])
        name = "" if single else f"system {system}: "
        raise np.linalg.LinAlgError(
            f"{name}G + {ridge[system]:.3g}·I is not positive definite: pivot {failed[system] + 1} of {n} is no more "
            "than rounding error; increase eps"
        )


def _batch(matrix: Array) -> Array:
    return matrix.reshape(1, *matrix.shape)
