"""Algorithm 1 of the paper: one random forward pass, one backward sweep, done. For mappings from numbers to numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bpls_fast.kernels import column_sums
from bpls_fast.kernels.backend import on_device, to_backend
from bpls_fast.network import Network
from bpls_fast.training.bpls.backward_sweep import Array, Sweep
from bpls_fast.training.data import checked_regression
from bpls_fast.training.report import Callback, FitReport, Recorder, TooLargeError

__all__ = ["fit_injective"]

REFINEMENTS = 2
"""Steps that take the bias of the ridge out of a solve: on a well-posed problem the answer is that of least squares."""

ROUNDING = 1e-12
"""A candidate with a training error that is smaller by no more than this share is no better."""


def fit_injective(
    net: Network,
    X: ArrayLike,
    Y: ArrayLike,
    *,
    eps: float = 1e-6,
    safeguard: bool = True,
    target: str = "joint",
    choose_output: str = "mean",
    margin: float | Sequence[float] = 1e-2,
    standardize: bool = False,
    sample_weight: ArrayLike | None = None,
    backend: str = "auto",
    verbose: int = 0,
    callback: Callback | None = None,
) -> FitReport:
    """Train a network to give Y for X, in one backward sweep from its present weights (Algorithm 1).

    Parameters
    ----------
    net : Network
        Trained in place; its weights are the random start. If the call raises they are left as they were.
    X : (d, inputs) array of uint8, float32 or float64
        The data; bytes are read as they are, no float copy is made.
    Y : (d, outputs) or (d,) array
        What the network should give; values outside the range of the output activation are moved into it.
    eps : float
        The ridge of every layer, relative to the mean of its Gram's diagonal. It grows, with a warning, where it is too
        small for a factorisation.
    safeguard : bool
        Besides the sweep's weights, try them with the output layer solved again on the new hidden layers, and the start
        with nothing but its output layer solved; keep the one with the smallest training error, which the report names.
        False is the paper's algorithm to the letter.
    target : {"joint", "per_output"}
        How the target of a hidden layer follows from the outputs of the layer above: the smallest change that closes
        the errors of all of them at once, or the paper's formula, which takes one output.
    choose_output : {"mean", "last", "cyclic", "least_squares", "damped"}
        For "per_output": which output that is, or how the values of all are combined.
    margin : float or sequence of float
        How far inside the range of their activation the targets of hidden layers are kept: of all, or of each. Those of
        leaky ReLU, whose inverse is steep, are kept above -margin.
    standardize : bool
        Whether the first layer is solved as if the columns of X had mean 0 and mean square 1, so that its ridge depends
        neither on their units nor on their offsets. The weights are those of X as it is. A column whose mean is more
        than 10⁴ standard deviations (30 of float32) counts as constant.
    sample_weight : (d,) array, optional
        Weights >= 0 of the rows.
    backend : {"auto", "cpu", "cuda"}
        Where the fit runs: "auto" on the GPU if X is there, else on the CPU. With "cuda" X is moved to the GPU once, or
        part by part where it does not fit.
    verbose : int
        1 shows a progress bar, or lines where tqdm is not installed.
    callback : function of one FitReport, optional
        Called after every candidate, with its network in `report.network`; returning True ends the fit.

    Returns
    -------
    FitReport

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> x = np.linspace(-1, 1, 50)[:, np.newaxis]
    >>> net = bf.Network([1, 20, 1], activation="tanh", output_activation="identity", seed=0)
    >>> report = bf.fit_injective(net, x, np.sin(3 * x))
    >>> bool(np.abs(net.forward(x) - np.sin(3 * x)).max() < 0.05)
    True
    """
    X, Y, sample_weight = checked_regression(net, X, Y, sample_weight)
    if not isinstance(safeguard, (bool, np.bool_)):
        raise TypeError(f"safeguard is {safeguard!r}; expected True or False")
    if choose_output == "label":
        raise ValueError("choose_output is 'label'; expected another, there are no labels here")
    safeguard = bool(safeguard) and len(net.weights) > 1
    data: tuple[Array, Array, Array | None] = to_backend(backend, X, Y, sample_weight)
    X, Y, sample_weight = data
    start = net.with_weights(net.weights)
    start.input_scale = net.scale_of(X)
    with Recorder(
        "Algorithm 1", eps, steps=3 if safeguard else 1, verbose=verbose, callback=callback
    ) as record:
        sweep = Sweep(
            start,
            record,
            target=target,
            choose_output=choose_output,
            margin=margin,
            refinements=REFINEMENTS,
            standardize=standardize,
        )
        record.report.margins = sweep.margins
        record.report.iterations = 1
        record.report.backend = "cuda" if on_device(X) else "cpu"
        best, least = start, np.inf
        stopped = "the best of three candidates" if safeguard else "one sweep"
        for name, candidate, A in _candidates(start, sweep, X, Y, sample_weight, safeguard):
            with record.phase("forward"):
                outputs = net.activations[-1].forward(candidate.last_layer(A))
            loss = _error(outputs, Y, sample_weight)
            record.report.loss.append(loss)
            record.report.candidates.append(name)
            if loss < (1 - ROUNDING) * least:
                best, least, record.report.best = candidate, loss, len(record.report.loss) - 1
            if record.step(candidate):
                stopped = "the callback asked to stop"
                break
        if not np.isfinite(least):
            raise TooLargeError("the training error is too large for a float; scale X and Y")
        report = record.finish(stopped)
    net.weights, net.input_scale = best.weights, best.input_scale
    return report


def _candidates(
    start: Network,
    sweep: Sweep,
    X: Array,
    Y: Array,
    sample_weight: Array | None,
    safeguard: bool,
) -> Iterator[tuple[str, Network, Array]]:
    """Give the networks to choose from, each with its name and with what enters its last layer."""
    B = start.activations[-1].inverse(Y)
    with sweep.record.phase("forward"):
        A = start.layer_inputs(X)
    *hidden, output = sweep(A, B, sample_weight)
    with sweep.record.phase("forward"):
        swept = start.with_weights([*hidden, output])
        last = swept.layer_inputs(X)[-1]
    yield "the sweep", swept, last
    if safeguard:
        solved_again = sweep.solve(sweep.gram(last, B, sample_weight))
        with sweep.record.phase("forward"):
            resolved = start.with_weights([*hidden, solved_again])
        yield "the sweep, output solved again", resolved, last
        unswept = start.with_weights([*start.weights[:-1], output])
        yield "the start, output solved", unswept, A[-1]


def _error(outputs: Array, Y: Array, sample_weight: Array | None) -> float:
    """Root-mean-square error over rows and outputs."""
    with np.errstate(over="ignore", invalid="ignore"):
        E = outputs - Y
        total = len(Y) if sample_weight is None else sample_weight.sum(dtype=np.float64)
        return float(np.sqrt(column_sums(E, E, sample_weight).mean() / total))
