"""Refined sweeps on rows of every kind: degenerate, huge and tiny ones, any layout, weights; fits that fail midway."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpls_fast as bf
from bpls_fast.training.context import TooLargeError
from bpls_fast.training.refined.sweep import RefinedSweep
from tests.support import images, reference
from tests.support.degenerate import DATA, SCALES, assert_trains_or_refuses
from tests.support.reference import ACTIVATIONS, same_bits
from tests.support.required import real_images
from tests.support.samples import three_blobs

NETWORKS = [
    pytest.param((), "tanh", id="no hidden layer"),
    pytest.param((8,), "softmax", id="8 softmax"),
    pytest.param((8, 5), "relu", id="8-5 relu"),
    pytest.param((6, 5, 4), "elu", id="6-5-4 elu", marks=pytest.mark.thorough),
]
OPTIONS = [{}, {"standardize": True}, {"chunk_rows": 7}]
each_network = pytest.mark.parametrize(("hidden", "activation"), NETWORKS)
each_options = pytest.mark.parametrize("options", OPTIONS, ids=str)
each_kind = pytest.mark.parametrize("kind", ["labels", "numbers"])
each_float = pytest.mark.parametrize("dtype", [np.float32, np.float64])


SCALES_OF_TYPES = [
    pytest.param(dtype, scale, id=f"{np.dtype(dtype)} {scale}")
    for dtype in (np.float32, np.float64)
    for scale in SCALES
    if scale < float(np.finfo(dtype).max) / 100
]


def make(X, hidden, activation, kind):
    output = "softmax" if kind == "labels" else "identity"
    return bf.Network([X.shape[1], *hidden, 3], activation, output, seed=0)


def targets(labels, kind):
    return labels if kind == "labels" else np.eye(3)[labels]


# Degenerate rows; warnings are errors.


@each_kind
@each_options
@each_network
@each_float
@pytest.mark.parametrize("name", DATA)
def test_degenerate_rows_are_trained_on(name, dtype, hidden, activation, options, kind):
    X, labels = DATA[name]
    X = X.astype(dtype)
    net = make(X, hidden, activation, kind)
    report = bf.fit_refined(net, X, targets(labels, kind), **options)
    assert report.iterations >= 1
    assert np.isfinite(report.loss).all()
    assert all(np.isfinite(W).all() for W in net.weights)
    assert np.isfinite(net.forward(X)).all()


@each_kind
@each_options
@each_network
@pytest.mark.parametrize(("dtype", "scale"), SCALES_OF_TYPES)
def test_rows_of_any_size_are_trained_on_or_refused(
    scale, dtype, hidden, activation, options, kind
):
    X, labels = DATA["a class with one row"]
    with np.errstate(under="ignore"):
        X = (X * scale).astype(dtype)
    net = make(X, hidden, activation, kind)
    Y = targets(labels, kind)
    assert_trains_or_refuses(net, lambda net: bf.fit_refined(net, X, Y, **options))


@each_kind
@each_network
def test_classes_that_do_not_occur_are_outputs_that_are_never_predicted(hidden, activation, kind):
    X, labels = DATA["one class"]
    net = make(X, hidden, activation, kind)
    bf.fit_refined(net, X, targets(labels, kind))
    assert (net.forward(X).argmax(axis=1) == 0).all()


@each_float
@pytest.mark.parametrize("name", ["zeros", "equal rows", "one row"])
def test_what_only_rounding_moves_is_not_scaled_up(name, dtype):
    X, labels = DATA[name]
    net = bf.Network([5, 6, 5, 4, 3], "elu", seed=0)
    bf.fit_refined(net, X.astype(dtype), labels, max_sweeps=1)
    # Weights are drawn from -1 to 1; what moves pre-activations by machine epsilons would be made millions.
    assert max(np.abs(W).max() for W in net.weights[:-1]) < 100


# What holds for every fit over all rows.


@given(
    seed=st.integers(0, 2**32 - 1),
    names=st.lists(st.sampled_from(sorted(ACTIVATIONS)), min_size=1, max_size=3),
    rows=st.integers(2, 60),
    outputs=st.integers(1, 3),
    dtype=st.sampled_from([np.uint8, np.float32, np.float64]),
    bias=st.booleans(),
    weighted=st.booleans(),
    eps=st.sampled_from([1e-2, 0.3, 7.0]),
    start=st.sampled_from(["scaled", "network"]),
)
def test_the_loss_never_rises_and_ends_above_the_error_of_the_network(
    seed, names, rows, outputs, dtype, bias, weighted, eps, start
):
    random = np.random.default_rng(seed)
    X = reference.random_values(random, (rows, 4), dtype, decades=0.5)
    Y = random.normal(size=(rows, outputs))
    weights = random.uniform(0.1, 3, rows) if weighted else None
    sizes = [4, *random.integers(1, 8, len(names)), outputs]
    net = bf.Network(sizes, names, "identity", bias=bias, seed=0)
    options = {"eps": eps, "start": start, "sample_weight": weights, "tol": 0.0}
    report = bf.fit_refined(net, X, Y, max_sweeps=8, **options)
    assert (np.diff(report.loss) <= 0).all()
    if dtype != np.float64:  # large weights of the output layer magnify what float32 rounds
        return
    error = np.average(np.square(net.forward(X) - Y).sum(axis=1), weights=weights)
    # The loss is a difference of sums of squares: rounding is relative to them.
    squares = np.average(np.square(Y).sum(axis=1), weights=weights)
    assert error <= report.loss[-1] + 1e-9 * squares


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}], ids=str)
@pytest.mark.parametrize("hidden", [(), (12,), (12, 8), (10, 8, 6)], ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_weights_of_labelled_rows_are_repetitions(dtype, hidden, class_weight):
    random = np.random.default_rng(0)
    X = reference.random_values(random, (150, 4), dtype, decades=0.5)
    labels = np.digitize(
        X[:, 0].astype(float) * X[:, 1], [0, 0.5] if dtype != np.uint8 else [9e3, 2e4]
    )
    counts = random.integers(0, 4, len(X))
    repeated = np.repeat(X, counts, axis=0), np.repeat(labels, counts), None
    decisions = []
    for rows, y, weights in ((X, labels, counts), repeated):
        net = bf.Network([4, *hidden, 3], "tanh", seed=0)
        bf.fit_refined(net, rows, y, sample_weight=weights, class_weight=class_weight, max_sweeps=4)
        decisions.append(net.decision(X))
    assert_alike(decisions, dtype)


@pytest.mark.parametrize("hidden", [(), (12,), (12, 8)], ids=str)
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_weights_of_rows_with_numbers_are_repetitions(dtype, standardize, hidden):
    random = np.random.default_rng(0)
    X = reference.random_values(random, (150, 4), dtype, decades=0.5)
    Y = np.c_[np.sin(X[:, 0] / X.std()), X[:, 1] * 1.0]
    counts = random.integers(0, 4, len(X))
    outputs = []
    for rows, y, weights in (
        (X, Y, counts),
        (np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0), None),
    ):
        net = bf.Network([4, *hidden, 2], "tanh", "identity", seed=0)
        options = {"standardize": standardize, "max_sweeps": 4}
        bf.fit_refined(net, rows, y, sample_weight=weights, **options)
        outputs.append(net.forward(X))
    assert_alike(outputs, dtype)


def assert_alike(answers, dtype):
    """Compare what two networks give; bytes are computed in float32."""
    one, other = answers
    tolerance = (1e-2 if dtype == np.uint8 else 1e-6) * np.abs(one).max()
    np.testing.assert_allclose(other, one, rtol=0, atol=tolerance)


@pytest.mark.parametrize("factor", [2.0**-1000, 2.0**900])
@pytest.mark.parametrize("options", [{"max_sweeps": 5}, {"chunk_rows": 40}], ids=str)
def test_the_size_of_all_weights_changes_no_bit_under_a_given_ridge_and_plan(options, factor):
    X, labels = three_blobs()
    weights = np.random.default_rng(1).uniform(0.1, 3, len(X))
    results = []
    for scale in (1.0, factor):
        net = bf.Network([3, 8, 5, 3], "tanh", seed=0)
        bf.fit_refined(net, X, labels, output_eps=1e-3, sample_weight=scale * weights, **options)
        results.append(net.weights)
    assert all(map(same_bits, *results))


# Memory


@pytest.mark.parametrize("layout", reference.LAYOUTS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"chunk_rows": 40}], ids=str)
def test_the_layout_of_the_rows_changes_no_bit(options, dtype, layout):
    random = np.random.default_rng(0)
    X = reference.random_values(random, (200, 6), dtype)
    labels = random.integers(0, 3, 200)
    weights = []
    for rows in (X, reference.in_layout(X, layout)):
        before = rows.copy()
        net = bf.Network([6, 8, 5, 3], ["relu", "softmax"], seed=0)
        bf.fit_refined(net, rows, labels, max_sweeps=5, **options)
        assert same_bits(rows, before)
        weights.append(net.weights)
    assert all(map(same_bits, *weights))


def peak_of_a_fit(net, X, labels, **options):
    tracemalloc.start()
    try:
        bf.fit_refined(net, X, labels, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_a_fit_needs_memory_for_chunks_and_not_for_the_rows(dtype):
    X = images.load(dtype, 60_000)
    labels = (X[:, ::5].mean(axis=1) > X[:, ::5].mean()).astype(int)
    net = bf.Network([784, 20, 2], "relu", seed=0)
    peak = peak_of_a_fit(net, X, labels, max_passes=1)
    # A chunk of 5000 rows, the sample of 5000 for the start, values of neurons: an eighth of the rows each, at most.
    assert peak < 0.3 * X.nbytes + 20e6


def test_what_a_fit_over_all_rows_needs_does_not_grow_with_the_sweeps():
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(2000, 20)), random.normal(size=(2000, 3))
    peaks = []
    for sweeps in (3, 30):
        net = bf.Network([20, 30, 20, 3], "tanh", "identity", seed=0)
        peaks.append(peak_of_a_fit(net, X, Y, max_sweeps=sweeps, tol=0))
    assert peaks[1] < 1.1 * peaks[0]


# Fits that fail half-way


def failing_at(count, outcome, monkeypatch):
    """Let a sweep fail: raise an error, or return a loss that is not a number."""
    sweep, calls = RefinedSweep.sweep, []

    def patched(self, rows, **options):
        calls.append(rows)
        if len(calls) == count and isinstance(outcome, Exception):
            raise outcome
        loss = sweep(self, rows, **options)
        return outcome if len(calls) == count else loss

    monkeypatch.setattr(RefinedSweep, "sweep", patched)


@pytest.mark.parametrize("options", [{}, {"chunk_rows": 60}, {"validation_fraction": 0.3}], ids=str)
@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (np.linalg.LinAlgError("pivot 3 is not positive"), "a sweep failed: pivot 3"),
        (TooLargeError("the numbers of this fit grew too large"), "a sweep failed: the numbers"),
        (np.nan, "a sweep failed: the numbers of a sweep grew too large"),
        (np.inf, "a sweep failed: the numbers of a sweep grew too large"),
    ],
    ids=str,
)
def test_a_sweep_that_fails_ends_the_fit_with_what_came_before_and_says_why(
    outcome, why, options, monkeypatch
):
    X, labels = three_blobs()
    failing_at(4, outcome, monkeypatch)
    net = bf.Network([3, 8, 3], "tanh", seed=0)
    report = bf.fit_refined(net, X, labels, max_sweeps=20, tol=0, **options)
    assert report.iterations == 3
    assert why in report.stopped
    assert why in str(report)
    assert (net.predict(X) == labels).mean() > 0.8


@pytest.mark.parametrize(
    "error", [np.linalg.LinAlgError("pivot"), TooLargeError("too large"), KeyError("other")]
)
def test_a_first_sweep_that_fails_is_an_error_and_leaves_the_network_alone(error, monkeypatch):
    X, labels = three_blobs()
    failing_at(1, error, monkeypatch)
    assert_untouched(X, labels, type(error))


def test_another_error_half_way_is_passed_on_and_leaves_the_network_alone(monkeypatch):
    X, labels = three_blobs()
    failing_at(3, KeyError("mine"), monkeypatch)
    assert_untouched(X, labels, KeyError)


def test_a_callback_that_raises_leaves_the_network_alone():
    X, labels = three_blobs()

    def callback(report):
        if report.iterations == 2:
            raise KeyError

    assert_untouched(X, labels, KeyError, callback=callback)


def assert_untouched(X, labels, error, **options):
    net = bf.Network([3, 8, 3], "tanh", seed=0)
    before = [W.copy() for W in net.weights]
    with pytest.raises(error):
        bf.fit_refined(net, X, labels, **options)
    assert all(map(same_bits, net.weights, before))
    assert net.classes is None
    assert net.input_scale is None


def test_a_ridge_that_is_too_small_grows_and_is_named():
    X, labels = DATA["equal columns"]
    net = bf.Network([5, 4, 3], "tanh", seed=0)
    with pytest.warns(RuntimeWarning, match="eps = 0 was too small and grew to"):
        report = bf.fit_refined(net, X, labels, eps=0.0)
    assert report.eps > 0
    assert all(np.isfinite(W).all() for W in net.weights)


# Digits


@pytest.fixture(scope="module")
def digits():
    return bf.datasets.load("digits")


def accuracy(net, x, y):
    return np.mean(net.predict(x) == y)


@pytest.mark.parametrize("hidden", [(40,), (40, 30), (40, 30, 20)], ids=str)
@pytest.mark.parametrize(
    "name", ["sigmoid", "tanh", "relu", "leaky_relu", "elu", "softplus", "softmax"]
)
def test_every_activation_beats_a_linear_model_on_digits_at_every_depth(name, hidden, digits):
    pytest.importorskip("sklearn", reason="digits are scikit-learn's")
    x, y, x_test, y_test = digits
    linear = bf.Network([64, 10])
    bf.fit_refined(linear, x, y)
    net = bf.Network([64, *hidden, 10], name, seed=0)
    # Three saturating layers learn slowly: they are given more sweeps.
    slow = name == "softmax" and len(hidden) == 3
    bf.fit_refined(net, x, y, max_sweeps=90 if slow else None)
    assert accuracy(net, x, y) > accuracy(linear, x, y)
    assert accuracy(net, x_test, y_test) > accuracy(linear, x_test, y_test)


@pytest.mark.parametrize("activation", ["softmax", "tanh", "relu"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_probabilities_of_digits_tell_more_than_how_often_they_are_right(dtype, activation, digits):
    x, y, x_test, y_test = digits
    net = bf.Network([64, 40, 10], activation, seed=0)
    bf.fit_refined(net, x.astype(dtype), y)
    p = net.forward(x_test.astype(dtype)).astype(np.float64)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    right = p[np.arange(len(y_test)), y_test]
    # Who always gives the predicted class the share a that is right, and the other nine the rest alike, pays this:
    a = np.mean(p.argmax(axis=1) == y_test)
    floor = -a * np.log(a) - (1 - a) * np.log((1 - a) / 9)
    assert a > 0.95
    assert -np.log(right).mean() < floor


# The real images


def test_one_pass_over_mnist_is_right_about_94_of_100_new_images():
    X, labels, X_test, y_test = real_images("mnist")
    net = bf.Network([784, 60, 10], "softmax", seed=0)
    report = bf.fit_refined(net, X, labels, max_passes=1)
    assert sum(report.rows) <= len(X)
    assert accuracy(net, X_test, y_test) >= 0.94
