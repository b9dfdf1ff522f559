"""Kernels that solve (G + ridge·I) W = C: a blocked Cholesky factor with the right-hand sides carried along.

A system lies in one matrix S of n + m rows: its first n rows hold G, of which the lower triangle is used, the last m
rows hold Cᵀ. Factoring the columns of G block by block turns Cᵀ into (L⁻¹C)ᵀ on the way; going back through the blocks
turns that into Wᵀ. Everything is float64.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from bpls_fast.cuda import runtime
from bpls_fast.cuda.products import powers
from bpls_fast.cuda.runtime import cuda

__all__ = [
    "BATCH_THREADS",
    "BLOCK",
    "PER_THREAD",
    "ROWS",
    "assemble_kernel",
    "back_kernel",
    "back_update_kernel",
    "batch_kernel",
    "diagonal_kernel",
    "panel_kernel",
    "ridge_kernel",
    "solution_kernel",
    "update_kernel",
]

BLOCK = 4 if runtime.simulated else 32
"""Columns that are eliminated at once."""

ROWS = 4 if runtime.simulated else 64
"""Rows that a block of threads takes, one thread each."""

PER_THREAD = 2 if runtime.simulated else 4
"""The side of what a thread updates of a block."""

BATCH_THREADS = 8 if runtime.simulated else 128


@functools.cache
def diagonal_kernel(size: int) -> Any:
    """Give the kernel that factors the block on the diagonal from `first` on; `failed` gets a pivot that is too small.

    A pivot must be above `least` times its entry on the diagonal of the system, `diagonal`.
    """
    padded = size + 1

    def diagonal_block(
        S: Any, diagonal: Any, least: float, first: int, n: int, failed: Any
    ) -> None:
        block = cuda.shared.array((size, padded), np.float64)
        row = cuda.threadIdx.x
        count = min(size, n - first)
        if row < count:
            for j in range(count):
                block[row, j] = S[first + row, first + j]
        for j in range(count):
            if row >= j and row < count:
                value = block[row, j]
                for k in range(j):
                    value -= block[row, k] * block[j, k]
                block[row, j] = value
            cuda.syncthreads()
            pivot = block[j, j]
            good = pivot > least * diagonal[first + j]
            if row == j and not good and failed[0] < 0:
                failed[0] = first + j
            root = math.sqrt(pivot) if good else np.float64(1)
            cuda.syncthreads()
            if row == j:
                block[j, j] = root
            elif row > j and row < count:
                block[row, j] /= root
            cuda.syncthreads()
        if row < count:
            for j in range(row + 1):
                S[first + row, first + j] = block[row, j]

    return runtime.kernel(diagonal_block)


@functools.cache
def panel_kernel(size: int, rows: int) -> Any:
    """Give the kernel that solves the rows below a factored block for the block's columns, one thread to a row."""
    padded = size + 1

    def panel(S: Any, first: int, n: int) -> None:
        factor = cuda.shared.array((size, padded), np.float64)
        below = cuda.shared.array((rows, padded), np.float64)
        thread = cuda.threadIdx.x
        count = min(size, n - first)
        top = first + count + cuda.blockIdx.x * rows
        for place in range(thread, count * count, rows):
            factor[place // count, place % count] = S[first + place // count, first + place % count]
        for place in range(thread, rows * count, rows):
            r = place // count
            if top + r < S.shape[0]:
                below[r, place % count] = S[top + r, first + place % count]
        cuda.syncthreads()
        if top + thread < S.shape[0]:
            for j in range(count):
                value = below[thread, j]
                for k in range(j):
                    value -= below[thread, k] * factor[j, k]
                below[thread, j] = value / factor[j, j]
        cuda.syncthreads()
        for place in range(thread, rows * count, rows):
            r = place // count
            if top + r < S.shape[0]:
                S[top + r, first + place % count] = below[r, place % count]

    return runtime.kernel(panel)


@functools.cache
def update_kernel(size: int, per: int) -> Any:
    """Give the kernel that takes the products of solved columns, from `first` on, off what is below and right."""
    across, padded = size // per, size + 1
    shift, mask = powers(across)

    def update(S: Any, first: int, n: int) -> None:
        beyond = first + size
        p, q = beyond + cuda.blockIdx.x * size, beyond + cuda.blockIdx.y * size
        if p + size <= q:  # above the diagonal
            return
        left = cuda.shared.array((size, padded), np.float64)
        right = cuda.shared.array((size, padded), np.float64)
        sums = cuda.local.array((per, per), np.float64)
        thread = cuda.threadIdx.x
        tx, ty = thread & mask, (thread >> shift) & mask
        for place in range(thread, size * size, across * across):
            r, k = place // size, place % size
            left[k, r] = S[p + r, first + k] if p + r < S.shape[0] else np.float64(0)
            right[k, r] = S[q + r, first + k] if q + r < n else np.float64(0)
        for i in range(per):
            for j in range(per):
                sums[i, j] = np.float64(0)
        cuda.syncthreads()
        for k in range(size):
            for i in range(per):
                for j in range(per):
                    sums[i, j] += left[k, ty + across * i] * right[k, tx + across * j]
        for i in range(per):
            for j in range(per):
                if p + ty + across * i < S.shape[0] and q + tx + across * j < n:
                    S[p + ty + across * i, q + tx + across * j] -= sums[i, j]

    return runtime.kernel(update)


@functools.cache
def back_kernel(size: int, rows: int) -> Any:
    """Give the kernel that solves the right-hand sides for one block of unknowns, one thread to a side."""
    padded = size + 1

    def back(S: Any, first: int, n: int) -> None:
        factor = cuda.shared.array((size, padded), np.float64)
        sides = cuda.shared.array((rows, padded), np.float64)
        thread = cuda.threadIdx.x
        count = min(size, n - first)
        top = n + cuda.blockIdx.x * rows
        for place in range(thread, count * count, rows):
            factor[place // count, place % count] = S[first + place // count, first + place % count]
        for place in range(thread, rows * count, rows):
            r = place // count
            if top + r < S.shape[0]:
                sides[r, place % count] = S[top + r, first + place % count]
        cuda.syncthreads()
        if top + thread < S.shape[0]:
            for j in range(count - 1, -1, -1):
                value = sides[thread, j]
                for k in range(j + 1, count):
                    value -= sides[thread, k] * factor[k, j]
                sides[thread, j] = value / factor[j, j]
        cuda.syncthreads()
        for place in range(thread, rows * count, rows):
            r = place // count
            if top + r < S.shape[0]:
                S[top + r, first + place % count] = sides[r, place % count]

    return runtime.kernel(back)


@functools.cache
def back_update_kernel(size: int, per: int) -> Any:
    """Give the kernel that takes a solved block of unknowns off the right-hand sides of the blocks before it."""
    across, padded = size // per, size + 1
    shift, mask = powers(across)

    def back_update(S: Any, first: int, n: int) -> None:
        p, q = n + cuda.blockIdx.x * size, cuda.blockIdx.y * size
        left = cuda.shared.array((size, padded), np.float64)
        right = cuda.shared.array((size, padded), np.float64)
        sums = cuda.local.array((per, per), np.float64)
        thread = cuda.threadIdx.x
        tx, ty = thread & mask, (thread >> shift) & mask
        for place in range(thread, size * size, across * across):
            r, k = place // size, place % size
            left[k, r] = (
                S[p + r, first + k] if p + r < S.shape[0] and first + k < n else np.float64(0)
            )
            right[r, k] = S[first + r, q + k] if first + r < n else np.float64(0)
        for i in range(per):
            for j in range(per):
                sums[i, j] = np.float64(0)
        cuda.syncthreads()
        for k in range(size):
            for i in range(per):
                for j in range(per):
                    sums[i, j] += left[k, ty + across * i] * right[k, tx + across * j]
        for i in range(per):
            for j in range(per):
                if p + ty + across * i < S.shape[0]:
                    S[p + ty + across * i, q + tx + across * j] -= sums[i, j]

    return runtime.kernel(back_update)


@functools.cache
def batch_kernel(threads: int) -> Any:
    """Give the kernel that factors and solves one system S[k] in each block of threads, column by column."""

    def batch(S: Any, diagonal: Any, least: float, failed: Any) -> None:
        system, thread = cuda.blockIdx.x, cuda.threadIdx.x
        n, height = S.shape[2], S.shape[1]
        for j in range(n):
            pivot = S[system, j, j]
            good = pivot > least * diagonal[system, j]
            root = math.sqrt(pivot) if good else np.float64(1)
            cuda.syncthreads()
            if thread == 0:
                S[system, j, j] = root
                if not good and failed[system] < 0:
                    failed[system] = j
            for i in range(j + 1 + thread, height, threads):
                S[system, i, j] /= root
            cuda.syncthreads()
            width = n - j - 1
            for place in range(thread, (height - j - 1) * width, threads):
                i, k = j + 1 + place // width, j + 1 + place % width
                if k <= i:
                    S[system, i, k] -= S[system, i, j] * S[system, k, j]
            cuda.syncthreads()
        for i in range(n + thread, height, threads):
            for j in range(n - 1, -1, -1):
                value = S[system, i, j]
                for k in range(j + 1, n):
                    value -= S[system, i, k] * S[system, k, j]
                S[system, i, j] = value / S[system, j, j]

    return runtime.kernel(batch)


@functools.cache
def ridge_kernel() -> Any:
    """Give the kernel that finds the ridge of every system: eps, or eps times the mean of its diagonal."""

    def find_ridge(G: Any, eps: float, relative: int, ridge: Any) -> None:
        k = cuda.grid(1)
        if k < G.shape[0]:
            value = np.float64(eps)
            if relative:
                total = np.float64(0)
                for i in range(G.shape[1]):
                    total += np.float64(G[k, i, i])
                value *= total / G.shape[1]
            ridge[k] = value

    return runtime.kernel(find_ridge)


@functools.cache
def assemble_kernel() -> Any:
    """Give the kernel that lays G + ridge·I and Cᵀ into S, and the diagonal beside it."""

    def assemble(G: Any, C: Any, ridge: Any, S: Any, diagonal: Any) -> None:
        k, n = cuda.blockIdx.y, S.shape[2]
        step = cuda.blockDim.x * cuda.gridDim.x
        start = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        for place in range(start, S.shape[1] * n, step):
            i, j = place // n, place % n
            if i >= n:
                S[k, i, j] = C[k, j, i - n]
            elif i > j:
                S[k, i, j] = G[k, j, i]
            elif i < j:
                S[k, i, j] = np.float64(0)
            else:
                value = np.float64(G[k, i, i]) + ridge[k]
                S[k, i, i] = value
                diagonal[k, i] = value

    return runtime.kernel(assemble)


@functools.cache
def solution_kernel() -> Any:
    """Give the kernel that copies Wᵀ, the last rows of S, into W."""

    def solution(S: Any, W: Any) -> None:
        k, n, m = cuda.blockIdx.y, W.shape[1], W.shape[2]
        step = cuda.blockDim.x * cuda.gridDim.x
        start = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        for place in range(start, n * m, step):
            W[k, place // m, place % m] = S[k, n + place % m, place // m]

    return runtime.kernel(solution)
