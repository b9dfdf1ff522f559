"""Interleaved rounds: each round calls every contender once, so that a machine that slows down slows them all."""

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .. import SMALL
from ..contenders import BARE, OURS
from .case import Call, Case
from .libraries import PAUSE_SECONDS, limited
from .peaks import Peaks

SAMPLE_SECONDS = 0.005
"""Shorter calls are warmed up after the pause, and repeated until a sample takes this long."""
BUDGET_SECONDS = 0.0 if SMALL else 2.0
"""Time for the rounds of a case, unless the fewest rounds take longer."""
FEWEST_ROUNDS = 1 if SMALL else 5
LONG_SECONDS = 0.2
"""A first call that takes longer decides alone how fast a form is."""


@dataclass
class Row:
    """A case at one number of threads: seconds of every sample, and errors, by contender."""

    case: Case
    n_threads: int
    samples: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    floors: dict[str, float] = field(default_factory=dict)
    """The fewest seconds that the hardware needed for parts of a call, by name."""

    def best(self, contender: str) -> float:
        return min(self.samples[contender])

    def median(self, contender: str) -> float:
        return statistics.median(self.samples[contender])

    def ratio(self, contender: str) -> float:
        """Return the competitor's best time divided by ours."""
        return self.best(contender) / self.best(OURS)

    def part_of_peak(self, peaks: Peaks) -> float | None:
        if not self.case.operations:
            return None
        peak = peaks.best(self.case.arithmetic, self.n_threads)
        return self.case.operations / self.best(OURS) / peak


def seconds(call: Call, repeats: int = 1) -> float:
    """Return the mean seconds of some calls in a row."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def fastest(forms: Sequence[Call]) -> Call:
    """Return the form with the best call: the first, and two more if that was short."""
    if len(forms) == 1:
        return forms[0]

    def best(form: Call) -> float:
        first = seconds(form)
        return first if first > LONG_SECONDS else min(first, seconds(form), seconds(form))

    return min(forms, key=best)


def repeats_for(call: Call, first: float) -> int:
    """Return how many calls make up a sample, after a first one that took `first` seconds."""
    if first >= SAMPLE_SECONDS:
        return 1
    return math.ceil(SAMPLE_SECONDS / min(seconds(call) for _ in range(3)))


def sample(call: Call, repeats: int) -> float:
    time.sleep(PAUSE_SECONDS)
    if repeats > 1:
        call()
    return seconds(call, repeats)


def rounds_within_budget(round_seconds: float, most: int) -> int:
    """Return as many rounds as the budget allows, but never fewer than a few."""
    return max(min(FEWEST_ROUNDS, most), min(most, int(BUDGET_SECONDS / round_seconds)))


def interleaved(calls: Mapping[str, Call], rounds: int) -> dict[str, list[float]]:
    """Time calls that are warm, and long enough to be timed one at a time."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(sample(call, 1))
    return samples


def measure(case: Case, n_threads: int, rounds: int | None, peaks: Peaks) -> Row:
    """Check every answer, then time the contenders in interleaved rounds, by default as many as the budget allows."""
    row = Row(case, n_threads)
    with limited(n_threads):
        calls = {name: fastest(case.forms(name, n_threads)) for name in case.installed_contenders}
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
            if case.floors:
                for name, least in case.floors().items():
                    row.floors[name] = min(least, row.floors.get(name, math.inf))
            if case.operations:
                peaks.measure(case.arithmetic, n_threads)
            left -= 1
            if len(row.samples[OURS]) == 1 and not rounds:
                left = rounds_within_budget(time.perf_counter() - began, case.rounds) - 1
    return row


def group_of(case: Case, n_threads: int) -> str:
    """Return the name of a row's group in files of results."""
    return f"{case.name}, {n_threads} thread(s)"
