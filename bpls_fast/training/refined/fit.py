"""`fit_refined`: refined sweeps over chunks of the rows, or over all of them, until a stopping rule gives a reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.kernels import gram
from bpls_fast.kernels.backend import arrays_to_numpy, backend_of
from bpls_fast.network import Network
from bpls_fast.training.checks import (
    ClassWeight,
    check_choice,
    check_count,
    check_number,
    checked_samples,
)
from bpls_fast.training.context import Callback, FitContext, TooLargeError
from bpls_fast.training.data import Batch, RowSource, Samples, Weights
from bpls_fast.training.refined.averaging import averaged, kept_share
from bpls_fast.training.refined.calibration import calibrated
from bpls_fast.training.refined.chunks import Chunks, chunk_sizes, first_chunk, hold_out, sample
from bpls_fast.training.refined.inputs import NetworkInputs
from bpls_fast.training.refined.losses import CHUNK_RIDGE_SHARE, LEAST_OUTPUT_EPS
from bpls_fast.training.refined.start import scaled_start
from bpls_fast.training.refined.sweep import RefinedSweep
from bpls_fast.training.report import FitReport
from bpls_fast.training.stopping import (
    CALLBACK_ASKED,
    NO_HIDDEN_LAYERS,
    Limits,
    Progress,
    Rule,
    first_reason,
    stagnation_rules,
    sweep_failed,
)

__all__ = ["DEFAULT_EPS", "DEFAULT_PASSES", "PHASES", "fit_refined"]

DEFAULT_EPS, DEFAULT_PASSES = 7.0, 5.0

PHASES = ("start", "forward", "gram", "solve", "target", "step")

VALIDATE_EVERY = 6
"""Sweeps over chunks from one validation to the next."""


def fit_refined(
    net: Network,
    X: ArrayLike | RowSource,
    Y: ArrayLike,
    *,
    max_passes: float = DEFAULT_PASSES,
    max_sweeps: int | None = None,
    chunk_rows: int | None = None,
    eps: float = DEFAULT_EPS,
    output_eps: float | None = None,
    start: str = "scaled",
    standardize: bool = False,
    tol: float = 1e-5,
    validation_fraction: float = 0.0,
    patience: int = 10,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    seed: int = 0,
    backend: str = "auto",
    verbose: int = 0,
    callback: Callback | None = None,
) -> FitReport:
    """Train a network by refined sweeps: closed-form steps of the hidden layers under an output layer that is solved.

    Parameters
    ----------
    net : Network
        Trained in place. It stays as it was if the call raises.
    X : (d, inputs) array of uint8, float32 or float64, or RowSource
        The data; a `RowSource` is read into memory first. Bytes are read as they are. Many columns of many rows are
        reduced to components: see docs/refined.md.
    Y : (d,) array of labels, or (d, outputs) array of numbers
        A vector holds labels if the network has several outputs, or softmax outputs.
    max_passes : float
        The most passes over the data, where it is cut into chunks.
    max_sweeps : int, optional
        The most sweeps. By default as many as `max_passes` allows; where each sees all rows, one for every 100 rows,
        but at least 3.
    chunk_rows : int, optional
        Rows that a sweep sees. By default all, if there are at most 5000 (or 50 for every neuron of the last hidden
        layer); else 2500 at first (or 25 for every neuron), later twice as many.
    eps : float
        The ridge of the first layer, relative to the mean of its Gram matrix's diagonal; the hidden layers above have a
        tenth of it. With a larger ridge the network generalizes better and learns more slowly.
    output_eps : float, optional
        The ridge of the output layer, relative in the same way. By default it is chosen by generalized cross-validation
        on the features of the start: the chosen one where every sweep sees all rows, a tenth of it over chunks of
        labels. Over chunks of regression targets it is 1e-6.
    start : {"scaled", "network"}
        "scaled" first shifts and scales the hidden weights so that every pre-activation has a mean near 0 and standard
        deviation 1 over the data (0.8 for softmax). "network" takes them as they are, to continue training.
    standardize : bool
        Whether the first layer's ridge is that of columns with mean 0 and mean square 1, so that it does not depend on
        their units and offsets.
    tol : float
        Where every sweep sees all rows, the fit ends after three consecutive sweeps that lower the loss by less than
        this share.
    validation_fraction : float
        The share of the rows to hold out for validation. If it is not 0, the network with the best validation score is
        kept.
    patience : int
        The fit ends after so many validations without a better score.
    sample_weight : (d,) array, optional
        Weights >= 0 of the rows.
    class_weight : "balanced" or mapping from labels to weights, optional
        Factors of the weights of the rows.
    seed : int
        The seed of the order of the rows.
    backend : {"auto", "cpu", "cuda"}
        Where the fit runs; "auto" is the GPU if X is there, else the CPU. With "cuda", X is moved to the GPU once, or
        in parts where it does not fit.
    verbose : int
        1 displays a progress bar, or lines where tqdm is not installed.
    callback : function of one FitReport, optional
        Called after every sweep, with the network as it would be returned in `report.network`, which costs a part of a
        sweep; returning True ends the fit.

    Returns
    -------
    FitReport

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> inside = np.where((x**2).sum(axis=1) < 1, "inside", "outside")
    >>> net = bf.Network([2, 20, 2], activation="tanh", seed=0)
    >>> report = bf.fit_refined(net, x, inside)
    >>> bool((net.predict(x) == inside).mean() > 0.9)
    True
    """
    samples, classes = checked_samples(net, X, Y, sample_weight, class_weight)
    check_number(max_passes, "max_passes", above=0, finite=False)
    check_number(0 if output_eps is None else output_eps, "output_eps")
    check_number(tol, "tol")
    for name, count in (("max_sweeps", max_sweeps), ("chunk_rows", chunk_rows)):
        if count is not None:
            check_count(count, name)
    check_count(patience, "patience")
    check_choice(start, "start", ("scaled", "network"))
    random = np.random.default_rng(seed)
    samples = samples.to_backend(backend)
    begin = net.with_weights(net.weights)
    begin.input_scale, begin.classes = net.scale_of(samples.X), classes
    with FitContext(
        "refined sweeps",
        eps,
        backend=backend_of(samples.X),
        steps=max_sweeps,
        verbose=verbose,
        callback=callback,
        phases=PHASES,
    ) as context:
        with context.phase("start"):
            samples, held = hold_out(samples, validation_fraction, random)
            few = sample(samples, random)
            if start == "scaled":
                begin.weights = scaled_start(begin, few, random)
        count = len(samples.X)
        sizes, planned = (chunk_sizes(count, first_chunk(net), chunk_rows) for _ in range(2))
        limits = Limits(count, max_sweeps, max_passes)
        if sizes is None:
            limits = Limits.over_all_rows(count, max_sweeps)
        inputs = NetworkInputs(begin, few, context)
        del few
        if planned is not None and start == "scaled" and not standardize:
            samples, held = inputs.reduce(limits.plan(planned), samples, held, random)
        rules = stagnation_rules(
            over_chunks=sizes is not None,
            tol=tol,
            mean_square=samples.mean_square(),
            patience=patience,
        )
        chunks = None if sizes is None else Chunks(samples, sizes, random)
        fit = _Fit(inputs, context, samples, held, chunks, output_eps, standardize)
        report = context.finish(fit.run(limits, rules))
        best = inputs.on_all_inputs(fit.best)
    net.weights, net.input_scale, net.classes = best.weights, best.input_scale, classes
    return report


class _Fit:
    """One fit: the sweeps, the mean of their weights, the best network so far.

    Every sweep sees all rows if `chunks` is None.
    """

    def __init__(
        self,
        inputs: NetworkInputs,
        context: FitContext,
        samples: Samples,
        held: Samples | None,
        chunks: Chunks | None,
        output_eps: float | None,
        standardize: bool,
    ) -> None:
        self.inputs, self.context = inputs, context
        self.samples, self.held, self.chunks = samples, held, chunks
        self.progress = Progress()
        self.chooses_ridge = output_eps is None and (chunks is None or samples.labels is not None)
        self.sweep = RefinedSweep(
            inputs.net,
            context,
            output_eps=LEAST_OUTPUT_EPS if output_eps is None else output_eps,
            standardize=standardize,
        )
        self.mean = self.sweep.hidden
        self.best = inputs.net
        self._batch = samples.take(slice(0)).as_batch()  # of the latest sweep
        self._best_score = -np.inf
        if self.sweep.hidden:
            weighted = samples.sample_weight is not None
            self.sweep.learn_inputs(inputs.G, inputs.total, samples.X, weighted, inputs.ridge)

    def run(self, limits: Limits, rules: Sequence[Rule]) -> str:
        """Sweep until a rule or a limit gives a reason to stop, and return it."""
        if not self.sweep.hidden:
            return self._solve_only()
        progress, reason = self.progress, None
        while reason is None:
            try:
                self._sweep()
            except (TooLargeError, np.linalg.LinAlgError) as error:
                if progress.sweeps == 0:
                    raise
                reason = sweep_failed(error)
                break
            is_due = self._validation_is_due()
            network = self._network() if is_due or self.context.has_callback else None
            if is_due and network is not None:
                self._validate(network)
            reason = first_reason(rules, progress)
            shown = None
            if network is not None and self.context.has_callback:
                shown = self.inputs.on_all_inputs(network)
            if self.context.step(shown):
                reason = CALLBACK_ASKED
            if reason is None:
                next_size = len(self.samples.X) if self.chunks is None else self.chunks.size
                reason = limits.reached(progress.sweeps, progress.rows_seen + next_size)
        if not self._validation_is_due():
            self._validate(self._network())
        return reason

    def _sweep(self) -> None:
        """Do one sweep over the next chunk, or over all rows."""
        progress, report = self.progress, self.context.report
        with self.context.phase("start"):
            if self.chunks is not None:
                self._batch = self.chunks.next()
            elif progress.sweeps == 0:
                self._batch = self.samples.as_batch()
        same_rows = self.chunks is None
        if self.chooses_ridge and progress.sweeps == 0:
            repetitions = self.samples.repetitions() * len(self._batch.X) / len(self.samples.X)
            share = 1.0 if self.chunks is None else CHUNK_RIDGE_SHARE
            self.sweep.choose_ridge(self._batch, repetitions, share)
            same_rows = True
        loss = self.sweep.sweep(self._batch, same_rows=same_rows)
        if not np.isfinite(loss):
            raise TooLargeError("the numbers of a sweep grew too large; scale X and Y")
        progress.sweeps += 1
        progress.rows_seen += len(self._batch.X)
        progress.loss, progress.step_failed = loss, self.sweep.failed
        report.iterations = progress.sweeps
        report.rows.append(len(self._batch.X))
        report.loss.append(loss)
        kept = 0.0 if self.chunks is None else kept_share(progress.sweeps)
        self.mean = averaged(self.mean, self.sweep.hidden, kept)

    def _validation_is_due(self) -> bool:
        """Return whether the latest sweep is followed by a validation."""
        turn = self.chunks is None or self.progress.sweeps % VALIDATE_EVERY == 0
        return self.held is not None and turn

    def _validate(self, network: Network) -> None:
        """Keep a network unless one before it had a better validation score; without validation rows, keep it."""
        progress, report = self.progress, self.context.report
        if self.held is not None:
            with self.context.phase("forward"):
                score = self.held.score(network.decision(self.held.X))
            progress.score = score
            report.validation.append((progress.sweeps, score))
            if score <= self._best_score:
                progress.validations_since_best += 1
                return
            self._best_score = score
        progress.validations_since_best = 0
        self.best, report.best = network, progress.sweeps - 1

    def _solve_only(self) -> str:
        """Solve a network that is nothing but an output layer."""
        batch, net, report = self.samples.as_batch(), self.inputs.net, self.context.report
        with self.context.phase("gram"):
            scale, weight = net.scale_of(batch.X), batch.sample_weight
            G, C = arrays_to_numpy(
                gram(batch.X, batch.T, bias=net.bias, scale=scale, sample_weight=weight)
            )
        output = self.sweep.loss.solve_on_inputs(G, C, batch)
        self.progress.sweeps = report.iterations = 1
        report.rows, report.loss = [len(batch.X)], [output.loss / batch.total_weight()]
        self._validate(self._finished([], output.W, batch))
        self.context.step(self.best if self.context.has_callback else None)
        return NO_HIDDEN_LAYERS

    def _network(self) -> Network:
        """Return the present network: the mean of the hidden weights, the output layer solved for them."""
        now = self.sweep.last_forward
        if self.chunks is not None or now is None:
            now = self.sweep.forward(self._batch, self.mean)
        return self._finished(self.mean, now.output.W, self._batch)

    def _finished(self, hidden: Weights, output: NDArray[np.float64], batch: Batch) -> Network:
        network = self.inputs.net.with_weights([*hidden, output])
        return calibrated(network, self.samples.labels is not None, batch, self.context)
