"""Accuracy against time: the points that each method of training reaches, and the first that reaches an accuracy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_benchmark.fixture import BenchmarkFixture

from ..baselines.mini_batch import Run, epoch_seconds
from ..measure.recording import record
from ..report.results import Timed


@dataclass(frozen=True)
class Point(Timed):
    """A trained network: seconds of every fit from the arrays in memory, its test accuracy, and how it was made."""

    accuracy: float
    what: str
    epoch: int = 0


Curves = dict[str, list[Point]]


def of_gradient(runs: Sequence[Run]) -> list[Point]:
    """Return a point for each run and epoch, timed by all epochs with the same batch size."""
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
    """Return the most accurate point; among equals, the fastest."""
    return max(points, key=lambda point: (point.accuracy, -point.median))


def first_to(points: Sequence[Point], accuracy: float) -> Point | None:
    """Return the fastest point that is accurate enough, if any."""
    reaching = [point for point in points if point.accuracy >= accuracy]
    return min(reaching, key=lambda point: point.median, default=None)


def frontier(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the points that are more accurate than all faster ones, from the fastest to the most accurate."""
    reached = -1.0
    for point in sorted(points, key=lambda point: point.median):
        if point.accuracy > reached:
            reached = point.accuracy
            yield point


def record_curve(
    benchmark: BenchmarkFixture, suite: str, group: str, contender: str, curves: Curves
) -> None:
    """Record the frontier of a contender and the seconds of its most accurate point."""
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
    """Record the seconds to an accuracy, or to the most accurate point of a contender that never reaches it."""
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
