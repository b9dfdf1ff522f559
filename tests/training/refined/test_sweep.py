"""Refined sweeps against the same sweeps in NumPy: every activation, one to three hidden layers, weights, bytes."""

import itertools

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Batch
from bpls_fast.training.refined.fit import PHASES
from bpls_fast.training.refined.sweep import (
    CHUNK_CONJUGACY,
    CONJUGACY,
    DAMPING,
    HALVINGS,
    RefinedSweep,
)
from tests.support import reference_refined
from tests.support.reference import ACTIVATIONS
from tests.support.reference_refined import Problem, Unclear

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
    """Give the network and the report of a fit, and what NumPy makes of the same start."""
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
    """What the reference pulls back is the derivative of the loss, variable projection and ridge included."""
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
    find_steps = sweep._steps
    sweep._steps = lambda *given: steps.append(find_steps(*given)) or steps[-1]
    sweep.sweep(rows)
    (direction,) = sweep._directions
    most = CHUNK_CONJUGACY if chunks else CONJUGACY
    np.testing.assert_allclose(direction, steps[0][1][0] + most * kept, rtol=1e-12)
