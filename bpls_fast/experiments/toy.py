"""The toy problems: two functions of one number, learnt from five noisy rows by a network of three hidden neurons.

The training rows are x = 1, 3, 5, 7, 9 with a second input of 1, the bias; the test rows are x = 2, 4, 6, 8, 10. The
noise is added to the training targets. The paper's error of a run is the norm over all rows and outputs: against the
noisy targets in training, against the functions themselves in the test. Its figures are plots without numbers.
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
        Of both layers of the network.
    function : callable
        Gives the two outputs for a column of x.
    sigmas : tuple of float
        The standard deviations of the noise. The paper names none; these fit the range of the outputs.
    """

    name: str
    activation: str
    function: Callable[[Array], Array]
    sigmas: tuple[float, ...]

    def rows(self, first: int) -> tuple[Array, Array]:
        """Give the five rows from x = first on, every second number, and what the outputs should be."""
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
    """The errors of one algorithm on one problem at one level of noise, over all runs.

    Attributes
    ----------
    problem, sigma, algorithm, runs
        What was run.
    train_rmse, test_rmse : float
        The paper's figure: the root of the mean over runs of the squared norm of a run's errors.
    train_median, test_median : float
        The median over runs of that norm: beside the RMSE it shows how heavy the tail is.
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
        Monte Carlo runs at each level of noise.
    epochs : int
        Of the gradient methods; the paper has 1000. Every row is one update, which the paper says of its images only.
    sigmas : sequence of float, optional
        Levels of noise; by default those of the problem.
    methods : sequence of str, optional
        Gradient methods; by default all four where PyTorch is installed and none where it is not.
    seed : int

    Returns
    -------
    list of ToyError
        For every algorithm, one at every level of noise.

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
    """Train a network for each run by Algorithm 1."""
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
            len(of_train),
            *(float(np.sqrt(np.mean(np.square(norms)))) for norms in (of_train, of_test)),
            *(float(np.median(norms)) for norms in (of_train, of_test)),
        )
        for sigma, of_train, of_test in zip(sigmas, train, test, strict=True)
    ]


def _outputs(problem: Problem, X: Array, weights: Sequence[Array]) -> Array:
    """Run all networks on the same rows: (runs, rows, outputs)."""
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
