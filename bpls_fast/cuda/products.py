"""Sums over rows of products of columns: AᵀWA and AᵀWB. A block sums one tile of the result over a few hundred rows.

float32 kernels hold no float64 instruction: the tiles they write, each of BLOCK_ROWS rows, are added up in float64 by
`add_up`, in the order of the rows. Bytes are multiplied four at a time (dp4a) and are exact.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from bpls_fast.cuda import runtime
from bpls_fast.cuda.runtime import cuda

__all__ = ["BLOCK_ROWS", "TILE", "Tile", "add_up_kernel", "bytes_kernel", "floats_kernel", "powers"]


class Tile(NamedTuple):
    """A square of the result: its side, the side of what a thread holds in registers, rows that are read at once."""

    side: int
    per_thread: int
    slab: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return (self.side // self.per_thread) ** 2


def powers(across: int) -> tuple[int, int]:
    """Give the shift and the mask that divide by a power of two: to the compiler their results are never negative."""
    assert across & (across - 1) == 0
    return across.bit_length() - 1, across - 1


TILE = {
    np.dtype(np.float32): Tile(64, 8, 16),
    np.dtype(np.float64): Tile(32, 4, 16),
    np.dtype(np.uint8): Tile(64, 8, 8),  # of a slab of words: four rows each
}
if runtime.simulated:
    TILE = dict.fromkeys(TILE, Tile(4, 2, 2))

BLOCK_ROWS = {
    np.dtype(np.float32): 256,
    np.dtype(np.float64): 1024,
    np.dtype(np.uint8): 8192,
}
"""Rows that a block sums. 65,536 rows of bytes at most fit the 32 bits of their sums: 255² · 65,536 < 2³²."""

ADD_UP_THREADS = (4, 2) if runtime.simulated else (32, 8)


@functools.cache
def floats_kernel(tile: Tile, real: Any, weighted: bool) -> Any:
    """Give the kernel partial[z] = [A 1]ᵀ W [B 1] over the z-th block of rows, in the arithmetic `real`."""
    side, per, slab = tile
    across = side // per
    shift, mask = powers(across)
    threads = tile.threads
    zero, one = real(0), real(1)

    def floats(
        A: Any,
        B: Any,
        weight: Any,
        partial: Any,
        first: int,
        rows: int,
        ones: int,
        ones_B: int,
        symmetric: int,
    ) -> None:
        p, q = cuda.blockIdx.x * side, cuda.blockIdx.y * side
        if symmetric and q < p:
            return
        left = cuda.shared.array((slab, side), real)
        right = cuda.shared.array((slab, side), real)
        sums = cuda.local.array((per, per), real)
        thread = cuda.threadIdx.x
        tx, ty = thread & mask, (thread >> shift) & mask
        for i in range(per):
            for j in range(per):
                sums[i, j] = zero
        begin = first + cuda.blockIdx.z * rows
        end = min(begin + rows, A.shape[0])
        for row in range(begin, end, slab):
            for place in range(thread, slab * side, threads):
                s, c = place // side, place % side
                a, b = zero, zero
                if row + s < end:
                    if p + c < A.shape[1]:
                        a = real(A[row + s, p + c])
                    elif p + c < A.shape[1] + ones:
                        a = one
                    if weighted:
                        a *= real(weight[row + s])
                    if q + c < B.shape[1]:
                        b = real(B[row + s, q + c])
                    elif q + c < B.shape[1] + ones_B:
                        b = one
                left[s, c] = a
                right[s, c] = b
            cuda.syncthreads()
            for s in range(slab):
                for i in range(per):
                    a = left[s, ty + across * i]
                    for j in range(per):
                        sums[i, j] += a * right[s, tx + across * j]
            cuda.syncthreads()
        for i in range(per):
            for j in range(per):
                if (
                    p + ty + across * i < partial.shape[1]
                    and q + tx + across * j < partial.shape[2]
                ):
                    partial[cuda.blockIdx.z, p + ty + across * i, q + tx + across * j] = sums[i, j]

    return runtime.kernel(floats)


@functools.cache
def bytes_kernel(tile: Tile) -> Any:
    """Give the kernel partial[z] = [A 1]ᵀ [A 1] of bytes over the z-th block of rows, exact, in 32 bits."""
    side, per, slab = tile
    across = side // per
    shift, mask = powers(across)
    threads = tile.threads
    dp4a = runtime.dp4a

    def bytes_(A: Any, partial: Any, first: int, rows: int, ones: int) -> None:
        p, q = cuda.blockIdx.x * side, cuda.blockIdx.y * side
        if q < p:
            return
        left = cuda.shared.array((slab, side), np.uint32)
        right = cuda.shared.array((slab, side), np.uint32)
        sums = cuda.local.array((per, per), np.uint32)
        thread = cuda.threadIdx.x
        tx, ty = thread & mask, (thread >> shift) & mask
        for i in range(per):
            for j in range(per):
                sums[i, j] = np.uint32(0)
        begin = first + cuda.blockIdx.z * rows
        end = min(begin + rows, A.shape[0])
        for row in range(begin, end, 4 * slab):
            for place in range(thread, slab * side, threads):
                s, c = place // side, place % side
                a, b = np.uint32(0), np.uint32(0)
                for k in range(4):
                    r = row + 4 * s + k
                    if r < end:
                        if p + c < A.shape[1]:
                            a |= np.uint32(A[r, p + c]) << np.uint32(8 * k)
                        elif p + c < A.shape[1] + ones:
                            a |= np.uint32(1) << np.uint32(8 * k)
                        if q + c < A.shape[1]:
                            b |= np.uint32(A[r, q + c]) << np.uint32(8 * k)
                        elif q + c < A.shape[1] + ones:
                            b |= np.uint32(1) << np.uint32(8 * k)
                left[s, c] = a
                right[s, c] = b
            cuda.syncthreads()
            for s in range(slab):
                for i in range(per):
                    a = left[s, ty + across * i]
                    for j in range(per):
                        sums[i, j] = dp4a(a, right[s, tx + across * j], sums[i, j])
            cuda.syncthreads()
        for i in range(per):
            for j in range(per):
                if (
                    p + ty + across * i < partial.shape[1]
                    and q + tx + across * j < partial.shape[2]
                ):
                    partial[cuda.blockIdx.z, p + ty + across * i, q + tx + across * j] = sums[i, j]

    return runtime.kernel(bytes_)


@functools.cache
def add_up_kernel() -> Any:
    """Give the kernel total += Σ_z partial[z], in float64; of a symmetric sum the upper triangle serves both."""

    def add_up(partial: Any, total: Any, symmetric: int) -> None:
        j, i = cuda.grid(2)
        if i < total.shape[0] and j < total.shape[1]:
            p, q = i, j
            if symmetric and j < i:
                p, q = j, i
            value = total[i, j]
            for z in range(partial.shape[0]):
                value += np.float64(partial[z, p, q])
            total[i, j] = value

    return runtime.kernel(add_up)
