"""Accuracy against time: the points that each way of training reaches, and who is the first to get somewhere."""

import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from baselines.mini_batch import Run, epoch_seconds
from interleaved import record
from pytest_benchmark.fixture import BenchmarkFixture


class Point(NamedTuple):
    """A trained network: seconds of every fit from the arrays in memory, its test accuracy, and how it was made."""

    samples: list[float]
    accuracy: float
    what: str
    epoch: int = 0

    @property
    def best(self) -> float:
        return min(self.samples)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


Curves = dict[str, list[Point]]


def of_gradient(runs: Sequence[Run]) -> list[Point]:
    """Give a point for every run and epoch. An epoch takes what those with its batch size take, at any rate."""
    times = epoch_seconds(runs)
    return [
        Point(
            [epoch * seconds for seconds in times[run.config.batch]],
            accuracy,
            f"{run.config.text}, {epoch} epoch" + "s" * (epoch > 1),
            epoch,
        )
        for run in runs
        for epoch, accuracy in enumerate(run.accuracies, 1)
    ]


def most_accurate(points: Sequence[Point]) -> Point:
    """Give the best point, of equals the one that took the least time."""
    return max(points, key=lambda point: (point.accuracy, -point.median))


def first_to(points: Sequence[Point], accuracy: float) -> Point | None:
    """Give the point that took the least time of those that are accurate enough."""
    reaching = [point for point in points if point.accuracy >= accuracy]
    return min(reaching, key=lambda point: point.median, default=None)


def frontier(points: Sequence[Point]) -> Iterator[Point]:
    """Give the points that no faster one equals, from the fastest to the most accurate."""
    reached = -1.0
    for point in sorted(points, key=lambda point: point.median):
        if point.accuracy > reached:
            reached = point.accuracy
            yield point


def record_curve(
    benchmark: BenchmarkFixture, suite: str, group: str, contender: str, curves: Curves
) -> None:
    """Record the frontier of a contender, with the seconds of its most accurate point."""
    best = most_accurate(curves[contender])
    record(
        benchmark,
        group,
        contender,
        best.samples,
        suite=suite,
        accuracy=best.accuracy,
        what=best.what,
        points=[(point.median, point.accuracy) for point in frontier(curves[contender])],
    )


def record_first_to(
    benchmark: BenchmarkFixture,
    suite: str,
    group: str,
    contender: str,
    curves: Curves,
    accuracy: float,
    **information: object,
) -> None:
    """Record the seconds to an accuracy; who never gets there is recorded at its most accurate point, and told so."""
    first = first_to(curves[contender], accuracy)
    shown = first or most_accurate(curves[contender])
    record(
        benchmark,
        group,
        contender,
        shown.samples,
        suite=suite,
        target=accuracy,
        accuracy=shown.accuracy,
        what=shown.what,
        reached=first is not None,
        **information,
    )
