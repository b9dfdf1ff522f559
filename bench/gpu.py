"""The GPU's kernels: what each must read, write and compute, what that takes at best, and what it takes here.

`python bench/gpu.py` prints the table of docs/gpu.md, computed from data sheets; on a machine with an NVIDIA GPU it
adds the times measured there, the rates that they are, and the error beside the CPU's answer, and whole fits; with
--fill it writes those into docs/gpu.md. BPLS_BENCH_SMALL=1 cuts the sizes down to a smoke test.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bpls_fast as bf
from bpls_fast import kernels

Array = NDArray[Any]

PAGE = Path(__file__).parent.parent / "docs" / "gpu.md"

SMALL = os.environ.get("BPLS_BENCH_SMALL") == "1"
ROWS, INPUTS, HIDDEN, OUTPUTS = (12, 9, 5, 3) if SMALL else (60_000, 784, 60, 10)
CHOSEN = 7 if SMALL else 10_000
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


def gram(dtype: Any, tolerance: float, columns: int = INPUTS) -> Case:
    name, size = np.dtype(dtype).name, np.dtype(dtype).itemsize
    return Case(
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


def cross(dtype: Any) -> Case:
    size = np.dtype(dtype).itemsize
    return Case(
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
) -> Case:
    """Give a case of values between 0 and 1, of which `arrays` matrices are read and written."""

    def make() -> tuple[Array, ...]:
        values = 1 / (1 + np.exp(-numbers(ROWS, HIDDEN)))
        return (values, values[::-1].copy())[: arrays - 1]

    moved, computed = 4 * arrays * ROWS * HIDDEN, operations * ROWS * HIDDEN
    title = f"{name} float32, {ROWS} x {HIDDEN}"
    return Case(title, moved, computed, "float32", make, call, 1e-4)


def tangent(activation: str) -> Case:
    return Case(
        f"tangent float32 {OUTPUTS} -> {HIDDEN}, {activation}",
        4 * ROWS * (OUTPUTS + 2 * HIDDEN),
        2 * ROWS * OUTPUTS * HIDDEN,
        "float32",
        lambda: (
            numbers(ROWS, OUTPUTS),
            numbers(OUTPUTS, HIDDEN),
            bf.activations[activation].forward(numbers(ROWS, HIDDEN)),
        ),
        functools.partial(bf.tangent, activation=activation),
        1e-4,
    )


def target(activation: str) -> Case:
    act = bf.activations[activation]
    return Case(
        f"target float32 {OUTPUTS} -> {HIDDEN}, {activation}",
        4 * ROWS * (OUTPUTS + 2 * HIDDEN),
        2 * ROWS * OUTPUTS * HIDDEN,
        "float32",
        lambda: (
            act.forward(numbers(ROWS, HIDDEN)),
            numbers(ROWS, OUTPUTS) / 100,
            numbers(OUTPUTS, HIDDEN) / 100,
        ),
        lambda N, R, M: kernels.target(R, M, N, activation=act.name, margin=1e-3),
        1e-4,
    )


def chosen_rows() -> tuple[Array, Array]:
    rows = numbers(ROWS, INPUTS, dtype=np.uint8)
    return rows, np.random.default_rng(1).integers(0, ROWS, CHOSEN)


def labelled() -> tuple[Array, Array]:
    return numbers(ROWS, OUTPUTS), np.random.default_rng(1).integers(0, OUTPUTS, ROWS)


def solve(sides: int) -> Case:
    n = INPUTS + 1
    return Case(
        f"solve, {n} unknowns, {sides} sides",
        8 * n * (n + 2 * sides),
        solving(n, sides),
        "float64",
        functools.partial(definite, sides),
        bf.solve,
        1e-6,
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


def definite(sides: int) -> tuple[Array, Array]:
    n = INPUTS + 1
    return np.asarray(bf.gram(numbers(2 * n, n))), numbers(n, sides, dtype=np.float64)


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
    gram(np.float32, 1e-5, HIDDEN),
    Case(
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
    Case(
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
        f"squared slopes of tanh float32, {ROWS} x {HIDDEN}",
        4 * ROWS * HIDDEN,
        3 * ROWS * HIDDEN,
        "float64",
        lambda: (np.tanh(numbers(ROWS, HIDDEN)),),
        bf.activations["tanh"].squared_slopes,
        1e-5,
    ),
    Case(
        f"missed float32, {ROWS} x {OUTPUTS}",
        ROWS * (4 * OUTPUTS + 8 + 1),
        ROWS * OUTPUTS,
        "float32",
        labelled,
        kernels.missed,
        0.0,
    ),
    Case(
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


def fit(method: str, backend: str) -> bf.FitReport:
    """Fit random images of classes that a random layer made, from NumPy arrays to the trained network."""
    X = numbers(ROWS, INPUTS, dtype=np.uint8)
    labels = (X @ numbers(INPUTS, OUTPUTS)).argmax(axis=1)
    net = bf.Network([INPUTS, HIDDEN, OUTPUTS], activation="softmax", seed=0)
    options: dict[str, Any] = {"max_sweeps" if method == "fit_refined" else "max_iter": 6}
    report: bf.FitReport = getattr(bf, method)(net, X, labels, backend=backend, **options)
    return report


def fits() -> list[str]:
    """Give the lines of the table of whole fits."""
    lines = ["| fit, from NumPy arrays | GPU, s | CPU, s |", "|---|---|---|"]
    for method in ("fit_refined", "fit_classifier"):
        took = []
        for backend in ("cuda", "cpu"):
            fit(method, backend)  # compiles
            began = time.perf_counter()
            assert fit(method, backend).backend == backend
            took.append(time.perf_counter() - began)
        lines.append(f"| {method} | {took[0]:.2f} | {took[1]:.2f} |")
    return lines


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


def filled(page: str, lines: list[str]) -> str:
    """Give the page with what was measured in its place."""
    begin, end = "<!-- measured -->\n", "<!-- to here -->\n"
    text = "\n".join([*lines, ""])
    found, count = re.subn(
        f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL
    )
    assert count == 1, "the page has no place for measurements"
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--fill", action="store_true", help="write what is measured into docs/gpu.md"
    )
    options = parser.parse_args(arguments)
    print("Computed from data sheets, not measured:\n")
    print("\n".join(table()))
    try:
        from bpls_fast.cuda import runtime

        runtime.require_device()
    except (ImportError, RuntimeError) as error:
        print(f"\nNothing was measured: {error}")
        return
    devices = "; ".join(", ".join(device.values()) for device in runtime.devices())
    where = f"{devices}; driver {runtime.driver()}, numba-cuda {version('numba-cuda')}"
    lines = [f"Measured here: {where}", "", *measured(), "", *fits()]
    print("\n".join(["", *lines]))
    if options.fill:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), lines), encoding="utf-8")


if __name__ == "__main__":
    main()
