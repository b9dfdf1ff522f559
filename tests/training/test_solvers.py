"""Standardized columns, their moments, and the ridge that cross-validation prefers."""

import numpy as np
import pytest

import bpls_fast as bf

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")
from sklearn.datasets import make_friedman1

from bpls_fast.training.bpls.algorithm1 import TIKHONOV_STEPS
from bpls_fast.training.bpls.default_ridge import EPS_GRID, cross_validated_eps
from bpls_fast.training.initial_network import Start
from bpls_fast.training.moments import BLOCK_ROWS, moments


def test_moments_are_those_of_the_weighted_columns():
    random = np.random.default_rng(0)
    X = random.normal(5, [1e-3, 1, 1e3], size=(2 * BLOCK_ROWS + 7, 3))
    weights = random.integers(0, 4, len(X)).astype(float)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    for given, rows in ((moments(X, weights), repeated), (moments(X, None), X)):
        np.testing.assert_allclose(given, (rows.mean(axis=0), rows.std(axis=0)), rtol=1e-9)


def generalized_cross_validation(A, Y, eps):
    """Compute the error by the n by n matrix that maps Y to what is fitted."""
    A = np.column_stack([A, np.ones(len(A))])
    G = A.T @ A
    ridge = eps * np.trace(G) / len(G)
    solve = np.linalg.solve(G + ridge * np.eye(len(G)), A.T)
    H = np.zeros((len(A), len(A)))
    for _ in range(1 + TIKHONOV_STEPS):
        H += A @ solve @ (np.eye(len(A)) - H)
    return np.sum((Y - H @ Y) ** 2) / (len(A) - np.trace(H)) ** 2


@pytest.mark.parametrize("noise", [0.01, 1.0, 5.0])
def test_the_ridge_is_the_one_that_cross_validation_prefers(noise):
    X, y = make_friedman1(120, noise=noise, random_state=0)
    Y = ((y - y.mean()) / y.std())[:, np.newaxis]
    net = bf.Network([10, 30, 1], activation="tanh", output_activation="identity", seed=0)
    eps = cross_validated_eps(Start(net, X, np.zeros(10), 0), Y, None)
    A = net.layer_inputs(X)[-1]
    errors = [generalized_cross_validation(A, Y, candidate) for candidate in EPS_GRID]
    assert eps == EPS_GRID[np.argmin(errors)]


# The first layer, standardized, in the fits themselves


@pytest.mark.parametrize("bias", [False, True])
def test_a_standardized_first_layer_does_not_drown_small_columns(bias):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 4)) * [1e-6, 1.0, 1e3, 1e6] + ([5e-6, 3, 0, 0] if bias else 0)
    W = random.normal(size=(4, 2)) / X.std(axis=0)[:, np.newaxis]
    Y = X @ W + (1.0 if bias else 0.0)
    errors = []
    for standardize in (False, True):
        net = bf.Network([4, 2], output_activation="identity", bias=bias)
        bf.fit_injective(net, X, Y, eps=1e-4, standardize=standardize)
        errors.append(np.abs(net.forward(X) - Y).max())
    assert errors[1] < 1e-8 < 1e-2 < errors[0]


@pytest.mark.parametrize("fit", [bf.fit_classifier, bf.fit_injective])
def test_standardize_must_be_a_truth_value(fit):
    net = bf.Network([2, 3, 2], activation="tanh", output_activation="sigmoid")
    y = np.array([0, 1, 0, 1])
    with pytest.raises(TypeError, match="standardize is 'yes'; expected True or False"):
        fit(
            net, np.ones((4, 2)), y if fit is bf.fit_classifier else np.eye(2)[y], standardize="yes"
        )
