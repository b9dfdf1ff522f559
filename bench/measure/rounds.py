"""Interleaved rounds: each round calls every contender, so that a machine that slows down slows them all.

Before each contender the machine pauses. The first call after the pause is *cold*, the burst of calls that follows is
*hot*: two results, since threads that sleep cost the first call and threads that spin cost everybody else.
"""

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .. import SMALL
from ..contenders import BARE, OURS, competitors
from ..report.results import ratio_spread
from .case import Call, Case
from .libraries import PAUSE_SECONDS, limited
from .peaks import Peaks

SAMPLE_SECONDS = 0.0005 if SMALL else 0.005
"""The calls of a burst take this long together."""
BUDGET_SECONDS = 0.0 if SMALL else 2.0
"""Time for the rounds of a case, unless the fewest rounds take longer."""
FEWEST_ROUNDS = 1 if SMALL else 5
MOST_TRIALS = 2 if SMALL else 50
"""Calls of a form, at most, before the fastest is chosen."""
LONG_SECONDS = 0.2
"""A first call that takes longer decides alone how fast a form is; it is hot and cold at once."""


@dataclass
class Row:
    """A case at one number of threads: seconds of every sample, and errors, by contender."""

    case: Case
    n_threads: int
    samples: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of a call in a burst."""
    cold: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of the first call after a pause."""
    errors: dict[str, float] = field(default_factory=dict)
    floors: dict[str, float] = field(default_factory=dict)
    """The fewest seconds that the hardware needed for parts of a call, by name."""

    @property
    def rivals(self) -> list[str]:
        return competitors(self.samples)

    def best(self, contender: str) -> float:
        return min(self.samples[contender])

    def cold_median(self, contender: str) -> float:
        """Return the median first call: the best would hide threads that wake late."""
        return statistics.median(self.cold[contender])

    def median(self, contender: str) -> float:
        return statistics.median(self.samples[contender])

    def ratio(self, contender: str) -> float:
        """Return the competitor's best time divided by ours."""
        return self.best(contender) / self.best(OURS)

    def cold_ratio(self, contender: str) -> float:
        """Return the competitor's median first call divided by ours."""
        return self.cold_median(contender) / self.cold_median(OURS)

    def noise(self, contender: str) -> float | None:
        """Return the relative spread of the ratio over the rounds."""
        return ratio_spread(self.samples[contender], self.samples[OURS])

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
    """Return the form with the best call: the best of a burst or, if the first call was long, that one."""
    if len(forms) == 1:
        return forms[0]

    def best(form: Call) -> float:
        time.sleep(PAUSE_SECONDS)
        first = seconds(form)
        if first > LONG_SECONDS:
            return first
        calls = max(2, min(MOST_TRIALS, round(SAMPLE_SECONDS / first)))
        return min(first, *(seconds(form) for _ in range(calls)))

    return min(forms, key=best)


def burst_length(call: Call) -> int:
    """Return how many calls make up a burst."""
    return math.ceil(SAMPLE_SECONDS / min(seconds(call) for _ in range(3)))


def sample(call: Call, burst: int) -> tuple[float, float]:
    """Pause; return the seconds of the first call and of a call in the burst. Without a burst the first is both."""
    time.sleep(PAUSE_SECONDS)
    first = seconds(call)
    return first, seconds(call, burst) if burst else first


def rounds_within_budget(round_seconds: float, most: int) -> int:
    """Return as many rounds as the budget allows, but never fewer than a few."""
    return max(min(FEWEST_ROUNDS, most), min(most, int(BUDGET_SECONDS / round_seconds)))


def interleaved(calls: Mapping[str, Call], rounds: int) -> dict[str, list[float]]:
    """Time calls that are warm, and long enough to be timed one at a time."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(sample(call, 0)[0])
    return samples


def measure(
    case: Case,
    n_threads: int,
    rounds: int | None,
    peaks: Peaks,
    contenders: Sequence[str] | None = None,
    *,
    bursts: bool = True,
) -> Row:
    """Check every answer, then time the contenders in interleaved rounds, by default as many as the budget allows."""
    row = Row(case, n_threads)
    with limited(n_threads):
        chosen = case.installed_contenders if contenders is None else contenders
        calls = {name: fastest(case.forms(name, n_threads)) for name in chosen}
        took = {}
        for name, call in calls.items():
            began = time.perf_counter()
            result = call()
            took[name] = time.perf_counter() - began
            row.errors[name] = case.checked_error(name, result)
        # All of a row have bursts, or none: hot is not compared with cold.
        bursts = bursts and min(took.values()) <= LONG_SECONDS
        lengths = {name: burst_length(call) if bursts else 0 for name, call in calls.items()}
        row.samples = {name: [] for name in calls}
        row.cold = {name: [] for name in calls}
        if case.bare:
            row.samples[BARE] = []
        left = rounds or case.rounds
        began = time.perf_counter()
        while left > 0:
            for name, call in calls.items():
                first, in_burst = sample(call, lengths[name])
                row.cold[name].append(first)
                row.samples[name].append(in_burst)
            if case.bare:
                time.sleep(PAUSE_SECONDS)
                row.samples[BARE].append(case.bare(*case.arrays, n_threads, lengths[OURS]))
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
