"""Kernels over elements or rows: activations, softmax, arithmetic, gathered rows, sums of columns, misses.

A thread has one element: columns run along the threads of a warp, rows along its lines and the blocks of the grid.
Contiguous arrays come as one column, so that no index has to be divided into row and column.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from bpls_fast.cuda import runtime
from bpls_fast.cuda.device.functions import functions
from bpls_fast.cuda.runtime import cuda, device_function

__all__ = [
    "SUM_ROWS",
    "THREADS",
    "activation_kernel",
    "arithmetic_kernel",
    "clip_kernel",
    "column_sums_kernel",
    "copy_kernel",
    "element_grid",
    "fill_kernel",
    "missed_kernel",
    "not_finite_kernel",
    "row_block",
    "softmax_kernel",
    "take_kernel",
]

THREADS, LANES = (4, 2) if runtime.simulated else (256, 32)
"""Threads of a block, and the most of them that share a row."""

SUM_ROWS = 1024
"""The rows that one block of `column_sums_kernel` sums."""


def row_block(width: int) -> tuple[int, int]:
    """Return the threads of a block for rows of this width: threads that share a row, and rows."""
    lanes = min(LANES, 1 << max(0, width - 1).bit_length())
    return lanes, THREADS // lanes


def element_grid(rows: int, columns: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the grid and the block with one thread for each element of a matrix."""
    x, y = row_block(columns)
    return (-(-rows // y), -(-columns // x)), (x, y)


def _element() -> Any:
    """Return the row and the column of a thread, which may be outside the matrix."""
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    return row, cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x


element = device_function(_element)


@functools.cache
def activation_kernel(what: str, name: str, real: Any) -> Any:
    """Return the kernel out = what(z): "forward", "inverse" (margin), "derivative" or "jacobian" (v times slope)."""
    forward, inverse, derivative, slope = functions(name, real)

    def forwards(z: Any, v: Any, margin: Any) -> Any:
        return forward(z)

    def inverses(z: Any, v: Any, margin: Any) -> Any:
        return inverse(z, margin)

    def derivatives(z: Any, v: Any, margin: Any) -> Any:
        return derivative(z)

    def jacobians(z: Any, v: Any, margin: Any) -> Any:
        return v * slope(z)

    choices = {
        "forward": forwards,
        "inverse": inverses,
        "derivative": derivatives,
        "jacobian": jacobians,
    }
    apply = device_function(choices[what])

    def activation(z: Any, v: Any, margin: Any, out: Any) -> None:
        i, j = element()
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = apply(z[i, j], v[i, j], margin)

    return runtime.kernel(activation)


@functools.cache
def softmax_kernel(what: str, real: Any, block: tuple[int, int]) -> Any:
    """Return the kernel of softmax along rows: "forward", "inverse" or "jacobian", as `activation_kernel` does."""
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
                total += real(math.exp(z[row, j] - largest))
        shared[y, lane] = total
        cuda.syncthreads()
        total = zero
        for k in range(lanes):
            total += shared[y, k]
        if inside:
            for j in range(lane, z.shape[1], lanes):
                out[row, j] = real(math.exp(z[row, j] - largest)) / total

    def inverses(z: Any, v: Any, margin: Any, out: Any) -> None:
        shared = cuda.shared.array((rows, lanes), real)
        lane, y = cuda.threadIdx.x, cuda.threadIdx.y
        row = cuda.blockIdx.x * rows + y
        inside = row < z.shape[0]
        total = zero
        if inside:
            for j in range(lane, z.shape[1], lanes):
                n = z[row, j]
                total += real(math.log(margin if n < margin else n))
        shared[y, lane] = total
        cuda.syncthreads()
        total = zero
        for k in range(lanes):
            total += shared[y, k]
        if inside:
            mean = total / real(z.shape[1])
            for j in range(lane, z.shape[1], lanes):
                n = z[row, j]
                out[row, j] = real(math.log(margin if n < margin else n)) - mean

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
    """Return the kernel out = a what b; an operand with one row or column is repeated."""

    def add(a: Any, b: Any) -> Any:
        return a + b

    def subtract(a: Any, b: Any) -> Any:
        return a - b

    def multiply(a: Any, b: Any) -> Any:
        return a * b

    apply = device_function({"add": add, "subtract": subtract, "multiply": multiply}[what])

    def arithmetic(a: Any, b: Any, out: Any) -> None:
        i, j = element()
        if i < out.shape[0] and j < out.shape[1]:
            left = a[min(i, a.shape[0] - 1), min(j, a.shape[1] - 1)]
            right = b[min(i, b.shape[0] - 1), min(j, b.shape[1] - 1)]
            out[i, j] = apply(left, right)

    return runtime.kernel(arithmetic)


@functools.cache
def copy_kernel() -> Any:
    """Return the kernel that copies a matrix and converts it to the type of the copy."""

    def copy(A: Any, out: Any) -> None:
        i, j = element()
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = A[i, j]

    return runtime.kernel(copy)


@functools.cache
def fill_kernel() -> Any:
    """Return the kernel that sets every element to one value of the same type."""

    def fill(value: Any, out: Any) -> None:
        i, j = element()
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = value

    return runtime.kernel(fill)


@functools.cache
def take_kernel() -> Any:
    """Return the kernel that copies rows by their numbers."""

    def take(A: Any, chosen: Any, out: Any) -> None:
        i, j = element()
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = A[chosen[i], j]

    return runtime.kernel(take)


@functools.cache
def missed_kernel(real: Any, block: tuple[int, int]) -> Any:
    """Return the kernel that flags the rows whose largest output is not that of their label.

    As in NumPy's argmax, the first of equal values counts, and NaN is larger than any number.
    """
    lanes, rows = block

    def above(a: Any, b: Any) -> Any:
        return a > b or (a != a and b == b)

    larger = device_function(above)

    def missed(outputs: Any, labels: Any, flags: Any) -> None:
        values = cuda.shared.array((rows, lanes), real)
        places = cuda.shared.array((rows, lanes), np.int64)
        lane, y = cuda.threadIdx.x, cuda.threadIdx.y
        row = cuda.blockIdx.x * rows + y
        if row < flags.size and lane < outputs.shape[1]:
            value, place = outputs[row, lane], lane
            for j in range(lane + lanes, outputs.shape[1], lanes):
                if larger(outputs[row, j], value):
                    value, place = outputs[row, j], j
            values[y, lane], places[y, lane] = value, place
        cuda.syncthreads()
        if row < flags.size and lane == 0:
            value, place = values[y, 0], places[y, 0]
            for k in range(1, min(lanes, outputs.shape[1])):
                other = values[y, k]
                if larger(other, value) or (not larger(value, other) and places[y, k] < place):
                    value, place = other, places[y, k]
            flags[row] = place != labels[row]

    return runtime.kernel(missed)


@functools.cache
def clip_kernel(real: Any) -> Any:
    """Return the kernel that moves A[i, j] to the nearest number from limits[0, j] to limits[1, j]."""

    def clip(A: Any, limits: Any, out: Any) -> None:
        i, j = element()
        if i < out.shape[0] and j < out.shape[1]:
            value = real(A[i, j])
            if value < limits[0, j]:
                value = limits[0, j]
            if value > limits[1, j]:
                value = limits[1, j]
            out[i, j] = value

    return runtime.kernel(clip)


@functools.cache
def not_finite_kernel() -> Any:
    """Return the kernel that sets a flag if an element is NaN or infinite."""

    def not_finite(A: Any, flag: Any) -> None:
        i, j = element()
        if i < A.shape[0] and j < A.shape[1] and not math.isfinite(A[i, j]):
            flag[0] = 1

    return runtime.kernel(not_finite)


@functools.cache
def column_sums_kernel(
    what: str,
    weighted: bool,
    block: tuple[int, int],
    name: str = "identity",
    real: Any = np.float64,
) -> Any:
    """Return the kernel partial[z, 0, j] = Σ w t over the z-th block of rows, in float64; the weights w are optional.

    The terms t are the "values" of P, "products" P Q, or the squared "slopes" of an activation that has the values P.
    """
    columns, groups = block
    zero = np.float64(0)
    slope = functions(name, real).slope

    def values(P: Any, Q: Any, i: int, j: int) -> Any:
        return np.float64(P[i, j])

    def products(P: Any, Q: Any, i: int, j: int) -> Any:
        return np.float64(P[i, j]) * np.float64(Q[i, j])

    def slopes(P: Any, Q: Any, i: int, j: int) -> Any:
        s = np.float64(slope(P[i, j]))
        return s * s

    term = device_function({"values": values, "products": products, "slopes": slopes}[what])

    def column_sums(P: Any, Q: Any, weight: Any, partial: Any) -> None:
        shared = cuda.shared.array((groups, columns), np.float64)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        j = cuda.blockIdx.y * columns + x
        begin = cuda.blockIdx.x * SUM_ROWS
        total = zero
        if j < P.shape[1]:
            for i in range(begin + y, min(begin + SUM_ROWS, P.shape[0]), groups):
                value = term(P, Q, i, j)
                if weighted:
                    value *= np.float64(weight[i])
                total += value
        shared[y, x] = total
        cuda.syncthreads()
        if y == 0 and j < P.shape[1]:
            total = zero
            for k in range(groups):
                total += shared[k, x]
            partial[cuda.blockIdx.x, 0, j] = total

    return runtime.kernel(column_sums)
