"""Kernels that do the same to every element or row: activations, softmax, arithmetic, gathering rows, sums, misses."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from bpls_fast.cuda import runtime
from bpls_fast.cuda.functions import functions
from bpls_fast.cuda.runtime import cuda

__all__ = [
    "ROW_BLOCK",
    "SUM_ROWS",
    "THREADS",
    "activation_kernel",
    "arithmetic_kernel",
    "column_sums_kernel",
    "copy_kernel",
    "missed_kernel",
    "not_finite_kernel",
    "softmax_kernel",
    "take_kernel",
]

THREADS = 4 if runtime.simulated else 256
ROW_BLOCK = (2, 2) if runtime.simulated else (32, 8)
"""Threads that share a row, and rows of a block, in kernels that need whole rows."""

SUM_ROWS = 1024
"""Rows that a block of `column_sums_kernel` sums."""


@functools.cache
def activation_kernel(what: str, name: str, real: Any) -> Any:
    """Give the kernel out = what(z): "forward", "inverse" (with a margin), "derivative", "jacobian" (v times slope)."""
    act = functions(name, real)
    forward, inverse, derivative, slope = act

    def forwards(z: Any, v: Any, margin: Any, out: Any) -> None:
        for place in range(cuda.grid(1), z.size, cuda.gridsize(1)):
            i, j = place // z.shape[1], place % z.shape[1]
            out[i, j] = forward(z[i, j])

    def inverses(z: Any, v: Any, margin: Any, out: Any) -> None:
        for place in range(cuda.grid(1), z.size, cuda.gridsize(1)):
            i, j = place // z.shape[1], place % z.shape[1]
            out[i, j] = inverse(z[i, j], margin)

    def derivatives(z: Any, v: Any, margin: Any, out: Any) -> None:
        for place in range(cuda.grid(1), z.size, cuda.gridsize(1)):
            i, j = place // z.shape[1], place % z.shape[1]
            out[i, j] = derivative(z[i, j])

    def jacobians(z: Any, v: Any, margin: Any, out: Any) -> None:
        for place in range(cuda.grid(1), z.size, cuda.gridsize(1)):
            i, j = place // z.shape[1], place % z.shape[1]
            out[i, j] = v[i, j] * slope(z[i, j])

    kernels = {
        "forward": forwards,
        "inverse": inverses,
        "derivative": derivatives,
        "jacobian": jacobians,
    }
    return runtime.kernel(kernels[what])


@functools.cache
def softmax_kernel(what: str, real: Any, block: tuple[int, int]) -> Any:
    """Give the kernel of softmax along rows: "forward", "inverse" or "jacobian", as `activation_kernel` does."""
    lanes, rows = block
    zero = real(0)
    lowest = real(-np.inf)

    def forwards(z: Any, v: Any, margin: Any, out: Any) -> None:
        shared = cuda.shared.array((rows, lanes), real)
        lane, y = cuda.threadIdx.x, cuda.threadIdx.y
        row = cuda.blockIdx.x * rows + y
        inside = row < z.shape[0]
        largest = lowest
        if inside:
            for j in range(lane, z.shape[1], lanes):
                if not z[row, j] <= largest:
                    largest = z[row, j]
        shared[y, lane] = largest
        cuda.syncthreads()
        for k in range(lanes):
            if not shared[y, k] <= largest:
                largest = shared[y, k]
        cuda.syncthreads()
        total = zero
        if inside:
            for j in range(lane, z.shape[1], lanes):
                e = real(math.exp(z[row, j] - largest))
                out[row, j] = e
                total += e
        shared[y, lane] = total
        cuda.syncthreads()
        total = zero
        for k in range(lanes):
            total += shared[y, k]
        if inside:
            for j in range(lane, z.shape[1], lanes):
                out[row, j] = out[row, j] / total

    def inverses(z: Any, v: Any, margin: Any, out: Any) -> None:
        shared = cuda.shared.array((rows, lanes), real)
        lane, y = cuda.threadIdx.x, cuda.threadIdx.y
        row = cuda.blockIdx.x * rows + y
        inside = row < z.shape[0]
        total = zero
        if inside:
            for j in range(lane, z.shape[1], lanes):
                n = z[row, j]
                n = real(math.log(margin if n < margin else n))
                out[row, j] = n
                total += n
        shared[y, lane] = total
        cuda.syncthreads()
        total = zero
        for k in range(lanes):
            total += shared[y, k]
        if inside:
            mean = total / real(z.shape[1])
            for j in range(lane, z.shape[1], lanes):
                out[row, j] = out[row, j] - mean

    def jacobians(z: Any, v: Any, margin: Any, out: Any) -> None:
        shared = cuda.shared.array((rows, lanes), real)
        lane, y = cuda.threadIdx.x, cuda.threadIdx.y
        row = cuda.blockIdx.x * rows + y
        inside = row < z.shape[0]
        total = zero
        if inside:
            for j in range(lane, z.shape[1], lanes):
                total += z[row, j] * v[row, j]
        shared[y, lane] = total
        cuda.syncthreads()
        total = zero
        for k in range(lanes):
            total += shared[y, k]
        if inside:
            for j in range(lane, z.shape[1], lanes):
                out[row, j] = z[row, j] * (v[row, j] - total)

    return runtime.kernel({"forward": forwards, "inverse": inverses, "jacobian": jacobians}[what])


@functools.cache
def arithmetic_kernel(what: str) -> Any:
    """Give the kernel out = a what b; an operand with one row or column is repeated."""

    def add(a: Any, b: Any, out: Any) -> None:
        for place in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            i, j = place // out.shape[1], place % out.shape[1]
            out[i, j] = (
                a[min(i, a.shape[0] - 1), min(j, a.shape[1] - 1)]
                + b[min(i, b.shape[0] - 1), min(j, b.shape[1] - 1)]
            )

    def subtract(a: Any, b: Any, out: Any) -> None:
        for place in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            i, j = place // out.shape[1], place % out.shape[1]
            out[i, j] = (
                a[min(i, a.shape[0] - 1), min(j, a.shape[1] - 1)]
                - b[min(i, b.shape[0] - 1), min(j, b.shape[1] - 1)]
            )

    def multiply(a: Any, b: Any, out: Any) -> None:
        for place in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            i, j = place // out.shape[1], place % out.shape[1]
            out[i, j] = (
                a[min(i, a.shape[0] - 1), min(j, a.shape[1] - 1)]
                * b[min(i, b.shape[0] - 1), min(j, b.shape[1] - 1)]
            )

    return runtime.kernel({"add": add, "subtract": subtract, "multiply": multiply}[what])


@functools.cache
def copy_kernel() -> Any:
    """Give the kernel that copies a matrix, to the type of the copy."""

    def copy(A: Any, out: Any) -> None:
        for place in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            i, j = place // out.shape[1], place % out.shape[1]
            out[i, j] = A[i, j]

    return runtime.kernel(copy)


@functools.cache
def take_kernel() -> Any:
    """Give the kernel that gathers rows."""

    def take(A: Any, chosen: Any, out: Any) -> None:
        for place in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            i, j = place // out.shape[1], place % out.shape[1]
            out[i, j] = A[chosen[i], j]

    return runtime.kernel(take)


@functools.cache
def missed_kernel() -> Any:
    """Give the kernel that flags the rows whose largest output, the first of them, is not that of their label."""

    def missed(outputs: Any, labels: Any, flags: Any) -> None:
        for i in range(cuda.grid(1), flags.size, cuda.gridsize(1)):
            best = 0
            for j in range(1, outputs.shape[1]):
                if outputs[i, j] > outputs[i, best]:
                    best = j
            flags[i] = best != labels[i]

    return runtime.kernel(missed)


@functools.cache
def not_finite_kernel() -> Any:
    """Give the kernel that sets the flag where an element is NaN or infinite."""

    def not_finite(A: Any, flag: Any) -> None:
        for place in range(cuda.grid(1), A.size, cuda.gridsize(1)):
            x = A[place // A.shape[1], place % A.shape[1]]
            if not math.isfinite(x):
                flag[0] = 1

    return runtime.kernel(not_finite)


@functools.cache
def column_sums_kernel(paired: bool, weighted: bool, block: tuple[int, int]) -> Any:
    """Give the kernel partial[z, 0, j] = Σ w P Q over the z-th block of rows, in float64; w and Q are optional."""
    columns, groups = block
    zero = np.float64(0)

    def column_sums(P: Any, Q: Any, weight: Any, partial: Any) -> None:
        shared = cuda.shared.array((groups, columns), np.float64)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        j = cuda.blockIdx.x * columns + x
        begin = cuda.blockIdx.y * SUM_ROWS
        total = zero
        if j < P.shape[1]:
            for i in range(begin + y, min(begin + SUM_ROWS, P.shape[0]), groups):
                product = np.float64(P[i, j])
                if paired:
                    product *= np.float64(Q[i, j])
                if weighted:
                    product *= np.float64(weight[i])
                total += product
        shared[y, x] = total
        cuda.syncthreads()
        if y == 0 and j < P.shape[1]:
            total = zero
            for k in range(groups):
                total += shared[k, x]
            partial[cuda.blockIdx.y, 0, j] = total

    return runtime.kernel(column_sums)
