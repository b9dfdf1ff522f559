"""Points of accuracy against time: the first to an accuracy, the frontier, and the time of an epoch."""

import pytest

from ..baselines.mini_batch import Config, Run
from ..suites.curves import Point, first_to, frontier, most_accurate, of_gradient

SLOW_AND_GOOD = Point([4.0, 3.0, 5.0], 0.9, "slow")
FAST = Point([1.0], 0.7, "fast")
WORSE = Point([2.0], 0.6, "worse")
POINTS = [SLOW_AND_GOOD, WORSE, FAST]


def test_the_first_to_an_accuracy_is_the_fastest_that_has_it() -> None:
    assert first_to(POINTS, 0.6) == FAST
    assert first_to(POINTS, 0.8) == SLOW_AND_GOOD
    assert first_to(POINTS, 0.95) is None


def test_the_frontier_rises_with_time() -> None:
    assert list(frontier(POINTS)) == [FAST, SLOW_AND_GOOD]


def test_of_equal_accuracies_the_faster_is_best() -> None:
    assert most_accurate([Point([2.0], 0.7, "slower"), FAST]) == FAST


def test_an_epoch_takes_what_those_of_its_batch_size_take_at_any_rate() -> None:
    runs = [
        Run(Config(128, 1e-3), accuracies=[0.5, 0.6], seconds=[1.0, 3.0]),
        Run(Config(128, 1e-2), accuracies=[0.4, 0.7], seconds=[2.0, 2.0]),
        Run(Config(256, 1e-2), accuracies=[0.3], seconds=[0.5]),
    ]
    points = of_gradient(runs)
    assert [point.accuracy for point in points] == [0.5, 0.6, 0.4, 0.7, 0.3]
    assert points[3].samples == [2.0, 6.0, 4.0, 4.0]
    assert points[3].what == "batch 128, rate 0.01, 2 epochs"
    assert points[4].samples == [0.5]
    assert points[4].median == pytest.approx(0.5)
