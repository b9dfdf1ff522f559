"""Algorithm 2 of the paper, for classification: sweeps over all rows, then over the misclassified rows alone.

The weights of a sweep over the misclassified rows are blended with the present ones by the miss rate.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.kernels import missed
from bpls_fast.kernels.backend import backend_of, to_backend, to_device_of, to_numpy
from bpls_fast.network import Network
from bpls_fast.network.arguments import is_number
from bpls_fast.training.bpls.backward_sweep import BackwardSweep
from bpls_fast.training.checks import ClassWeight, check_count, checked_classification
from bpls_fast.training.context import Callback, FitContext, TooLargeError
from bpls_fast.training.data import Array, Batch, RowSource, Weights, float_of
from bpls_fast.training.report import FitReport
from bpls_fast.training.stopping import (
    CALLBACK_ASKED,
    NUMBERS_TOO_LARGE,
    Progress,
    first_reason,
    miss_rules,
)
from bpls_fast.training.targets import LABEL_FLOOR, class_targets

__all__ = ["DEFAULT_MAX_ITER", "fit_classifier"]

DEFAULT_MAX_ITER = 15

NATURAL_MARGIN = 0.25
"""A margin that is large for activations other than softmax."""

MARGIN_SHARES = (0.2, 0.4, 0.6)
"""The margins to try where none is given, as shares of `_natural_margins`."""

SEARCH_ROWS = 5_000
"""The most rows that margins are compared on."""


def fit_classifier(
    net: Network,
    X: ArrayLike | RowSource,
    labels: ArrayLike,
    *,
    max_iter: int = DEFAULT_MAX_ITER,
    eps: float = 1e-6,
    target: str = "joint",
    choose_output: str = "mean",
    resolve: bool = False,
    full_sweeps: int = 3,
    margin: float | Sequence[float] | None = None,
    label_floor: float | None = None,
    standardize: bool = False,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    backend: str = "auto",
    verbose: int = 0,
    callback: Callback | None = None,
) -> FitReport:
    """Train a classifier in a few backward sweeps from its present weights (Algorithm 2).

    The first sweeps see all rows. Every later one sees only the rows that are still misclassified, and the weights
    become (1 - m) W + m W_miss with the miss rate m. The fit ends when the misses stop falling; the weights with the
    fewest misses are kept.

    Parameters
    ----------
    net : Network
        Trained in place; its weights are the random start. It stays as it was if the call raises.
    X : (d, inputs) array of uint8, float32 or float64, or RowSource
        The data; a `RowSource` is read into memory first. Bytes are read as they are; no float copy is made.
    labels : (d,) array
        Labels of any type that sorts. The network has one output for each class; labels 0, 1, … may leave some out.
    max_iter : int
        The most sweeps, those over all rows included.
    eps : float
        The ridge of every layer, relative to the mean of its Gram matrix's diagonal. It grows, with a warning, where it
        is too small for a factorization.
    target : {"joint", "per_output"}
        How the target of a hidden layer follows from the errors of the layer above: the smallest change that closes
        all of them at once, or the paper's formula, which closes the error of one output.
    choose_output : {"mean", "last", "label", "cyclic", "least_squares", "damped"}
        For "per_output": the output to take, or how the values of all outputs are combined.
    resolve : bool
        Whether each layer but the first is solved again on its updated matrix (line 9 of the paper's algorithm).
    full_sweeps : int
        Sweeps over all rows. The paper's algorithm has one. All of them share the Gram matrix of X.
    margin : float or sequence of float, optional
        Distance of the hidden layers' targets from the ends of the range of their activation: one for all layers, or
        one for each. The default is chosen by the misses after the full sweeps on some of the training rows, among
        shares of 1/width for softmax and of 1/4 for other activations. Targets of leaky ReLU, whose inverse is steep,
        stay above -margin.
    label_floor : float, optional
        Distance of the outputs' targets from the ends of their range, as a share of the range. The default is 0.01, or
        0.5 / classes for more than 50 classes.
    standardize : bool
        Whether the first layer is solved as if the columns of X had mean 0 and mean square 1, so that its ridge does
        not depend on their units and offsets. The weights still apply to X itself. A column whose mean exceeds 10⁴
        standard deviations (30 for float32) counts as constant.
    sample_weight : (d,) array, optional
        Weights >= 0 of the rows, in the solves and in the miss rate.
    class_weight : "balanced" or mapping from labels to weights, optional
        Factors of the weights of the rows.
    backend : {"auto", "cpu", "cuda"}
        Where the fit runs; "auto" is the GPU if X is there, else the CPU. With "cuda", X is moved to the GPU once, or
        in parts where it does not fit.
    verbose : int
        1 displays a progress bar, or lines where tqdm is not installed.
    callback : function of one FitReport, optional
        Called after every sweep, with the network of that sweep in `report.network`; returning True ends the fit.

    Returns
    -------
    FitReport

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> inside = np.where((x**2).sum(axis=1) < 1, "inside", "outside")
    >>> net = bf.Network([2, 20, 2], activation="sigmoid", seed=0)
    >>> report = bf.fit_classifier(net, x, inside)
    >>> bool((net.predict(x) == inside).mean() > 0.9)
    True
    """
    X, labels, classes, sample_weight = checked_classification(
        net, X, labels, sample_weight, class_weight
    )
    check_count(max_iter, "max_iter")
    check_count(full_sweeps, "full_sweeps")
    floor = _checked_floor(label_floor, len(classes))
    data: tuple[Array, Array | None] = to_backend(backend, X, sample_weight)
    X, sample_weight = data
    start = net.with_weights(net.weights)
    start.input_scale, start.classes = net.scale_of(X), classes
    with FitContext(
        "Algorithm 2",
        eps,
        backend=backend_of(X),
        steps=max_iter,
        verbose=verbose,
        callback=callback,
    ) as context:
        sweep = BackwardSweep(
            start,
            context,
            target=target,
            choose_output=choose_output,
            resolve=resolve,
            standardize=standardize,
            margin=_natural_margins(net) if margin is None else margin,
        )
        of_class = class_targets(len(classes), net.activations[-1], floor)
        B = of_class.astype(float_of(X))[labels]
        batch = Batch(X, to_device_of(X, B), sample_weight, len(X), to_device_of(X, labels))
        with context.phase("forward"):
            _, *hidden = start.layer_inputs(X)
        begin = Estimate(start, hidden, np.arange(len(X)), np.inf)
        if margin is None:
            sweep.margins = _best_margins(begin, sweep, batch, min(full_sweeps, max_iter))
        context.report.margins = sweep.margins
        best, stopped = _fit(begin, sweep, batch, max_iter, full_sweeps)
        report = context.finish(stopped)
    net.weights, net.input_scale, net.classes = best.net.weights, best.net.input_scale, classes
    return report


class Estimate(NamedTuple):
    """A network, the values of its hidden layers for the training rows, and the rows that it misses."""

    net: Network
    hidden: list[Array]
    missed: NDArray[np.intp]
    miss_rate: float

    def hidden_of(self, chosen: NDArray[np.intp]) -> list[Array]:
        """Return the values of the hidden layers for some of the rows."""
        return [values[chosen] for values in self.hidden]


def _fit(
    begin: Estimate,
    sweep: BackwardSweep,
    batch: Batch,
    max_iter: int,
    full_sweeps: int,
    input_gram: Array | None = None,
) -> tuple[Estimate, str]:
    """Return the estimate with the fewest misses and why the fit ended. The Gram matrix of X is computed once."""
    context, report = sweep.context, sweep.context.report
    best = now = begin
    rules, progress = miss_rules(full_sweeps, max_iter), Progress()
    while True:
        try:
            if progress.sweeps < full_sweeps:
                A = [batch.X, *now.hidden]
                swept = sweep(A, batch.T, batch.sample_weight, batch.labels, input_gram)
                input_gram = sweep.input_gram
                now = _estimate(begin.net, swept, batch, context)
            else:
                chosen = to_device_of(batch.X, now.missed)
                part = batch.take(chosen)
                A = [part.X, *now.hidden_of(chosen)]
                swept = sweep(A, part.T, part.sample_weight, part.labels)
                blended = _blend(now.net.weights, swept, now.miss_rate)
                now = _estimate(now.net, blended, batch, context)
        except TooLargeError:
            if best is begin:
                raise
            return best, NUMBERS_TOO_LARGE
        progress.improved = now.miss_rate < best.miss_rate
        if progress.improved:
            best, report.best = now, progress.sweeps
        progress.sweeps += 1
        report.iterations, progress.misses = progress.sweeps, len(now.missed)
        reason = first_reason(rules, progress)
        if context.step(now.net):
            reason = CALLBACK_ASKED
        if reason is not None:
            return best, reason


def _estimate(net: Network, weights: Weights, batch: Batch, context: FitContext) -> Estimate:
    """Run the rows through a network with these weights and record its misses."""
    assert batch.labels is not None  # every batch of a classification has labels
    with context.phase("forward"):
        net = net.with_weights(weights)
        A = net.layer_inputs(batch.X)
        outputs = net.last_layer(A[-1])
        misses = missed(outputs, batch.labels)
    if batch.sample_weight is None:
        miss_rate = len(misses) / len(batch.X)
    else:
        weight = batch.sample_weight
        miss_rate = float(weight[misses].sum(dtype=float) / weight.sum(dtype=float))
    context.report.misses.append(len(misses))
    context.report.accuracy.append(1 - miss_rate)
    return Estimate(net, A[1:], misses, miss_rate)


def _blend(weights: Weights, of_misses: Weights, m: float) -> Weights:
    return [(1 - m) * W + m * W_miss for W, W_miss in zip(weights, of_misses, strict=True)]


def _natural_margins(net: Network) -> list[float]:
    """Return a margin for each hidden layer that is large for its values: their mean for softmax, 1/4 for others."""
    widths = net.layer_sizes[1:-1]
    return [
        1 / max(width, 4) if activation.name == "softmax" else NATURAL_MARGIN
        for width, activation in zip(widths, net.activations, strict=False)
    ]


def _best_margins(begin: Estimate, sweep: BackwardSweep, batch: Batch, sweeps: int) -> list[float]:
    """Return the share of the natural margins with the fewest misses after the full sweeps on some of the rows."""
    natural = sweep.margins
    if all(a.name in ("identity", "relu") for a in begin.net.activations[:-1]):
        return natural  # their range has no end that a target must stay away from
    counted = np.arange(len(batch.X))
    if batch.sample_weight is not None:
        counted = np.flatnonzero(to_numpy(batch.sample_weight))
    evenly = np.linspace(0, len(counted) - 1, min(len(counted), SEARCH_ROWS)).astype(np.intp)
    chosen = to_device_of(batch.X, counted[evenly])
    batch, begin = batch.take(chosen), begin._replace(hidden=begin.hidden_of(chosen))
    input_gram, highest, best_margins = None, -np.inf, natural
    for share in MARGIN_SHARES:
        trial = copy.copy(sweep)
        trial.margins = [share * margin for margin in natural]
        trial.context = sweep.context.trial()
        with contextlib.suppress(TooLargeError):
            best, _ = _fit(begin, trial, batch, sweeps, sweeps, input_gram)
            input_gram = trial.input_gram
            if (accuracy := 1 - best.miss_rate) > highest:
                highest, best_margins = accuracy, trial.margins
        sweep.context.add_times(trial.context)
    return best_margins


def _checked_floor(label_floor: float | None, classes: int) -> float:
    """Return the floor of the labels; the default leaves the target of a class above the others, however many."""
    if label_floor is None:
        return min(LABEL_FLOOR, 0.5 / classes)
    if not is_number(label_floor):
        raise TypeError(f"label_floor is {label_floor!r}; expected a number or None")
    largest = 1 / max(2, classes)
    if not 0 < label_floor < largest:
        raise ValueError(
            f"label_floor is {label_floor!r}; expected a number above 0 and below {largest:.3g}"
        )
    return float(label_floor)
