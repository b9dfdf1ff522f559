"""Algorithm 2 of the paper: sweeps over all rows, then over the misclassified ones alone, blended by the miss rate."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.kernels import missed
from bpls_fast.kernels.backend import on_device, to_backend, to_device_of, to_numpy
from bpls_fast.network import Network
from bpls_fast.training.bpls.backward_sweep import Sweep
from bpls_fast.training.data import (
    Array,
    ClassWeight,
    check_count,
    checked_classification,
    class_targets,
    float_of,
)
from bpls_fast.training.report import Callback, FitReport, Recorder, TooLargeError

__all__ = ["fit_classifier"]

Weights = list[NDArray[np.float64]]

MARGIN_SHARES = (0.2, 0.4, 0.6)
"""The margins that are tried where none is given, as shares of `_natural_margin`."""

SEARCH_ROWS = 5_000
"""At most so many rows are used to compare margins."""


def fit_classifier(
    net: Network,
    X: ArrayLike,
    labels: ArrayLike,
    *,
    max_iter: int = 15,
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
    """Train a network to name the class of each row, in a few backward sweeps from its present weights (Algorithm 2).

    The first sweeps see all rows. Every later one sees only the rows that are still misclassified, and the weights
    become (1 - m) W + m W_miss with the miss rate m. The fit ends when the misses stop falling; the weights with the
    fewest misses are kept.

    Parameters
    ----------
    net : Network
        Trained in place; its weights are the random start. If the call raises it is left as it was.
    X : (d, inputs) array of uint8, float32 or float64
        The data; bytes are read as they are, no float copy is made.
    labels : (d,) array
        Of any type that sorts. There are as many classes as the network has outputs; whole numbers from 0, of any
        type, may leave some out.
    max_iter : int
        Sweeps at most, those over all rows included.
    eps : float
        The ridge of every layer, relative to the mean of its Gram's diagonal. It grows, with a warning, where it is too
        small for a factorisation.
    target : {"joint", "per_output"}
        How the target of a hidden layer follows from the outputs of the layer above: the smallest change that closes
        the errors of all of them at once, or the paper's formula, which takes one output.
    choose_output : {"mean", "last", "label", "cyclic", "least_squares", "damped"}
        For "per_output": which output that is, or how the values of all are combined.
    resolve : bool
        Whether each layer but the first is solved again on its updated matrix, line 9 of the paper's algorithm.
    full_sweeps : int
        Sweeps over all rows. The paper's algorithm has one; the Gram matrix of X serves all of them.
    margin : float or sequence of float, optional
        How far inside the range of their activation the targets of hidden layers are kept: of all, or of each. By
        default the share, of 1/width for softmax and of 1/4 for others, that leaves the fewest misses after the full
        sweeps on a part of the training rows. Leaky ReLU has no end, but a steep inverse: its targets are kept above
        -margin.
    label_floor : float, optional
        The share of the output's range that the target of a class stays away from its ends; by default 0.01, of more
        than 50 classes 0.5 / classes.
    standardize : bool
        Whether the first layer is solved as if the columns of X had mean 0 and mean square 1, so that its ridge depends
        neither on their units nor on their offsets. The weights are those of X as it is. A column whose mean is more
        than 10⁴ standard deviations (30 of float32) counts as constant.
    sample_weight : (d,) array, optional
        Weights >= 0 of the rows, in the solves and in the miss rate.
    class_weight : "balanced" or mapping from labels to weights, optional
        Multiplies the weights of the rows.
    backend : {"auto", "cpu", "cuda"}
        Where the fit runs: "auto" on the GPU if X is there, else on the CPU. With "cuda" X is moved to the GPU once, or
        part by part where it does not fit.
    verbose : int
        1 shows a progress bar, or lines where tqdm is not installed.
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
    X, labels, classes, weights = checked_classification(
        net, X, labels, sample_weight, class_weight
    )
    check_count(max_iter, "max_iter")
    check_count(full_sweeps, "full_sweeps")
    floor = _checked_floor(label_floor, len(classes))
    data: tuple[Array, Array | None] = to_backend(backend, X, weights)
    X, weights = data
    start = net.with_weights(net.weights)
    start.input_scale, start.classes = net.scale_of(X), classes
    with Recorder("Algorithm 2", eps, steps=max_iter, verbose=verbose, callback=callback) as record:
        sweep = Sweep(
            start,
            record,
            target=target,
            choose_output=choose_output,
            resolve=resolve,
            standardize=standardize,
            margin=_natural_margins(net) if margin is None else margin,
        )
        of_class = class_targets(len(classes), net.activations[-1], floor)
        B = of_class.astype(float_of(X))[labels]
        rows = Rows(X, to_device_of(X, B), to_device_of(X, labels), weights)
        record.report.backend = "cuda" if on_device(X) else "cpu"
        with record.phase("forward"):
            _, *hidden = start.layer_inputs(X)
        begin = Estimate(start, hidden, np.arange(len(X)), np.inf)
        if margin is None:
            sweep.margins = _best_margins(begin, sweep, rows, min(full_sweeps, max_iter))
        record.report.margins = sweep.margins
        best, stopped = _fit(begin, sweep, rows, max_iter, full_sweeps)
        report = record.finish(stopped)
    net.weights, net.input_scale, net.classes = best.weights, best.input_scale, classes
    return report


class Rows(NamedTuple):
    """Training rows: the data, what the outputs should be, the output of each label, the weights."""

    X: Array
    B: Array
    labels: NDArray[np.intp]
    weights: Array | None

    def take(self, chosen: NDArray[np.intp]) -> Rows:
        """Give some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        return Rows(self.X[chosen], self.B[chosen], self.labels[chosen], weights)


class Estimate(NamedTuple):
    """A network, the values of its hidden layers for the training rows, the rows that it misses, their share."""

    net: Network
    hidden: list[Array]
    missed: NDArray[np.intp]
    miss_rate: float

    def of(self, chosen: NDArray[np.intp]) -> list[Array]:
        """Give the values of the hidden layers for some of the rows."""
        return [values[chosen] for values in self.hidden]


def _fit(
    begin: Estimate,
    sweep: Sweep,
    rows: Rows,
    max_iter: int,
    full_sweeps: int,
    input_gram: Array | None = None,
) -> tuple[Network, str]:
    """Give the network with the fewest misses, and why the fit ended. The Gram of the rows is computed once."""
    record, report = sweep.record, sweep.record.report
    best = now = begin
    stopped = f"max_iter = {max_iter}"
    for iteration in range(1, max_iter + 1):
        try:
            if iteration <= full_sweeps:
                swept = sweep([rows.X, *now.hidden], rows.B, rows.weights, rows.labels, input_gram)
                input_gram = sweep.input_gram
                now = _estimate(begin.net, swept, rows, record)
            else:
                chosen = to_device_of(rows.X, now.missed)
                part = rows.take(chosen)
                A = [part.X, *now.of(chosen)]
                swept = sweep(A, part.B, part.weights, part.labels)
                blended = _blend(now.net.weights, swept, now.miss_rate)
                now = _estimate(now.net, blended, rows, record)
        except TooLargeError:
            if best is begin:
                raise
            return best.net, "the numbers of a sweep grew too large"
        report.iterations = iteration
        fewer = now.miss_rate < best.miss_rate
        if fewer:
            best, report.best = now, iteration - 1
        if record.step(now.net):
            stopped = "the callback asked to stop"
        elif not len(now.missed):
            stopped = "no row is missed"
        elif not fewer and iteration > full_sweeps:
            stopped = "the misses stopped falling"
        else:
            continue
        break
    return best.net, stopped


def _estimate(net: Network, weights: Weights, rows: Rows, record: Recorder) -> Estimate:
    """Run the rows through a network with these weights and note its misses."""
    with record.phase("forward"):
        net = net.with_weights(weights)
        A = net.layer_inputs(rows.X)
        outputs = net.last_layer(A[-1])
        misses = missed(outputs, rows.labels)
    if rows.weights is None:
        miss_rate = len(misses) / len(rows.X)
    else:
        miss_rate = float(rows.weights[misses].sum(dtype=float) / rows.weights.sum(dtype=float))
    record.report.misses.append(len(misses))
    record.report.accuracy.append(1 - miss_rate)
    return Estimate(net, A[1:], misses, miss_rate)


def _blend(weights: Weights, of_misses: Weights, m: float) -> Weights:
    return [(1 - m) * W + m * W_miss for W, W_miss in zip(weights, of_misses, strict=True)]


def _natural_margins(net: Network) -> list[float]:
    """Give, for each hidden layer, a distance that is large for its values: their mean for softmax, 1/4 for others."""
    widths = net.layer_sizes[1:-1]
    return [
        1 / max(width, 4) if activation.name == "softmax" else 0.25
        for width, activation in zip(widths, net.activations, strict=False)
    ]


def _best_margins(begin: Estimate, sweep: Sweep, rows: Rows, sweeps: int) -> list[float]:
    """Give the share of the natural margins with the fewest misses after the full sweeps on a part of the rows."""
    natural = sweep.margins
    if all(a.name in ("identity", "relu") for a in begin.net.activations[:-1]):
        return natural  # they have no end that a target must be kept off
    counted = (
        np.arange(len(rows.X)) if rows.weights is None else np.flatnonzero(to_numpy(rows.weights))
    )
    evenly = np.linspace(0, len(counted) - 1, min(len(counted), SEARCH_ROWS)).astype(np.intp)
    chosen = to_device_of(rows.X, counted[evenly])
    rows, begin = rows.take(chosen), begin._replace(hidden=begin.of(chosen))
    input_gram, highest, best = None, -np.inf, natural
    for share in MARGIN_SHARES:
        trial = copy.copy(sweep)
        trial.margins = [share * margin for margin in natural]
        trial.record = sweep.record.trial()
        with contextlib.suppress(TooLargeError):
            _fit(begin, trial, rows, sweeps, sweeps, input_gram)
            input_gram = trial.input_gram
        sweep.record.add_times(trial.record)
        accuracy = max(trial.record.report.accuracy, default=-np.inf)
        if accuracy > highest:
            highest, best = accuracy, trial.margins
    return best


def _checked_floor(label_floor: float | None, classes: int) -> float:
    """Give the floor of the labels; the default leaves a class of any number of them more than the others."""
    if label_floor is None:
        return min(1e-2, 0.5 / classes)
    if not isinstance(label_floor, (int, float, np.integer, np.floating)):
        raise TypeError(f"label_floor is {label_floor!r}; expected a number or None")
    largest = 1 / max(2, classes)
    if not 0 < label_floor < largest:
        raise ValueError(
            f"label_floor is {label_floor!r}; expected a number above 0 and below {largest:.3g}"
        )
    return float(label_floor)
