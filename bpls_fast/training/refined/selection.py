"""Settings that are found from the data: the loss, the ridge, the weight decay and the number of sweeps.

Every candidate is trained on the same rows and scored on others, which are held out. Successive halving: all candidates
run for a few sweeps, the better half of them for twice as many, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import activations
from bpls_fast.kernels.backend import to_numpy
from bpls_fast.network import Network
from bpls_fast.training.context import FitContext, TooLargeError
from bpls_fast.training.data import Array, Samples
from bpls_fast.training.refined.calibration import Correction, correction
from bpls_fast.training.refined.running import PHASES, Plan, RefinedFit
from bpls_fast.training.refined.shared_inputs import Reduced
from bpls_fast.training.refined.sweeps import AUTO, Setting

__all__ = ["FOLDS", "Choice", "candidates", "choose", "folds"]

FOLDS = 4
"""One part in FOLDS of the rows is held out to choose a setting for one network."""

FEWEST_ROWS = 40
"""With fewer rows nothing is held out: the last candidate is taken as it is."""

RUNGS = (12, 24, 48, 96)
"""Sweeps after which the better half of the candidates goes on; the last number is the most sweeps."""

LOG_LOSS_SHARE = 0.3
"""What a unit of the log loss counts beside the accuracy in the score of a candidate."""

OF_CLASSES = (
    Setting("cross_entropy", 0.1, decay=1e-4),
    Setting("cross_entropy", 1.0, decay=1e-3),
    Setting("cross_entropy", 1.0, decay=1e-2),
    Setting("squared", 7.0),
)
OF_NUMBERS = (Setting("squared", 0.07), Setting("squared", 0.7), Setting("squared", 7.0))
"""The candidates, the default of the squared loss last."""


class Choice(NamedTuple):
    """What was chosen.

    Attributes
    ----------
    setting : Setting
        The setting with the best score.
    plan : Plan
        The plan of a fit with as many sweeps as had that score.
    network : Network or None
        What these sweeps made of the rows that were not held out, unless there were too few rows to hold some out.
    outputs : array or None
        Its outputs before their activation for the rows that were held out.
    correction : Correction or None
        What the rows that were held out say about its outputs.
    """

    setting: Setting
    plan: Plan
    network: Network | None
    outputs: Array | None
    correction: Correction | None


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


def choose(
    net: Network,
    samples: Samples,
    held: Samples,
    settings: Sequence[Setting],
    plan: Plan,
    context: FitContext,
    seed: int,
    reduced: Reduced | None = None,
) -> Choice:
    """Choose a setting and a number of sweeps by the scores of held-out rows.

    Parameters
    ----------
    net : Network
        Where every candidate begins.
    samples, held : Samples
        The rows to train on, and the rows that are held out.
    settings : sequence of Setting
        The candidates.
    plan : Plan
        Its `max_sweeps`, where given, is the most sweeps. `tol` and `patience` do not matter.
    context : FitContext
        Gets the ridge that is chosen; its report gets the time of the candidates and says what was tried.
    seed : int
    reduced : Reduced, optional
        The components that the rows are given in.
    """
    if len(samples.X) + len(held.X) < FEWEST_ROWS:
        return Choice(settings[-1], plan, None, None, None)
    most = RUNGS[-1] if plan.max_sweeps is None else plan.max_sweeps
    longest = plan._replace(max_sweeps=most, tol=0.0, patience=most)
    fits: dict[Setting, RefinedFit] = {}
    left, ended = list(settings), set[Setting]()
    failure: Exception | None = None

    def score(setting: Setting) -> float:
        return fits[setting].best_score

    for setting in settings:
        trial = FitContext("trial", setting.eps, backend=context.backend, phases=PHASES)
        random = np.random.default_rng(seed)
        fits[setting] = RefinedFit(
            net, samples, held, setting, longest, trial, random, _score, reduced
        )
    for rung in (*(rung for rung in RUNGS if rung < most), most):
        for fit in (fits[setting] for setting in left if setting not in ended):
            try:
                fit.run(replace(fit.limits, max_sweeps=rung))
            except (TooLargeError, np.linalg.LinAlgError) as error:  # in its first sweep
                failure = error
        if failure is not None and not any(fit.progress.sweeps for fit in fits.values()):
            raise failure
        ended.update(setting for setting in left if fits[setting].progress.sweeps < rung)
        left = sorted(left, key=score, reverse=True)[: -(-len(left) // 2)]
        if len(left) == 1 and 2 * fits[left[0]].best_sweeps <= rung:
            break
    best = left[0]
    for fit in fits.values():
        context.add_times(fit.context)
    others = sorted((setting for setting in settings if setting != best), key=score)
    context.report.trials = [_describe(setting, fits[setting]) for setting in (*others, best)]
    context.use_ridge(best.eps)
    plan = plan._replace(max_sweeps=fits[best].best_sweeps, max_passes=np.inf, tol=0.0)
    network, outputs = fits[best].best, to_numpy(fits[best].decision(held))
    return Choice(best, plan, network, outputs, correction(network, outputs, held))


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


def _describe(setting: Setting, fit: RefinedFit) -> str:
    decay = "" if setting.decay is None else f", decay {setting.decay:g}"
    return (
        f"{setting.loss}, eps {setting.eps:g}{decay}: score {fit.best_score:.4f} "
        f"after {fit.best_sweeps} sweeps of {fit.progress.sweeps}"
    )
