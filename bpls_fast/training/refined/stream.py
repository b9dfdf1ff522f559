"""Refined sweeps over rows that arrive little by little, in memory that does not grow."""

from __future__ import annotations

import copy

import numpy as np

from bpls_fast.kernels import gram
from bpls_fast.network import Network
from bpls_fast.network.arguments import is_number
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Samples, Weights
from bpls_fast.training.refined.averaging import LEAST_KEPT, DecayedSum, averaged
from bpls_fast.training.refined.calibration import CALIBRATION_ROWS, calibrated
from bpls_fast.training.refined.chunks import DOUBLINGS, TRIAL_SHARE, first_chunk
from bpls_fast.training.refined.running import PHASES
from bpls_fast.training.refined.sweep import RefinedSweep
from bpls_fast.training.refined.sweeps import AUTO, given_setting, new_sweep, start_weights
from bpls_fast.training.report import FitReport

__all__ = ["Stream"]

STEPS_OF_A_CHUNK = 4
"""The stream sweeps again after one part in STEPS_OF_A_CHUNK of a chunk is new."""

REFRESH = 16
"""The Gram matrix of the inputs is inverted again after 1, 2, 4, 8 and then after every REFRESH updates."""


class Stream:
    """A network that learns from rows as they arrive.

    The stream sweeps over the latest rows whenever a quarter of a chunk of new rows has arrived. Between sweeps, new
    rows only change the output layer, and under the cross-entropy nothing.

    Parameters
    ----------
    net : Network
        Trained in place by `update`.
    start : {"scaled", "network"}
        Whether its hidden weights are scaled to the first rows, as in `fit_refined`, or taken as they are.
    loss, eps, output_eps, decay, standardize
        As in `fit_refined`; "auto" is the squared loss, since nothing can be held out.
    forgetting : float
        The share of earlier rows that remains in the Gram matrices after a chunk of new rows, from 0 to 1.
    seed : int
        The seed of the order of the rows.
    """

    def __init__(
        self,
        net: Network,
        *,
        start: str = "scaled",
        loss: str = "squared",
        eps: float | None = None,
        output_eps: float | None = None,
        decay: float | None = None,
        forgetting: float = 0.5,
        standardize: bool = False,
        seed: int = 0,
    ) -> None:
        if not is_number(forgetting) or not 0 <= forgetting <= 1:
            raise ValueError(f"forgetting is {forgetting!r}; expected a number from 0 to 1")
        self.net, self.loss = net, "squared" if loss == AUTO else loss
        setting = given_setting(self.loss, eps, output_eps, decay)
        self.context = FitContext("refined sweeps over a stream", setting.eps, phases=PHASES)
        self.forgetting = float(forgetting)
        self.sweep = new_sweep(setting, net, self.context, standardize=standardize)
        self.scales = start == "scaled"
        self.chunk = first_chunk(net, self.loss) << DOUBLINGS[self.loss]
        self.random = np.random.default_rng(seed)
        self.mean: Weights = []
        self._latest: Samples | None = None
        self._sweeps = self._new = 0
        self._inputs = DecayedSum()
        self._outputs = DecayedSum()

    def update(self, samples: Samples) -> FitReport:
        """Learn from more rows; return the report on all rows so far."""
        self.context.resume()
        report, step = self.context.report, self.chunk // STEPS_OF_A_CHUNK
        report.rows, report.loss = [], []
        for first in range(0, len(samples.X), step):
            self._take(samples.take(slice(first, first + step)))
        report.best = max(self._sweeps - 1, 0)
        return copy.deepcopy(self.context.finish("all rows so far were seen"))

    def _take(self, new: Samples) -> None:
        report, begins = self.context.report, self._latest is None
        # Copy the first rows: the caller may reuse their memory for the next ones.
        kept = new.take(np.arange(0)) if self._latest is None else self._latest
        latest = kept.followed_by(new, self.chunk)
        self._latest = latest
        self._new += len(new.X)
        if begins and self.sweep.weights:
            if self.scales:
                with self.context.phase("start"):
                    self.net.weights = start_weights(self.loss, self.net, new, self.random)
            self.sweep.weights = self.net.weights[: len(self.sweep.weights)]
            self.mean = self.sweep.weights
        if self.sweep.weights:
            self._learn_inputs(new)
            if begins or self._new >= self.chunk // STEPS_OF_A_CHUNK:
                order = self.random.permutation(len(latest.X))
                batch = latest.take(order).as_batch()
                loss = self.sweep.sweep(batch._replace(trial=-(-len(order) // TRIAL_SHARE)))
                self._sweeps += 1
                report.iterations = self._sweeps
                report.rows.append(len(order))
                report.loss.append(loss)
                share = LEAST_KEPT * (self._sweeps > 1)
                self.mean = averaged(self.mean, self.sweep.weights, share)
                self._new = 0
        if isinstance(self.sweep, RefinedSweep):
            self._solve_output(new, self.sweep)
        else:
            self.net.weights = self.mean

    def _learn_inputs(self, new: Samples) -> None:
        X, weight = new.X, new.sample_weight
        with self.context.phase("gram"):
            G = gram(X, bias=self.net.bias, scale=self.net.scale_of(X), sample_weight=weight)
        self._inputs.add(self._kept(new), G, new.total_weight())
        updates = self._inputs.updates
        if updates % REFRESH == 0 or updates in (1, 2, 4, 8):
            total, in_total = self._inputs.total, self._inputs.weight
            self.sweep.learn_inputs(total, in_total, X, weight is not None)

    def _solve_output(self, new: Samples, sweep: RefinedSweep) -> None:
        batch = new.as_batch()
        with self.context.phase("forward"):
            network = self.net.with_weights([*self.mean, self.net.weights[-1]])
            N = network.layer_inputs(new.X)[-1]
        with self.context.phase("gram"):
            scale = 1.0 if self.mean else network.scale_of(new.X)
            weight = new.sample_weight
            G, C = gram(N, batch.T, bias=self.net.bias, scale=scale, sample_weight=weight)
        self._outputs.add(self._kept(new), np.concatenate([G, C], axis=1), new.total_weight())
        G, C = np.split(self._outputs.total, [len(G)], axis=1)
        solve = sweep.loss.solve_sums if self.mean else sweep.loss.solve_on_inputs
        W = solve(G.copy(), C, batch).W
        network.weights = [*self.mean, W]
        has_labels = new.labels is not None
        latest = self._latest or new
        few = self.random.permutation(len(latest.X))[:CALIBRATION_ROWS]
        batch = latest.take(few).as_batch()
        self.net.weights = calibrated(network, has_labels, batch, self.context).weights

    def _kept(self, new: Samples) -> float:
        return float(self.forgetting ** (len(new.X) / self.chunk))
