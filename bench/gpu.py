"""The GPU's kernels: what each must read, write and compute, what that takes at best, and what it takes here.

`python bench/gpu.py` prints the table of docs/gpu.md, computed from data sheets; on a machine with an NVIDIA GPU it
adds the times measured there, the rates that they are, and the error beside the CPU's answer. BPLS_BENCH_SMALL=1 cuts
the sizes down to a smoke test.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bpls_fast as bf
from bpls_fast import kernels

Array = NDArray[Any]

SMALL = os.environ.get("BPLS_BENCH_SMALL") == "1"
ROWS, INPUTS, HIDDEN, OUTPUTS = (12, 9, 5, 3) if SMALL else (60_000, 784, 60, 10)
SYSTEMS, UNKNOWNS = (3, 4) if SMALL else (4096, 16)


class Gpu(NamedTuple):
    """The peaks of a data sheet: bytes a second, and operations a second by arithmetic (a multiply-add is two)."""

    name: str
    memory: float
    peaks: dict[str, float]


GPUS = (
    Gpu("V100", 0.90e12, {"float32": 15.7e12, "float64": 7.8e12, "uint8": 62.8e12}),
    Gpu("A100", 1.555e12, {"float32": 19.5e12, "float64": 9.7e12, "uint8": 78.0e12}),
    Gpu("H100", 3.35e12, {"float32": 66.9e12, "float64": 33.5e12, "uint8": 133.8e12}),
)
"""SXM modules, without tensor cores, which our kernels do not use. uint8: dp4a, 64 a clock and multiprocessor."""


@dataclass(frozen=True, eq=False)
class Case:
    """A call at one size: what it moves and computes at least, and how to make it."""

    name: str
    bytes: float
    operations: float
    arithmetic: str
    make: Callable[[], tuple[Array, ...]]
    call: Callable[..., Any]
    """Of the arrays, which are on the CPU or on the GPU."""
    tolerance: float

    def best_seconds(self, gpu: Gpu) -> float:
        """Give the larger of the times that memory and arithmetic take at their peaks."""
        return max(self.bytes / gpu.memory, self.operations / gpu.peaks[self.arithmetic])

    def bound(self, gpu: Gpu) -> str:
        """Name what decides."""
        by_memory = self.bytes / gpu.memory >= self.operations / gpu.peaks[self.arithmetic]
        return "memory" if by_memory else "arithmetic"

    @functools.cached_property
    def arrays(self) -> tuple[Array, ...]:
        return self.make()

    def error(self, result: Any) -> float:
        """Give how far a result is from the CPU's, as a part of its largest value."""
        expected = np.asarray(self.call(*self.arrays), np.float64)
        return float(np.abs(np.asarray(result) - expected).max() / np.abs(expected).max())


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    random = np.random.default_rng(0)
    if dtype == np.uint8:
        return random.integers(0, 256, shape, dtype=np.uint8)
    return random.standard_normal(shape).astype(dtype)


def gram(dtype: Any, tolerance: float) -> Case:
    name, size = np.dtype(dtype).name, np.dtype(dtype).itemsize
    return Case(
        f"gram {name}, {ROWS} x {INPUTS}",
        ROWS * INPUTS * size + 8 * INPUTS**2,
        ROWS * INPUTS * (INPUTS + 1),
        name,
        lambda: (numbers(ROWS, INPUTS, dtype=dtype),),
        bf.gram,
        tolerance,
    )


def linear(dtype: Any, activation: str) -> Case:
    size = np.dtype(dtype).itemsize
    return Case(
        f"linear {np.dtype(dtype).name} {INPUTS} -> {HIDDEN}, {activation}",
        ROWS * INPUTS * size + 4 * INPUTS * HIDDEN + 4 * ROWS * HIDDEN,
        2 * ROWS * INPUTS * HIDDEN,
        "float32",
        lambda: (numbers(ROWS, INPUTS, dtype=dtype), numbers(INPUTS, HIDDEN) / 100),
        functools.partial(bf.linear, activation=activation),
        1e-4,
    )


def definite() -> tuple[Array, Array]:
    n = INPUTS + 1
    return np.asarray(bf.gram(numbers(2 * n, n))), numbers(n, HIDDEN, dtype=np.float64)


def batch() -> tuple[Array, Array]:
    rows = numbers(SYSTEMS, 3 * UNKNOWNS, UNKNOWNS, dtype=np.float64)
    return np.swapaxes(rows, 1, 2) @ rows, numbers(SYSTEMS, UNKNOWNS, 1, dtype=np.float64)


def solving(n: int, m: int) -> float:
    """Operations of a Cholesky factor and of two substitutions for m sides."""
    return n**3 / 3 + 2 * n**2 * m


CASES = [
    gram(np.uint8, 0.0),
    gram(np.float32, 1e-5),
    gram(np.float64, 1e-12),
    Case(
        f"cross float32, {INPUTS} by {HIDDEN}",
        4 * ROWS * (INPUTS + HIDDEN) + 8 * INPUTS * HIDDEN,
        2 * ROWS * INPUTS * HIDDEN,
        "float32",
        lambda: (numbers(ROWS, INPUTS), numbers(ROWS, HIDDEN)),
        bf.cross,
        1e-4,
    ),
    linear(np.float32, "relu"),
    linear(np.float32, "softmax"),
    linear(np.uint8, "relu"),
    Case(
        f"tangent float32 {OUTPUTS} -> {HIDDEN}, tanh",
        4 * ROWS * (OUTPUTS + 2 * HIDDEN),
        2 * ROWS * OUTPUTS * HIDDEN,
        "float32",
        lambda: (numbers(ROWS, OUTPUTS), numbers(OUTPUTS, HIDDEN), np.tanh(numbers(ROWS, HIDDEN))),
        functools.partial(bf.tangent, activation="tanh"),
        1e-4,
    ),
    Case(
        f"residual float32 {HIDDEN} -> {OUTPUTS}",
        4 * ROWS * (HIDDEN + 2 * OUTPUTS),
        2 * ROWS * HIDDEN * OUTPUTS,
        "float32",
        lambda: (numbers(ROWS, HIDDEN), numbers(HIDDEN, OUTPUTS), numbers(ROWS, OUTPUTS)),
        kernels.residual,
        1e-4,
    ),
    Case(
        f"sigmoid float32, {ROWS} x {HIDDEN}",
        8 * ROWS * HIDDEN,
        20 * ROWS * HIDDEN,
        "float32",
        lambda: (numbers(ROWS, HIDDEN),),
        bf.activations["sigmoid"].forward,
        1e-6,
    ),
    Case(
        f"column sums float32, {ROWS} x {HIDDEN}",
        8 * ROWS * HIDDEN,
        3 * ROWS * HIDDEN,
        "float64",
        lambda: (numbers(ROWS, HIDDEN), numbers(ROWS, HIDDEN)),
        kernels.column_sums,
        1e-9,
    ),
    Case(
        f"solve, {INPUTS + 1} unknowns, {HIDDEN} sides",
        8 * (INPUTS + 1) * (INPUTS + 1 + 2 * HIDDEN),
        solving(INPUTS + 1, HIDDEN),
        "float64",
        definite,
        bf.solve,
        1e-6,
    ),
    Case(
        f"solve_batched, {SYSTEMS} systems of {UNKNOWNS}",
        8 * SYSTEMS * UNKNOWNS * (UNKNOWNS + 2),
        SYSTEMS * solving(UNKNOWNS, 1),
        "float64",
        batch,
        bf.solve_batched,
        1e-6,
    ),
]


def table() -> list[str]:
    """Give the lines of the computed table."""
    lines = [
        "| kernel | MB | Gop | op/byte | bound by, on an A100 | "
        + " | ".join(f"{gpu.name}, ms" for gpu in GPUS)
        + " |",
        "|---" * (5 + len(GPUS)) + "|",
    ]
    for case in CASES:
        best = " | ".join(f"{1e3 * case.best_seconds(gpu):.3f}" for gpu in GPUS)
        lines.append(
            f"| {case.name} | {case.bytes / 1e6:.1f} | {case.operations / 1e9:.2f} | "
            f"{case.operations / case.bytes:.1f} | {case.bound(GPUS[1])} | {best} |"
        )
    return lines


def seconds(call: Callable[[], Any], synchronize: Callable[[], None]) -> float:
    """Give the best of ten calls, after two that compile and warm up."""
    best = np.inf
    for turn in range(12):
        synchronize()
        began = time.perf_counter()
        call()
        synchronize()
        if turn >= 2:
            best = min(best, time.perf_counter() - began)
    return best


def on_gpu(case: Case) -> Callable[[], Any]:
    """Give the call with its arrays on the device."""
    from bpls_fast.cuda import asarray

    return functools.partial(case.call, *(asarray(values) for values in case.arrays))


def measured() -> list[str]:
    """Give the lines of the measured table."""
    from bpls_fast.cuda import runtime

    lines = ["| kernel | ms | GB/s | Gop/s | error |", "|---|---|---|---|---|"]
    for case in CASES:
        call = on_gpu(case)
        error = case.error(call())
        assert error <= case.tolerance, f"{case.name} is off by {error:.1e}"
        took = seconds(call, runtime.synchronize)
        lines.append(
            f"| {case.name} | {1e3 * took:.3f} | {case.bytes / took / 1e9:.0f} | "
            f"{case.operations / took / 1e9:.0f} | {error:.0e} |"
        )
    return lines


def main() -> None:
    print("Computed from data sheets, not measured:\n")
    print("\n".join(table()))
    try:
        from bpls_fast.cuda import runtime

        runtime.require_device()
    except (ImportError, RuntimeError) as error:
        print(f"\nNothing was measured: {error}")
        return
    print("\nMeasured here:", *(", ".join(device.values()) for device in runtime.devices()))
    print("\n".join(["", *measured()]))


if __name__ == "__main__":
    main()
