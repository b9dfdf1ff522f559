"""Algorithm 1 of the paper, for regression: one forward pass with random weights, then one backward sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bpls_fast.kernels import column_sums
from bpls_fast.kernels.backend import backend_of, to_backend
from bpls_fast.network import Network
from bpls_fast.training.bpls.backward_sweep import BackwardSweep
from bpls_fast.training.checks import check_bool, checked_regression
from bpls_fast.training.context import Callback, FitContext, TooLargeError
from bpls_fast.training.data import Array, RowSource
from bpls_fast.training.report import FitReport
from bpls_fast.training.stopping import CALLBACK_ASKED

__all__ = ["fit_injective"]

TIKHONOV_STEPS = 2
"""Steps of iterated Tikhonov that remove the bias of the ridge: well-posed problems get the least-squares solution."""

ROUNDING = 1e-12
"""The share by which the training error of a better candidate must be smaller."""


def fit_injective(
    net: Network,
    X: ArrayLike | RowSource,
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
    """Train a network for regression in one backward sweep from its present weights (Algorithm 1).

    Parameters
    ----------
    net : Network
        Trained in place; its weights are the random start. They stay as they were if the call raises.
    X : (d, inputs) array of uint8, float32 or float64, or RowSource
        The data; a `RowSource` is read into memory first. Bytes are read as they are; no float copy is made.
    Y : (d, outputs) or (d,) array
        The target outputs; values outside the range of the output activation are moved into it.
    eps : float
        The ridge of every layer, relative to the mean of its Gram matrix's diagonal. It grows, with a warning, where it
        is too small for a factorization.
    safeguard : bool
        Whether to try two more candidates: the swept network with its output layer solved again on the new hidden
        layers, and the start with only its output layer solved. The candidate with the smallest training error is kept,
        and the report names it. False is the paper's algorithm to the letter.
    target : {"joint", "per_output"}
        How the target of a hidden layer follows from the errors of the layer above: the smallest change that closes
        all of them at once, or the paper's formula, which closes the error of one output.
    choose_output : {"mean", "last", "cyclic", "least_squares", "damped"}
        For "per_output": the output to take, or how the values of all outputs are combined.
    margin : float or sequence of float
        Distance of the hidden layers' targets from the ends of the range of their activation: one for all layers, or
        one for each. Targets of leaky ReLU, whose inverse is steep, stay above -margin.
    standardize : bool
        Whether the first layer is solved as if the columns of X had mean 0 and mean square 1, so that its ridge does
        not depend on their units and offsets. The weights still apply to X itself. A column whose mean exceeds 10⁴
        standard deviations (30 for float32) counts as constant.
    sample_weight : (d,) array, optional
        Weights >= 0 of the rows.
    backend : {"auto", "cpu", "cuda"}
        Where the fit runs; "auto" is the GPU if X is there, else the CPU. With "cuda", X is moved to the GPU once, or
        in parts where it does not fit.
    verbose : int
        1 displays a progress bar, or lines where tqdm is not installed.
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
    check_bool(safeguard, "safeguard")
    if choose_output == "label":
        raise ValueError("choose_output is 'label'; expected another, there are no labels here")
    safeguard = bool(safeguard) and len(net.weights) > 1
    data: tuple[Array, Array, Array | None] = to_backend(backend, X, Y, sample_weight)
    X, Y, sample_weight = data
    start = net.with_weights(net.weights)
    start.input_scale = net.scale_of(X)
    with FitContext(
        "Algorithm 1",
        eps,
        backend=backend_of(X),
        steps=3 if safeguard else 1,
        verbose=verbose,
        callback=callback,
    ) as context:
        sweep = BackwardSweep(
            start,
            context,
            target=target,
            choose_output=choose_output,
            margin=margin,
            tikhonov_steps=TIKHONOV_STEPS,
            standardize=standardize,
        )
        report = context.report
        report.margins, report.iterations = sweep.margins, 1
        best, least = start, np.inf
        stopped = "the best of three candidates" if safeguard else "one sweep"
        for name, candidate, A in _candidates(start, sweep, X, Y, sample_weight, safeguard):
            with context.phase("forward"):
                outputs = net.activations[-1].forward(candidate.last_layer(A))
            loss = _error(outputs, Y, sample_weight)
            report.loss.append(loss)
            report.candidates.append(name)
            if loss < (1 - ROUNDING) * least:
                best, least, report.best = candidate, loss, len(report.loss) - 1
            if context.step(candidate):
                stopped = CALLBACK_ASKED
                break
        if not np.isfinite(least):
            raise TooLargeError("the training error is too large for a float; scale X and Y")
        context.finish(stopped)
    net.weights, net.input_scale = best.weights, best.input_scale
    return report


def _candidates(
    start: Network,
    sweep: BackwardSweep,
    X: Array,
    Y: Array,
    sample_weight: Array | None,
    safeguard: bool,
) -> Iterator[tuple[str, Network, Array]]:
    """Generate the candidates: name, network, and the values that enter its last layer."""
    B = start.activations[-1].inverse(Y)
    with sweep.context.phase("forward"):
        A = start.layer_inputs(X)
    *hidden, output = sweep(A, B, sample_weight)
    with sweep.context.phase("forward"):
        swept = start.with_weights([*hidden, output])
        last = swept.layer_inputs(X)[-1]
    yield "the sweep", swept, last
    if safeguard:
        solved_again = sweep.solve(sweep.gram(last, B, sample_weight))
        with sweep.context.phase("forward"):
            resolved = start.with_weights([*hidden, solved_again])
        yield "the sweep, output solved again", resolved, last
        unswept = start.with_weights([*start.weights[:-1], output])
        yield "the start, output solved", unswept, A[-1]


def _error(outputs: Array, Y: Array, sample_weight: Array | None) -> float:
    """Return the root-mean-square error over rows and outputs."""
    with np.errstate(over="ignore", invalid="ignore"):
        E = outputs - Y
        total = len(Y) if sample_weight is None else sample_weight.sum(dtype=np.float64)
        return float(np.sqrt(column_sums(E, E, sample_weight).mean() / total))
