"""A layer in one kernel: the product A W + b, and its ending, which turns the product into the result.

A block of threads computes one tile of the result. Tiles of A and W go through shared memory, a slab of inputs at a
time. The columns of A are stored there as rows, padded by 16 bytes: threads of a warp have no bank conflicts, and each
reads its rows in vectors of 16 bytes. The columns of a thread are spread, so that neighbouring threads write
neighbouring elements. Softmax needs whole rows: it is part of the kernel if a row fits a tile. The values that its
threads exchange, once per tile, have bank conflicts of up to eight threads.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from bpls_fast.cuda import runtime
from bpls_fast.cuda.device.functions import functions
from bpls_fast.cuda.device.products import ALIGNED, PIECE, Tile, row_in_tile, shift_and_mask
from bpls_fast.cuda.runtime import cuda, device_function

__all__ = ["TILE", "layer_kernel"]

TILE = {np.dtype(np.float32): Tile(64, 8, 8), np.dtype(np.float64): Tile(32, 4, 8)}
if runtime.simulated:
    TILE = dict.fromkeys(TILE, Tile(4, 2, 2))


@functools.cache
def layer_kernel(tile: Tile, real: Any, ending: str, name: str = "identity") -> Any:
    """Return the kernel out = ending(A W + b, other), in the arithmetic `real`.

    The endings: "forward" applies the activation; "tangent" multiplies by its slope at the values `other`; "residual"
    subtracts the product from `other`; "target" adds `other` and inverts the activation, after clipping to at least
    `least` and `margin` inside the range. For softmax a row must fit the tile.
    """
    side, per, slab = tile
    across, padded = side // per, side + PIECE // np.dtype(real).itemsize
    at = row_in_tile(tile, real)
    shift, mask = shift_and_mask(across)
    threads = tile.threads
    zero, lowest = real(0), real(-np.inf)
    by_rows = name == "softmax"
    prepare, term, finish = _row_ending(ending, real)
    end = _ending(ending, "identity" if by_rows else name, real)
    short = ending == "residual" or (ending, name) == ("forward", "identity")

    def layer(A: Any, W: Any, other: Any, out: Any, bias: int, margin: Any, least: Any) -> None:
        p, q = cuda.blockIdx.x * side, cuda.blockIdx.y * side
        left = cuda.shared.array((slab, padded), real, alignment=ALIGNED)
        right = cuda.shared.array((slab, side), real)
        sums = cuda.local.array((per, per), real)
        thread = cuda.threadIdx.x
        tx, ty = thread & mask, (thread >> shift) & mask
        for j in range(per):
            b = zero
            if bias and q + tx + across * j < W.shape[1]:
                b = real(W[A.shape[1], q + tx + across * j])
            for i in range(per):
                sums[i, j] = b
        for k in range(0, A.shape[1], slab):
            for place in range(thread, slab * side, threads):
                r, s = place // slab, place % slab
                a = zero
                if p + r < A.shape[0] and k + s < A.shape[1]:
                    a = real(A[p + r, k + s])
                left[s, r] = a
            for place in range(thread, slab * side, threads):
                s, c = place // side, place % side
                w = zero
                if k + s < A.shape[1] and q + c < W.shape[1]:
                    w = real(W[k + s, q + c])
                right[s, c] = w
            cuda.syncthreads()
            for s in range(slab):
                for i in range(per):
                    a = left[s, at(ty, i)]
                    for j in range(per):
                        sums[i, j] += a * right[s, tx + across * j]
            cuda.syncthreads()
        for j in range(per):
            column = q + tx + across * j
            if column < out.shape[1]:
                for i in range(per):
                    row = p + at(ty, i)
                    if row < out.shape[0]:
                        z = sums[i, j]
                        if short:
                            z = end(z, other, row, column, margin, least)
                        out[row, column] = z
        if by_rows:
            # The threads of a row exchange their largest values, then their sums, in shared memory.
            if ending == "forward":
                for i in range(per):
                    top = lowest
                    for j in range(per):
                        if tx + across * j < out.shape[1] and not sums[i, j] <= top:
                            top = sums[i, j]
                    left[tx, at(ty, i)] = top
                cuda.syncthreads()
            for i in range(per):
                row, top, total = p + at(ty, i), lowest, zero
                if ending == "forward":
                    for t in range(across):
                        if not left[t, at(ty, i)] <= top:
                            top = left[t, at(ty, i)]
                for j in range(per):
                    column = tx + across * j
                    if row < out.shape[0] and column < out.shape[1]:
                        z = prepare(out[row, column], top, other, row, column, margin)
                        total += term(z, other, row, column)
                        out[row, column] = z
                right[tx, at(ty, i)] = total
            cuda.syncthreads()
            for i in range(per):
                row, total = p + at(ty, i), zero
                for t in range(across):
                    total += right[t, at(ty, i)]
                for j in range(per):
                    column = tx + across * j
                    if row < out.shape[0] and column < out.shape[1]:
                        z, width = out[row, column], real(out.shape[1])
                        out[row, column] = finish(z, total, width, other, row, column)
        elif not short:
            # A loop that is not unrolled needs no sums in registers: it reads what this thread wrote.
            for place in range(per * per):
                row = p + at(ty, place // per)
                column = q + tx + across * (place % per)
                if row < out.shape[0] and column < out.shape[1]:
                    z = out[row, column]
                    out[row, column] = end(z, other, row, column, margin, least)

    return runtime.kernel(layer)


def _ending(ending: str, name: str, real: Any) -> Any:
    act = functions(name, real)
    forward, inverse, slope = act.forward, act.inverse, act.slope

    def apply(z: Any, other: Any, row: int, column: int, margin: Any, least: Any) -> Any:
        return forward(z)

    def tangent(z: Any, other: Any, row: int, column: int, margin: Any, least: Any) -> Any:
        return z * slope(other[row, column])

    def residual(z: Any, other: Any, row: int, column: int, margin: Any, least: Any) -> Any:
        return other[row, column] - z

    def target(z: Any, other: Any, row: int, column: int, margin: Any, least: Any) -> Any:
        n = other[row, column] + z
        return inverse(least if n < least else n, margin)

    endings = {"forward": apply, "tangent": tangent, "residual": residual, "target": target}
    return device_function(endings[ending])


def _row_ending(ending: str, real: Any) -> Any:
    """Return the three steps of softmax: prepare a number, its term in the sum over the row, the final value."""

    def power(z: Any, top: Any, other: Any, row: int, column: int, margin: Any) -> Any:
        return real(math.exp(z - top))

    def logarithm(z: Any, top: Any, other: Any, row: int, column: int, margin: Any) -> Any:
        n = other[row, column] + z
        return real(math.log(margin if n < margin else n))

    def same(z: Any, top: Any, other: Any, row: int, column: int, margin: Any) -> Any:
        return z

    def itself(z: Any, other: Any, row: int, column: int) -> Any:
        return z

    def weighted(z: Any, other: Any, row: int, column: int) -> Any:
        return other[row, column] * z

    def share(z: Any, total: Any, width: Any, other: Any, row: int, column: int) -> Any:
        return z / total

    def centred(z: Any, total: Any, width: Any, other: Any, row: int, column: int) -> Any:
        return z - total / width

    def jacobian(z: Any, total: Any, width: Any, other: Any, row: int, column: int) -> Any:
        return other[row, column] * (z - total)

    endings: dict[str, tuple[Any, ...]] = {
        "target": (logarithm, itself, centred),
        "tangent": (same, weighted, jacobian),
    }
    return tuple(map(device_function, endings.get(ending, (power, itself, share))))
