"""Stopping rules: why a fit ends. A rule looks at the progress of a fit and returns a reason, or None to go on.

The rules of a fit are listed at the end of this file; a new rule is added here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

__all__ = [
    "CALLBACK_ASKED",
    "NO_HIDDEN_LAYERS",
    "NUMBERS_TOO_LARGE",
    "Limits",
    "Progress",
    "Rule",
    "first_reason",
    "miss_rules",
    "stagnation_rules",
    "sweep_failed",
]

CALLBACK_ASKED = "the callback asked to stop"
NO_HIDDEN_LAYERS = "there are no hidden layers"
NUMBERS_TOO_LARGE = "the numbers of a sweep grew too large"

FAILED_CHUNKS, FAILED_SWEEPS = 5, 2
"""Consecutive sweeps without a step that lowers the loss that end a fit: over chunks, and over all rows."""

SMALL_STEPS = 3
"""Consecutive sweeps over all rows that lower the loss by less than `tol` that end a fit."""

EXACT = 1e-6
"""A loss below this share of the mean square of the targets leaves nothing to learn."""

MANY_SWEEPS = 10_000
"""The number of sweeps from which on a fit counts as unlimited."""

FEWEST_SWEEPS, ROWS_PER_SWEEP = 3, 100
"""Where each sweep sees all rows: the least number of sweeps, and the rows for each sweep; few are memorized soon."""

FEWEST_TRIED = 12
"""The least number of sweeps of a fit that looks for the best number of sweeps."""


@dataclass
class Progress:
    """What the rules look at: the state of a fit after its latest iteration."""

    sweeps: int = 0
    rows_seen: int = 0
    loss: float = np.inf
    step_failed: bool = False  # the latest sweep found no step that lowers the loss
    misses: int = 1  # misclassified training rows
    improved: bool = True  # the latest iteration is the best so far
    score: float = -np.inf  # on the validation rows, accuracy or R²
    validations_since_best: int = 0
    best_sweeps: int = 0  # sweeps after which the score was best


Rule = Callable[[Progress], "str | None"]


def first_reason(rules: Iterable[Rule], progress: Progress) -> str | None:
    """Ask every rule, since rules may count; return the first reason."""
    reasons = [rule(progress) for rule in rules]
    return next((reason for reason in reasons if reason is not None), None)


@dataclass(frozen=True)
class Limits:
    """The work that a fit may do at most.

    Parameters
    ----------
    rows : int
        Training rows.
    max_sweeps : int or None
    max_passes : float
        Passes over the rows; infinite where every sweep sees all of them.
    """

    rows: int
    max_sweeps: int | None
    max_passes: float = np.inf

    @classmethod
    def over_all_rows(cls, rows: int, max_sweeps: int | None) -> Limits:
        """Return the limits of a fit whose sweeps see all rows."""
        return cls(rows, max_sweeps or max(FEWEST_SWEEPS, rows // ROWS_PER_SWEEP))

    def reached(self, sweeps: int, rows_seen: int) -> str | None:
        """Say which limit another sweep would exceed, after which `rows_seen` rows were seen."""
        if sweeps == self.max_sweeps:
            return f"{sweeps} sweeps"
        if sweeps and rows_seen > self.max_passes * self.rows + 0.5:
            return f"{self.max_passes:g} passes over the data"
        return None

    def plan(self, sizes: Iterator[int]) -> tuple[int, float] | None:
        """Return the sweeps and the passes that chunks of these sizes allow, or None if there are MANY_SWEEPS."""
        sweeps = seen = 0
        for size in islice(sizes, MANY_SWEEPS):
            if self.reached(sweeps, seen + size):
                return sweeps, seen / self.rows
            sweeps, seen = sweeps + 1, seen + size
        return None


class Streak:
    """Counts consecutive iterations with some property, and gives a reason after `most` of them."""

    def __init__(self, holds: Callable[[Progress], bool], most: int, reason: str) -> None:
        self._holds, self._most, self._reason = holds, most, reason
        self._length = 0

    def __call__(self, progress: Progress) -> str | None:
        self._length = self._length + 1 if self._holds(progress) else 0
        return self._reason if self._length == self._most else None


class SmallDecrease:
    """Tells whether the latest iteration lowered the loss by less than a share `tol` of it."""

    def __init__(self, tol: float) -> None:
        self._tol, self._before = tol, np.inf

    def __call__(self, progress: Progress) -> bool:
        before, self._before = self._before, progress.loss
        return before - progress.loss < self._tol * before


def rows_are_fitted(mean_square: float) -> Rule:
    """Return the rule that ends a fit whose loss is negligible relative to the mean square of the targets."""
    return lambda progress: "the rows are fitted" if progress.loss < EXACT * mean_square else None


def no_better_network(patience: int) -> Rule:
    """Return the rule that ends a fit when the validation score has not improved for `patience` validations."""
    reason = f"{patience} validations without a better network"
    return lambda progress: reason if progress.validations_since_best == patience else None


def far_beyond_best(times: float) -> Rule:
    """Return the rule that ends a fit after so many times the sweeps of its best network, but at least FEWEST_TRIED."""

    def rule(progress: Progress) -> str | None:
        if progress.sweeps < max(FEWEST_TRIED, times * progress.best_sweeps):
            return None
        return f"the best network is that of sweep {progress.best_sweeps}"

    return rule


def stagnation_rules(
    *,
    over_chunks: bool,
    tol: float,
    mean_square: float,
    patience: int,
    beyond_best: float | None = None,
) -> Sequence[Rule]:
    """Return the rules of refined sweeps besides their limits."""
    most = FAILED_CHUNKS if over_chunks else FAILED_SWEEPS
    rules: list[Rule] = [
        Streak(lambda progress: progress.step_failed, most, "no step lowers the loss")
    ]
    if not over_chunks:
        rules.append(rows_are_fitted(mean_square))
        reason = f"the loss falls by less than tol = {tol:g}"
        rules.append(Streak(SmallDecrease(tol), SMALL_STEPS, reason))
    rules.append(no_better_network(patience))
    if beyond_best is not None:
        rules.append(far_beyond_best(beyond_best))
    return rules


def miss_rules(full_sweeps: int, max_iter: int) -> Sequence[Rule]:
    """Return the rules of Algorithm 2."""

    def no_misses(progress: Progress) -> str | None:
        return None if progress.misses else "no row is missed"

    def no_fewer_misses(progress: Progress) -> str | None:
        past_full_sweeps = progress.sweeps > full_sweeps
        return "the misses stopped falling" if past_full_sweeps and not progress.improved else None

    def last_sweep(progress: Progress) -> str | None:
        return f"max_iter = {max_iter}" if progress.sweeps == max_iter else None

    return [no_misses, no_fewer_misses, last_sweep]


def sweep_failed(error: Exception) -> str:
    """Return the reason of a fit that ends because a sweep raised an error."""
    return f"a sweep failed: {error}"
