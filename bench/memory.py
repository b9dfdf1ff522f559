"""Peak resident memory of each method of training on Fashion-MNIST with 100-70 neurons, in a fresh process each.

    python -m bench.memory                  # print a table
    python -m bench.memory METHOD           # train in this process; print its peak and seconds as JSON

Before means with the images in memory as bytes and the library loaded; a float copy is part of the training.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import bpls_fast as bf
from bpls_fast.datasets import DataSet

from . import SMALL
from .baselines.closed_form import elm, mlp_epochs, rbf_ridge
from .baselines.mini_batch import Config, gradient_run
from .cases.networks import PAPERS, as_floats, as_tensors, load
from .contenders import ALGORITHM_2, ELM, MLP, OURS, RBF_RIDGE
from .measure.libraries import INSTALLED
from .measure.processes import output_of_module
from .report.text import markdown

LOADED = ("sklearn.kernel_approximation", "sklearn.linear_model", "sklearn.neural_network")
SIZE = 100 if SMALL else 1000


class Peak(NamedTuple):
    """Bytes before the training and at its peak, and its seconds."""

    before: int
    after: int
    seconds: float


def refined(data: DataSet) -> None:
    bf.fit_refined(bf.Network(PAPERS.sizes, seed=0), data.x_train, data.y_train)


def algorithm_2(data: DataSet) -> None:
    bf.fit_classifier(bf.Network(PAPERS.sizes, seed=0), data.x_train, data.y_train)


def adam(data: DataSet) -> None:
    gradient_run(PAPERS, as_tensors(data), Config(128, 1e-3), epochs=1)


def mlp(data: DataSet) -> None:
    list(mlp_epochs(PAPERS, as_floats(data), epochs=1))


METHODS: dict[str, Callable[[DataSet], object]] = {
    OURS: refined,
    ALGORITHM_2: algorithm_2,
    "Adam, one epoch": adam,
    f"{MLP}, one epoch": mlp,
    f"{RBF_RIDGE}, {SIZE}": lambda data: rbf_ridge(as_floats(data), SIZE, 0),
    f"{ELM}, {SIZE}": lambda data: elm(as_floats(data), SIZE, 0),
}
NEEDS = {"Adam, one epoch": "torch"}


def peak_bytes() -> int:
    """Return the peak of this process. On Linux getrusage can return the peak of the parent process."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def peak_of(method: str) -> Peak:
    """Train in a process of its own."""
    return Peak(*json.loads(output_of_module("memory", method)))


def train(method: str) -> Peak:
    """Train in this process."""
    for name in LOADED:
        importlib.import_module(name)
    data = load(PAPERS.data)
    before, began = peak_bytes(), time.perf_counter()
    METHODS[method](data)
    return Peak(before, peak_bytes(), time.perf_counter() - began)


def main() -> None:
    """Print the table, or the peak of one method."""
    if len(sys.argv) > 1:
        print(json.dumps(train(sys.argv[1])))
        return
    methods = [name for name in METHODS if INSTALLED.get(NEEDS.get(name, ""), True)]
    peaks = {name: peak_of(name) for name in methods}
    lines = [
        [name, f"{peak.after / 2**20:.0f}", f"{(peak.after - peak.before) / 2**20:.0f}"]
        for name, peak in peaks.items()
    ]
    print(markdown(["training", "peak, MiB", "more than before, MiB"], lines))


if __name__ == "__main__":
    main()
