"""Kernels that solve (G + ridge·I) W = C in float64: a blocked Cholesky factorization of the augmented system.

A system is one matrix S[k] of n + m rows: the first n rows are G, whose lower triangle is used, the last m rows are Cᵀ.
Factoring the columns of G block by block turns Cᵀ into (L⁻¹C)ᵀ; going back through the blocks turns that into Wᵀ. The
diagonal blocks of L are inverted, so that substitution consists of products, which many threads share.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from bpls_fast.cuda import runtime
from bpls_fast.cuda.device.products import shift_and_mask
from bpls_fast.cuda.runtime import cuda, device_function

__all__ = [
    "BLOCKS",
    "PER_THREAD",
    "RIDGE_THREADS",
    "Block",
    "assemble_kernel",
    "back_kernel",
    "panel_kernel",
    "ridge_kernel",
    "small_kernel",
    "solution_kernel",
    "update_kernel",
]


class Block(NamedTuple):
    """A square block of a system: its side, and the number of lines of threads, each as long as the side."""

    size: int
    lines: int

    @property
    def threads(self) -> tuple[int, int]:
        """The threads of a block: along a row, and lines."""
        return self.size, self.lines


BLOCKS = [Block(8, 8), Block(16, 8), Block(32, 8)]
"""A system that fits one of these is solved by one block of threads; larger ones are split into blocks of the last."""

PER_THREAD = 4
"""The side of the square that one thread updates."""

RIDGE_THREADS = 64

if runtime.simulated:
    BLOCKS, PER_THREAD, RIDGE_THREADS = [Block(2, 2), Block(4, 2)], 2, 4

ZERO, ONE = np.float64(0), np.float64(1)


@functools.cache
def _invert(block: Block) -> Any:
    """Return the function that writes L⁻¹ of the diagonal block at `first` to the shared array `inverse`.

    It returns the first pivot that is not above `least` times its diagonal entry of the system, or -1. The block is
    factored as M D Mᵀ, and the same steps turn the identity into M⁻¹: one barrier per column.
    """
    size, lines = block
    per = size // lines

    def invert(
        S: Any, system: int, first: int, diagonal: Any, least: float, square: Any, inverse: Any
    ) -> int:
        floors = cuda.shared.array(size, np.float64)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        count = min(size, S.shape[2] - first)
        for i in range(per):
            r = y + lines * i
            inverse[r, x] = ONE if r == x else ZERO
            square[r, x] = ZERO
            if r < count and x < count:
                square[r, x] = S[system, first + r, first + x]
        if y == 0 and x < count:
            floors[x] = least * diagonal[system, first + x]
        cuda.syncthreads()
        bad = -1
        for j in range(count):
            pivot = square[j, j]
            if not pivot > floors[j]:
                pivot = ONE
                if bad < 0:
                    bad = first + j
            part = (inverse[j, x] if x <= j else square[x, j]) / pivot
            for i in range(per):
                r = y + lines * i
                if r > j:
                    if x <= j:
                        inverse[r, x] -= square[r, j] * part
                    else:
                        square[r, x] -= square[r, j] * part
            cuda.syncthreads()
        for i in range(per):
            r = y + lines * i
            if r < count and square[r, r] > floors[r]:
                inverse[r, x] /= math.sqrt(square[r, r])
        cuda.syncthreads()
        return bad

    return device_function(invert)


@functools.cache
def _carry(block: Block) -> Any:
    """Return the function that multiplies the rows of S from `top` on by L⁻ᵀ, into the shared array `rows`."""
    size, lines = block
    per = size // lines

    def carry(S: Any, system: int, first: int, top: int, inverse: Any, rows: Any) -> None:
        sums = cuda.local.array(per, np.float64)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        for i in range(per):
            r = y + lines * i
            rows[r, x] = ZERO
            if top + r < S.shape[1] and first + x < S.shape[2]:
                rows[r, x] = S[system, top + r, first + x]
            sums[i] = ZERO
        cuda.syncthreads()
        for k in range(size):
            a = inverse[x, k]
            for i in range(per):
                sums[i] += rows[y + lines * i, k] * a
        cuda.syncthreads()
        for i in range(per):
            rows[y + lines * i, x] = sums[i]

    return device_function(carry)


@functools.cache
def panel_kernel(block: Block) -> Any:
    """Return the kernel that factors a diagonal block and solves the rows below it for the block's columns.

    Every block of threads factors and solves as many rows as the block has; the first writes L⁻¹ and a failed pivot.
    """
    size, lines = block
    per, padded = size // lines, size + 1
    invert, carry = _invert(block), _carry(block)

    def panel(S: Any, diagonal: Any, least: float, first: int, inverses: Any, failed: Any) -> None:
        square = cuda.shared.array((size, padded), np.float64)
        inverse = cuda.shared.array((size, padded), np.float64)
        x, y, system = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x
        bad = invert(S, system, first, diagonal, least, square, inverse)
        if cuda.blockIdx.y == 0:
            for i in range(per):
                inverses[system, first + y + lines * i, x] = inverse[y + lines * i, x]
            if x == 0 and y == 0 and bad >= 0 and failed[system] < 0:
                failed[system] = bad
        top = min(first + size, S.shape[2]) + cuda.blockIdx.y * size
        carry(S, system, first, top, inverse, square)
        for i in range(per):
            r = y + lines * i
            if top + r < S.shape[1] and first + x < S.shape[2]:
                S[system, top + r, first + x] = square[r, x]

    return runtime.kernel(panel)


@functools.cache
def update_kernel(size: int, per: int) -> Any:
    """Return the kernel that subtracts products of the solved columns from the entries below and to the right."""
    across, padded = size // per, size + 1
    shift, mask = shift_and_mask(across)

    def update(S: Any, first: int) -> None:
        beyond, height, n = first + size, S.shape[1], S.shape[2]
        p, q = beyond + cuda.blockIdx.y * size, beyond + cuda.blockIdx.z * size
        if p + size <= q:  # above the diagonal
            return
        left = cuda.shared.array((size, padded), np.float64)
        right = cuda.shared.array((size, padded), np.float64)
        sums = cuda.local.array((per, per), np.float64)
        thread, system = cuda.threadIdx.x, cuda.blockIdx.x
        tx, ty = thread & mask, (thread >> shift) & mask
        for place in range(thread, size * size, across * across):
            r, k = place // size, place % size
            left[k, r] = S[system, p + r, first + k] if p + r < height else ZERO
            right[k, r] = S[system, q + r, first + k] if q + r < n else ZERO
        for i in range(per):
            for j in range(per):
                sums[i, j] = ZERO
        cuda.syncthreads()
        for k in range(size):
            for i in range(per):
                for j in range(per):
                    sums[i, j] += left[k, ty + across * i] * right[k, tx + across * j]
        for i in range(per):
            for j in range(per):
                if p + ty + across * i < height and q + tx + across * j < n:
                    S[system, p + ty + across * i, q + tx + across * j] -= sums[i, j]

    return runtime.kernel(update)


@functools.cache
def back_kernel(block: Block) -> Any:
    """Return the kernel that solves the right-hand sides from the last block of unknowns to the first.

    A line of threads has one right-hand side: they are independent of each other, so that one launch is enough.
    """
    size, lines = block
    per, padded = size // lines, size + 1

    def back(S: Any, inverses: Any) -> None:
        tile = cuda.shared.array((size, padded), np.float64)
        solved = cuda.shared.array((lines, padded), np.float64)
        x, y, system, n = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x, S.shape[2]
        side = n + cuda.blockIdx.y * lines + y
        for q in range((n - 1) // size * size, -1, -size):
            inside = side < S.shape[1] and q + x < n
            value = S[system, side, q + x] if inside else ZERO
            for k in range(q + size, n, size):
                solved[y, x] = ZERO
                if side < S.shape[1] and k + x < n:
                    solved[y, x] = S[system, side, k + x]
                for i in range(per):
                    r = y + lines * i
                    tile[r, x] = S[system, k + r, q + x] if k + r < n else ZERO
                cuda.syncthreads()
                for r in range(size):
                    value -= solved[y, r] * tile[r, x]
                cuda.syncthreads()
            solved[y, x] = value
            for i in range(per):
                tile[y + lines * i, x] = inverses[system, q + y + lines * i, x]
            cuda.syncthreads()
            value = ZERO
            for r in range(size):
                value += solved[y, r] * tile[r, x]
            if inside:
                S[system, side, q + x] = value
            cuda.syncthreads()

    return runtime.kernel(back)


@functools.cache
def small_kernel(block: Block) -> Any:
    """Return the kernel that solves systems that fit a block in shared memory, with as many sides as the block has."""
    size, lines = block
    per, padded = size // lines, size + 1
    invert, carry = _invert(block), _carry(block)

    def small(S: Any, diagonal: Any, least: float, failed: Any) -> None:
        square = cuda.shared.array((size, padded), np.float64)
        inverse = cuda.shared.array((size, padded), np.float64)
        sums = cuda.local.array(per, np.float64)
        x, y, system, n = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x, S.shape[2]
        bad = invert(S, system, 0, diagonal, least, square, inverse)
        if x == 0 and y == 0 and cuda.blockIdx.y == 0:
            failed[system] = bad
        top = n + cuda.blockIdx.y * size
        carry(S, system, 0, top, inverse, square)
        for i in range(per):
            sums[i] = ZERO
        cuda.syncthreads()
        for k in range(size):
            a = inverse[k, x]
            for i in range(per):
                sums[i] += square[y + lines * i, k] * a
        for i in range(per):
            r = y + lines * i
            if top + r < S.shape[1] and x < n:
                S[system, top + r, x] = sums[i]

    return runtime.kernel(small)


@functools.cache
def ridge_kernel(threads: int) -> Any:
    """Return the kernel that computes the ridge of every system: eps, or eps times the mean of its diagonal."""

    def find_ridge(G: Any, eps: float, relative: int, ridge: Any) -> None:
        sums = cuda.shared.array(threads, np.float64)
        system, thread, n = cuda.blockIdx.x, cuda.threadIdx.x, G.shape[1]
        total = ZERO
        if relative:
            for i in range(thread, n, threads):
                total += np.float64(G[system, i, i])
        sums[thread] = total
        cuda.syncthreads()
        if thread == 0:
            value = np.float64(eps)
            if relative:
                total = ZERO
                for k in range(threads):
                    total += sums[k]
                value *= total / n
            ridge[system] = value

    return runtime.kernel(find_ridge)


@functools.cache
def assemble_kernel(block: Block) -> Any:
    """Return the kernel that writes [G C]ᵀ, with the ridge on the diagonal, to S, and that diagonal to an array."""
    size, lines = block
    per, padded = size // lines, size + 1

    def assemble(G: Any, C: Any, ridge: Any, S: Any, diagonal: Any) -> None:
        tile = cuda.shared.array((size, padded), np.float64)
        x, y, system = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x
        height, n = S.shape[1], S.shape[2]
        p, q = cuda.blockIdx.y * size, cuda.blockIdx.z * size
        for i in range(per):
            r = y + lines * i
            if q + r < n:
                if p + x < n:
                    tile[r, x] = G[system, q + r, p + x]
                elif p + x < height:
                    tile[r, x] = C[system, q + r, p + x - n]
        cuda.syncthreads()
        for i in range(per):
            r = y + lines * i
            if p + r < height and q + x < n:
                value = tile[x, r]
                if p + r == q + x:
                    value += ridge[system]
                    diagonal[system, q + x] = value
                S[system, p + r, q + x] = value

    return runtime.kernel(assemble)


@functools.cache
def solution_kernel(block: Block) -> Any:
    """Return the kernel that transposes the last rows of S, Wᵀ, into W."""
    size, lines = block
    per, padded = size // lines, size + 1

    def solution(S: Any, W: Any) -> None:
        tile = cuda.shared.array((size, padded), np.float64)
        x, y, system = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x
        n, m = W.shape[1], W.shape[2]
        p, q = cuda.blockIdx.y * size, cuda.blockIdx.z * size
        for i in range(per):
            r = y + lines * i
            if q + r < m and p + x < n:
                tile[r, x] = S[system, n + q + r, p + x]
        cuda.syncthreads()
        for i in range(per):
            r = y + lines * i
            if p + r < n and q + x < m:
                W[system, p + r, q + x] = tile[x, r]

    return runtime.kernel(solution)
