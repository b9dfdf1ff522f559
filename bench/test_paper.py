"""The paper's claim, checked: Table II, whole trainings, and the seconds to the accuracy of Algorithm 2.

The gradient methods run at the paper's settings: one row for an update, rate 1e-3 (1e-1 for AdaGrad on the toy
problems). 40 such epochs take the better part of an hour: slices are timed and extrapolated, and every row says so.
"""

import functools
import statistics
import time
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
import settings
from baselines.closed_form import as_floats
from curves import Curves, Point, record_curve, record_first_to
from interleaved import record, recorded, take_turns
from kernel_cases import (
    OURS,
    OURS_FLOAT32,
    PAUSE_SECONDS,
    SMALL,
    gradients_allowed,
    limited,
    torch,
)
from pytest_benchmark.fixture import BenchmarkFixture
from settings import PAPERS

import bpls_fast as bf
from bpls_fast.datasets import DataSet
from bpls_fast.experiments import PROBLEMS, gradient
from bpls_fast.experiments.images import TIMED, start
from bpls_fast.experiments.published import GRADIENT_METHODS, TABLE2
from bpls_fast.experiments.toy import SIZES, Problem

pytestmark = [pytest.mark.usefixtures("fashion"), recorded]

N_THREADS = 2
"""Of ours. Updates by single rows have one: two make them slower."""
ROUNDS = 1 if SMALL else 5
STEPS = 20 if SMALL else 1500
EPOCHS = 40
"""Of the paper."""
EVERY = 2000 if SMALL else 6000
TOY_EPOCHS = 1000
TOY_SLICE = 2 if SMALL else 20
CONTENDERS = [OURS, OURS_FLOAT32, *GRADIENT_METHODS]
TOY_CONTENDERS = [OURS, *GRADIENT_METHODS]


def skip_without_torch(contender: str) -> None:
    if contender in GRADIENT_METHODS and torch is None:
        pytest.skip("torch is not installed")


class Fit(NamedTuple):
    """A fit by Algorithm 2 from the paper's start."""

    seconds: float
    iterations: int
    accuracy: float


class Measured(NamedTuple):
    """What the rounds gave: our fits by the type of their rows, and seconds of an update by gradient method."""

    fits: dict[str, list[Fit]]
    updates: dict[str, list[float]]


def fit(rows: DataSet, seed: int) -> Fit:
    time.sleep(PAUSE_SECONDS)
    began = time.perf_counter()
    net = start(TIMED, rows, seed)
    report = bf.fit_classifier(net, rows.x_train, rows.y_train)
    took = time.perf_counter() - began
    return Fit(took, report.iterations, accuracy_of(net, rows))


@functools.cache
def measured() -> Measured:
    """Let fits and slices of the gradient methods take turns; every round has its own seed."""
    data = settings.load(PAPERS.data)
    of_type = {OURS: data, OURS_FLOAT32: as_floats(data)}
    methods = GRADIENT_METHODS if torch else ()
    found = Measured({name: [] for name in of_type}, {name: [] for name in methods})
    for seed in range(ROUNDS):
        with limited(N_THREADS):
            for name, rows in of_type.items():
                found.fits[name].append(fit(rows, seed))
        weights = start(TIMED, data, seed).weights
        with limited(1), gradients_allowed():
            for name in methods:
                step = gradient.seconds_per_step(name, weights, data.x_train, data.y_train, STEPS)
                found.updates[name].append(step)
    return found


def accuracy_of(net: bf.Network, data: DataSet) -> float:
    """Give the share of test rows that are classified rightly; the classes count from 0."""
    return float((net.decision(data.x_test).argmax(axis=1) == data.y_test).mean())


@functools.cache
def followed() -> Curves:
    """Follow the gradient methods through an epoch, all from the same weights and with the rows in the same order."""
    data = settings.load(PAPERS.data)
    fits = measured().fits[OURS]
    accuracy = statistics.fmean(fit.accuracy for fit in fits)
    curves = {OURS: [Point([fit.seconds for fit in fits], accuracy, "whole fits")]}
    net = start(TIMED, data, 0)
    with limited(1), gradients_allowed():
        for method, updates in measured().updates.items():
            trained = gradient.epochs(
                *(method, net.weights, data.x_train, data.y_train, 1), every=EVERY
            )
            curves[method] = [
                Point(
                    [second * count * EVERY for second in updates],
                    accuracy_of(net.with_weights(weights), data),
                    f"{count * EVERY} updates",
                )
                for count, weights in enumerate(trained, 1)
            ]
    return curves


@pytest.mark.parametrize("contender", CONTENDERS)
def test_an_iteration_or_epoch(benchmark: BenchmarkFixture, contender: str) -> None:
    skip_without_torch(contender)
    if contender in GRADIENT_METHODS:
        samples = [second * settings.ROWS for second in measured().updates[contender]]
    else:
        samples = [fit.seconds / fit.iterations for fit in measured().fits[contender]]
    group = "Table II: an iteration, or an epoch"
    published = TABLE2[contender if contender in GRADIENT_METHODS else "BPLS"].cpu
    record(
        *(benchmark, group, contender, samples),
        suite="paper",
        published_seconds=published,
        note=how(contender),
    )


@pytest.mark.parametrize("contender", CONTENDERS)
def test_whole_training(benchmark: BenchmarkFixture, contender: str) -> None:
    skip_without_torch(contender)
    if contender in GRADIENT_METHODS:
        samples = [second * settings.ROWS * EPOCHS for second in measured().updates[contender]]
    else:
        samples = [fit.seconds for fit in measured().fits[contender]]
    group = f"a whole training, {EPOCHS} epochs of the gradient methods"
    record(benchmark, group, contender, samples, suite="paper", note=how(contender))


@pytest.mark.parametrize("contender", TOY_CONTENDERS)
def test_first_epochs(benchmark: BenchmarkFixture, contender: str) -> None:
    skip_without_torch(contender)
    group = f"{PAPERS.name}, the paper's settings: accuracy"
    record_curve(benchmark, "accuracy", group, contender, followed())


@pytest.mark.parametrize("contender", TOY_CONTENDERS)
def test_to_the_accuracy_of_algorithm_2(benchmark: BenchmarkFixture, contender: str) -> None:
    skip_without_torch(contender)
    curves = followed()
    group = "the paper's settings: to the accuracy of Algorithm 2, within an epoch"
    record_first_to(
        *(benchmark, "paper", group, contender, curves, curves[OURS][0].accuracy),
        note=how(contender),
    )


def how(contender: str) -> str | None:
    """Say how a row was measured."""
    extrapolated = contender in GRADIENT_METHODS
    return f"extrapolated from {STEPS} updates" if extrapolated else None


@pytest.mark.parametrize("contender", TOY_CONTENDERS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_toy_problem(benchmark: BenchmarkFixture, problem: Problem, contender: str) -> None:
    skip_without_torch(contender)
    extrapolated = contender in GRADIENT_METHODS
    record(
        benchmark,
        f"toy problem, {problem.name}: a whole training, {TOY_EPOCHS} epochs of the others",
        contender,
        toy_seconds(problem)[contender],
        suite="paper",
        note=f"extrapolated from {TOY_SLICE} epochs" if extrapolated else None,
    )


@functools.cache
def toy_seconds(problem: Problem) -> dict[str, list[float]]:
    """Let Algorithm 1 and slices of the gradient methods take turns on the five rows."""
    X, Y = problem.rows(1)
    weights = [np.random.default_rng(0).uniform(-1, 1, shape) for shape in pairwise(SIZES)]

    def ours() -> None:
        net = bf.Network(SIZES, problem.activation, problem.activation, bias=False)
        net.weights = weights
        bf.fit_injective(net, X, Y)

    def theirs(method: str) -> None:
        rate = 0.1 if method == "AdaGrad" else gradient.LEARNING_RATE
        gradient.train_many(
            *(method, X, Y[np.newaxis], [W[np.newaxis] for W in weights]),
            activation=problem.activation,
            epochs=TOY_SLICE,
            learning_rate=rate,
        )

    calls = {OURS: ours}
    if torch:
        calls |= {method: functools.partial(theirs, method) for method in GRADIENT_METHODS}
    with limited(1), gradients_allowed():
        samples = take_turns(calls, ROUNDS)
    scale = TOY_EPOCHS / TOY_SLICE
    return {
        name: times if name == OURS else [scale * second for second in times]
        for name, times in samples.items()
    }
