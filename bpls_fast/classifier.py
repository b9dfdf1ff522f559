"""Algorithm 2 of the paper: sweeps over all rows, then over the misclassified ones alone, blended by the miss rate."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.network import Network
from bpls_fast.report import Callback, FitReport, Recorder
from bpls_fast.samples import Array, ClassWeight, checked_classification, class_targets
from bpls_fast.sweep import Sweep

__all__ = ["fit_classifier"]

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
    label_floor: float = 1e-2,
    standardize: bool = False,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
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
        Of any type that sorts. There are as many classes as the network has outputs; whole numbers from 0 may leave
        some out.
    max_iter : int
        Sweeps at most, those over all rows included.
    eps : float
        The ridge of every layer, relative to the mean of its Gram's diagonal. It grows, with a warning, where it is too
        small for a factorisation.
    target : {"joint", "per_output"}
        How the target of a hidden layer follows from the outputs of the layer above: the smallest change that closes
        the errors of all of them at once, or the paper's formula, which takes one output.
    choose_output : {"mean", "last", "label", "cyclic", "least_squares", "damped"}
        For "per_output": which output that is, or how the values of all are combined; see `bpls_fast.sweep.correction`.
    resolve : bool
        Whether each layer but the first is solved again on its updated matrix, line 9 of the paper's algorithm.
    full_sweeps : int
        Sweeps over all rows. The paper's algorithm has one; the Gram matrix of X serves all of them.
    margin : float or sequence of float, optional
        How far inside the range of their activation the targets of hidden layers are kept: of all, or of each. By
        default the share, of 1/width for softmax and of 1/4 for others, that leaves the fewest misses after the full
        sweeps on a part of the training rows.
    label_floor : float
        The share of the output's range that the target of a class stays away from its ends.
    standardize : bool
        Whether the first layer is solved as if the columns of X had mean 0 and mean square 1, so that its ridge depends
        neither on their units nor on their offsets. The weights are those of X as it is. A column whose mean is more
        than 10⁴ standard deviations (30 of float32) counts as constant.
    sample_weight : (d,) array, optional
        Weights >= 0 of the rows, in the solves and in the miss rate.
    class_weight : "balanced" or mapping from labels to weights, optional
        Multiplies the weights of the rows.
    verbose : int
        1 shows a progress bar.
    callback : function of one FitReport, optional
        Called after every sweep; returning True ends the fit there.

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
    _check_count(max_iter, "max_iter")
    _check_count(full_sweeps, "full_sweeps")
    if not 0 < label_floor < 1 / max(2, len(classes)):
        raise ValueError(
            f"label_floor is {label_floor!r}; expected a number above 0 and below {1 / max(2, len(classes)):.3g}"
        )
    record = Recorder("Algorithm 2", eps, steps=max_iter, verbose=verbose, callback=callback)
    sweep = Sweep(
        net,
        record,
        target=target,
        choose_output=choose_output,
        resolve=resolve,
        standardize=standardize,
        margin=_natural_margins(net) if margin is None else margin,
    )
    of_class = class_targets(len(classes), net.activations[-1], label_floor)
    of_class = of_class.astype(np.float64 if X.dtype == np.float64 else np.float32)
    rows = Rows(X, of_class[labels], labels, weights)
    if margin is None:
        sweep.margins = _best_margins(net, sweep, rows, min(full_sweeps, max_iter))
    record.report.margins = sweep.margins
    best, stopped = _fit(net, sweep, rows, max_iter, full_sweeps)
    net.weights, net.input_scale, net.classes = best.weights, net.scale_of(X), classes
    return record.finish(stopped)


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
    """A network with what enters its layers for the training rows, and the rows that it misses."""

    net: Network
    A: list[Array]
    missed: NDArray[np.intp]
    miss_rate: float


def _fit(
    net: Network,
    sweep: Sweep,
    rows: Rows,
    max_iter: int,
    full_sweeps: int,
    input_gram: Array | None = None,
) -> tuple[Network, str]:
    """Give the network with the fewest misses, and why the fit ended. The Gram of the rows is computed once."""
    record, report = sweep.record, sweep.record.report
    with record.phase("forward"):
        A = net.layer_inputs(rows.X)
    best = now = Estimate(net, A, np.arange(len(rows.X)), np.inf)
    stopped = f"max_iter = {max_iter}"
    for report.iterations in range(1, max_iter + 1):
        if report.iterations <= full_sweeps:
            swept = sweep(now.A, rows.B, rows.weights, rows.labels, input_gram)
            input_gram = sweep.input_gram
            now = _estimate(net.with_weights(swept), rows, record)
        else:
            part = rows.take(now.missed)
            A = [part.X, *(a[now.missed] for a in now.A[1:])]
            swept = sweep(A, part.B, part.weights, part.labels)
            now = _estimate(_blend(now.net, swept, now.miss_rate), rows, record)
        ended = record.step()
        fewer = now.miss_rate < best.miss_rate
        if fewer:
            best, report.best = now, len(report.misses) - 1
        if ended:
            stopped = "the callback asked to stop"
        elif not len(now.missed):
            stopped = "no row is missed"
        elif not fewer and report.iterations > full_sweeps:
            stopped = "the misses stopped falling"
        else:
            continue
        break
    return best.net, stopped


def _estimate(net: Network, rows: Rows, record: Recorder) -> Estimate:
    """Run the rows through a network and note its misses."""
    with record.phase("forward"):
        A = net.layer_inputs(rows.X)
        outputs = net.last_layer(A[-1])
        missed = np.flatnonzero(outputs.argmax(axis=1) != rows.labels)
    if rows.weights is None:
        miss_rate = len(missed) / len(rows.X)
    else:
        miss_rate = float(rows.weights[missed].sum(dtype=float) / rows.weights.sum(dtype=float))
    record.report.misses.append(len(missed))
    record.report.accuracy.append(1 - miss_rate)
    return Estimate(net, A, missed, miss_rate)


def _blend(net: Network, of_misses: Sequence[NDArray[np.float64]], m: float) -> Network:
    return net.with_weights(
        [(1 - m) * W + m * W_miss for W, W_miss in zip(net.weights, of_misses, strict=True)]
    )


def _natural_margins(net: Network) -> list[float]:
    """Give, for each hidden layer, a distance that is large for its values: their mean for softmax, 1/4 for others."""
    widths = net.layer_sizes[1:-1]
    return [
        1 / max(width, 4) if activation.name == "softmax" else 0.25
        for width, activation in zip(widths, net.activations, strict=False)
    ]


def _best_margins(net: Network, sweep: Sweep, rows: Rows, sweeps: int) -> list[float]:
    """Give the share of the natural margins with the fewest misses after the full sweeps on a part of the rows."""
    if all(a.name in ("identity", "relu", "leaky_relu") for a in net.activations[:-1]):
        return sweep.margins  # their ranges have no end that a target must be kept off
    chosen = np.linspace(0, len(rows.X) - 1, min(len(rows.X), SEARCH_ROWS)).astype(np.intp)
    rows, input_gram = rows.take(chosen), None
    highest, best = -np.inf, sweep.margins
    for share in MARGIN_SHARES:
        trial = copy.copy(sweep)
        trial.margins = [share * margin for margin in _natural_margins(net)]
        trial.record = sweep.record.trial()
        _fit(net, trial, rows, sweeps, sweeps, input_gram)
        sweep.record.add_times(trial.record)
        input_gram, accuracy = trial.input_gram, max(trial.record.report.accuracy)
        if accuracy > highest:
            highest, best = accuracy, trial.margins
    return best


def _check_count(value: int, name: str) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}; expected a whole number >= 1")
