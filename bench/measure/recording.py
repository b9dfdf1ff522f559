"""Rows of pytest-benchmark for seconds that were measured elsewhere.

pytest-benchmark times one test after the other, our rounds are interleaved. `record` therefore plays measured seconds
back to it, so that every contender is a row of its own in its tables and files.
"""

import functools
from collections.abc import Sequence
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ..contenders import BARE, OURS
from .case import Case
from .peaks import Peaks
from .rounds import Row, group_of, measure


class Clock:
    """A clock that advances only when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


clock = Clock()
recorded = pytest.mark.benchmark(timer=clock)
"""Marks the tests that call `record`."""


def record(
    benchmark: BenchmarkFixture,
    group: str,
    contender: str,
    samples: Sequence[float],
    **information: Any,
) -> None:
    """Record measured seconds as a row of pytest-benchmark; information that is None is left out."""
    left = iter(samples)

    def play() -> None:
        clock.now += next(left)

    clock.now = 0.0
    benchmark.group = group
    present = {name: value for name, value in information.items() if value is not None}
    benchmark.extra_info.update(contender=contender, **present)
    benchmark.pedantic(play, rounds=len(samples))  # type: ignore[no-untyped-call]


_peaks = Peaks()


@functools.lru_cache(maxsize=1)  # the contenders of a case are consecutive tests
def _row_of(case: Case, n_threads: int) -> Row:
    try:
        return measure(case, n_threads, None, _peaks)
    finally:
        case.release()


def record_case(
    benchmark: BenchmarkFixture,
    suite: str,
    case: Case,
    n_threads: int,
    contender: str,
    *,
    cold: bool = False,
    seed: int | None = None,
) -> None:
    """Record a contender of a case, in bursts or cold; the first one asked for measures them all, in both ways."""
    row = _row_of(case, n_threads)
    record(
        benchmark,
        group_of(case, n_threads)
        + ("" if seed is None else f", seed {seed}")
        + ", after a pause" * cold,
        contender,
        (row.cold if cold else row.samples)[contender],
        suite=suite,
        kernel=f"{case.kernel} {case.dtype}",
        rows=case.rows,
        cols=case.cols,
        threads=n_threads,
        error=row.errors.get(contender),
        part_of_peak=row.part_of_peak(_peaks) if contender == OURS and not cold else None,
        cold=cold or None,
        seed=seed,
        floors=row.floors if contender == BARE and row.floors else None,
    )
