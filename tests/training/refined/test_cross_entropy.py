"""Cross-entropy sweeps: against the same sweeps in NumPy, and what a fit promises."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Batch
from bpls_fast.training.refined.cross_entropy import (
    DAMPING,
    HALVINGS,
    LENGTH_RIDGE,
    SHORTER,
    CrossEntropySweep,
)
from bpls_fast.training.refined.running import PHASES
from tests.support import reference_cross_entropy
from tests.support.reference import ACTIVATIONS, same_bits
from tests.support.reference_cross_entropy import Problem
from tests.support.reference_refined import Unclear
from tests.support.required import real_table
from tests.support.samples import rings
from tests.support.subprocesses import assert_same_output_at_every_thread_count

HIDDEN = ["sigmoid", "tanh", "relu", "leaky_relu", "elu", "softplus", "softmax"]
WIDTHS = [(), (5,), (5, 4), (6, 5, 4)]
SEEDS = range(4)
SWEEPS = 4
ROWS, EPS, DECAY = 60, 0.3, 1e-2


def random_problem(seed, names, *, bias=True, weighted=False, standardize=False, **options):
    random = np.random.default_rng(seed)
    X = random.normal(size=(ROWS, 3)) * [0.7, 1.0, 1.5] + 0.2
    labels = (np.sin(3 * X @ random.normal(size=(3, 3)))).argmax(axis=1)
    w = random.uniform(0.2, 2, ROWS) if weighted else np.ones(ROWS)
    constants = {"damping": DAMPING, "length_ridge": LENGTH_RIDGE, "halvings": HALVINGS}
    T = np.eye(3)[labels]
    return Problem(X, T, w, names, bias, EPS, DECAY, standardize, **constants, **options)


def network(problem, widths, seed):
    return bf.Network([3, *widths, 3], problem.names or "tanh", bias=problem.bias, seed=seed)


def fitted(problem, widths, seed, X=None, sweeps=SWEEPS):
    net = network(problem, widths, seed)
    report = bf.fit_refined(
        net,
        problem.X if X is None else X,
        problem.T.argmax(axis=1),
        loss="cross_entropy",
        max_sweeps=sweeps,
        eps=problem.eps,
        decay=problem.decay,
        start="network",
        standardize=problem.standardize,
        tol=0,
        sample_weight=None if (problem.w == 1).all() else problem.w,
    )
    return net, report


def assert_same_sweeps(weights, losses, expected, rtol=1e-5):
    np.testing.assert_allclose(losses, expected.losses, rtol=rtol)
    for W, V in zip(weights, expected.weights, strict=True):
        np.testing.assert_allclose(W, V, rtol=0, atol=rtol * np.abs(V).max())


# ---- the formulas


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_sweeps_are_what_numpy_makes_of_the_formulas(name, widths, weighted, standardize):
    compared = 0
    for seed in SEEDS:
        names = [name] * len(widths)
        problem = random_problem(seed, names, weighted=weighted, standardize=standardize)
        try:
            expected = reference_cross_entropy.sweeps(
                problem, network(problem, widths, seed).weights, SWEEPS
            )
        except Unclear:
            continue
        net, report = fitted(problem, widths, seed)
        assert_same_sweeps(net.weights, report.loss, expected)
        compared += 1
    assert compared >= 3


@pytest.mark.parametrize("seed", SEEDS)
def test_layers_of_several_activations_and_no_bias_are_swept_alike(seed):
    problem = random_problem(seed, ["softmax", "relu", "tanh"], bias=False, weighted=True)
    net, report = fitted(problem, (6, 5, 4), seed)
    weights = network(problem, (6, 5, 4), seed).weights
    expected = reference_cross_entropy.sweeps(problem, weights, SWEEPS)
    assert_same_sweeps(net.weights, report.loss, expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
def test_sweeps_over_chunks_find_and_try_shorter_moves_on_the_trial_rows(widths, weighted):
    names = ["sigmoid"] * len(widths)
    problem = random_problem(3, names, weighted=weighted, shorter=SHORTER, trial=20)
    net = network(problem, widths, 0)
    context = FitContext("test", EPS, phases=PHASES)
    sweep = CrossEntropySweep(net, context, decay=DECAY, standardize=False)
    w = problem.w if weighted else None
    G = bf.gram(problem.X, bias=True, sample_weight=w)
    sweep.learn_inputs(G, problem.w.sum(), problem.X, weighted)
    batch = Batch(problem.X, problem.T, w, problem.trial, problem.T.argmax(axis=1))
    losses = [sweep.sweep(batch) for _ in range(SWEEPS)]
    expected = reference_cross_entropy.sweeps(problem, net.weights, SWEEPS)
    # Slopes of so few trial rows are averaged over all rows, as in the reference.
    assert_same_sweeps(sweep.weights, losses, expected)


def test_inputs_that_are_learnt_anew_change_the_penalty_of_the_same_weights():
    problem = random_problem(4, ["tanh"])
    net = network(problem, (5,), 0)
    context = FitContext("test", EPS, phases=PHASES)
    sweep = CrossEntropySweep(net, context, decay=DECAY, standardize=True)
    batch = Batch(problem.X, problem.T, None, len(problem.X), problem.T.argmax(axis=1))
    sweep.learn_inputs(bf.gram(problem.X, bias=True), len(problem.X), problem.X, False)
    sweep.sweep(batch)
    before = sweep.forward(batch).penalty
    sweep.learn_inputs(bf.gram(3 * problem.X, bias=True), len(problem.X), problem.X, False)
    fresh = CrossEntropySweep(
        net.with_weights(sweep.weights), context, decay=DECAY, standardize=True
    )
    fresh.learn_inputs(bf.gram(3 * problem.X, bias=True), len(problem.X), problem.X, False)
    assert sweep.forward(batch).penalty == fresh.forward(batch).penalty != before


@pytest.mark.parametrize("name", ["sigmoid", "elu", "softmax"])
def test_a_sweep_in_float32_is_that_of_numpy_up_to_rounding(name):
    X = np.random.default_rng(1).integers(0, 256, (ROWS, 3), dtype=np.uint8)
    problem = random_problem(1, [name] * 2)._replace(X=X / 255)
    expected = reference_cross_entropy.sweeps(problem, network(problem, (5, 4), 1).weights, 1)
    for rows in (X, np.divide(X, 255, dtype=np.float32)):
        net, report = fitted(problem, (5, 4), 1, rows, sweeps=1)
        assert_same_sweeps(net.weights, report.loss, expected, rtol=1e-3)


def test_the_problems_of_these_tests_need_shorter_moves():
    halved = 0
    for seed in SEEDS:
        for name in ("relu", "softplus", "elu"):
            problem = random_problem(seed, [name] * 2)
            weights = network(problem, (5, 4), seed).weights
            halved += reference_cross_entropy.sweeps(problem, weights, SWEEPS).halved
    assert halved >= 3


@pytest.mark.parametrize("name", [name for name in ACTIVATIONS if name != "identity"])
def test_the_gradient_is_that_of_the_loss(name):
    """Check that the reference pulls back the derivative of the loss, penalty included."""
    problem = random_problem(0, [name] * 2, weighted=True, standardize=True)
    weights = network(problem, (5, 4), 0).weights
    decays = reference_cross_entropy.decays(problem, weights)
    gradients, steps = reference_cross_entropy.gradients_and_steps(problem, weights, decays)
    for layer, step in enumerate(steps):
        losses = []
        for h in (1e-6, -1e-6):
            moved = [W.copy() for W in weights]
            moved[layer] += h * step / np.abs(step).max()
            losses.append(reference_cross_entropy.loss_of(problem, moved, decays))
        slope = (losses[1] - losses[0]) / 2e-6
        expected = np.sum(gradients[layer] * step) / np.abs(step).max()
        assert slope == pytest.approx(expected, rel=1e-4)


# ---- what every fit promises


def fit(net, x, y, **options):
    return bf.fit_refined(net, x, y, loss="cross_entropy", **options)


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("widths", [(20,), (20, 15), (20, 15, 10)])
def test_every_activation_learns_at_any_depth_from_saturated_weights(name, widths):
    x, y = rings(1500)
    net = bf.Network([2, *widths, 3], activation=name, seed=0, low=-30.0, high=30.0)
    fit(net, x, y, max_sweeps=60)
    assert np.mean(net.predict(x) == y) > 0.9


@pytest.mark.parametrize("decay", [0.0, 1e-2])
@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_never_rises_from_sweep_to_sweep_over_the_same_rows(name, seed, decay):
    x, y = rings(200, seed)
    net = bf.Network([2, 8, 6, 3], activation=name, seed=seed)
    report = fit(net, x, y, max_sweeps=25, tol=0, decay=decay)
    assert len(report.loss) > 3
    assert (np.diff(report.loss) <= 0).all()


def test_the_bits_do_not_depend_on_the_process_or_its_threads():
    code = """
        import hashlib
        import numpy as np
        import bpls_fast as bf
        random = np.random.default_rng(0)
        x = random.integers(0, 256, (9000, 50), dtype=np.uint8)
        y = (x[:, :5].sum(axis=1) > x[:, 5:10].sum(axis=1)).astype(int) + 2 * (x[:, 20] > 99)
        for kind in (np.uint8, np.float32):
            for rows in (9000, 3000):
                net = bf.Network([50, 20, 10, 4], activation="tanh", seed=0)
                bf.fit_refined(net, x[:rows].astype(kind), y[:rows], max_sweeps=8, loss="cross_entropy")
                print(hashlib.sha256(b"".join(W.tobytes() for W in net.weights)).hexdigest())
    """
    assert_same_output_at_every_thread_count(code)


def test_weights_are_repetitions_and_none_is_as_if_the_row_were_not_there():
    x, y = rings(120)
    counts = np.random.default_rng(0).integers(0, 4, len(x))
    nets = []
    for rows, labels, weights in (
        (x, y, 3.0 * counts / 3),
        (np.repeat(x, counts, axis=0), np.repeat(y, counts), None),
        (x[counts > 0], y[counts > 0], counts[counts > 0]),
    ):
        nets.append(bf.Network([2, 12, 8, 3], activation="tanh", seed=0))
        fit(nets[-1], rows, labels, sample_weight=weights, max_sweeps=4)
    for net in nets[1:]:
        np.testing.assert_allclose(net.forward(x), nets[0].forward(x), rtol=1e-6, atol=1e-8)


def test_a_class_that_weighs_more_is_missed_less():
    x, y = rings(1000)
    noisy = np.where(np.random.default_rng(1).random(len(y)) < 0.3, 0, y)
    shares = []
    for class_weight in (None, {2: 20.0}):
        net = bf.Network([2, 10, 3], activation="tanh", seed=0)
        fit(net, x, noisy, class_weight=class_weight)
        shares.append(np.mean(net.predict(x)[y == 2] == 2))
    assert shares[1] > shares[0]


def test_bytes_are_learnt_as_floats_between_0_and_1_are():
    x = np.random.default_rng(0).integers(0, 256, (600, 30), dtype=np.uint8)
    y = (x[:, :3].sum(axis=1) > 380).astype(int)
    nets = []
    for rows in (x, x.astype(np.float32) / np.float32(255)):
        nets.append(bf.Network([30, 10, 2], activation="tanh", seed=0))
        fit(nets[-1], rows, y, max_sweeps=5)
    p, q = nets[0].forward(x), nets[1].forward(x.astype(np.float32) / np.float32(255))
    np.testing.assert_allclose(p, q, atol=2e-3)


def test_units_and_offsets_of_standardized_columns_change_neither_steps_nor_penalty():
    x, y = rings(300)
    units, offsets = np.array([1e-4, 1e5]), np.array([3e-4, 3e5])
    net = bf.Network([2, 10, 3], activation="tanh", seed=0)
    first, output = net.weights
    other_first = first / np.r_[units, 1][:, np.newaxis]
    other_first[-1] -= offsets @ other_first[:-1]
    outputs = []
    for rows, W in ((x, first), (x * units + offsets, other_first)):
        net.weights = [W, output]
        fit(net, rows, y, standardize=True, decay=0.1, start="network", max_sweeps=6)
        outputs.append(net.forward(rows))
    np.testing.assert_allclose(*outputs, rtol=1e-6, atol=1e-8)


def test_a_larger_decay_gives_smaller_weights():
    x, y = rings(400)
    sizes = []
    for decay in (0.0, 1e-3, 1e-1):
        net = bf.Network([2, 15, 3], activation="tanh", seed=0)
        fit(net, x, y, decay=decay, max_sweeps=40)
        sizes.append(sum(np.square(W[:-1]).sum() for W in net.weights))
    assert sizes[0] > sizes[1] > sizes[2]


def test_the_mean_probability_of_a_class_is_its_share_of_the_rows():
    x, y = rings(3000)
    noisy = np.where(np.random.default_rng(2).random(len(y)) < 0.2, (y + 1) % 3, y)
    net = bf.Network([2, 20, 3], activation="tanh", seed=0)
    fit(net, x, noisy)
    p = net.forward(x)
    np.testing.assert_allclose(p.mean(axis=0), np.bincount(noisy) / len(noisy), atol=0.01)
    assert p.max(axis=1).mean() == pytest.approx(np.mean(p.argmax(axis=1) == noisy), abs=0.03)


def test_without_hidden_layers_it_is_logistic_regression():
    linear_model = pytest.importorskip("sklearn.linear_model", reason="it needs scikit-learn")
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 4))
    y = (X @ random.normal(size=(4, 3)) + random.gumbel(size=(500, 3))).argmax(axis=1)
    net = bf.Network([4, 3])
    decay = 1e-2
    fit(net, X, y, decay=decay, max_sweeps=60, tol=0)
    model = linear_model.LogisticRegression(C=1 / (decay * len(X)), tol=1e-9, max_iter=1000)
    np.testing.assert_allclose(net.forward(X), model.fit(X, y).predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_very_few_rows_are_learnt_by_heart(rows):
    x, y = np.eye(3)[:rows], np.arange(rows)
    net = bf.Network([3, 5, 3], activation="tanh", seed=0)
    fit(net, x, y)
    assert (net.predict(x) == y).all()


def test_columns_that_do_not_vary_are_no_harm():
    x, y = rings(200)
    x = np.c_[x, np.zeros(200), np.full(200, 3.0), x[:, 0]]
    for standardize in (False, True):
        net = bf.Network([5, 10, 3], activation="relu", seed=0)
        fit(net, x, y, standardize=standardize, max_sweeps=20)
        assert np.mean(net.predict(x) == y) > 0.8


def test_numbers_that_grow_too_large_end_the_fit_and_leave_finite_weights():
    x, y = rings(300)
    net = bf.Network([2, 10, 3], activation="relu", seed=0)
    fit(net, x * 1e150, y, max_sweeps=5)
    assert all(np.isfinite(W).all() for W in net.weights)


def test_a_network_can_be_trained_further():
    x, y = rings(800)
    net = bf.Network([2, 15, 3], activation="tanh", seed=0)
    first = fit(net, x, y, max_sweeps=6)
    again = fit(net, x, y, max_sweeps=6, start="network")
    assert again.loss[0] <= first.loss[-1]


def test_wide_bytes_are_learnt_by_their_components():
    random = np.random.default_rng(0)
    hidden = random.normal(size=(6000, 8))
    X = 128 + 12 * hidden @ random.normal(size=(8, 96)) + random.normal(size=(6000, 96))
    X = X.clip(0, 255).astype(np.uint8)
    labels = (hidden[:, 0] * hidden[:, 1] > 0).astype(int) + 2 * (hidden[:, 2] > 0)
    net = bf.Network([96, 20, 4], activation="tanh", seed=1)
    fit(net, X, labels, max_passes=10)
    assert net.layer_sizes[0] == 96
    assert np.mean(net.predict(X) == labels) > 0.9


def test_the_same_seed_gives_the_same_bits_and_another_another_order():
    x, y = rings(12_000)
    weights = []
    for seed in (0, 0, 1):
        net = bf.Network([2, 10, 3], activation="tanh", seed=0)
        fit(net, x, y, max_sweeps=5, seed=seed)
        weights.append(net.weights[0])
    assert same_bits(weights[0], weights[1])
    assert not same_bits(weights[0], weights[2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss is 'hinge'; expected 'squared', 'cross_entropy' or 'auto'"),
        ({"output_eps": 0.1}, "output_eps is 0.1; expected None with loss='cross_entropy'"),
        ({"decay": -1.0}, "decay is -1.0; expected a finite number >= 0"),
        ({"decay": 0.1, "loss": "squared"}, "decay is 0.1; expected None with loss='squared'"),
    ],
)
def test_wrong_options_are_named(options, message):
    x, y = rings(60)
    with pytest.raises(ValueError, match=message):
        bf.fit_refined(bf.Network([2, 5, 3]), x, y, **{"loss": "cross_entropy", **options})


def test_the_cross_entropy_is_that_of_labels_and_softmax_outputs():
    x, y = rings(60)
    with pytest.raises(ValueError, match="the outputs are sigmoid; expected softmax outputs"):
        fit(bf.Network([2, 5, 3], output_activation="sigmoid"), x, y)
    with pytest.raises(ValueError, match="Y holds numbers; expected a label for each row"):
        fit(bf.Network([2, 5, 3]), x, np.full((60, 3), 1 / 3))


# ---- real data


def test_many_classes_are_fitted_better_than_by_the_squared_loss():
    X, y = real_table("cls_letter")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    scores = []
    for options in ({"loss": "squared"}, {"loss": "cross_entropy"}):
        net = bf.Network([16, 100, 26], activation="relu", seed=0)
        bf.fit_refined(net, X[:14_000], y[:14_000], max_passes=20, **options)
        scores.append(np.mean(net.predict(X[14_000:]) == y[14_000:]))
    assert scores[1] > 0.93
    assert scores[1] > scores[0] + 0.02
