"""Settings that are found from the data: the loss, the ridge, the weight decay and the number of sweeps.

Every candidate is trained on the same rows and scored on others, which are held out. Successive halving: all candidates
run for a few sweeps, the better half of them for twice as many, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import activations
from bpls_fast.kernels.backend import to_numpy
from bpls_fast.network import Network
from bpls_fast.training.context import FitContext, TooLargeError
from bpls_fast.training.data import MOST_REPETITIONS, Array, Samples
from bpls_fast.training.refined.chunks import first_chunk
from bpls_fast.training.refined.running import PHASES, Plan, RefinedFit
from bpls_fast.training.refined.shared_inputs import Reduced
from bpls_fast.training.refined.sweeps import AUTO, Setting

__all__ = [
    "FEWEST_ROWS",
    "FOLDS",
    "MEMBERS_SHARE",
    "Choice",
    "Part",
    "candidates",
    "choose",
    "folds",
    "length_is_found",
]

FOLDS = 4
"""One part in FOLDS of the rows is held out to choose a setting for one network."""

FEWEST_ROWS = 40
"""With fewer rows nothing is held out: the last candidate is taken as it is."""

RUNGS = (12, 24, 48, 96, 192)
"""Sweeps after which the better half of the candidates goes on; the last number is the most sweeps."""

MOST_ROWS = {"squared": 240_000, "cross_entropy": 480_000}
"""The most rows that the sweeps over chunks of one network see under each loss, counting a row each time."""

FEW_SWEEPS, ROWS_PER_SWEEP = 48, 10
"""The most sweeps over a small table, and the rows for each sweep beyond them: few rows are memorized soon."""

MEMBERS_SHARE = 0.5
"""The share of them that the sweeps of a member of a committee see."""

BEYOND_BEST = 1.5
"""Times the sweeps of its best network after which a candidate is given up."""

GROUPS_OF_A_PART = 2
"""The fewest groups of equal rows for each part, if equal rows are to be in the same one."""

HASH_BYTES, HASH_ROWS = 8, 1024
"""Bytes that enter the hash of a row at a time, and rows that are hashed at a time."""

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
    """Where a fit begins, the rows to train on, those that are held out, their components if any, and a seed."""

    net: Network
    samples: Samples
    held: Samples
    reduced: Reduced | None
    seed: int

    def fit(
        self, setting: Setting, plan: Plan, backend: str, validated: Samples | None
    ) -> RefinedFit:
        """Return a fit that can be run, with a context of its own, and with validation rows or without."""
        net = self.net
        if setting.activation is not None:
            net = net.with_activation(setting.activation)
        context = FitContext("part", setting.eps, backend=backend, phases=PHASES)
        random = np.random.default_rng(self.seed)
        return RefinedFit(
            net, self.samples, validated, setting, plan, context, random, _score, self.reduced
        )


class Choice(NamedTuple):
    """The setting with the best score, and its fit; None if there were too few rows to hold some out."""

    setting: Setting
    fit: RefinedFit | None = None


def candidates(
    net: Network,
    samples: Samples,
    loss: str,
    eps: float | None,
    activations: Sequence[str] = (),
) -> list[Setting]:
    """Return the settings to choose from.

    A loss that is not AUTO is given, and so is a ridge that is not None. Hidden activations are those of the network,
    unless there are some to choose from; the last of them goes with the last setting.
    """
    has_classes = samples.labels is not None and net.activations[-1].name == "softmax"
    found = OF_CLASSES if has_classes else OF_NUMBERS
    chosen = [setting for setting in found if loss in (AUTO, setting.loss)]
    if eps is not None:
        chosen = list(dict.fromkeys(setting._replace(eps=eps) for setting in chosen))
    if activations:
        chosen = [setting._replace(activation=name) for name in activations for setting in chosen]
    return chosen


def folds(samples: Samples, count: int, random: np.random.Generator) -> list[NDArray[np.intp]]:
    """Cut the rows into parts of equal size in which labels, or numbers, are distributed alike.

    Equal rows are in the same part, unless most rows are repeated many times: a row that is there twice is like one
    with a weight of 2.
    """
    key = samples.labels
    if key is None:
        key = to_numpy(samples.targets)[:, 0]
    first, group_of = _equal_rows(samples.X, key, count, random)
    order = random.permutation(len(first))
    order = order[np.argsort(key[first[order]], kind="stable")]
    part_of = np.empty(len(first), np.intp)
    part_of[order] = np.arange(len(first)) % count
    return [np.flatnonzero(part_of[group_of] == part) for part in range(count)]


def _equal_rows(
    X: Array, key: NDArray[Any], count: int, random: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first row of each group of equal rows with the same key, in their order, and the group of each row.

    Every row is a group where most are repeated many times, or where groups are few for `count` parts.
    """
    hashes = row_hashes(X, random)
    order = np.lexsort((hashes, key))
    is_new = np.ones(len(order), bool)
    is_new[1:] = (key[order][1:] != key[order][:-1]) | (np.diff(hashes[order]) != 0)
    groups = np.count_nonzero(is_new)
    if MOST_REPETITIONS * groups < len(order) or groups < GROUPS_OF_A_PART * count:
        return np.arange(len(order)), np.arange(len(order))
    first = order[is_new]  # lexsort is stable
    group_of = np.empty(len(order), np.intp)
    group_of[order] = np.cumsum(is_new) - 1
    by_place = np.argsort(first)
    numbers = np.empty(len(first), np.intp)
    numbers[by_place] = np.arange(len(first))
    return first[by_place], numbers[group_of]


def row_hashes(X: Array, random: np.random.Generator) -> NDArray[np.uint64]:
    """Return a number for each row that is the same for equal rows, and hardly ever for others."""
    width = X.shape[1] * X.dtype.itemsize
    words = -(-width // HASH_BYTES)
    factors = random.integers(1, 1 << 63, words, dtype=np.uint64) | np.uint64(1)
    found = np.empty(len(X), np.uint64)
    for first in range(0, len(X), HASH_ROWS):
        block = np.ascontiguousarray(to_numpy(X[first : first + HASH_ROWS]))
        padded = np.zeros((len(block), words * HASH_BYTES), np.uint8)
        padded[:, :width] = block.view(np.uint8).reshape(len(block), width)
        mixed = padded.view(np.uint64) * factors
        mixed ^= mixed >> np.uint64(29)
        found[first : first + HASH_ROWS] = mixed.sum(axis=1, dtype=np.uint64)
    return found


def choose(
    part: Part,
    settings: Sequence[Setting],
    plan: Plan,
    context: FitContext,
    share: float = 1.0,
) -> Choice:
    """Choose a setting and a number of sweeps by the scores of held-out rows.

    Parameters
    ----------
    part : Part
    settings : sequence of Setting
        The candidates.
    plan : Plan
        Its `max_sweeps`, where given, is the most sweeps. `tol` and `patience` do not matter.
    context : FitContext
        Gets the ridge that is chosen; its report gets the time of the candidates and says what was tried.
    share : float
        The share of MOST_ROWS that the sweeps of a fit see, unless `plan` limits its sweeps.
    """
    if part.samples.planned_rows() + part.held.planned_rows() < FEWEST_ROWS:
        return Choice(settings[-1])
    candidates = [Candidate(part, setting, plan, context, share) for setting in settings]
    left = candidates
    for rung in RUNGS:
        for candidate in left:
            candidate.run(rung)
        failures = [candidate.failure for candidate in candidates]
        if all(failures):
            raise next(failure for failure in failures if failure is not None)
        left = sorted(left, key=lambda candidate: candidate.score, reverse=True)
        left = left[: -(-len(left) // 2)]
        if len(left) == 1 and not left[0].fit.goes_on:
            break
    best = left[0]
    for candidate in candidates:
        context.add_times(candidate.fit.context)
    others = (candidate for candidate in candidates if candidate is not best)
    ordered = [*sorted(others, key=lambda candidate: candidate.score), best]
    context.report.trials += [candidate.describe() for candidate in ordered]
    context.use_ridge(best.setting.eps)
    return Choice(best.setting, best.fit)


class Candidate:
    """A setting, and its fit of a part of the data."""

    def __init__(
        self, part: Part, setting: Setting, plan: Plan, context: FitContext, share: float
    ) -> None:
        self.setting = setting
        self.failure: Exception | None = None
        most = plan.max_sweeps or min(
            RUNGS[-1],
            round(share * MOST_ROWS[setting.loss]) // first_chunk(part.net, setting.loss),
            max(FEW_SWEEPS, part.samples.planned_rows() // ROWS_PER_SWEEP),
        )
        longest = length_is_found(plan, most)._replace(beyond_best=BEYOND_BEST)
        self.fit = part.fit(setting, longest, context.backend, part.held)

    @property
    def score(self) -> float:
        """The best score."""
        return self.fit.best_score

    def run(self, sweeps: int) -> None:
        """Make so many sweeps in all, unless the fit has ended."""
        if not self.fit.goes_on or self.failure is not None:
            return
        try:
            self.fit.run(sweeps)
        except (TooLargeError, np.linalg.LinAlgError) as error:
            self.failure = error
        self.fit.release_chunk()

    def describe(self) -> str:
        """Return the setting, its score and its sweeps in words."""
        loss, eps, _, decay, activation = self.setting
        more = "" if decay is None else f", decay {decay:g}"
        more += "" if activation is None else f", {activation}"
        return (
            f"{loss}, eps {eps:g}{more}: score {self.score:.4f} "
            f"after {self.fit.best_sweeps} sweeps of {self.fit.progress.sweeps}"
        )


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
