"""Cases of the GPU's kernels: what each must read, write and compute, and the peaks of three GPUs."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import bpls_fast as bf
from bpls_fast import kernels

from .. import SMALL
from ..measure.case import Array, relative_error

ROWS, INPUTS, HIDDEN, OUTPUTS = (12, 9, 5, 3) if SMALL else (60_000, 784, 60, 10)
CHOSEN = 7 if SMALL else 10_000
SYSTEMS, UNKNOWNS = (3, 4) if SMALL else (4096, 16)


class Gpu(NamedTuple):
    """Peaks from a data sheet: bytes per second, and operations per second by arithmetic (a multiply-add is two)."""

    name: str
    memory: float
    peaks: dict[str, float]


GPUS = (
    Gpu("V100", 0.90e12, {"float32": 15.7e12, "float64": 7.8e12, "uint8": 62.8e12}),
    Gpu("A100", 1.555e12, {"float32": 19.5e12, "float64": 9.7e12, "uint8": 78.0e12}),
    Gpu("H100", 3.35e12, {"float32": 66.9e12, "float64": 33.5e12, "uint8": 133.8e12}),
)
"""SXM modules without tensor cores, which our kernels do not use. uint8: dp4a, 64 per clock and multiprocessor."""


@dataclass(frozen=True, eq=False)
class GpuCase:
    """A call at one size: the bytes it must move, the operations it must do, and how to make it."""

    name: str
    bytes: float
    operations: float
    arithmetic: str
    make: Callable[[], tuple[Array, ...]]
    call: Callable[..., Any]
    """Takes the arrays, which are on the CPU or on the GPU."""
    tolerance: float

    def best_seconds(self, gpu: Gpu) -> float:
        """Return the larger of the times that memory and arithmetic take at their peaks."""
        return max(self.bytes / gpu.memory, self.operations / gpu.peaks[self.arithmetic])

    def bound(self, gpu: Gpu) -> str:
        """Return which of the two is larger."""
        by_memory = self.bytes / gpu.memory >= self.operations / gpu.peaks[self.arithmetic]
        return "memory" if by_memory else "arithmetic"

    @functools.cached_property
    def arrays(self) -> tuple[Array, ...]:
        return self.make()

    def error(self, result: Any) -> float:
        """Return the error of a result relative to the CPU's."""
        expected = np.asarray(self.call(*self.arrays), np.float64)
        return relative_error(np.asarray(result), expected)


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    random = np.random.default_rng(0)
    if dtype == np.uint8:
        return random.integers(0, 256, shape, dtype=np.uint8)
    return random.standard_normal(shape).astype(dtype)


def gram(dtype: Any, tolerance: float, columns: int = INPUTS) -> GpuCase:
    name, size = np.dtype(dtype).name, np.dtype(dtype).itemsize
    return GpuCase(
        f"gram {name}, {ROWS} x {columns}",
        ROWS * columns * size + 8 * columns**2,
        ROWS * columns * (columns + 1),
        name,
        lambda: (numbers(ROWS, columns, dtype=dtype),),
        bf.gram,
        tolerance,
    )


def weighted_gram(A: Array, weights: Array) -> Array:
    return bf.gram(A, sample_weight=weights)


def cross(dtype: Any) -> GpuCase:
    size = np.dtype(dtype).itemsize
    return GpuCase(
        f"cross {np.dtype(dtype).name}, {INPUTS} by {HIDDEN}",
        ROWS * (size * INPUTS + 4 * HIDDEN) + 8 * INPUTS * HIDDEN,
        2 * ROWS * INPUTS * HIDDEN,
        "float32",
        lambda: (numbers(ROWS, INPUTS, dtype=dtype), numbers(ROWS, HIDDEN)),
        bf.cross,
        1e-4,
    )


def elementwise(
    name: str, call: Callable[..., Any], *, arrays: int = 2, operations: int = 20
) -> GpuCase:
    """Return a case on values between 0 and 1 that reads and writes `arrays` matrices in all."""

    def make() -> tuple[Array, ...]:
        values = 1 / (1 + np.exp(-numbers(ROWS, HIDDEN)))
        return (values, values[::-1].copy())[: arrays - 1]

    moved, computed = 4 * arrays * ROWS * HIDDEN, operations * ROWS * HIDDEN
    title = f"{name} float32, {ROWS} x {HIDDEN}"
    return GpuCase(title, moved, computed, "float32", make, call, 1e-4)


def pulled_back(
    kernel: str, activation: str, make: Callable[[], tuple[Array, ...]], call: Callable[..., Any]
) -> GpuCase:
    """Return a case that multiplies values of the outputs by weights and reads and writes hidden values."""
    return GpuCase(
        f"{kernel} float32 {OUTPUTS} -> {HIDDEN}, {activation}",
        4 * ROWS * (OUTPUTS + 2 * HIDDEN),
        2 * ROWS * OUTPUTS * HIDDEN,
        "float32",
        make,
        call,
        1e-4,
    )


def tangent(activation: str) -> GpuCase:
    def make() -> tuple[Array, ...]:
        hidden = bf.activations[activation].forward(numbers(ROWS, HIDDEN))
        return numbers(ROWS, OUTPUTS), numbers(OUTPUTS, HIDDEN), hidden

    call = functools.partial(bf.tangent, activation=activation)
    return pulled_back("tangent", activation, make, call)


def target(activation: str) -> GpuCase:
    act = bf.activations[activation]

    def make() -> tuple[Array, ...]:
        hidden = act.forward(numbers(ROWS, HIDDEN))
        return hidden, numbers(ROWS, OUTPUTS) / 100, numbers(OUTPUTS, HIDDEN) / 100

    return pulled_back(
        "target",
        activation,
        make,
        lambda N, R, M: kernels.target(R, M, N, activation=act.name, margin=1e-3),
    )


def chosen_rows() -> tuple[Array, Array]:
    rows = numbers(ROWS, INPUTS, dtype=np.uint8)
    return rows, np.random.default_rng(1).integers(0, ROWS, CHOSEN)


def labelled() -> tuple[Array, Array]:
    return numbers(ROWS, OUTPUTS), np.random.default_rng(1).integers(0, OUTPUTS, ROWS)


def solve(sides: int) -> GpuCase:
    n = INPUTS + 1
    return GpuCase(
        f"solve, {n} unknowns, {sides} sides",
        8 * n * (n + 2 * sides),
        solving(n, sides),
        "float64",
        functools.partial(definite, sides),
        bf.solve,
        1e-6,
    )


def linear(dtype: Any, activation: str) -> GpuCase:
    size = np.dtype(dtype).itemsize
    return GpuCase(
        f"linear {np.dtype(dtype).name} {INPUTS} -> {HIDDEN}, {activation}",
        ROWS * INPUTS * size + 4 * INPUTS * HIDDEN + 4 * ROWS * HIDDEN,
        2 * ROWS * INPUTS * HIDDEN,
        "float32",
        lambda: (numbers(ROWS, INPUTS, dtype=dtype), numbers(INPUTS, HIDDEN) / 100),
        functools.partial(bf.linear, activation=activation),
        1e-4,
    )


def definite(sides: int) -> tuple[Array, Array]:
    n = INPUTS + 1
    return np.asarray(bf.gram(numbers(2 * n, n))), numbers(n, sides, dtype=np.float64)


def batch() -> tuple[Array, Array]:
    rows = numbers(SYSTEMS, 3 * UNKNOWNS, UNKNOWNS, dtype=np.float64)
    return np.swapaxes(rows, 1, 2) @ rows, numbers(SYSTEMS, UNKNOWNS, 1, dtype=np.float64)


def solving(n: int, m: int) -> float:
    """Return the operations of a Cholesky factor and of two substitutions for m sides."""
    return n**3 / 3 + 2 * n**2 * m


CASES = [
    gram(np.uint8, 0.0),
    gram(np.float32, 1e-5),
    gram(np.float64, 1e-12),
    gram(np.float32, 1e-5, HIDDEN),
    GpuCase(
        f"gram float32 weighted, {ROWS} x {INPUTS}",
        4 * ROWS * (INPUTS + 1) + 8 * INPUTS**2,
        ROWS * INPUTS * (INPUTS + 2),
        "float32",
        lambda: (numbers(ROWS, INPUTS), np.abs(numbers(ROWS))),
        weighted_gram,
        1e-5,
    ),
    cross(np.float32),
    cross(np.uint8),
    linear(np.float32, "relu"),
    linear(np.float32, "softmax"),
    linear(np.uint8, "relu"),
    tangent("tanh"),
    tangent("softmax"),
    target("tanh"),
    target("softmax"),
    GpuCase(
        f"residual float32 {HIDDEN} -> {OUTPUTS}",
        4 * ROWS * (HIDDEN + 2 * OUTPUTS),
        2 * ROWS * HIDDEN * OUTPUTS,
        "float32",
        lambda: (numbers(ROWS, HIDDEN), numbers(HIDDEN, OUTPUTS), numbers(ROWS, OUTPUTS)),
        kernels.residual,
        1e-4,
    ),
    elementwise("sigmoid", bf.activations["sigmoid"].forward),
    elementwise("inverse of sigmoid", bf.activations["sigmoid"].inverse),
    elementwise("derivative of sigmoid", bf.activations["sigmoid"].derivative),
    elementwise("jacobian of sigmoid", bf.activations["sigmoid"].jacobian, arrays=3, operations=3),
    elementwise("softmax", bf.activations["softmax"].forward, operations=40),
    elementwise("inverse of softmax", bf.activations["softmax"].inverse, operations=40),
    GpuCase(
        f"column sums float32, {ROWS} x {HIDDEN}",
        8 * ROWS * HIDDEN,
        3 * ROWS * HIDDEN,
        "float64",
        lambda: (numbers(ROWS, HIDDEN), numbers(ROWS, HIDDEN)),
        kernels.column_sums,
        1e-9,
    ),
    GpuCase(
        f"squared slopes of tanh float32, {ROWS} x {HIDDEN}",
        4 * ROWS * HIDDEN,
        3 * ROWS * HIDDEN,
        "float64",
        lambda: (np.tanh(numbers(ROWS, HIDDEN)),),
        bf.activations["tanh"].squared_slopes,
        1e-5,
    ),
    GpuCase(
        f"missed float32, {ROWS} x {OUTPUTS}",
        ROWS * (4 * OUTPUTS + 8 + 1),
        ROWS * OUTPUTS,
        "float32",
        labelled,
        kernels.missed,
        0.0,
    ),
    GpuCase(
        f"{CHOSEN} rows taken of uint8, {ROWS} x {INPUTS}",
        CHOSEN * (2 * INPUTS + 8),
        CHOSEN * INPUTS,
        "float32",
        chosen_rows,
        lambda rows, chosen: rows[chosen],
        0.0,
    ),
    solve(HIDDEN),
    solve(INPUTS),
    GpuCase(
        f"solve_batched, {SYSTEMS} systems of {UNKNOWNS}",
        8 * SYSTEMS * UNKNOWNS * (UNKNOWNS + 2),
        SYSTEMS * solving(UNKNOWNS, 1),
        "float64",
        batch,
        bf.solve_batched,
        1e-6,
    ),
]
