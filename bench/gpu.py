"""Times of the GPU's kernels: computed from data sheets, and measured where there is an NVIDIA GPU.

    python -m bench.gpu [--fill]

The computed table is that of docs/gpu.md. The measured ones have times, rates, errors relative to the CPU's answer,
and whole fits; --fill writes them into docs/gpu.md.
"""

import argparse
import functools
import re
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

import bpls_fast as bf

from . import ROOT
from .cases.gpu import CASES, GPUS, HIDDEN, INPUTS, OUTPUTS, ROWS, GpuCase, numbers

PAGE = ROOT / "docs" / "gpu.md"


def fit(method: str, backend: str) -> bf.FitReport:
    """Fit random bytes, labelled by a random layer, from NumPy arrays to the trained network."""
    X = numbers(ROWS, INPUTS, dtype=np.uint8)
    labels = (X @ numbers(INPUTS, OUTPUTS)).argmax(axis=1)
    net = bf.Network([INPUTS, HIDDEN, OUTPUTS], activation="softmax", seed=0)
    options: dict[str, Any] = {"max_sweeps" if method == "fit_refined" else "max_iter": 6}
    report: bf.FitReport = getattr(bf, method)(net, X, labels, backend=backend, **options)
    return report


def fits() -> list[str]:
    """Return the lines of the table of whole fits."""
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
    """Return the lines of the computed table."""
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
    """Return the seconds of the best of ten calls, after two that compile and warm up."""
    best = np.inf
    for turn in range(12):
        synchronize()
        began = time.perf_counter()
        call()
        synchronize()
        if turn >= 2:
            best = min(best, time.perf_counter() - began)
    return best


def on_gpu(case: GpuCase) -> Callable[[], Any]:
    """Return the call of a case with its arrays on the device."""
    from bpls_fast.cuda import asarray

    return functools.partial(case.call, *(asarray(values) for values in case.arrays))


def measured() -> list[str]:
    """Return the lines of the measured table."""
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
    """Return the page with the measured tables put between its two marks."""
    begin, end = "<!-- measured -->\n", "<!-- to here -->\n"
    text = "\n".join([*lines, ""])
    found, count = re.subn(
        f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL
    )
    assert count == 1, "the page has no marks for measurements"
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--fill", action="store_true", help="write the measured tables into docs/gpu.md"
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
