"""What a fit tells: the report's numbers and its table, and the callback."""

import copy
import pickle
import re

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.context import FitContext, TooLargeError
from tests.support.fits import fit_classes, fit_numbers

PHASES = ["forward", "gram", "solve", "target"]


# The report.


@pytest.mark.parametrize("fit", [fit_classes, fit_numbers])
def test_the_seconds_of_the_phases_are_part_of_the_total(fit):
    *_, report = fit()
    assert list(report.seconds) == [*PHASES, "total"]
    assert all(report.seconds[phase] > 0 for phase in PHASES)
    assert sum(report.seconds[phase] for phase in PHASES) <= report.seconds["total"]


def test_a_report_of_classes_prints_a_line_for_every_sweep():
    *_, report = fit_classes()
    lines = str(report).splitlines()
    assert lines[0] == f"Algorithm 2: {report.stopped}"
    assert lines[1].split() == ["iteration", "misses", "accuracy"]
    for index, line in enumerate(lines[2:-2]):
        kept = ["kept"] if index == report.best else []
        accuracy = f"{100 * report.accuracy[index]:.2f}%"
        assert line.split() == [str(index + 1), str(report.misses[index]), accuracy, *kept]
    assert len(lines) == 4 + report.iterations
    assert lines[-2] == f"eps 1e-06, margins {report.margins[0]:g}"
    assert re.findall(r"(\w+) \d+\.\d{3} s", lines[-1]) == [*PHASES, "total"]


def test_a_report_of_numbers_prints_a_line_for_every_candidate():
    *_, report = fit_numbers()
    lines = str(report).splitlines()
    assert lines[:2] == ["Algorithm 1: the best of three candidates", "training error  candidate"]
    assert report.candidates == [
        "the sweep",
        "the sweep, output solved again",
        "the start, output solved",
    ]
    for index, line in enumerate(lines[2:-2]):
        loss, name = line.split(maxsplit=1)
        assert name == report.candidates[index] + ("  kept" if index == report.best else "")
        assert float(loss) == pytest.approx(report.loss[index], rel=1e-5)
    assert len(lines) == 4 + len(report.loss)


def test_a_report_without_a_fit_prints():
    assert str(bf.FitReport("Algorithm 3")).splitlines()[0] == "Algorithm 3"


def test_a_report_can_be_pickled_and_copied():
    *_, report = fit_classes()
    assert pickle.loads(pickle.dumps(report)) == copy.deepcopy(report) == report


def test_numbers_that_grow_too_large_are_told_from_other_errors():
    context = FitContext("a fit", 1e-6)
    ones = np.ones((3, 2))
    for values in (np.inf, np.nan, 1e300):
        with pytest.raises(TooLargeError, match="grew too large"), context.phase("gram"):
            bf.gram(ones * values)
    with pytest.raises(TooLargeError), context.phase("solve"):
        bf.solve(np.eye(2) * 1e-200, ones[:2] * 1e200)
    with pytest.raises(TooLargeError), context.phase("forward"):
        bf.Network([1, 1]).weights = [np.full((2, 1), np.nan)]
    with (
        pytest.raises(ValueError, match="W has 3 rows; expected 2") as wrong_shape,
        context.phase("forward"),
    ):
        bf.linear(ones, ones)
    with pytest.raises(np.linalg.LinAlgError), context.phase("solve"):
        bf.solve(np.zeros((2, 2)), ones[:2])
    assert wrong_shape.type is ValueError
    assert all(context.report.seconds[phase] > 0 for phase in ("gram", "solve", "forward"))


# The callback.


def test_the_callback_sees_every_sweep_and_its_network():
    seen = []

    def callback(report):
        # The network of the sweep knows its classes and how its inputs are scaled.
        network = report.network
        seen.append((report.iterations, report.misses[-1], report.best, network))

    net, X, labels, report = fit_classes(callback=callback)
    assert [iteration for iteration, *_ in seen] == list(range(1, report.iterations + 1))
    assert [misses for _, misses, *_ in seen] == report.misses
    assert [(network.predict(X) != labels).sum() for *_, network in seen] == report.misses
    for count, (*_, best, _) in enumerate(seen, 1):
        assert best == np.argmin(report.misses[:count])
    kept = seen[report.best][-1]
    assert kept.weights[0].tobytes() == net.weights[0].tobytes()
    assert report.network is None


def test_the_callback_sees_every_candidate_and_its_network():
    losses = []

    def callback(report):
        outputs = report.network.forward(X)
        losses.append(np.sqrt(np.mean((outputs - X**2) ** 2)))

    X = np.linspace(-1, 1, 50)[:, np.newaxis]
    _, _, report = fit_numbers(callback=callback)
    assert losses == pytest.approx(report.loss)
    assert len(losses) == len(report.candidates) == 3


@pytest.mark.parametrize("answer", [True, np.True_])
def test_a_callback_that_returns_true_ends_the_fit(answer):
    net, X, labels, report = fit_classes(callback=lambda report: report.iterations == 2 and answer)
    assert report.iterations == 2
    assert report.stopped == "the callback asked to stop"
    assert (net.predict(X) != labels).sum() == min(report.misses)
    *_, report = fit_numbers(callback=lambda report: answer)
    assert len(report.loss) == 1
    assert report.candidates == ["the sweep"]
    assert report.stopped == "the callback asked to stop"


@pytest.mark.parametrize("answer", [None, False, np.False_, 1, "yes", [True]])
def test_any_other_answer_lets_the_fit_go_on(answer):
    *_, report = fit_classes(callback=lambda report: answer)
    assert report.misses == fit_classes()[-1].misses
