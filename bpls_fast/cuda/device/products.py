"""Sums over rows of products of columns: AᵀWA and AᵀWB. A block sums one tile of the result over a few hundred rows.

A thread reads its rows of the tile from shared memory in vectors of 16 bytes; its columns are spread, so that
neighbouring threads write neighbouring elements. float32 kernels have no float64 instruction: the tiles they write,
each over BLOCK_ROWS rows, are added up in float64 by `add_up`, in the order of the rows. Bytes are multiplied four at
a time (dp4a), exactly.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from bpls_fast.cuda import runtime
from bpls_fast.cuda.runtime import cuda, device_function

__all__ = [
    "ADD_UP_THREADS",
    "ALIGNED",
    "BLOCK_ROWS",
    "PIECE",
    "TILE",
    "Tile",
    "add_up_kernel",
    "bytes_kernel",
    "floats_kernel",
    "mirror_kernel",
    "row_in_tile",
    "shift_and_mask",
]

PIECE = 16
"""The most bytes that a thread reads in one instruction."""

ALIGNED = None if runtime.simulated else PIECE
"""The alignment of shared arrays that are read in vectors; the simulator does not support it."""


class Tile(NamedTuple):
    """A square tile of the result: its side, the side of a thread's share in registers, the rows read at a time."""

    side: int
    per_thread: int
    slab: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return (self.side // self.per_thread) ** 2


def shift_and_mask(across: int) -> tuple[int, int]:
    """Return the shift and the mask that divide by a power of two; the compiler knows the results are not negative."""
    assert across & (across - 1) == 0
    return across.bit_length() - 1, across - 1


def row_in_tile(tile: Tile, real: Any) -> Any:
    """Return the function that computes where in a tile the i-th row of a thread is, in vectors of 16 bytes."""
    piece = min(tile.per_thread, PIECE // np.dtype(real).itemsize)
    shift, mask = shift_and_mask(piece)
    apart = tile.side // tile.per_thread * piece

    def place(thread: int, i: int) -> Any:
        return thread * piece + (i & mask) + (i >> shift) * apart

    return device_function(place)


TILE = {
    np.dtype(np.float32): Tile(64, 8, 16),
    np.dtype(np.float64): Tile(32, 4, 16),
    np.dtype(np.uint8): Tile(64, 8, 8),  # a slab counts words of four rows
}
if runtime.simulated:
    TILE = dict.fromkeys(TILE, Tile(4, 2, 2))

BLOCK_ROWS = {
    np.dtype(np.float32): 256,
    np.dtype(np.float64): 1024,
    np.dtype(np.uint8): 2048,
}
"""The rows that a block sums. Sums of bytes have 32 bits, enough for 65,536 rows: 255² · 65,536 < 2³²."""

ADD_UP_THREADS = (4, 2) if runtime.simulated else (32, 8)


@functools.cache
def floats_kernel(tile: Tile, real: Any, weighted: bool) -> Any:
    """Return the kernel partial[z] = [A 1]ᵀ W [B 1] over the z-th block of rows, in the arithmetic `real`."""
    side, per, slab = tile
    across = side // per
    shift, mask = shift_and_mask(across)
    threads = tile.threads
    zero, one = real(0), real(1)
    at = row_in_tile(tile, real)

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
        left = cuda.shared.array((slab, side), real, alignment=ALIGNED)
        right = cuda.shared.array((slab, side), real, alignment=ALIGNED)
        sums = cuda.local.array((per, per), real)
        thread = cuda.threadIdx.x
        tx, ty = thread & mask, (thread >> shift) & mask
        for i in range(per):
            for j in range(per):
                sums[i, j] = zero
        begin = first + cuda.blockIdx.z * rows
        end = min(begin + rows, A.shape[0])
        for top in range(begin, end, slab):
            for place in range(thread, slab * side, threads):
                s, c = place // side, place % side
                a, b = zero, zero
                if top + s < end:
                    if p + c < A.shape[1]:
                        a = real(A[top + s, p + c])
                    elif p + c < A.shape[1] + ones:
                        a = one
                    if weighted:
                        a *= real(weight[top + s])
                    if q + c < B.shape[1]:
                        b = real(B[top + s, q + c])
                    elif q + c < B.shape[1] + ones_B:
                        b = one
                left[s, c] = a
                right[s, c] = b
            cuda.syncthreads()
            for s in range(slab):
                for i in range(per):
                    a = left[s, at(ty, i)]
                    for j in range(per):
                        sums[i, j] += a * right[s, tx + across * j]
            cuda.syncthreads()
        for i in range(per):
            for j in range(per):
                row, column = p + at(ty, i), q + tx + across * j
                if row < partial.shape[1] and column < partial.shape[2]:
                    partial[cuda.blockIdx.z, row, column] = sums[i, j]

    return runtime.kernel(floats)


@functools.cache
def bytes_kernel(tile: Tile) -> Any:
    """Return the kernel partial[z] = [A 1]ᵀ [A 1] of bytes over the z-th block of rows, exactly, in 32 bits."""
    side, per, slab = tile
    across = side // per
    shift, mask = shift_and_mask(across)
    threads = tile.threads
    dp4a = runtime.dp4a
    at = row_in_tile(tile, np.uint32)

    def bytes_(A: Any, partial: Any, first: int, rows: int, ones: int) -> None:
        p, q = cuda.blockIdx.x * side, cuda.blockIdx.y * side
        if q < p:
            return
        left = cuda.shared.array((slab, side), np.uint32, alignment=ALIGNED)
        right = cuda.shared.array((slab, side), np.uint32, alignment=ALIGNED)
        sums = cuda.local.array((per, per), np.uint32)
        down = cuda.local.array(per, np.uint32)
        along = cuda.local.array(per, np.uint32)
        thread = cuda.threadIdx.x
        tx, ty = thread & mask, (thread >> shift) & mask
        for i in range(per):
            for j in range(per):
                sums[i, j] = np.uint32(0)
        begin = first + cuda.blockIdx.z * rows
        end = min(begin + rows, A.shape[0])
        for top in range(begin, end, 4 * slab):
            for place in range(thread, slab * side, threads):
                s, c = place // side, place % side
                a, b = np.uint32(0), np.uint32(0)
                for k in range(4):
                    r = top + 4 * s + k
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
                # The compiler does not merge reads across inline assembly: they come first.
                for i in range(per):
                    down[i] = left[s, at(ty, i)]
                    along[i] = right[s, tx + across * i]
                for i in range(per):
                    for j in range(per):
                        sums[i, j] = dp4a(down[i], along[j], sums[i, j])
            cuda.syncthreads()
        for i in range(per):
            for j in range(per):
                row, column = p + at(ty, i), q + tx + across * j
                if row < partial.shape[1] and column < partial.shape[2]:
                    partial[cuda.blockIdx.z, row, column] = sums[i, j]

    return runtime.kernel(bytes_)


@functools.cache
def add_up_kernel() -> Any:
    """Return the kernel total += Σ_z partial[z], in float64; if symmetric, of the upper triangle only."""

    def add_up(partial: Any, total: Any, symmetric: int) -> None:
        j, i = cuda.grid(2)
        if i < total.shape[0] and j < total.shape[1] and not (symmetric and j < i):
            value = total[i, j]
            for z in range(partial.shape[0]):
                value += np.float64(partial[z, i, j])
            total[i, j] = value

    return runtime.kernel(add_up)


@functools.cache
def mirror_kernel(block: tuple[int, int]) -> Any:
    """Return the kernel that copies the upper triangle of a square matrix to the lower one, tile by tile."""
    size, lines = block
    per, padded = size // lines, size + 1

    def mirror(G: Any) -> None:
        p, q = cuda.blockIdx.x * size, cuda.blockIdx.y * size
        if q < p:
            return
        tile = cuda.shared.array((size, padded), np.float64)
        x, y, n = cuda.threadIdx.x, cuda.threadIdx.y, G.shape[0]
        for i in range(per):
            r = y + lines * i
            if p + r < n and q + x < n:
                tile[r, x] = G[p + r, q + x]
        cuda.syncthreads()
        for i in range(per):
            r = y + lines * i
            value = tile[x, r]
            if q + r < n and p + x < q + r:
                G[q + r, p + x] = value

    return runtime.kernel(mirror)
