"""Algorithm 1: against plain NumPy, on the paper's toy problems, on degenerate data, and what it refuses."""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

import bpls_fast as bf
import bpls_fast.training.solvers
from bpls_fast.training.bpls.backward_sweep import BackwardSweep
from bpls_fast.training.solvers import pseudo_inverse
from tests.support import reference_bpls
from tests.support.degenerate import DATA, SCALES, assert_trains_or_refuses
from tests.support.reference import ACTIVATIONS
from tests.support.subprocesses import assert_same_output_at_every_thread_count

NAMES = list(ACTIVATIONS)
# Their targets are of moderate size, and layers do not depend linearly on each other: rounding stays small.
BOUNDED = ["sigmoid", "tanh", "softmax"]
CHOICES = ["mean", "last", "cyclic", "least_squares", "damped"]


def names_of(net):
    return [activation.name for activation in net.activations]


def predictions(weights, names, bias, X):
    return reference_bpls.layer_inputs(weights, names, bias, X)[-1]


# Beside plain NumPy.


@given(
    hidden=st.lists(st.integers(2, 5), max_size=3),
    names=st.lists(st.sampled_from(BOUNDED), min_size=3, max_size=3),
    output=st.sampled_from(["identity", *BOUNDED]),
    bias=st.booleans(),
    weighted=st.booleans(),
    target=st.sampled_from(["joint", *CHOICES]),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_sweep_gives_the_weights_of_plain_numpy(
    hidden, names, output, bias, weighted, target, seed
):
    rng = np.random.default_rng(seed)
    names = [*names[: len(hidden)], output]
    net = bf.Network([3, *hidden, 2], names[:-1], names[-1], bias, seed=rng)
    X, Y = rng.normal(size=(40, 3)), rng.uniform(0.1, 0.9, (40, 2))
    sample_weight = rng.uniform(0.1, 2, 40) if weighted else None
    start, margins = net.weights, [0.05] * len(hidden)
    B = reference_bpls.inverse(names[-1], Y, 1e-15)

    def plain(X):
        options = {"choice": target, "refinements": 2}
        try:
            return reference_bpls.sweep(start, names, bias, X, B, margins, sample_weight, **options)
        except reference_bpls.IllConditionedError:
            reject()

    # Layers may be ill-conditioned, each worse than the one above. The plain answer tells how much that is: by how far
    # it moves with the tenth digit of X. Our W⁺ has a ridge of 1e-13 beside squared singular values of 1e-8 at least.
    expected, moved = plain(X), plain(X * (1 + 1e-10 * rng.normal(size=X.shape)))
    wanted = predictions(expected, names, bias, X)
    shake = np.abs(predictions(moved, names, bias, X) - wanted).max()
    assume(shake < 1e-5)
    options = {"target": "joint"}
    if target != "joint":
        options = {"target": "per_output", "choose_output": target}
    report = bf.fit_injective(
        net, X, Y, safeguard=False, margin=0.05, sample_weight=sample_weight, **options
    )
    got = net.forward(X)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4 + 100 * shake)
    if "softmax" not in names:  # which has many weights that predict the same
        for W, V, V_moved in zip(net.weights, expected, moved, strict=True):
            allowed = 1e-4 * np.abs(V).max() + 100 * np.abs(V - V_moved).max()
            np.testing.assert_allclose(W, V, rtol=0, atol=allowed)
    assert report.loss == pytest.approx([root_mean_square(got - Y, sample_weight)], rel=1e-9)
    assert report.stopped == "one sweep"
    assert report.iterations == 1


def root_mean_square(errors, sample_weight=None):
    return np.sqrt(np.average((errors**2).mean(axis=1), weights=sample_weight))


def test_the_safeguard_keeps_the_best_of_three_candidates():
    rng = np.random.default_rng(0)
    kept = set()
    for seed in range(40):
        net = bf.Network([2, 4, 1], "sigmoid", "identity", seed=seed)
        X, Y = rng.normal(size=(25, 2)), rng.normal(size=(25, 1))
        start = net.weights
        names = ["sigmoid", "identity"]
        swept = reference_bpls.sweep(start, names, True, X, Y, [0.01], refinements=2)

        def solved_again(hidden, X=X, Y=Y, names=names):
            A = predictions(hidden, names[:1], True, X)
            return [*hidden, reference_bpls.solve(A, Y, True, None, refinements=2)]

        candidates = [swept, solved_again(swept[:1]), solved_again(start[:1])]
        losses = [root_mean_square(predictions(w, names, True, X) - Y) for w in candidates]
        report = bf.fit_injective(net, X, Y)
        assert report.loss == pytest.approx(losses, rel=1e-6)
        assert report.best == np.argmin(report.loss)
        assert root_mean_square(net.forward(X) - Y) == pytest.approx(min(losses), rel=1e-6)
        kept.add(report.best)
    assert kept >= {1, 2}


def test_a_network_without_hidden_layers_has_one_candidate():
    X = np.random.default_rng(0).normal(size=(9, 2))
    net = bf.Network([2, 1], output_activation="identity")
    report = bf.fit_injective(net, X, X[:, 0])
    assert len(report.loss) == 1
    assert report.stopped == "one sweep"


# The paper's toy problems: two functions of x and a constant input, three hidden neurons.

TOY_TRAIN = np.column_stack([np.arange(1.0, 10, 2), np.ones(5)])
TOY_TEST = np.column_stack([np.arange(2.0, 11, 2), np.ones(5)])


def lines(X):
    return np.column_stack([-X[:, 0] / 3 + 2, 2 * X[:, 0] - 1])


def curves(X):
    x = X[:, 0]
    return np.column_stack([1 / (1 + np.exp(np.log10(x**-1.5))), 1 / (1 + np.exp(x**-0.25))])


@pytest.mark.parametrize("safeguard", [True, False])
@pytest.mark.parametrize(
    "sigma",
    [
        0.1,
        pytest.param(0.0, marks=pytest.mark.thorough),
        pytest.param(1.0, marks=pytest.mark.thorough),
    ],
)
def test_on_the_linear_toy_problem_it_is_ordinary_least_squares(sigma, safeguard):
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        net = bf.Network([2, 3, 2], "identity", "identity", bias=False, seed=rng)
        Y = lines(TOY_TRAIN) + sigma * rng.normal(size=(5, 2))
        W = np.linalg.lstsq(TOY_TRAIN, Y, rcond=None)[0]
        bf.fit_injective(net, TOY_TRAIN, Y, safeguard=safeguard)
        np.testing.assert_allclose(net.forward(TOY_TRAIN), TOY_TRAIN @ W, rtol=0, atol=1e-8)
        np.testing.assert_allclose(net.forward(TOY_TEST), TOY_TEST @ W, rtol=0, atol=1e-8)


@given(
    hidden=st.lists(st.integers(4, 7), max_size=3),
    outputs=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_linear_network_of_any_depth_is_ordinary_least_squares(hidden, outputs, seed):
    rng = np.random.default_rng(seed)
    net = bf.Network([4, *hidden, outputs], "identity", "identity", bias=False, seed=rng)
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(30, outputs))
    W = np.linalg.lstsq(X, Y, rcond=None)[0]
    bf.fit_injective(net, X, Y)
    np.testing.assert_allclose(net.forward(X), X @ W, rtol=0, atol=1e-8)


def test_on_the_sigmoid_toy_problem_the_safeguarded_test_error_is_small():
    squares = {True: [], False: []}
    for seed in range(1000):
        for safeguard in squares:
            rng = np.random.default_rng(seed)
            net = bf.Network([2, 3, 2], "sigmoid", "sigmoid", bias=False, seed=rng)
            Y = curves(TOY_TRAIN) + 0.01 * rng.normal(size=(5, 2))
            bf.fit_injective(net, TOY_TRAIN, Y, safeguard=safeguard)
            # The paper's error of a run is the norm over all rows and outputs.
            squares[safeguard].append(((net.forward(TOY_TEST) - curves(TOY_TEST)) ** 2).sum())
    assert np.sqrt(np.mean(squares[True])) <= 0.075
    assert np.mean(squares[True]) < np.mean(squares[False])


# Data.


def wave(d=400, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 256, (d, 3)) if dtype == np.uint8 else rng.uniform(-1, 1, (d, 3))
    X = X.astype(dtype)
    scaled = X / 255 if dtype == np.uint8 else X
    return X, np.column_stack([np.sin(2 * scaled[:, 0]), scaled[:, 1] * scaled[:, 2]])


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_every_dtype_trains_two_outputs(dtype):
    X, Y = wave(dtype=dtype)
    net = bf.Network([3, 12, 2], "tanh", "identity")
    report = bf.fit_injective(net, X, Y)
    assert root_mean_square(net.forward(X) - Y) == pytest.approx(min(report.loss), rel=1e-4)
    assert min(report.loss) < 0.3 * Y.std()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hidden", [[20], [20, 10]])
def test_every_activation_beats_the_best_constant(name, hidden):
    X, Y = wave()
    net = bf.Network([3, *hidden, 2], name, "identity")
    report = bf.fit_injective(net, X, Y)
    assert min(report.loss) < 0.7 * root_mean_square(Y - Y.mean(axis=0))


@pytest.mark.parametrize("name", NAMES)
def test_every_output_activation_reaches_targets_in_its_range(name):
    X, _ = wave()
    wanted = ACTIVATIONS[name](X @ np.array([[1.0, -0.5], [0.3, 0.2], [0.1, 1.0]]))
    net = bf.Network([3, 2], output_activation=name)
    if name == "relu":  # where it is zero nobody can tell how far below zero the line is
        assert min(bf.fit_injective(net, X, wanted).loss) < 0.5 * wanted.std()
    else:
        assert min(bf.fit_injective(net, X, wanted).loss) < 1e-6


def test_the_network_trained_on_bytes_takes_the_same_numbers_as_floats():
    X, Y = wave(dtype=np.uint8)
    net = bf.Network([3, 10, 2], "tanh", "identity")
    bf.fit_injective(net, X, Y)
    assert net.input_scale == 1 / 255
    np.testing.assert_allclose(net.forward(X), net.forward(X.astype(float)), atol=1e-4)


def test_one_output_may_be_a_vector():
    X, Y = wave()
    column, vector = (bf.Network([3, 8, 1], "tanh", "identity") for _ in range(2))
    bf.fit_injective(column, X, Y[:, :1])
    bf.fit_injective(vector, X, Y[:, 0])
    assert column.weights[0].tobytes() == vector.weights[0].tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_weight_counts_like_copies_of_the_row(dtype):
    X, Y = wave(100)
    X = X.astype(dtype)
    times = np.random.default_rng(1).integers(0, 4, 100)
    weighted, repeated = (bf.Network([3, 8, 2], "tanh", "identity") for _ in range(2))
    a = bf.fit_injective(weighted, X, Y, sample_weight=times)
    b = bf.fit_injective(repeated, X.repeat(times, axis=0), Y.repeat(times, axis=0))
    tolerance = 1e-7 if dtype == np.float64 else 1e-2
    np.testing.assert_allclose(weighted.forward(X), repeated.forward(X), atol=tolerance)
    assert a.loss == pytest.approx(b.loss, rel=tolerance)


@pytest.mark.parametrize("factor", [2.0**-400, 2.0**-30, 2.0**1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_only_the_proportions_of_weights_matter(factor, dtype):
    X, Y = wave(100)
    weights = np.random.default_rng(1).integers(1, 9, 100) / 8
    nets = [bf.Network([3, 8, 2], "tanh", "identity") for _ in range(2)]
    for net, sample_weight in zip(nets, (weights, factor * weights), strict=True):
        bf.fit_injective(net, X.astype(dtype), Y, sample_weight=sample_weight)
    assert nets[0].weights[0].tobytes() == nets[1].weights[0].tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_no_copy_of_the_data_is_made(dtype, order):
    X = np.asarray(np.random.default_rng(0).integers(0, 2, (20_000, 60)), dtype=dtype, order=order)
    Y = X[:, :1].astype(np.float32 if dtype != np.float64 else np.float64)
    net = bf.Network([60, 2, 1], "tanh", "identity")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        bf.fit_injective(net, X, Y)
        most = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    narrow_arrays = 20_000 * 2 * 8 * 6  # values of the hidden layer, targets, errors
    assert most < min(X.nbytes, narrow_arrays)


# Degenerate data.


@pytest.mark.filterwarnings("ignore:eps = ")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", NAMES)
def test_degenerate_data_train(data, name, dtype):
    X, _ = DATA[data]
    rng = np.random.default_rng(0)
    for hidden in ([], [4], [6, 3]):
        for Y in (rng.normal(size=(len(X), 2)), np.full((len(X), 2), 0.3), np.zeros((len(X), 2))):
            net = bf.Network([X.shape[1], *hidden, 2], name, "identity")
            report = bf.fit_injective(net, X.astype(dtype), Y)
            assert all(np.isfinite(W).all() for W in net.weights)
            assert np.isfinite(report.loss[report.best])


@pytest.mark.filterwarnings("ignore:eps = ")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", NAMES)
def test_huge_and_tiny_numbers_train_or_are_refused(scale, name):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    for hidden in ([], [4], [6, 3]):
        for inputs, outputs in ((scale * X, Y), (X, scale * Y), (scale * X, scale * Y)):
            net = bf.Network([3, *hidden, 2], name, "identity")
            assert_trains_or_refuses(net, lambda n, x=inputs, y=outputs: bf.fit_injective(n, x, y))


def test_values_outside_the_range_of_the_output_activation_are_moved_into_it():
    X = np.linspace(-1, 1, 30)[:, np.newaxis]
    Y = np.where(X > 0, 2.0, -3.0)
    net = bf.Network([1, 6, 1], "tanh", "sigmoid")
    bf.fit_injective(net, X, Y)
    assert ((net.forward(X) > 0.5) == (X > 0)).mean() > 0.9


def test_an_error_too_large_for_a_float_is_refused():
    net = bf.Network([1, 1], output_activation="identity", bias=False)
    before = net.weights[0].copy()
    X = np.array([[1.0], [-1.0]])
    with pytest.raises(ValueError, match="too large"):
        bf.fit_injective(net, X, np.full((2, 1), 1e200))
    np.testing.assert_array_equal(net.weights[0], before)


def test_weights_that_are_not_finite_are_refused_as_too_large(monkeypatch):
    monkeypatch.setattr(BackwardSweep, "solve_inputs", lambda *_: np.full((2, 4), np.inf))
    net = bf.Network([1, 4, 1], "tanh", "identity")
    X = np.linspace(-1, 1, 9)[:, np.newaxis]
    with pytest.raises(ValueError, match=r"grew too large \(weights\[0\] holds NaN or infinity"):
        bf.fit_injective(net, X, X)


# eps.


def test_a_ridge_that_is_too_small_grows_warns_once_and_is_reported():
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 1)), 3, axis=1)
    net = bf.Network([3, 4, 1], "identity", "identity")
    with pytest.warns(RuntimeWarning, match=r"^eps = 0 was too small and grew to .*pivot") as seen:
        report = bf.fit_injective(net, X, X[:, 0], eps=0.0)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert report.eps > 0
    np.testing.assert_allclose(net.forward(X), X[:, :1], atol=1e-6)


def test_an_eps_that_serves_is_reported_as_it_was_given():
    X, Y = wave()
    net = bf.Network([3, 8, 2], "tanh", "identity")
    assert bf.fit_injective(net, X, Y, eps=1e-4).eps == 1e-4
    large = bf.Network([3, 8, 2], "tanh", "identity")
    report = bf.fit_injective(large, X, Y, eps=10.0)
    assert np.abs(large.weights[-1]).max() < np.abs(net.weights[-1]).max()
    assert report.eps == 10.0


def test_a_warning_that_is_an_error_leaves_the_network_as_it_was():
    X = np.ones((20, 3))
    net = bf.Network([3, 4, 1], "identity", "identity")
    before = [W.copy() for W in net.weights]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="eps"):
            bf.fit_injective(net, X, X[:, 0], eps=0)
    assert_untouched(net, before)


def test_a_system_that_no_ridge_can_save_is_an_error_and_leaves_the_network_alone(monkeypatch):
    tried = []

    def fail(G, C, *, eps, backend):
        tried.append(eps)
        raise np.linalg.LinAlgError("pivot 1 of 3 is -1")

    monkeypatch.setattr(bpls_fast.training.solvers, "solve", fail)
    X, Y = wave()
    net = bf.Network([3, 4, 2], "tanh", "identity")
    before = [W.copy() for W in net.weights]
    with pytest.raises(np.linalg.LinAlgError, match="pivot 1 of 3"):
        bf.fit_injective(net, X, Y)
    assert tried[0] == 1e-6
    assert tried[-1] >= 1e3
    assert len(tried) < 20
    assert_untouched(net, before)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4), (1, 1)])
def test_the_pseudo_inverse_is_that_of_the_singular_values(shape, size):
    W = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(size * pseudo_inverse(size * W), np.linalg.pinv(W), atol=1e-9)


@pytest.mark.parametrize("shape", [(1500, 1000), (1000, 1500), (3, 2)])
def test_the_pseudo_inverse_of_dependent_columns_closes_every_error_that_can_be_closed(shape):
    W = np.ones(shape)
    np.testing.assert_allclose(W @ pseudo_inverse(W) @ W, W, rtol=1e-6)
    np.testing.assert_array_equal(pseudo_inverse(0 * W), np.zeros(shape[::-1]))


# What is refused.


def assert_untouched(net, before):
    assert net.classes is None
    assert net.input_scale is None
    for W, old in zip(net.weights, before, strict=True):
        np.testing.assert_array_equal(W, old)


@pytest.mark.parametrize(
    ("arguments", "exception", "message"),
    [
        ({"net": "net"}, TypeError, "net is 'net'; expected a Network"),
        ({"X": np.zeros((5, 4))}, ValueError, "X has 4 columns; expected 3"),
        ({"X": np.zeros((0, 3)), "Y": np.zeros((0, 2))}, ValueError, "X has no rows"),
        ({"X": np.full((5, 3), np.nan)}, ValueError, r"X contains NaN at \[0, 0\]"),
        ({"X": np.zeros(5)}, ValueError, "X has 1 dimensions"),
        ({"Y": np.zeros((4, 2))}, ValueError, "Y has 4 rows; expected 5"),
        ({"Y": np.zeros((5, 3))}, ValueError, "Y has 3 columns; expected 2"),
        ({"Y": np.zeros((5, 2, 1))}, ValueError, "Y has 3 dimensions"),
        ({"Y": np.full((5, 2), np.inf)}, ValueError, r"Y contains infinity at \[0, 0\]"),
        ({"Y": np.full((5, 2), "a")}, TypeError, "Y has dtype"),
        (
            {"X": np.ones((5, 3), np.float32), "Y": np.full((5, 2), 1e39)},
            ValueError,
            "Y, as float32 like X, contains infinity",
        ),
        ({"sample_weight": np.ones(4)}, ValueError, r"sample_weight has shape \(4,\)"),
        ({"sample_weight": -np.ones(5)}, ValueError, "sample_weight has a negative weight"),
        ({"sample_weight": np.zeros(5)}, ValueError, "sample_weight.*no positive"),
        ({"sample_weight": np.full(5, np.nan)}, ValueError, "sample_weight contains NaN"),
        ({"sample_weight": ["a"] * 5}, TypeError, "sample_weight has dtype"),
        ({"eps": -1.0}, ValueError, "eps is -1.0"),
        ({"eps": np.nan}, ValueError, "eps is nan"),
        ({"eps": "small"}, TypeError, "eps is 'small'"),
        ({"safeguard": 1}, TypeError, "safeguard is 1"),
        ({"target": "both"}, ValueError, "target is 'both'"),
        ({"choose_output": "first"}, ValueError, "choose_output is 'first'.*cyclic"),
        ({"choose_output": "label"}, ValueError, "choose_output is 'label'.*no labels"),
        ({"margin": 0.5}, ValueError, "margin is 0.5"),
        ({"margin": 0.0}, ValueError, "margin is 0.0"),
        ({"margin": [0.1, 0.1]}, ValueError, "margin is .*1 of them"),
        ({"margin": np.nan}, ValueError, "margin is nan"),
        ({"margin": "wide"}, ValueError, "margin is 'wide'"),
        ({"callback": 3}, TypeError, "callback is 3"),
    ],
)
def test_a_wrong_argument_is_named_and_the_network_stays_as_it_was(arguments, exception, message):
    net = bf.Network([3, 4, 2], "tanh", "identity")
    before = [W.copy() for W in net.weights]
    rng = np.random.default_rng(0)
    good = {"net": net, "X": rng.normal(size=(5, 3)), "Y": rng.normal(size=(5, 2))}
    with pytest.raises(exception, match=message):
        bf.fit_injective(**{**good, **arguments})
    assert_untouched(net, before)


# Same seed, same bits.

FIT = """
    import hashlib
    import numpy as np
    import bpls_fast as bf

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(3000, 20)), rng.normal(size=(3000, 3))
    bits = hashlib.sha256()
    for dtype in (np.float32, np.float64):
        net = bf.Network([20, 70, 40, 3], ["tanh", "softmax"], "identity", seed=5)
        bf.fit_injective(net, X.astype(dtype), Y, sample_weight=rng.uniform(size=3000))
        for W in net.weights:
            bits.update(W.tobytes())
    print(bits.hexdigest())
"""


def test_the_same_seed_gives_the_same_bits_in_every_process_at_every_thread_count():
    assert_same_output_at_every_thread_count(FIT)
