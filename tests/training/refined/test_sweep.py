"""Refined sweeps against the same sweeps in NumPy: every activation, one to three hidden layers, weights, bytes."""

import itertools

import numpy as np
import pytest

import bpls_fast as bf
import bpls_fast.training.refined.layers as layers_module
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Batch, Samples
from bpls_fast.training.refined.running import PHASES
from bpls_fast.training.refined.start import scaled_start
from bpls_fast.training.refined.sweep import (
    CHUNK_CONJUGACY,
    CONJUGACY,
    DAMPING,
    HALVINGS,
    UPPER_RIDGE,
    RefinedSweep,
)
from tests.support import reference_refined
from tests.support.reference import ACTIVATIONS, with_ones
from tests.support.reference_refined import Problem, Unclear

HIDDEN = ["sigmoid", "tanh", "relu", "leaky_relu", "elu", "softplus", "softmax"]
WIDTHS = [(5,), (5, 4), (6, 5, 4)]
SEEDS = range(4)
SWEEPS = 3
ROWS, EPS, OUTPUT_EPS = 50, 0.3, 1e-5


def random_problem(seed, names, *, bias=True, weighted=False, standardize=False):
    random = np.random.default_rng(seed)
    X = random.normal(size=(ROWS, 3)) * [0.7, 1.0, 1.5] + 0.2
    T = np.sin(3 * X @ random.normal(size=(3, 2)))
    w = random.uniform(0.2, 2, ROWS) if weighted else np.ones(ROWS)
    constants = (DAMPING, CONJUGACY, HALVINGS)
    return Problem(X, T, w, names, bias, EPS, OUTPUT_EPS, standardize, *constants)


def network(problem, widths, seed):
    inputs, outputs = problem.X.shape[1], problem.T.shape[1]
    return bf.Network(
        [inputs, *widths, outputs], problem.names, "identity", bias=problem.bias, seed=seed
    )


def swept_by_both(problem, widths, seed, X=None, sweeps=SWEEPS):
    """Return the network and the report of a fit, and what NumPy makes of the same start."""
    net = network(problem, widths, seed)
    expected = reference_refined.sweeps(problem, [W.copy() for W in net.weights[:-1]], sweeps)
    report = bf.fit_refined(
        net,
        problem.X if X is None else X,
        problem.T,
        max_sweeps=sweeps,
        eps=problem.eps,
        output_eps=problem.output_eps,
        start="network",
        standardize=problem.standardize,
        tol=0,
        sample_weight=None if (problem.w == 1).all() else problem.w,
    )
    return net, report, expected


def assert_same_sweeps(net, report, expected, rtol=1e-5):
    """Compare losses and weights; a sweep passes differences of rounding on to the next, magnified."""
    np.testing.assert_allclose(report.loss, expected.losses, rtol=rtol)
    for W, V in zip(net.weights, [*expected.hidden, expected.W], strict=True):
        np.testing.assert_allclose(W, V, rtol=0, atol=rtol * np.abs(V).max())


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_sweeps_are_what_numpy_makes_of_the_formulas(name, widths, weighted, standardize):
    options = {"weighted": weighted, "standardize": standardize}
    compared = 0
    for seed in SEEDS:
        problem = random_problem(seed, [name] * len(widths), **options)
        try:
            results = swept_by_both(problem, widths, seed)
        except Unclear:
            continue
        assert_same_sweeps(*results)
        compared += 1
    assert compared >= 3


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_layers_of_several_activations_and_no_bias_are_swept_alike(seed, weighted, standardize):
    names = ["softmax", "relu", "tanh"]
    problem = random_problem(seed, names, bias=False, weighted=weighted, standardize=standardize)
    assert_same_sweeps(*swept_by_both(problem, (6, 5, 4), seed))


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize("name", ["sigmoid", "elu", "softmax"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_sweep_in_float32_is_that_of_numpy_up_to_rounding(dtype, name, widths):
    problem = random_problem(1, [name] * len(widths))
    X = np.random.default_rng(1).integers(0, 256, (ROWS, 3), dtype=np.uint8)
    if dtype == np.float32:
        X = np.divide(X, 255, dtype=np.float32)
    wide = X / 255.0 if dtype == np.uint8 else X.astype(np.float64)
    problem = problem._replace(X=wide, T=np.sin(9 * wide[:, :2]), output_eps=1e-2)
    net, report, expected = swept_by_both(problem, widths, 1, X, sweeps=1)
    # The system of the lengths has a condition of some ten thousands, by which it multiplies the 1e-7 of float32.
    assert_same_sweeps(net, report, expected, rtol=5e-3)


def test_the_problems_of_these_tests_need_conjugate_directions_and_shorter_steps():
    conjugated = halved = 0
    for seed, widths, name in itertools.product(SEEDS, WIDTHS, ["tanh", "relu", "softplus"]):
        problem = random_problem(seed, [name] * len(widths))
        net = network(problem, widths, seed)
        swept = reference_refined.sweeps(problem, net.weights[:-1], SWEEPS)
        conjugated += swept.conjugated
        halved += swept.halved
    assert conjugated >= 5
    assert halved >= 5


@pytest.mark.parametrize("name", [name for name in ACTIVATIONS if name != "identity"])
def test_the_gradient_is_that_of_the_loss_with_its_output_layer_solved(name):
    """Check that the reference pulls back the derivative of the loss, variable projection and ridge included."""
    problem = random_problem(0, [name] * 2, weighted=True)
    hidden = [W.copy() for W in network(problem, (5, 4), 0).weights[:-1]]
    # A ridge that moves with the features has a derivative of its own, which the method leaves out.
    problem = problem._replace(output_eps=0.0)
    state = reference_refined.state_of(problem, hidden)
    gradients, steps = reference_refined.gradients_and_steps(problem, hidden, state)
    for layer, step in enumerate(steps):
        losses = []
        for h in (1e-6, -1e-6):
            moved = [W.copy() for W in hidden]
            moved[layer] += h * step / np.abs(step).max()
            losses.append(reference_refined.state_of(problem, moved).loss)
        slope = (losses[1] - losses[0]) / 4e-6 / problem.w.sum()
        expected = np.sum(gradients[layer] * step) / np.abs(step).max()
        assert slope == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("chunks", [False, True])
def test_directions_keep_less_of_those_of_other_rows(chunks):
    random = np.random.default_rng(0)
    problem = random_problem(0, ["tanh"])
    context = FitContext("test", EPS, phases=PHASES)
    sweep = RefinedSweep(
        network(problem, [6], 0), context, output_eps=OUTPUT_EPS, standardize=False
    )
    sweep.learn_inputs(bf.gram(problem.X, bias=True), ROWS, problem.X, weighted=False)
    rows = Batch(problem.X, problem.T, None, ROWS // 4 if chunks else ROWS)
    sweep.sweep(rows)
    (last,) = sweep._directions
    # A slope of nearly nothing before makes the part that Polak and Ribière keep as large as can be.
    sweep._slope = 1e-9
    sweep._gradients = [np.zeros_like(last)]
    sweep._directions = [random.normal(size=last.shape) * 1e-6 * np.abs(last).max()]
    kept = sweep._directions[0]
    steps = []
    find_steps = sweep._hidden_steps
    sweep._hidden_steps = lambda *given: steps.append(find_steps(*given)) or steps[-1]
    sweep.sweep(rows)
    (direction,) = sweep._directions
    most = CHUNK_CONJUGACY if chunks else CONJUGACY
    np.testing.assert_allclose(direction, steps[0][1][0] + most * kept, rtol=1e-12)


# The first sweep from a scaled start, by formulas with derivatives from differences.


def times_jacobian(name, Z, V):
    """Compute J V by differences of the activation, in float64."""
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
    """Return the loss before a first sweep over all rows, and the hidden weights after it."""
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
    taken = [W - start for W, start in zip(sweep.weights, net.weights, strict=False)]
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
        monkeypatch.setattr(layers_module, "SLOPE_ROWS", most)
        context = FitContext("test", 2.0, phases=PHASES)
        sweep = RefinedSweep(net, context, output_eps=1e-3, standardize=False)
        sweep.learn_inputs(bf.gram(X, bias=True), len(X), X, weighted=False)
        sweep.sweep(Batch(X, T, None, len(X)))
        hidden.append(sweep.weights)
    for one, other, start in zip(*hidden, net.weights, strict=False):
        assert not np.array_equal(one, other)
        assert np.linalg.norm(one - other) < 0.1 * np.linalg.norm(one - start)


@pytest.mark.parametrize(("trial", "used"), [(300, 300), (50, 400)])
def test_slopes_are_of_the_rows_for_trial_unless_these_are_few(trial, used, monkeypatch):
    seen, gram = [], layers_module.gram
    monkeypatch.setattr(
        layers_module,
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
