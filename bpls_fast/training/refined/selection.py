"""Settings that are found from the data: the loss, the ridge, the weight decay and the number of sweeps.

Every candidate is trained on the same rows and scored on others, which are held out. Successive halving: all candidates
run for a few sweeps, the better half of them for twice as many, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import activations
from bpls_fast.kernels.backend import to_numpy
from bpls_fast.network import Network
from bpls_fast.training.context import FitContext, TooLargeError
from bpls_fast.training.data import Array, Samples
from bpls_fast.training.refined.chunks import first_chunk
from bpls_fast.training.refined.running import PHASES, Plan, RefinedFit
from bpls_fast.training.refined.sweeps import AUTO, Setting

__all__ = [
    "FOLDS",
    "MEMBERS_ROWS",
    "Choice",
    "Part",
    "candidates",
    "choose",
    "folds",
    "length_is_found",
    "without",
]

FOLDS = 4
"""One part in FOLDS of the rows is held out to choose a setting for one network."""

FEWEST_ROWS = 40
"""With fewer rows nothing is held out: the last candidate is taken as it is."""

RUNGS = (12, 24, 48, 96, 192)
"""Sweeps after which the better half of the candidates goes on; the last number is the most sweeps."""

MOST_ROWS, MEMBERS_ROWS = 480_000, 240_000
"""The most rows that the sweeps of one network see, counting a row each time, and those of a member of a committee."""

BEYOND_BEST = 1.5
"""Times the sweeps of its best network after which a candidate is given up."""

LOG_LOSS_SHARE = 0.3
"""What a unit of the log loss counts beside the accuracy in the score of a candidate."""

OF_CLASSES = (
    Setting("cross_entropy", 0.1, decay=1e-4),
    Setting("cross_entropy", 0.1, decay=1e-3),
    Setting("cross_entropy", 1.0, decay=1e-3),
    Setting("squared", 7.0),
)
OF_NUMBERS = (Setting("squared", 0.7), Setting("squared", 7.0))
"""The candidates, the default of the squared loss last."""


class Part(NamedTuple):
    """Where a fit begins, the rows to train on, the rows that are held out, and the seed of the order of rows."""

    net: Network
    samples: Samples
    held: Samples
    seed: int


class Choice(NamedTuple):
    """What was chosen.

    Attributes
    ----------
    setting : Setting
        The setting with the best score.
    fits : tuple of RefinedFit
        Its fit of each part, which has the best number of sweeps; none if there were too few rows to hold some out.
    """

    setting: Setting
    fits: tuple[RefinedFit, ...] = ()


def candidates(net: Network, samples: Samples, loss: str, eps: float | None) -> list[Setting]:
    """Return the settings to choose from; a loss that is not AUTO is given, and so is a ridge that is not None."""
    has_classes = samples.labels is not None and net.activations[-1].name == "softmax"
    found = OF_CLASSES if has_classes else OF_NUMBERS
    chosen = [setting for setting in found if loss in (AUTO, setting.loss)]
    if eps is not None:
        chosen = list(dict.fromkeys(setting._replace(eps=eps) for setting in chosen))
    return chosen


def folds(samples: Samples, count: int, random: np.random.Generator) -> list[NDArray[np.intp]]:
    """Cut the rows into parts of equal size in which labels, or numbers, are distributed alike."""
    key = samples.labels
    if key is None:
        key = to_numpy(samples.targets)[:, 0]
    order = random.permutation(len(samples.X))
    order = order[np.argsort(key[order], kind="stable")]
    return [np.sort(order[first::count]) for first in range(count)]


def without(samples: Samples, fold: NDArray[np.intp]) -> Samples:
    """Return the rows that are not in a fold."""
    kept = np.ones(len(samples.X), bool)
    kept[fold] = False
    return samples.take(np.flatnonzero(kept))


def choose(
    parts: Sequence[Part],
    settings: Sequence[Setting],
    plan: Plan,
    context: FitContext,
    most_rows: int = MOST_ROWS,
) -> Choice:
    """Choose a setting by the scores of held-out rows, and a number of sweeps for each part of the data.

    Parameters
    ----------
    parts : sequence of Part
        Every candidate is trained on each; its score is the mean over them.
    settings : sequence of Setting
        The candidates.
    plan : Plan
        Its `max_sweeps`, where given, is the most sweeps. `tol` and `patience` do not matter.
    context : FitContext
        Gets the ridge that is chosen; its report gets the time of the candidates and says what was tried.
    most_rows : int
        The most rows that the sweeps of a fit see, counting a row each time, unless `plan` limits its sweeps.
    """
    if len(parts[0].samples.X) + len(parts[0].held.X) < FEWEST_ROWS:
        return Choice(settings[-1])
    races = [Race(parts, setting, plan, context, most_rows) for setting in settings]
    left = races
    for rung in RUNGS:
        for race in left:
            race.run(rung)
        if not any(race.has_begun for race in races):
            raise next(race.failure for race in races if race.failure is not None)
        left = sorted(left, key=lambda race: race.score, reverse=True)[: -(-len(left) // 2)]
        if len(left) == 1 and left[0].has_ended(rung):
            break
    best = left[0]
    for race in races:
        for fit in race.fits:
            context.add_times(fit.context)
    others = sorted((race for race in races if race is not best), key=lambda race: race.score)
    context.report.trials += [race.describe() for race in (*others, best)]
    context.use_ridge(best.setting.eps)
    return Choice(best.setting, tuple(best.fits))


class Race:
    """A candidate: its fits of all parts."""

    def __init__(
        self,
        parts: Sequence[Part],
        setting: Setting,
        plan: Plan,
        context: FitContext,
        most_rows: int,
    ) -> None:
        self.setting, self.fits = setting, list[RefinedFit]()
        self.failure: Exception | None = None
        for net, samples, held, seed in parts:
            most = plan.max_sweeps or min(RUNGS[-1], most_rows // first_chunk(net, setting.loss))
            longest = length_is_found(plan, most)._replace(beyond_best=BEYOND_BEST)
            trial = FitContext("trial", setting.eps, backend=context.backend, phases=PHASES)
            random = np.random.default_rng(seed)
            fit = RefinedFit(net, samples, held, setting, longest, trial, random, _score)
            self.fits.append(fit)

    @property
    def score(self) -> float:
        """The mean of the best scores."""
        return float(np.mean([fit.best_score for fit in self.fits]))

    @property
    def has_begun(self) -> bool:
        """Whether a first sweep did not fail."""
        return any(fit.progress.sweeps for fit in self.fits)

    def has_ended(self, rung: int) -> bool:
        """Return whether no fit makes more sweeps than so many."""
        return all(fit.progress.sweeps < rung or not fit.goes_on for fit in self.fits)

    def run(self, sweeps: int) -> None:
        """Let every fit that has not ended make so many sweeps in all."""
        for fit in self.fits:
            if fit.goes_on:
                try:
                    fit.run(sweeps)
                except (TooLargeError, np.linalg.LinAlgError) as error:  # in its first sweep
                    self.failure = error

    def describe(self) -> str:
        """Return the setting, its score and its sweeps in words."""
        loss, eps, _, decay = self.setting
        decays = "" if decay is None else f", decay {decay:g}"
        best, all_sweeps = (
            "/".join(str(count) for count in counts)
            for counts in zip(*((f.best_sweeps, f.progress.sweeps) for f in self.fits), strict=True)
        )
        return f"{loss}, eps {eps:g}{decays}: score {self.score:.4f} after {best} sweeps of {all_sweeps}"


def length_is_found(plan: Plan, sweeps: int) -> Plan:
    """Return the plan of a fit with at most so many sweeps, whose length other rows determine."""
    return plan._replace(max_sweeps=sweeps, tol=0.0, patience=sweeps, doublings=0)


def _score(samples: Samples, outputs: Array) -> float:
    """Return R², or the accuracy less a small share of the log loss, which tells candidates of like accuracy apart."""
    score = samples.score(outputs)
    if samples.labels is None:
        return score
    p = activations["softmax"].forward(to_numpy(outputs).astype(np.float64))
    right = np.take_along_axis(p, samples.labels[:, np.newaxis], axis=1)[:, 0]
    logs = np.log(np.maximum(right, np.finfo(np.float32).eps))
    weight = None if samples.sample_weight is None else to_numpy(samples.sample_weight)
    return score + LOG_LOSS_SHARE * float(np.average(logs, weights=weight))
