"""Calibration: softmax outputs scaled to probabilities."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Batch, Samples
from bpls_fast.training.refined.calibration import LARGEST_FACTOR, calibrated, correction

ROWS = 400


def problem(noise):
    """Return a linear network that recovers one-hot targets, and rows with that much noise."""
    random = np.random.default_rng(0)
    T = np.eye(3)[random.integers(0, 3, ROWS)]
    net = bf.Network([3, 3], bias=False)
    net.weights = [np.eye(3)]
    return net, Batch(T + noise * random.normal(size=T.shape), T, None, ROWS)


def context():
    return FitContext("test", 1.0, phases=("forward",))


def cross_entropy(outputs, batch):
    p = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return -(batch.T * np.log(p)).sum(axis=1) @ (
        np.ones(ROWS) if batch.sample_weight is None else batch.sample_weight
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("noise", [0.6, 1.0, 2.0])
def test_the_factor_has_the_least_cross_entropy(noise, weighted):
    net, batch = problem(noise)
    if weighted:
        weight = np.random.default_rng(1).uniform(0, 2, ROWS)
        batch = Batch(batch.X, batch.T, weight, ROWS)
    (W,) = calibrated(net, True, batch, context()).weights
    np.testing.assert_allclose(W, W[0, 0] * np.eye(3))
    factors = np.geomspace(0.1, LARGEST_FACTOR, 500)
    losses = [cross_entropy(factor * batch.X, batch) for factor in factors]
    assert cross_entropy(W[0, 0] * batch.X, batch) < (1 + 1e-4) * min(losses)


def test_rows_without_a_miss_have_the_largest_factor():
    net, batch = problem(0.0)
    (W,) = calibrated(net, True, batch, context()).weights
    assert 0.9 * LARGEST_FACTOR < W[0, 0] <= LARGEST_FACTOR


def test_numbers_and_other_outputs_are_left_alone():
    net, batch = problem(1.0)
    assert calibrated(net, False, batch, context()) is net
    other = bf.Network([3, 3], output_activation="sigmoid")
    assert calibrated(other, True, batch, context()) is other


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_numbers_are_corrected_by_linear_regression_that_does_not_magnify(bias, weighted):
    random = np.random.default_rng(0)
    N = random.normal(size=(ROWS, 3))
    T = N * [0.4, 2.0, -1.0] + (3.0 if bias else 0.0) + 0.1 * random.normal(size=(ROWS, 3))
    weight = random.uniform(0, 2, ROWS) if weighted else None
    net = bf.Network([3, 3], output_activation="identity", bias=bias, seed=0)
    net.weights = [np.eye(3 + bias, 3)]
    found = correction(net, N, Samples(N, T, None, weight))
    w = np.ones(ROWS) if weight is None else weight
    A = np.c_[N[:, 0], np.ones(ROWS)] if bias else N[:, :1]
    expected = np.linalg.lstsq(A * np.sqrt(w)[:, None], T[:, 0] * np.sqrt(w), rcond=None)[0]
    # Of so many rows the factor is nearly certain.
    assert found.factors[0] == pytest.approx(expected[0], rel=1e-3)
    assert found.factors[0] < expected[0]
    assert found.factors[1:].tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    corrected = found.apply(net).forward(N)
    np.testing.assert_allclose(corrected[:, 0], A @ expected, rtol=0, atol=2e-3)
    if bias:
        means = np.average(corrected, axis=0, weights=w)
        np.testing.assert_allclose(means, np.average(T, axis=0, weights=w))


def test_what_a_few_rows_cannot_show_becomes_the_mean():
    net = bf.Network([1, 1], output_activation="identity", seed=0)
    kept = []
    for seed in range(100):
        random = np.random.default_rng(seed)
        N, T = random.normal(size=(2, 40, 1))
        kept.append(correction(net, N, Samples(N, T, None, None)).factors[0])
    assert np.mean(np.array(kept) == 0) > 0.9  # by linear regression, half of them


def test_probabilities_are_corrected_by_the_factor_with_the_least_cross_entropy():
    net, batch = problem(1.0)
    labels = batch.T.argmax(axis=1)
    found = correction(net, batch.X, Samples(batch.X, np.eye(3), labels, None))
    (W,) = calibrated(net, True, batch, context()).weights
    np.testing.assert_allclose(found.apply(net).weights[0], W)
