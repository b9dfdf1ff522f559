"""A layer in one kernel: A W + b, and what is to become of it before it is written.

A block makes one tile of the result; the tiles of A and W that it needs go through shared memory, a slab of inputs at
a time. The columns of A are stored as rows, padded by one so that no two threads of a warp meet in a bank.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from bpls_fast.cuda import runtime
from bpls_fast.cuda.functions import functions
from bpls_fast.cuda.products import Tile, powers
from bpls_fast.cuda.runtime import cuda, device_function

__all__ = ["TILE", "layer_kernel"]

TILE = {np.dtype(np.float32): Tile(64, 8, 16), np.dtype(np.float64): Tile(32, 4, 16)}
if runtime.simulated:
    TILE = dict.fromkeys(TILE, Tile(4, 2, 2))


@functools.cache
def layer_kernel(tile: Tile, real: Any, ending: str, name: str = "identity") -> Any:
    """Give the kernel out = ending(A W + b, other), in the arithmetic `real`.

    The endings: "forward" applies the activation; "tangent" multiplies by its slope at the values `other`; "residual"
    gives `other` less the product; "target" adds `other` and inverts the activation, at least `margin` inside its
    range, of values of at least `least`.
    """
    side, per, slab = tile
    across, padded = side // per, side + 1
    shift, mask = powers(across)
    threads = tile.threads
    zero = real(0)
    end = _ending(ending, name, real)
    short = ending == "residual" or (ending, name) == ("forward", "identity")

    def layer(A: Any, W: Any, other: Any, out: Any, bias: int, margin: Any, least: Any) -> None:
        p, q = cuda.blockIdx.x * side, cuda.blockIdx.y * side
        left = cuda.shared.array((slab, padded), real)
        right = cuda.shared.array((slab, side), real)
        sums = cuda.local.array((per, per), real)
        thread = cuda.threadIdx.x
        tx, ty = thread & mask, (thread >> shift) & mask
        for i in range(per):
            for j in range(per):
                sums[i, j] = zero
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
                    a = left[s, ty + across * i]
                    for j in range(per):
                        sums[i, j] += a * right[s, tx + across * j]
            cuda.syncthreads()
        for j in range(per):
            column = q + tx + across * j
            if column < out.shape[1]:
                b = zero
                if bias:
                    b = real(W[A.shape[1], column])
                for i in range(per):
                    row = p + ty + across * i
                    if row < out.shape[0]:
                        z = sums[i, j] + b
                        if short:
                            z = end(z, other, row, column, margin, least)
                        out[row, column] = z
        if not short:
            # A loop that is not unrolled leaves no sums in registers: what it reads is what this thread wrote.
            for place in range(per * per):
                row = p + ty + across * (place // per)
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
