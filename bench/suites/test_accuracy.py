"""Accuracy against time of every method of training, each tuned, in one run.

Each grid runs once per setting. Tuned means chosen by test accuracy, which favours the competitors: ours run with
their defaults, and their accuracies are means over seeds.
"""

import functools
import statistics
import time
from collections.abc import Sequence
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import bpls_fast as bf
from bpls_fast.datasets import DataSet

from .. import SMALL
from ..baselines.closed_form import ELM_SIZES, RBF_SIZES, elm, mlp_epochs, rbf_ridge
from ..baselines.mini_batch import GRIDS, OTHERS, Run, gradient_run, other_grid, why_not_compiled
from ..cases import networks
from ..cases.networks import EXPERTS, PAPERS, Setting, Tensors
from ..contenders import ADAM, ALGORITHM_2, COMPILED_ADAM, ELM, MLP, OURS, RBF_RIDGE
from ..measure.libraries import limited, torch
from ..measure.recording import recorded
from ..time_to_accuracy import EPOCHS, PASSES, SEEDS, measure, passes_text
from .curves import Curves, Point, most_accurate, of_gradient, record_curve, record_first_to

pytestmark = [
    pytest.mark.usefixtures("fashion", "mnist"),
    pytest.mark.skipif(torch is None, reason="torch is not installed"),
    pytest.mark.filterwarnings("ignore:::torch"),  # its compiler's own
    recorded,
]

N_THREADS = 2
GUESSING = 1 / networks.CLASSES
CONTENDERS = [
    OURS,
    ALGORITHM_2,
    ADAM,
    COMPILED_ADAM,
    *(f"{method}, tuned" for method in OTHERS),
    MLP,
    RBF_RIDGE,
    ELM,
]
MLP_EPOCHS = 2 if SMALL else 20
FIXED_SEEDS = 1 if SMALL else 2
PAPERS_TARGET = "the accuracy of Algorithm 2"
TARGETS = {"Adam's best": EPOCHS, "Adam's best in 5 epochs": 5, "Adam's best in 1 epoch": 1}
"""Epochs of Adam for each target."""


def mean_of(fits: Sequence[tuple[float, float]], what: str) -> Point:
    """Return the point of fits that differ only in their seed."""
    seconds, accuracies = zip(*fits, strict=True)
    return Point(list(seconds), statistics.fmean(accuracies), what)


def algorithm_2(setting: Setting, data: DataSet, seed: int) -> tuple[float, float]:
    """Fit by Algorithm 2 with its defaults; return seconds and accuracy."""
    began = time.perf_counter()
    net = bf.Network(setting.sizes, activation=setting.activation, seed=seed)
    bf.fit_classifier(net, data.x_train, data.y_train)
    took = time.perf_counter() - began
    return took, float((net.predict(data.x_test) == data.y_test).mean())


def mlp_points(setting: Setting, data: DataSet) -> list[Point]:
    seconds, accuracies = zip(*mlp_epochs(setting, data, MLP_EPOCHS), strict=True)
    return [
        Point([epoch * second for second in seconds], accuracy, f"{epoch} epochs of its defaults")
        for epoch, accuracy in enumerate(accuracies, 1)
    ]


def compiled_points(setting: Setting, tensors: Tensors, runs: Sequence[Run]) -> list[Point]:
    """Run the best configuration of a grid again, compiled."""
    best = max(runs, key=lambda run: max(run.accuracies))
    epochs = len(best.seconds)
    return of_gradient([gradient_run(setting, tensors, best.config, epochs, compiled=True)])


@functools.cache
def curves_of(setting: Setting) -> Curves:
    """Run every contender that can learn this setting."""
    epochs, seeds = (2, 1) if SMALL else (EPOCHS, SEEDS)
    grid = GRIDS["small" if SMALL else "full"]
    result = measure(setting, PASSES, grid, epochs, seeds, N_THREADS)
    data = networks.load(setting.data)
    tensors, floats = networks.as_tensors(data), networks.as_floats(data)
    curves = {
        OURS: [
            Point(result.seconds_of(point.passes), point.accuracy, passes_text(point.passes))
            for point in result.ours
        ],
        ADAM: of_gradient(result.runs),
    }
    with limited(N_THREADS):
        if setting.activation != "relu":
            fits = [algorithm_2(setting, data, seed) for seed in range(seeds)]
            curves[ALGORITHM_2] = [mean_of(fits, "whole fits")]
        if not why_not_compiled():
            curves[COMPILED_ADAM] = compiled_points(setting, tensors, result.runs)
        for method in OTHERS:
            configs = other_grid(method, setting.activation)
            runs = [gradient_run(setting, tensors, config, epochs) for config in configs]
            curves[f"{method}, tuned"] = of_gradient(runs)
        curves[MLP] = mlp_points(setting, floats)
        for name, fit, sizes in (
            (RBF_RIDGE, rbf_ridge, RBF_SIZES),
            (ELM, elm, ELM_SIZES),
        ):
            curves[name] = [
                mean_of([fit(floats, size, seed) for seed in range(FIXED_SEEDS)], f"size {size}")
                for size in sizes
            ]
    return curves


def skip_where_absent(setting: Setting, contender: str) -> None:
    """Skip a contender that cannot run, with the reason."""
    if contender == COMPILED_ADAM and why_not_compiled():
        pytest.skip(f"torch.compile: {why_not_compiled()}")
    if contender == ALGORITHM_2 and setting.activation == "relu":
        pytest.skip("Algorithm 2 needs the inverse of its activations; ReLU has none")


EVERY_CONTENDER = [
    pytest.mark.parametrize("contender", CONTENDERS),
    pytest.mark.parametrize("setting", [PAPERS, EXPERTS], ids=lambda setting: setting.name),
]


def every_contender(test: Any) -> Any:
    """Parametrize a test by setting and contender, so that all contenders of a setting follow each other."""
    for mark in EVERY_CONTENDER:
        test = mark(test)
    return test


@every_contender
def test_accuracy_against_time(
    benchmark: BenchmarkFixture, setting: Setting, contender: str
) -> None:
    skip_where_absent(setting, contender)
    curves = curves_of(setting)
    # The few steps of a small run hardly move a softmax network.
    if not (SMALL and setting == PAPERS):
        assert most_accurate(curves[contender]).accuracy > 2 * GUESSING
    record_curve(benchmark, "accuracy", f"{setting.name}: accuracy", contender, curves)


@every_contender
@pytest.mark.parametrize("target", [*TARGETS, PAPERS_TARGET])
def test_time_to_accuracy(
    benchmark: BenchmarkFixture, setting: Setting, target: str, contender: str
) -> None:
    skip_where_absent(setting, contender)
    curves = curves_of(setting)
    if target == PAPERS_TARGET:
        if ALGORITHM_2 not in curves:
            pytest.skip(f"Algorithm 2 cannot train {setting.name}")
        accuracy = curves[ALGORITHM_2][0].accuracy
    else:
        within = [point for point in curves[ADAM] if point.epoch <= TARGETS[target]]
        accuracy = most_accurate(within).accuracy
    group = f"{setting.name}: to {target}"
    record_first_to(benchmark, "time to accuracy", group, contender, curves, accuracy)
