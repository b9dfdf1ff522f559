"""The start and the first refined sweep against NumPy."""

import numpy as np
import pytest

import bpls_fast as bf
import bpls_fast.training.refined.sweep as sweep_module
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Batch, Samples
from bpls_fast.training.refined.start import OFFSET, SOFTMAX_SPREAD, scaled_start
from bpls_fast.training.refined.sweep import DAMPING, UPPER_RIDGE, RefinedSweep
from tests.support.reference import ACTIVATIONS, with_ones

HIDDEN = ["sigmoid", "tanh", "relu", "leaky_relu", "elu", "softplus", "softmax"]
PHASES = ("start", "forward", "gram", "solve", "target", "step")

# ---- one sweep against NumPy


def times_jacobian(name, Z, V):
    """J V by differences of the activation, in float64."""
    h = 1e-6
    forward = ACTIVATIONS[name]
    return (forward(Z + h * V) - forward(Z - h * V)) / (2 * h)


def slopes(name, Z):
    if name == "softmax":
        n = ACTIVATIONS[name](Z)
        return n * (1 - n)
    return times_jacobian(name, Z, np.ones_like(Z))


def ridged(A, eps):
    G = A.T @ A
    return G + eps * np.trace(G) / len(G) * np.eye(len(G))


def swept(X, T, hidden, names, eps, output_eps):
    """Give the loss before a first sweep over all rows, and the hidden weights after it."""
    A, Z = [with_ones(X, True)], []
    for W, name in zip(hidden, names, strict=True):
        Z.append(A[-1] @ W)
        A.append(with_ones(ACTIVATIONS[name](Z[-1]), True))
    K = ridged(A[-1], output_eps)
    Wo = np.linalg.solve(K, A[-1].T @ T)
    R = T - A[-1] @ Wo
    loss = np.sum(T**2) - np.sum((A[-1].T @ T) * Wo)
    steps, V, above, curvature = [], R, Wo, np.eye(T.shape[1])
    for layer in reversed(range(len(hidden))):
        D = times_jacobian(names[layer], Z[layer], V @ above[:-1].T)
        S = slopes(names[layer], Z[layer])
        products = S.T @ S / len(S)
        if names[layer] == "softmax" or len(hidden) == 1:
            products = np.diag(products.diagonal())
        curvature = (above[:-1] @ curvature @ above[:-1].T) * products
        ridge = eps * (UPPER_RIDGE if layer else 1)
        step = np.linalg.solve(ridged(A[layer], ridge), A[layer].T @ D)
        damping = DAMPING * curvature.diagonal().mean() * np.eye(len(curvature))
        steps.insert(0, np.linalg.solve(curvature + damping, step.T).T)
        V, above = D, hidden[layer]
    raw, effects = [], []
    for layer, step in enumerate(steps):
        V = times_jacobian(names[layer], Z[layer], A[layer] @ step)
        for higher in range(layer + 1, len(hidden)):
            V = times_jacobian(names[higher], Z[higher], V @ hidden[higher][:-1])
        J = V @ Wo[:-1]
        raw.append(J)
        effects.append(J - A[-1] @ np.linalg.solve(K, A[-1].T @ J))
    M = np.array([[np.sum(J * E) for E in effects] for J in raw])
    lengths = np.linalg.solve(M, [np.sum(J * R) for J in raw])
    return loss / len(X), [W + a * s for W, a, s in zip(hidden, lengths, steps, strict=True)]


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("widths", [(6,), (7, 5), (6, 5, 4)])
def test_a_sweep_is_what_numpy_makes_of_the_formulas(name, widths):
    random = np.random.default_rng(3)
    X, T = random.normal(size=(80, 4)), random.normal(size=(80, 2))
    net = bf.Network([4, *widths, 2], activation=name, output_activation="identity", seed=1)
    net.weights = scaled_start(net, Samples(X, T, None, None), random)
    context = FitContext("test", 2.0, phases=PHASES)
    sweep = RefinedSweep(net, context, output_eps=1e-3, standardize=False)
    sweep.learn_inputs(bf.gram(X, bias=True), len(X), X, weighted=False)
    loss = sweep.sweep(Batch(X, T, None, len(X)))
    expected_loss, expected = swept(X, T, net.weights[:-1], [name] * len(widths), 2.0, 1e-3)
    assert loss == pytest.approx(expected_loss, rel=1e-9)
    # Halved where the whole step would have raised the loss.
    whole = [W - start for W, start in zip(expected, net.weights, strict=False)]
    taken = [W - start for W, start in zip(sweep.hidden, net.weights, strict=False)]
    share = np.vdot(taken[0], whole[0]) / np.vdot(whole[0], whole[0])
    assert any(share == pytest.approx(0.5**k, rel=1e-4) for k in range(6))
    for one, other in zip(taken, whole, strict=True):
        np.testing.assert_allclose(one, share * other, rtol=2e-4, atol=1e-5 * np.abs(other).max())


def test_slopes_of_some_rows_are_a_fair_sample_of_sorted_ones(monkeypatch):
    random = np.random.default_rng(3)
    X = np.sort(random.normal(size=(400, 1)), axis=0) + 0.1 * random.normal(size=(400, 4))
    T = np.tanh(X[:, :2])
    net = bf.Network([4, 7, 5, 2], activation="relu", output_activation="identity", seed=1)
    net.weights = scaled_start(net, Samples(X, T, None, None), random)
    hidden = []
    for most in (400, 100):
        monkeypatch.setattr(sweep_module, "SLOPE_ROWS", most)
        context = FitContext("test", 2.0, phases=PHASES)
        sweep = RefinedSweep(net, context, output_eps=1e-3, standardize=False)
        sweep.learn_inputs(bf.gram(X, bias=True), len(X), X, weighted=False)
        sweep.sweep(Batch(X, T, None, len(X)))
        hidden.append(sweep.hidden)
    for one, other, start in zip(*hidden, net.weights, strict=False):
        assert not np.array_equal(one, other)
        assert np.linalg.norm(one - other) < 0.1 * np.linalg.norm(one - start)


@pytest.mark.parametrize(("trial", "used"), [(300, 300), (50, 400)])
def test_slopes_are_of_the_rows_for_trial_unless_these_are_few(trial, used, monkeypatch):
    seen, gram = [], sweep_module.gram
    monkeypatch.setattr(
        sweep_module,
        "gram",
        lambda A, *rest, **given: seen.append(A) or gram(A, *rest, **given),
    )
    X = np.random.default_rng(3).normal(size=(400, 4))
    net = bf.Network([4, 7, 5, 2], activation="relu", output_activation="identity", seed=1)
    context = FitContext("test", 2.0, phases=PHASES)
    sweep = RefinedSweep(net, context, output_eps=1e-3, standardize=False)
    sweep.learn_inputs(bf.gram(X, bias=True), len(X), X, weighted=False)
    sweep.sweep(Batch(X, np.tanh(X[:, :2]), None, trial))
    of_slopes = [A.shape for A in seen if set(np.unique(A)) <= {0.0, 1.0}]
    assert of_slopes == [(used, 5), (used, 7)]


@pytest.mark.parametrize("name", HIDDEN)
def test_the_start_spreads_pre_activations_alike(name):
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 4)) * [1, 10, 100, 1000] + 50
    net = bf.Network([4, 9, 7, 2], name, seed=0)
    A = X
    for W in scaled_start(net, Samples(X, X[:, :2], None, None), random)[:-1]:
        Z = with_ones(A, True) @ W
        spread = SOFTMAX_SPREAD if name == "softmax" else 1.0
        np.testing.assert_allclose(Z.std(axis=0), spread, rtol=1e-6)
        assert np.abs(Z.mean(axis=0)).max() <= OFFSET * spread
        assert np.abs(Z.mean(axis=0)).max() > 0.1 * spread
        A = ACTIVATIONS[name](Z)
