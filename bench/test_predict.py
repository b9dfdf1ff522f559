"""Prediction through 784-60-10: one row and 10,000 rows; ours, PyTorch eager, onnxruntime, and C++ without Python.

The contenders of a group run by turns in every round, so that all see the same machine; every row asserts its answer.
Beside our own one-row times stands what the row's multiply-adds take at the measured peak, and how long reading the
weights takes, once, from the cache that holds them: a row without zeros cannot do without either.
`python bench/test_predict.py` prints the table.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import images
import numpy as np
import pytest
from kernel_cases import PAUSE_SECONDS, SMALL, limited, torch
from numpy.typing import NDArray
from peak import Peaks
from pytest_benchmark.fixture import BenchmarkFixture

import bpls_fast as bf
from bpls_fast import _core

Array = NDArray[Any]
SIZES = [784, 60, 10]
MULTIPLY_ADDS = sum(n * m for n, m in itertools.pairwise(SIZES))
BATCH = 200 if SMALL else 10_000
ROUNDS = 3 if SMALL else 25
TOLERANCE = 1e-5


class Case(NamedTuple):
    """Rows of one kind, and how often a round predicts them."""

    name: str
    rows: Array
    repeats: int


@functools.cache
def network() -> bf.Network:
    """Give a network of the images' size; what its weights are does not matter for the time."""
    return bf.Network(SIZES, low=-0.3, high=0.3, seed=0)


@functools.cache
def cases() -> list[Case]:
    """Give one row of each kind, and many."""
    pixels = images.load("uint8", BATCH)
    dense = np.random.default_rng(0).random((BATCH, SIZES[0]), dtype=np.float32)
    few = 20 if SMALL else 1000
    return [
        Case("one image, float32", images.load("float32", BATCH)[:1], few),
        Case("one image, uint8", pixels[:1], few),
        Case("one dense row, float32", dense[:1], few),
        Case(f"{BATCH} images, float32", images.load("float32", BATCH), 1),
        Case(f"{BATCH} dense rows, float32", dense, 1),
    ]


def contenders(case: Case, n_threads: int) -> dict[str, Callable[[], Any]]:
    """Give the calls by name; the others get a ready float32 copy of bytes."""
    net, rows = network(), case.rows
    predictor = bf.Predictor(net)
    floats = rows if rows.dtype == np.float32 else np.divide(rows, 255, dtype=np.float32)
    x = rows[0]
    ours = (lambda: predictor.predict_one(x)) if len(rows) == 1 else lambda: predictor.forward(rows)
    found: dict[str, Callable[[], Any]] = {"ours": ours}
    if torch is not None:
        model, tensor = torch_model(), torch.from_numpy(floats)
        found["torch"] = lambda: model(tensor)
    session = onnx_session(n_threads, spins=len(rows) == 1)
    if session is not None:
        feed = {session.get_inputs()[0].name: floats}
        found["onnxruntime"] = lambda: session.run(None, feed)[0]
    return found


@functools.cache
def torch_model() -> Any:
    """Give the network as modules of PyTorch."""
    layers = []
    for W in network().weights:
        layer = torch.nn.Linear(W.shape[0] - 1, W.shape[1])
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(W[:-1].T.copy()))
            layer.bias.copy_(torch.from_numpy(W[-1]))
        layers += [layer, torch.nn.Softmax(dim=1)]
    return torch.nn.Sequential(*layers).eval()


@functools.cache
def onnx_session(n_threads: int, spins: bool) -> Any:
    """Give the network in onnxruntime; None where that is not installed.

    After a call its threads spin, longer than the pause, on the cores that whoever is next needs. For many rows they do
    not: its own best time is the same without.
    """
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spins)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        network().to_onnx(path)
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def check(case: Case, found: Any) -> None:
    """Assert that a contender's answer is that of float64."""
    rows = case.rows.astype(np.float64) / (255 if case.rows.dtype == np.uint8 else 1)
    outputs = np.asarray(found).reshape(len(rows), -1)
    np.testing.assert_allclose(outputs, network().forward(rows), rtol=0, atol=TOLERANCE)


def rounds_of(case: Case, n_threads: int) -> dict[str, list[float]]:
    """Give the seconds of each contender in every round; they take turns."""
    calls = contenders(case, n_threads)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        check(case, call())
    for _ in range(ROUNDS):
        for name, call in calls.items():
            call()
            start = time.perf_counter()
            for _ in range(case.repeats):
                call()
            times[name].append((time.perf_counter() - start) / case.repeats)
            if len(case.rows) > 1:
                time.sleep(PAUSE_SECONDS)
    return times


def bounds(case: Case, peaks: Peaks) -> dict[str, float]:
    """Give the seconds of one row in C++ alone, of its multiply-adds at the peak, and of reading the weights."""
    peaks.measure("float32", 1)
    packed, repeats = network().packed(), case.repeats
    bare = min(packed.time(case.rows[0], repeats)[0] for _ in range(ROUNDS))
    weights = 4 * MULTIPLY_ADDS
    rate = max(_core.read_rate(weights, 0.002) for _ in range(ROUNDS))
    return {
        "C++": bare,
        "at the peak": 2 * MULTIPLY_ADDS / peaks.best("float32", 1),
        "reading the weights": weights / rate,
    }


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize(
    "case", cases(), ids=lambda case: case.name.replace(", ", "-").replace(" ", "-")
)
def test_predict(benchmark: BenchmarkFixture, case: Case, n_threads: int) -> None:
    benchmark.group = f"predict {case.name}, {n_threads} thread(s)"
    with limited(n_threads):
        times = rounds_of(case, n_threads)
        benchmark(contenders(case, n_threads)["ours"])
    for name, seconds in times.items():
        benchmark.extra_info[name] = {
            "best": min(seconds),
            "median": statistics.median(seconds),
        }
    if len(case.rows) == 1:
        benchmark.extra_info.update(bounds(case, Peaks()))


def main() -> None:
    """Print a line for each case: microseconds at best, and how many times as long the others take."""
    peaks = Peaks()
    for case in cases():
        for n_threads in (1, 2):
            with limited(n_threads):
                times = rounds_of(case, n_threads)
                best = {name: min(seconds) for name, seconds in times.items()}
                middle = {name: statistics.median(seconds) for name, seconds in times.items()}
                line = f"{case.name}, {n_threads} thread(s): ours {best['ours'] * 1e6:.2f} us"
                for name in best.keys() - {"ours"}:
                    line += f", {name} {best[name] / best['ours']:.1f}x"
                    line += f" (median {middle[name] / middle['ours']:.1f}x)"
                if len(case.rows) == 1:
                    found = bounds(case, peaks)
                    line += f"; C++ {found['C++'] * 1e6:.2f} us"
                    line += f", {found['C++'] / found['at the peak']:.2f}x the time at the peak"
                    line += f", {found['C++'] / found['reading the weights']:.2f}x that of reading the weights"
            print(line)
    print(peaks)


if __name__ == "__main__":
    main()
