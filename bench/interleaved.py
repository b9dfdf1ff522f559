"""Contenders take turns: a call of each in every round, so that a machine that slows down slows everyone.

pytest-benchmark times one test after the other. So the rounds are timed here, and `record` plays the seconds back to
it: every contender is a row of its own in its tables and files.
"""

import functools
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from kernel_cases import INSTALLED, OURS, PAUSE_SECONDS, SMALL, Call, Case, limited, seconds
from peak import Peaks
from pytest_benchmark.fixture import BenchmarkFixture

# Shorter calls are warmed up after the pause, and repeated until a sample is this long.
SAMPLE_SECONDS = 0.005
BUDGET_SECONDS = 0.0 if SMALL else 2.0
"""What the rounds of a case may take, unless the fewest allowed take longer."""
FEWEST_ROUNDS = 1 if SMALL else 5
BARE = "bare C++"


@dataclass
class Row:
    """A case at a number of threads: seconds of every sample, and errors, by contender."""

    case: Case
    n_threads: int
    samples: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)

    def best(self, contender: str) -> float:
        return min(self.samples[contender])

    def median(self, contender: str) -> float:
        return statistics.median(self.samples[contender])

    def ratio(self, contender: str) -> float:
        """Give how many times faster we are."""
        return self.best(contender) / self.best(OURS)

    def part_of_peak(self, peaks: Peaks) -> float | None:
        if not self.case.operations:
            return None
        peak = peaks.best(self.case.arithmetic, self.n_threads)
        return self.case.operations / self.best(OURS) / peak


def repeats_for(call: Call, first: float) -> int:
    """Give the calls that make up a sample, after a first one that took this long."""
    if first >= SAMPLE_SECONDS:
        return 1
    return math.ceil(SAMPLE_SECONDS / min(seconds(call) for _ in range(3)))


def sample(call: Call, repeats: int) -> float:
    time.sleep(PAUSE_SECONDS)
    if repeats > 1:
        call()
    return seconds(call, repeats)


def rounds_within_budget(round_seconds: float, most: int) -> int:
    """Give as many rounds as the budget allows, but some always."""
    return max(min(FEWEST_ROUNDS, most), min(most, int(BUDGET_SECONDS / round_seconds)))


def take_turns(calls: Mapping[str, Call], rounds: int) -> dict[str, list[float]]:
    """Time calls that are warm and long enough to be timed one at a time."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(sample(call, 1))
    return samples


def measure(case: Case, n_threads: int, rounds: int | None, peaks: Peaks) -> Row:
    """Check every answer, then let the contenders take turns, by default as often as the budget allows."""
    row = Row(case, n_threads)
    with limited(n_threads):
        contenders = [name for name in case.contenders if INSTALLED.get(name, True)]
        calls = {name: case.call(name, n_threads) for name in contenders}
        repeats = {}
        for name, call in calls.items():
            began = time.perf_counter()
            result = call()
            took = time.perf_counter() - began
            row.errors[name] = case.checked_error(name, result)
            repeats[name] = repeats_for(call, took)
        row.samples = {name: [] for name in calls}
        if case.bare:
            row.samples[BARE] = []
        left = rounds or case.rounds
        began = time.perf_counter()
        while left > 0:
            for name, call in calls.items():
                row.samples[name].append(sample(call, repeats[name]))
            if case.bare:
                time.sleep(PAUSE_SECONDS)
                row.samples[BARE].append(case.bare(*case.arrays, n_threads, repeats[OURS]))
            if case.operations:
                peaks.measure(case.arithmetic, n_threads)
            left -= 1
            if len(row.samples[OURS]) == 1 and not rounds:
                left = rounds_within_budget(time.perf_counter() - began, case.rounds) - 1
    return row


class Clock:
    """A clock that stands still but for what it is told."""

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
    """Make seconds that were measured elsewhere a row of pytest-benchmark's; what is None says nothing."""
    left = iter(samples)

    def play() -> None:
        clock.now += next(left)

    clock.now = 0.0
    benchmark.group = group
    known = {name: value for name, value in information.items() if value is not None}
    benchmark.extra_info.update(contender=contender, **known)
    benchmark.pedantic(play, rounds=len(samples))  # type: ignore[no-untyped-call]


def group_of(case: Case, n_threads: int) -> str:
    return f"{case.name}, {n_threads} thread(s)"


_peaks = Peaks()


@functools.lru_cache(maxsize=1)  # the contenders of a case are tests in a row
def _row_of(case: Case, n_threads: int) -> Row:
    try:
        return measure(case, n_threads, None, _peaks)
    finally:
        case.release()


def record_case(
    benchmark: BenchmarkFixture, suite: str, case: Case, n_threads: int, contender: str
) -> None:
    """Measure a case when its first contender asks, and record each when it does."""
    row = _row_of(case, n_threads)
    record(
        benchmark,
        group_of(case, n_threads),
        contender,
        row.samples[contender],
        suite=suite,
        kernel=f"{case.kernel} {case.dtype}",
        rows=case.rows,
        cols=case.cols,
        threads=n_threads,
        error=row.errors.get(contender),
        part_of_peak=row.part_of_peak(_peaks) if contender == OURS else None,
    )
