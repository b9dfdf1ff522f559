"""The experiments on images: Algorithm 2 in the paper's four settings, Tables I and II, the accuracy curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast import datasets
from bpls_fast.experiments import gradient
from bpls_fast.experiments.published import (
    GRADIENT_METHODS,
    SETTINGS,
    TABLE1,
    TABLE2,
    Accuracy,
    Setting,
)
from bpls_fast.network import Network
from bpls_fast.training.bpls.algorithm2 import fit_classifier
from bpls_fast.training.report import FitReport

__all__ = [
    "CurvePoint",
    "Table1Row",
    "Table2Row",
    "TimePoint",
    "Variant",
    "accuracy_and_time",
    "accuracy_curves",
    "start",
    "table1",
    "table2",
]

TIMED = Setting("fashion-mnist", (100, 70))
"""The setting of the paper's Table II and of its last figure."""


def start(setting: Setting, data: datasets.DataSet, seed: int) -> Network:
    """Return the network that every algorithm starts from: softmax everywhere, weights uniform on [-1, 1]."""
    classes = int(data.y_train.max()) + 1
    return Network([data.x_train.shape[1], *setting.hidden, classes], seed=seed)


class Variant(NamedTuple):
    """A reading of Algorithm 2: the arguments of `fit_classifier` that may differ from the paper's text.

    Attributes
    ----------
    name : str
    full_sweeps : int
        Sweeps over all rows.
    resolve : bool
        Whether to run line 9: solve each layer but the first again on its updated matrix.
    """

    name: str
    full_sweeps: int
    resolve: bool


DEFAULT = Variant("Algorithm 2", 3, False)
LITERAL = Variant("Algorithm 2 to the letter", 1, True)
"""The paper's listing. Its formula for the target leaves open which output is meant; both variants use all of them."""

TARGET = "joint"


class Table1Row(NamedTuple):
    """Accuracies in percent on one part of a data set: ours over several seeds, and those of the paper.

    Attributes
    ----------
    dataset, hidden, part
        The setting, and "train" or "test".
    algorithm, full_sweeps, resolve, target
        The variant of Algorithm 2 that was fitted, as arguments of `fit_classifier`.
    margins : str
        How far inside their range the targets of the hidden layers were kept, chosen by the training misses: one
        number per layer. Where the seeds differ, semicolons separate them.
    seeds : int
        Number of initial weights.
    bpls, bpls_std, bpls_lowest, bpls_highest : float
        Our accuracy over the seeds: mean, standard deviation, minimum, maximum.
    iterations, iterations_most : float, int
        Mean and maximum number of iterations of a fit.
    paper_bpls, paper_adam, paper_nag, paper_sgd, paper_adagrad : float
        Table I of the paper.
    """

    dataset: str
    hidden: str
    part: str
    algorithm: str
    full_sweeps: int
    resolve: bool
    target: str
    margins: str
    seeds: int
    bpls: float
    bpls_std: float
    bpls_lowest: float
    bpls_highest: float
    iterations: float
    iterations_most: int
    paper_bpls: float
    paper_adam: float
    paper_nag: float
    paper_sgd: float
    paper_adagrad: float


def table1(data: Mapping[str, datasets.DataSet], *, seeds: int = 5) -> list[Table1Row]:
    """Train the networks of Table I from several initial weights each.

    Parameters
    ----------
    data : mapping from str to DataSet
        "mnist" and "fashion-mnist", as `bpls_fast.datasets.load` returns them.
    seeds : int
        The initial weights are drawn with the seeds 0 to seeds - 1.

    Returns
    -------
    list of Table1Row
        One row for the training and one for the test images of each setting and variant.
    """
    return [
        row
        for setting in SETTINGS
        for variant in (DEFAULT, LITERAL)
        for row in _table1_rows(setting, variant, data[setting.dataset], seeds)
    ]


def _table1_rows(
    setting: Setting, variant: Variant, data: datasets.DataSet, seeds: int
) -> list[Table1Row]:
    fits = [_fit(setting, data, seed, variant) for seed in range(seeds)]
    iterations = [report.iterations for _, report in fits]
    margins = [" ".join(f"{margin:.3g}" for margin in report.margins) for _, report in fits]
    by_part = zip(*(_accuracy(net, data) for net, _ in fits), strict=True)
    return [
        Table1Row(
            *setting.names,
            part,
            variant.name,
            variant.full_sweeps,
            variant.resolve,
            TARGET,
            "; ".join(dict.fromkeys(margins)),
            seeds,
            float(np.mean(percents)),
            float(np.std(percents, ddof=min(1, seeds - 1))),
            min(percents),
            max(percents),
            float(np.mean(iterations)),
            max(iterations),
            *(getattr(published, part) for published in TABLE1[setting].values()),
        )
        for part, percents in zip(Accuracy._fields, by_part, strict=True)
    ]


class Table2Row(NamedTuple):
    """The average time of an iteration (BPLS) or an epoch (the others) on Fashion-MNIST, hidden layers 100-70.

    Attributes
    ----------
    algorithm : str
    seconds : float or None
        The measured time; None if PyTorch is not installed.
    how : str
        What was measured.
    paper_cpu, paper_gpu : float
        Table II of the paper.
    """

    algorithm: str
    seconds: float | None
    how: str
    paper_cpu: float
    paper_gpu: float


def table2(data: datasets.DataSet, *, seeds: int = 5, steps: int = 2000) -> list[Table2Row]:
    """Time the algorithms of Table II.

    The time of BPLS is that of whole fits, divided by their iterations. An epoch of a gradient method is one update
    per row; a part of it is timed and extrapolated, and the row of the table says so.

    Parameters
    ----------
    data : DataSet
        Fashion-MNIST.
    seeds : int
        Number of fits to time.
    steps : int
        Number of updates to time for each gradient method.
    """
    floats = np.divide(data.x_train, 255, dtype=np.float32)
    rows = []
    for kind, x_train in (("uint8", data.x_train), ("float32", floats)):
        seconds = _seconds_of_fits(data._replace(x_train=x_train), seeds)
        how = f"mean of {seeds} whole fits on {kind} rows, divided by their iterations"
        rows.append(Table2Row("BPLS", seconds, how, *TABLE2["BPLS"]))
    for method in GRADIENT_METHODS:
        epoch, how = _seconds_of_epoch(method, data, steps)
        rows.append(Table2Row(method, epoch, how, *TABLE2[method]))
    return rows


def _seconds_of_fits(data: datasets.DataSet, seeds: int) -> float:
    reports = [_fit(TIMED, data, seed)[1] for seed in range(seeds)]
    return float(np.mean([report.seconds["total"] / report.iterations for report in reports]))


def _seconds_of_epoch(method: str, data: datasets.DataSet, steps: int) -> tuple[float | None, str]:
    if not gradient.torch_installed():
        return None, "not measured: PyTorch is not installed"
    weights = start(TIMED, data, 0).weights
    step = gradient.seconds_per_step(method, weights, data.x_train, data.y_train, steps)
    count = len(data.x_train)
    return step * count, f"extrapolated from {steps} of {count} updates, one row each (PyTorch)"


class CurvePoint(NamedTuple):
    """Accuracies in percent of one run after an iteration (BPLS) or an epoch (the others).

    Attributes
    ----------
    dataset, hidden, algorithm, seed
        The run.
    iteration : int
        Counted from 1.
    train, test : float
        Accuracies in percent.
    kept : bool
        Whether the fit returned these weights.
    """

    dataset: str
    hidden: str
    algorithm: str
    seed: int
    iteration: int
    train: float
    test: float
    kept: bool


def accuracy_curves(
    setting: Setting, data: datasets.DataSet, *, seeds: int = 5, epochs: int = 0
) -> list[CurvePoint]:
    """Return the accuracies of a setting after every iteration.

    Parameters
    ----------
    setting : Setting
    data : DataSet
    seeds : int
        Runs of Algorithm 2.
    epochs : int
        Epochs of each gradient method, which starts from the weights of seed 0. The paper runs 40. An epoch takes
        about half a minute, since every row is an update; 0 leaves the gradient methods out.
    """
    points = [point for seed in range(seeds) for point in _curve_of_fit(setting, data, seed)]
    for method in GRADIENT_METHODS if epochs else ():
        points += _curve_of_gradient(setting, data, method, epochs)
    return points


def _curve_of_fit(setting: Setting, data: datasets.DataSet, seed: int) -> list[CurvePoint]:
    accuracies: list[Accuracy] = []

    def record(report: FitReport) -> None:
        assert report.network is not None
        test = _percent(report.network, data.x_test, data.y_test)
        accuracies.append(Accuracy(100 * report.accuracy[-1], test))

    _, report = _fit(setting, data, seed, callback=record)
    return [
        CurvePoint(*setting.names, "BPLS", seed, index + 1, *accuracy, index == report.best)
        for index, accuracy in enumerate(accuracies)
    ]


def _curve_of_gradient(
    setting: Setting, data: datasets.DataSet, method: str, epochs: int
) -> list[CurvePoint]:
    net = start(setting, data, 0)
    points = []
    trained = gradient.epochs(method, net.weights, data.x_train, data.y_train, epochs)
    for epoch, weights in enumerate(trained, 1):
        accuracy = _accuracy(net.with_weights(weights), data)
        points.append(CurvePoint(*setting.names, method, 0, epoch, *accuracy, epoch == epochs))
    return points


class TimePoint(NamedTuple):
    """Test accuracy in percent and seconds of an iteration or epoch, on Fashion-MNIST with hidden layers 100-70."""

    algorithm: str
    source: str
    seconds: float
    test: float


def accuracy_and_time(data: datasets.DataSet, *, seeds: int = 5) -> list[TimePoint]:
    """Return the points of the paper's last figure: ours, measured on this CPU, and those of its two tables.

    Parameters
    ----------
    data : DataSet
        Fashion-MNIST.
    seeds : int
        Runs of Algorithm 2; each is a point.
    """
    points = []
    for seed in range(seeds):
        net, report = _fit(TIMED, data, seed)
        seconds = report.seconds["total"] / report.iterations
        test = _percent(net, data.x_test, data.y_test)
        points.append(TimePoint("BPLS", f"measured, CPU, seed {seed}", seconds, test))
    for algorithm, times in TABLE2.items():
        test = TABLE1[TIMED][algorithm].test
        points.append(TimePoint(algorithm, "paper, CPU", times.cpu, test))
        points.append(TimePoint(algorithm, "paper, GPU", times.gpu, test))
    return points


def _fit(
    setting: Setting,
    data: datasets.DataSet,
    seed: int,
    variant: Variant = DEFAULT,
    callback: Callable[[FitReport], Any] | None = None,
) -> tuple[Network, FitReport]:
    net = start(setting, data, seed)
    return net, fit_classifier(
        net,
        data.x_train,
        data.y_train,
        target=TARGET,
        full_sweeps=variant.full_sweeps,
        resolve=variant.resolve,
        callback=callback,
    )


def _accuracy(net: Network, data: datasets.DataSet) -> Accuracy:
    return Accuracy(
        _percent(net, data.x_train, data.y_train), _percent(net, data.x_test, data.y_test)
    )


def _percent(net: Network, X: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """Return the accuracy in percent; the labels of these sets count from 0."""
    return 100 * float(np.mean(net.decision(X).argmax(axis=1) == labels))
