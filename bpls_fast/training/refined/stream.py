"""Refined sweeps over rows that arrive little by little: what is kept of them does not grow."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import gram
from bpls_fast.network import Network
from bpls_fast.training.refined.fit import (
    CALIBRATION_ROWS,
    DOUBLINGS,
    LEAST_KEPT,
    PHASES,
    Samples,
    averaged,
    calibrated,
    first_chunk,
    scaled_start,
)
from bpls_fast.training.refined.sweep import Refinement, Weights
from bpls_fast.training.report import FitReport, Recorder

__all__ = ["Stream"]

REFRESH = 16
"""The Gram matrix of the inputs is inverted again after 1, 2, 4, 8 and then every so many chunks."""


class Stream:
    """A network that learns from chunks of rows as they come.

    A sweep is made over the latest rows whenever a quarter of a chunk of new ones has come; between sweeps new rows
    change the output layer alone.

    Parameters
    ----------
    net : Network
        Trained in place by `update`.
    start : {"scaled", "network"}
        Whether its hidden weights are first scaled to the first rows, as in `fit_refined`, or taken as they are.
    eps, output_eps, standardize
        As in `fit_refined`.
    forgetting : float
        The share of the past that a chunk of new rows leaves in the Gram matrices, from 0 to 1.
    seed : int
        What the order of rows is drawn with.
    """

    def __init__(
        self,
        net: Network,
        *,
        start: str = "scaled",
        eps: float = 7.0,
        output_eps: float = 1e-6,
        forgetting: float = 0.5,
        standardize: bool = False,
        seed: int = 0,
    ) -> None:
        number = isinstance(forgetting, (int, float, np.integer, np.floating))
        if not number or not 0 <= forgetting <= 1:
            raise ValueError(f"forgetting is {forgetting!r}; expected a number from 0 to 1")
        self.net = net
        self.record = Recorder("refined sweeps over a stream", eps, phases=PHASES)
        self.forgetting = float(forgetting)
        self.refinement = Refinement(
            net, self.record, output_eps=output_eps, standardize=standardize
        )
        self.scales = start == "scaled"
        self.chunk = first_chunk(net) << DOUBLINGS
        self.random = np.random.default_rng(seed)
        self.mean: Weights = []
        self._latest: Samples | None = None
        self._new = 0
        self._inputs = Past()
        self._outputs = Past()

    def update(self, samples: Samples) -> FitReport:
        """Learn from more rows, and give the report on all of them so far."""
        self.record.resume()
        report, step = self.record.report, self.chunk // 4
        report.rows, report.loss = [], []
        for first in range(0, len(samples.X), step):
            self._take(samples.take(slice(first, first + step)))
        report.best = report.iterations
        return copy.deepcopy(self.record.finish("all rows so far were seen"))

    def _take(self, new: Samples) -> None:
        report, begins = self.record.report, self._latest is None
        # The first rows are copied: the caller may use their memory for the next ones.
        kept = new.take(np.arange(0)) if self._latest is None else self._latest
        latest = kept.followed_by(new, self.chunk)
        self._latest = latest
        self._new += len(new.X)
        if begins and self.refinement.hidden:
            if self.scales:
                with self.record.phase("start"):
                    self.net.weights = scaled_start(self.net, new, self.random)
            self.refinement.hidden = self.net.weights[:-1]
            self.mean = self.refinement.hidden
        if self.refinement.hidden:
            self._learn_inputs(new)
            if begins or self._new >= self.chunk // 4:
                order = self.random.permutation(len(latest.X))
                rows = latest.take(order).whole()
                loss = self.refinement.sweep(rows._replace(trial=-(-len(order) // 4)))
                report.iterations += 1
                report.rows.append(len(order))
                report.loss.append(loss)
                keep = LEAST_KEPT * (report.iterations > 1)
                self.mean = averaged(self.mean, self.refinement.hidden, keep)
                self._new = 0
        self._solve_output(new)

    def _learn_inputs(self, new: Samples) -> None:
        X = new.X
        with self.record.phase("gram"):
            G = gram(X, bias=self.net.bias, scale=self.net.scale_of(X), sample_weight=new.weights)
        self._inputs.add(self._kept(new), G, new)
        updates = self._inputs.updates
        if updates % REFRESH == 0 or updates in (1, 2, 4, 8):
            self.refinement.learn_inputs(self._inputs.total, self._inputs.weight, X, new.weights)

    def _solve_output(self, new: Samples) -> None:
        rows = new.whole()
        with self.record.phase("forward"):
            network = self.net.with_weights([*self.mean, self.net.weights[-1]])
            N = network.layer_inputs(new.X)[-1]
        with self.record.phase("gram"):
            scale = 1.0 if self.mean else network.scale_of(new.X)
            G, C = gram(N, rows.T, bias=self.net.bias, scale=scale, sample_weight=new.weights)
        self._outputs.add(self._kept(new), np.concatenate([G, C], axis=1), new)
        G, C = np.split(self._outputs.total, [len(G)], axis=1)
        if self.mean:
            W = self.refinement.solve_output_of(G.copy(), C, rows).W
        else:
            W = self.refinement.solve_on_inputs(G, C, rows).W
        network.weights = [*self.mean, W]
        has_labels = new.labels is not None
        latest = self._latest or new
        few = self.random.permutation(len(latest.X))[:CALIBRATION_ROWS]
        rows = latest.take(few).whole()
        self.net.weights = calibrated(network, has_labels, rows, self.record).weights

    def _kept(self, new: Samples) -> float:
        return float(self.forgetting ** (len(new.X) / self.chunk))


class Past:
    """A sum in which what was added earlier counts less."""

    def __init__(self) -> None:
        self.updates = 0
        self.total: NDArray[np.float64] = np.zeros(())
        self.weight = 0.0  # of the rows in it

    def add(self, kept: float, term: NDArray[np.float64], new: Samples) -> None:
        self.total = kept * self.total + term
        self.weight = kept * self.weight + new.total_weight()
        self.updates += 1
