"""Folds as a committee: every network is trained without one fold of the rows, and their mean is the result.

The setting is chosen on the first fold, the number of sweeps of each network on its own fold; no rows are lost, since
every row trains all networks but one.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.kernels.backend import backend_of, to_numpy
from bpls_fast.network import Network
from bpls_fast.network.committee import check_joinable, joined_network
from bpls_fast.training.checks import (
    ClassWeight,
    check_choice,
    check_count,
    check_number,
    checked_samples,
)
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import RowSource, Samples
from bpls_fast.training.refined.calibration import correction
from bpls_fast.training.refined.chunks import sample
from bpls_fast.training.refined.running import PHASES, Plan
from bpls_fast.training.refined.selection import MEMBERS_SHARE, Part, candidates, choose, folds
from bpls_fast.training.refined.shared_inputs import SharedInputs
from bpls_fast.training.refined.sweeps import LOSSES, Setting, check_loss
from bpls_fast.training.report import FitReport

__all__ = ["Committee", "fit_committee"]

LEAST_LEFT = 0.5
"""The least share of the errors of one network that the mean of all is taken to have."""


class Committee(NamedTuple):
    """Several networks as one.

    Attributes
    ----------
    network : Network
        Its outputs before their activation are the means of those of the members, corrected by `out_of_fold`.
    report : FitReport
        Its sweeps are those of the last member, its validation score is that of `out_of_fold`.
    members : tuple of Network
        The networks, with the same correction.
    out_of_fold : array
        For each row with a weight above 0, the outputs before their activation of the member that was trained without
        it, corrected.
    errors : tuple of arrays
        For numbers, |T - out_of_fold| for the rows that each member was trained without, reduced to the errors of the
        mean of the members.
    """

    network: Network
    report: FitReport
    members: tuple[Network, ...]
    out_of_fold: NDArray[np.float64]
    errors: tuple[NDArray[np.float64], ...]


def fit_committee(
    nets: Sequence[Network],
    X: ArrayLike | RowSource,
    Y: ArrayLike,
    *,
    loss: str = "auto",
    eps: float | None = None,
    max_passes: float = np.inf,
    max_sweeps: int | None = None,
    activations: Sequence[str] = (),
    standardize: bool = False,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    seed: int = 0,
    backend: str = "auto",
    verbose: int = 0,
) -> Committee:
    """Train several networks by refined sweeps, each without one fold of the rows, and join them.

    Parameters
    ----------
    nets : sequence of Network
        Where the members begin, at least two; they are left alone. They have the same sizes and activations, and no
        hidden softmax layer.
    X, Y, standardize, sample_weight, class_weight, seed, backend, verbose
        As in `fit_refined`.
    loss : {"auto", "squared", "cross_entropy"}
        What the sweeps minimize; "auto" chooses.
    eps : float, optional
        The ridge of the first layer. By default it is chosen.
    max_passes : float
        The most passes over the data, where it is cut into chunks.
    max_sweeps : int, optional
        The most sweeps. Their number is chosen; by default it is at most 96, of numbers 48.
    activations : sequence of str
        Names of activations of the hidden layers to choose from; by default they are those of `nets`.

    Returns
    -------
    Committee

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> from bpls_fast.training.refined.committee import fit_committee
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> inside = np.where((x**2).sum(axis=1) < 1, "inside", "outside")
    >>> nets = [bf.Network([2, 20, 2], activation="tanh", seed=seed) for seed in range(3)]
    >>> committee = fit_committee(nets, x, inside)
    >>> committee.network.layer_sizes
    (2, 60, 2)
    >>> bool((committee.network.predict(x) == inside).mean() > 0.9)
    True
    """
    if len(nets) < 2:
        raise ValueError(f"nets has {len(nets)} networks; expected at least 2")
    check_joinable(nets)
    check_number(max_passes, "max_passes", above=0, finite=False)
    check_choice(loss, "loss", LOSSES)
    if max_sweeps is not None:
        check_count(max_sweeps, "max_sweeps")
    first = nets[0]
    samples, classes = checked_samples(first, X, Y, sample_weight, class_weight)
    check_loss(loss, first, samples)
    if len(samples.X) < len(nets):
        raise ValueError(
            f"{len(nets)} networks are trained on n_samples = {len(samples.X)} rows with a weight above 0; expected at "
            "least one row for each network"
        )
    samples = samples.to_backend(backend)
    settings = candidates(first, samples, loss, eps, activations)
    plan = Plan(max_passes=max_passes, max_sweeps=max_sweeps, standardize=standardize)
    random = np.random.default_rng(seed)
    with FitContext(
        f"refined sweeps of {len(nets)} networks",
        settings[0].eps,
        backend=backend_of(samples.X),
        steps=len(nets),
        verbose=verbose,
        phases=PHASES,
    ) as context:
        parts = folds(samples, len(nets), random)
        inputs = SharedInputs(
            first, samples, context, parts, standardize=standardize, expected=parts, seed=seed
        )
        members: list[Network] = []
        outputs = np.empty((len(samples.X), first.layer_sizes[-1]))
        for number, (net, fold) in enumerate(zip(nets, parts, strict=True)):
            begin = copy.copy(net)
            begin.input_scale, begin.classes = net.scale_of(samples.X), classes
            part = Part(begin, *inputs.without(fold), seed + number)
            setting, member, outputs[fold] = _trained_member(part, settings, plan, context)
            del part  # its rows that are held out are a copy
            settings = [setting]
            members.append(member)
            context.step(None)
        corrected = correction(first, outputs, samples)
        for number, member in enumerate(members):
            members[number] = corrected.apply(member)
        outputs = outputs * corrected.factors + corrected.shifts
        context.report.validation = [(context.report.iterations, samples.score(outputs))]
        report = context.finish(f"{len(nets)} networks are trained")
        errors: tuple[NDArray[np.float64], ...] = ()
        if samples.labels is None:
            every = np.abs(to_numpy(samples.targets) - outputs)
            every *= _share_left_by_the_mean(members, sample(samples, random), every, samples)
            errors = tuple(every[fold] for fold in parts)
    return Committee(joined_network(members), report, tuple(members), outputs, errors)


def _share_left_by_the_mean(
    members: Sequence[Network], few: Samples, errors: NDArray[np.float64], samples: Samples
) -> NDArray[np.float64]:
    """Return the size of the errors of the mean of networks, as a share of those of one network, for each output.

    Its squared error is smaller by the variance of the networks, here over few of the rows; `errors` are those of all.
    """

    def mean(values: NDArray[np.float64], rows: Samples) -> NDArray[np.float64]:
        weight = None if rows.sample_weight is None else to_numpy(rows.sample_weight)
        averaged: NDArray[np.float64] = np.average(values, axis=0, weights=weight)
        return averaged

    outputs = np.array([to_numpy(member.decision(few.X)) for member in members], np.float64)
    variance, squares = mean(outputs.var(axis=0), few), mean(np.square(errors), samples)
    left = 1 - variance / np.where(squares > 0, squares, np.inf)
    share: NDArray[np.float64] = np.maximum(np.sqrt(np.maximum(left, 0.0)), LEAST_LEFT)
    return share


def _trained_member(
    part: Part, settings: Sequence[Setting], plan: Plan, context: FitContext
) -> tuple[Setting, Network, NDArray[np.float64]]:
    """Return the setting of a member, the member, and its outputs for the rows that are held out."""
    setting, fit = choose(part, settings, plan, context, MEMBERS_SHARE)
    if fit is None:
        fit = part.fit(setting, plan, context.backend, None)
        fit.run()
        context.add_times(fit.context)
    report, of_member = context.report, fit.context.report
    report.iterations, report.best = of_member.iterations, of_member.best
    report.rows, report.loss = of_member.rows, of_member.loss
    with context.phase("forward"):
        outputs = to_numpy(fit.decision(part.held))
    return setting, fit.best, outputs
