"""The toy problems: a network of three hidden neurons learns two functions of one number from five noisy rows.

The training rows are x = 1, 3, 5, 7, 9, the test rows x = 2, 4, 6, 8, 10; a second input of 1 is the bias. Noise is
added to the training targets. The error of a run is the norm over all rows and outputs: relative to the noisy targets
in training, to the functions themselves in the test. The paper shows these errors in plots, without numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.experiments import gradient
from bpls_fast.experiments.published import GRADIENT_METHODS
from bpls_fast.network import Network
from bpls_fast.training.bpls.algorithm1 import fit_injective

__all__ = ["BPLS", "LINEAR", "LITERAL", "PROBLEMS", "SIGMOID", "Problem", "ToyError", "toy_errors"]

Array = NDArray[np.float64]

BPLS = "BPLS"
LITERAL = "BPLS to the letter"
"""Algorithm 1 without our safeguard."""

SIZES = (2, 3, 2)


class Problem(NamedTuple):
    """A toy problem.

    Attributes
    ----------
    name : str
    activation : str
        The activation of both layers.
    function : callable
        Maps a column of x to the two outputs.
    sigmas : tuple of float
        The standard deviations of the noise. The paper states none; these suit the range of the outputs.
    """

    name: str
    activation: str
    function: Callable[[Array], Array]
    sigmas: tuple[float, ...]

    def rows(self, first: int) -> tuple[Array, Array]:
        """Return the inputs of five rows, x = first, first + 2, …, and their outputs without noise."""
        x = np.arange(first, first + 9, 2, dtype=np.float64)[:, np.newaxis]
        return np.hstack([x, np.ones_like(x)]), self.function(x)


def _lines(x: Array) -> Array:
    return np.hstack([-x / 3 + 2, 2 * x - 1])


def _logistic_curves(x: Array) -> Array:
    exponents = np.hstack([np.log10(x**-1.5), x**-0.25])
    curves: Array = 1 / (1 + np.exp(exponents))
    return curves


LINEAR = Problem("linear", "identity", _lines, (0.1, 0.2, 0.4, 0.6, 0.8, 1.0))
SIGMOID = Problem("sigmoid", "sigmoid", _logistic_curves, (0.01, 0.02, 0.04, 0.06, 0.08, 0.1))
PROBLEMS = (LINEAR, SIGMOID)


class ToyError(NamedTuple):
    """The errors of one algorithm on one problem at one noise level, over all runs.

    Attributes
    ----------
    problem, sigma, algorithm, runs
        What was run.
    train_rmse, test_rmse : float
        The paper's measure: the root mean square over the runs of the norm of a run's errors.
    train_median, test_median : float
        The median of that norm over the runs. The gap between it and the RMSE shows how heavy the tail is.
    """

    problem: str
    sigma: float
    algorithm: str
    runs: int
    train_rmse: float
    test_rmse: float
    train_median: float
    test_median: float


def toy_errors(
    problem: Problem,
    *,
    runs: int = 1000,
    epochs: int = 1000,
    sigmas: Sequence[float] | None = None,
    methods: Sequence[str] | None = None,
    seed: int = 0,
) -> list[ToyError]:
    """Run the Monte Carlo experiment of a toy problem; all algorithms start from the same weights.

    Parameters
    ----------
    problem : Problem
        `LINEAR` or `SIGMOID`.
    runs : int
        Monte Carlo runs at each noise level.
    epochs : int
        Epochs of the gradient methods; the paper runs 1000. Every row is one update, which the paper states for
        its images only.
    sigmas : sequence of float, optional
        Noise levels; by default those of the problem.
    methods : sequence of str, optional
        Gradient methods; by default all four if PyTorch is installed, else none.
    seed : int

    Returns
    -------
    list of ToyError
        One for each algorithm and noise level.

    Examples
    --------
    >>> from bpls_fast.experiments.toy import LINEAR, toy_errors
    >>> found = toy_errors(LINEAR, runs=10, sigmas=[0.1], methods=[])
    >>> [error.algorithm for error in found]
    ['BPLS', 'BPLS to the letter']
    """
    sigmas = problem.sigmas if sigmas is None else tuple(sigmas)
    if methods is None:
        methods = GRADIENT_METHODS if gradient.torch_installed() else ()
    X, Y = problem.rows(1)
    random = np.random.default_rng(seed)
    weights = [
        random.uniform(-1, 1, (len(sigmas) * runs, n, m)) for n, m in itertools.pairwise(SIZES)
    ]
    noise = random.standard_normal((len(sigmas), runs, *Y.shape))
    noisy = (Y + noise * np.reshape(sigmas, (-1, 1, 1, 1))).reshape(-1, *Y.shape)
    trained = {
        BPLS: _fit_each(problem, X, noisy, weights, safeguard=True),
        LITERAL: _fit_each(problem, X, noisy, weights, safeguard=False),
    }
    for method in methods:
        trained[method] = gradient.train_many(
            method,
            X,
            noisy,
            weights,
            activation=problem.activation,
            epochs=epochs,
            learning_rate=0.1 if method == "AdaGrad" else gradient.LEARNING_RATE,
        )
    return [
        error
        for algorithm, found in trained.items()
        for error in _errors(problem, algorithm, found, noisy, sigmas)
    ]


def _fit_each(
    problem: Problem, X: Array, Y: Array, weights: Sequence[Array], *, safeguard: bool
) -> list[Array]:
    """Train one network per run by Algorithm 1 and return all weights, runs first."""
    net = Network(SIZES, problem.activation, problem.activation, bias=False)
    trained = [np.empty_like(W) for W in weights]
    for run in range(len(Y)):
        net.weights = [W[run] for W in weights]
        fit_injective(net, X, Y[run], safeguard=safeguard)
        for W, found in zip(trained, net.weights, strict=True):
            W[run] = found
    return trained


def _errors(
    problem: Problem,
    algorithm: str,
    weights: Sequence[Array],
    noisy: Array,
    sigmas: Sequence[float],
) -> list[ToyError]:
    X, _ = problem.rows(1)
    X_test, Y_test = problem.rows(2)
    train = _norms(_outputs(problem, X, weights) - noisy).reshape(len(sigmas), -1)
    test = _norms(_outputs(problem, X_test, weights) - Y_test).reshape(len(sigmas), -1)
    return [
        ToyError(
            problem.name,
            sigma,
            algorithm,
            len(train_norms),
            *(float(np.sqrt(np.mean(np.square(norms)))) for norms in (train_norms, test_norms)),
            *(float(np.median(norms)) for norms in (train_norms, test_norms)),
        )
        for sigma, train_norms, test_norms in zip(sigmas, train, test, strict=True)
    ]


def _outputs(problem: Problem, X: Array, weights: Sequence[Array]) -> Array:
    """Return the outputs of all networks for the same rows: (runs, rows, outputs)."""
    values: Any = X
    for W in weights:
        values = values @ W
        if problem.activation == "sigmoid":
            values = 1 / (1 + np.exp(-values))
    outputs: Array = values
    return outputs


def _norms(errors: Array) -> Array:
    norms: Array = np.sqrt(np.square(errors).sum(axis=(1, 2)))
    return norms
