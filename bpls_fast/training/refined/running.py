"""A fit that runs: its rows, its chunks, its sweeps, the mean of their weights, and the best network so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bpls_fast.kernels import gram
from bpls_fast.kernels.backend import arrays_to_numpy
from bpls_fast.network import Network
from bpls_fast.training.context import FitContext, TooLargeError
from bpls_fast.training.data import Array, Samples
from bpls_fast.training.refined.averaging import averaged, kept_share
from bpls_fast.training.refined.chunks import DOUBLINGS, Chunks, chunk_sizes, first_chunk, sample
from bpls_fast.training.refined.inputs import NetworkInputs
from bpls_fast.training.refined.losses import CHUNK_RIDGE_SHARE
from bpls_fast.training.refined.shared_inputs import Reduced
from bpls_fast.training.refined.sweep import RefinedSweep
from bpls_fast.training.refined.sweeps import Setting, new_sweep, start_weights
from bpls_fast.training.stopping import (
    CALLBACK_ASKED,
    NO_HIDDEN_LAYERS,
    Limits,
    Progress,
    first_reason,
    stagnation_rules,
    sweep_failed,
)

__all__ = ["DEFAULT_PASSES", "PHASES", "Plan", "RefinedFit"]

DEFAULT_PASSES = 5.0

PHASES = ("start", "forward", "gram", "solve", "target", "step")

VALIDATE_EVERY = 6
"""Sweeps over chunks from one validation to the next."""


class Plan(NamedTuple):
    """How far a fit goes and where it begins; the fields are arguments of `fit_refined`."""

    max_passes: float
    max_sweeps: int | None = None
    chunk_rows: int | None = None
    doublings: int | None = None  # of chunks, where not that of the loss
    start: str = "scaled"
    standardize: bool = False
    tol: float = 1e-5
    patience: int = 10
    beyond_best: float | None = None  # times the sweeps of the best network after which a fit ends


class RefinedFit:
    """One fit: the sweeps, the mean of their weights, the best network so far.

    Parameters
    ----------
    net : Network
        Where it begins; it is left alone.
    samples, held : Samples
        The rows to train on, and validation rows or None.
    setting : Setting
        What the sweeps minimize, and their regularization.
    plan : Plan
    context : FitContext
        With the phases PHASES and the ridge of the setting.
    random : numpy.random.Generator
    score : function of Samples and outputs
        The validation score, by default accuracy or R².
    reduced : Reduced, optional
        The components that the rows are given in; `net` is on all inputs.

    Attributes
    ----------
    best : Network
        The network with the best validation score, or the latest.
    best_score : float
    best_sweeps : int
    progress : Progress
    goes_on : bool
        Whether another call of `run` can make more sweeps.
    """

    def __init__(
        self,
        net: Network,
        samples: Samples,
        held: Samples | None,
        setting: Setting,
        plan: Plan,
        context: FitContext,
        random: np.random.Generator,
        score: Callable[[Samples, Array], float] = Samples.score,
        reduced: Reduced | None = None,
    ) -> None:
        self.context, self.progress, self._score = context, Progress(), score
        self.goes_on = True
        begin = net.with_weights(net.weights) if reduced is None else reduced.network(net)
        if reduced is not None:
            plan = plan._replace(standardize=False)  # components are in units that vary alike
        with context.phase("start"):
            few = sample(samples, random)
            if plan.start == "scaled":
                begin.weights = start_weights(setting.loss, begin, few, random)
        # Chunks of a given size are cut from the rows as they are.
        self._count = count = (
            samples.planned_rows() if plan.chunk_rows is None else samples.row_count
        )
        first = first_chunk(net, setting.loss)
        doublings = DOUBLINGS[setting.loss] if plan.doublings is None else plan.doublings
        sizes, planned = (chunk_sizes(count, first, doublings, plan.chunk_rows) for _ in range(2))
        self.limits = Limits(count, plan.max_sweeps, plan.max_passes)
        if sizes is None:
            self.limits = Limits.over_all_rows(count, plan.max_sweeps)
        moves_output = setting.loss == "cross_entropy"
        self.inputs = inputs = NetworkInputs(
            begin, few, context, output_layer=moves_output, reduced=reduced, outer=net
        )
        del few
        can_reduce = reduced is None and plan.start == "scaled" and not plan.standardize
        if planned is not None and can_reduce:
            samples, held = inputs.reduce(self.limits.plan(planned), samples, held, random)
        self.rules = stagnation_rules(
            over_chunks=sizes is not None,
            tol=plan.tol,
            mean_square=samples.mean_square(),
            patience=plan.patience,
            beyond_best=plan.beyond_best,
        )
        self.samples, self.held = samples, held
        # Every sweep sees all rows if there are no chunks.
        self.chunks = None if sizes is None else Chunks(samples, sizes, random, count)
        self.sweep = new_sweep(setting, inputs.net, context, standardize=plan.standardize)
        self.chooses_ridge = setting.output_eps is None and (
            self.chunks is None or samples.labels is not None
        )
        self.mean = self._start = self.sweep.weights
        self._best, self.best_score = inputs.net, -np.inf
        self._batch = samples.take(slice(0)).as_batch()  # of the latest sweep
        if self.sweep.weights:
            weighted = samples.sample_weight is not None
            self.sweep.learn_inputs(inputs.G, inputs.total, samples.X[:1], weighted, inputs.ridge)
        inputs.release_gram()

    @property
    def best(self) -> Network:
        """The network with the best validation score, or the latest; on all inputs."""
        return self.inputs.on_all_inputs(self._best)

    def decision(self, samples: Samples) -> Array:
        """Return the outputs before their activation of the best network, for rows as the fit is given them."""
        given = samples.X.shape[1] == self._best.layer_sizes[0]
        return (self._best if given else self.best).decision(samples.X)

    @property
    def best_sweeps(self) -> int:
        """The number of sweeps that made the best network."""
        return self.context.report.best + 1

    def run(self, sweeps: int | None = None) -> str:
        """Sweep until a rule or a limit gives a reason to stop, and return it.

        With a number of sweeps, stop after so many in all; another call goes on from there.
        """
        limits = self.limits
        if sweeps is not None and (limits.max_sweeps is None or sweeps < limits.max_sweeps):
            limits = replace(limits, max_sweeps=sweeps)
        if isinstance(self.sweep, RefinedSweep) and not self.sweep.weights:
            return self._solve_only(self.sweep)
        progress, reason, self.goes_on = self.progress, None, False
        while reason is None:
            try:
                self._sweep()
                is_due = self._validation_is_due()
                network = (
                    self.sweep.network(self.mean, self._batch)
                    if is_due or self.context.has_callback
                    else None
                )
            except (TooLargeError, np.linalg.LinAlgError) as error:
                if progress.sweeps == 0:
                    raise
                reason = sweep_failed(error)
                break
            if is_due and network is not None:
                self._validate(network)
            reason = first_reason(self.rules, progress)
            shown = None
            if network is not None and self.context.has_callback:
                shown = self.inputs.on_all_inputs(network)
            if self.context.step(shown):
                reason = CALLBACK_ASKED
            if reason is None:
                reason = limits.reached(progress.sweeps, progress.rows_seen + self._next_size)
                self.goes_on = reason is not None and limits is not self.limits
        if self._validation_is_due():
            return reason
        try:
            network = self.sweep.network(self.mean, self._batch)
        except (TooLargeError, np.linalg.LinAlgError) as error:
            # Rows outside the trial make it too large: the best network so far, or the start, is what is left.
            reason = sweep_failed(error)
            if self.held is not None and np.isfinite(self.best_score):
                return reason
            network = self.sweep.network(self._start, self._batch)
        self._validate(network)
        return reason

    def release_chunk(self) -> None:
        """Free the memory of the latest chunk; the next sweep takes another one."""
        if self.chunks is not None:
            self.chunks.release()
            self._batch = self.samples.take(slice(0)).as_batch()

    @property
    def _next_size(self) -> int:
        """The number of rows of the next sweep, weights counting as repetitions."""
        return self._count if self.chunks is None else self.chunks.size

    def _sweep(self) -> None:
        """Do one sweep over the next chunk, or over all rows."""
        progress, report, size = self.progress, self.context.report, self._next_size
        with self.context.phase("start"):
            if self.chunks is not None:
                self._batch = self.chunks.next()
            elif progress.sweeps == 0:
                self._batch = self.samples.as_batch()
        same_rows = self.chunks is None
        if progress.sweeps == 0 and self.chooses_ridge and isinstance(self.sweep, RefinedSweep):
            repetitions = self.samples.repetitions() * size / self._count
            share = 1.0 if self.chunks is None else CHUNK_RIDGE_SHARE
            self.sweep.choose_ridge(self._batch, repetitions, share)
            same_rows = True
        loss = self.sweep.sweep(self._batch, same_rows=same_rows)
        if not np.isfinite(loss):
            raise TooLargeError("the numbers of a sweep grew too large; scale X and Y")
        progress.sweeps += 1
        progress.rows_seen += size
        progress.loss, progress.step_failed = loss, self.sweep.failed
        report.iterations = progress.sweeps
        report.rows.append(len(self._batch.X))
        report.loss.append(loss)
        kept = 0.0 if self.chunks is None else kept_share(progress.sweeps)
        self.mean = averaged(self.mean, self.sweep.weights, kept)

    def _validation_is_due(self) -> bool:
        """Return whether the latest sweep is followed by a validation."""
        turn = self.chunks is None or self.progress.sweeps % VALIDATE_EVERY == 0
        return self.held is not None and turn

    def _validate(self, network: Network) -> None:
        """Keep a network unless one before it had a better validation score; without validation rows, keep it."""
        progress, report = self.progress, self.context.report
        if self.held is not None:
            with self.context.phase("forward"):
                score = self._score(self.held, network.decision(self.held.X))
            progress.score = score
            report.validation.append((progress.sweeps, score))
            if score <= self.best_score:
                progress.validations_since_best += 1
                return
            self.best_score = score
        progress.validations_since_best, progress.best_sweeps = 0, progress.sweeps
        self._best, report.best = network, progress.sweeps - 1

    def _solve_only(self, sweep: RefinedSweep) -> str:
        """Solve a network that is nothing but an output layer."""
        self.goes_on = False
        batch, net, report = self.samples.as_batch(), self.inputs.net, self.context.report
        with self.context.phase("gram"):
            scale, weight = net.scale_of(batch.X), batch.sample_weight
            G, C = arrays_to_numpy(
                gram(batch.X, batch.T, bias=net.bias, scale=scale, sample_weight=weight)
            )
        output = sweep.loss.solve_on_inputs(G, C, batch)
        self.progress.sweeps = report.iterations = 1
        report.rows, report.loss = [len(batch.X)], [output.loss / batch.total_weight()]
        self._validate(sweep.finished([], output, batch))
        self.context.step(self._best if self.context.has_callback else None)
        return NO_HIDDEN_LAYERS
