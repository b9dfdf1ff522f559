"""Algorithm 2 against plain NumPy; its iterations, margins, activations, depths and dtypes."""

import collections
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

import bpls_fast as bf
from bpls_fast.training.bpls.algorithm2 import MARGIN_SHARES
from tests.support import reference_bpls
from tests.support.reference import ACTIVATIONS, with_ones
from tests.support.reference_bpls import CHOICES
from tests.support.samples import blobs
from tests.support.subprocesses import output_of, run_code

NAMES = list(ACTIVATIONS)


def digits():
    return bf.datasets.load("digits")


# Beside plain NumPy.


def smoothed(labels, classes, floor):
    """Give the logits that an output of softmax should have: the floor, or what is left of 1."""
    values = np.full((len(labels), classes), floor)
    values[np.arange(len(labels)), labels] = 1 - (classes - 1) * floor
    return reference_bpls.inverse("softmax", values, 1e-15)


@given(
    hidden=st.lists(st.integers(3, 6), min_size=1, max_size=2),
    names=st.lists(st.sampled_from(["sigmoid", "tanh", "softmax"]), min_size=2, max_size=2),
    weighted=st.booleans(),
    target=st.sampled_from(["joint", *CHOICES]),
    resolve=st.booleans(),
    full_sweeps=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_fit_gives_the_weights_of_plain_numpy(
    hidden, names, weighted, target, resolve, full_sweeps, seed
):
    rng = np.random.default_rng(seed)
    names = [*names[: len(hidden)], "softmax"]
    net = bf.Network([2, *hidden, 3], names[:-1], names[-1], seed=rng)
    X, labels = blobs(60, seed=seed)
    sample_weight = rng.integers(1, 5, 60) / 4 if weighted else None
    start, margins = net.weights, [0.05] * len(hidden)
    B = smoothed(labels, 3, 0.02)

    def plain(X):
        options = {"sample_weight": sample_weight, "choice": target, "resolve": resolve}
        try:
            return reference_bpls.algorithm_2(
                start, names, True, X, B, labels, margins, 5, full_sweeps, **options
            )
        except reference_bpls.IllConditionedError:
            reject()

    def decisions(weights):
        values = reference_bpls.layer_inputs(weights[:-1], names[:-1], True, X)[-1]
        return with_ones(values, True) @ weights[-1]

    # As for Algorithm 1: the plain answer tells how much it can be trusted, by how it moves with the tenth digit of X.
    expected, misses, best = plain(X)
    moved, moved_misses, _ = plain(X * (1 + 1e-10 * rng.normal(size=X.shape)))
    assume(misses == moved_misses)
    shake = max(
        np.abs(decisions(weights) - decisions(others)).max()
        for weights, others in zip(expected, moved, strict=True)
    )
    assume(shake < 1e-6)
    options = {"target": "joint"}
    if target != "joint":
        options = {"target": "per_output", "choose_output": target}
    report = bf.fit_classifier(
        net,
        X,
        labels,
        max_iter=5,
        resolve=resolve,
        full_sweeps=full_sweeps,
        margin=0.05,
        label_floor=0.02,
        sample_weight=sample_weight,
        **options,
    )
    assert report.misses == misses
    assert report.best == best
    wanted = decisions(expected[best])
    np.testing.assert_allclose(net.decision(X), wanted, rtol=0, atol=1e-4 + 100 * shake)


# Iterations.


def test_the_kept_weights_are_those_with_the_fewest_misses():
    late = 0
    for seed in range(20):
        X, labels = blobs(200, spread=0.8, seed=seed)
        net = bf.Network([2, 5, 3], "sigmoid", seed=seed)
        report = bf.fit_classifier(net, X, labels)
        missed = (net.predict(X) != labels).sum()
        assert missed == min(report.misses) == report.misses[report.best]
        assert report.accuracy[report.best] == pytest.approx(1 - missed / 200)
        late += report.best < len(report.misses) - 1
    assert late  # the last sweep is not always the best one


def test_it_stops_when_the_misses_stop_falling_or_at_the_last_sweep():
    X, labels = blobs(400, spread=0.8)
    reasons = collections.Counter()
    for seed in range(10):
        for max_iter in (1, 3, 4, 30):
            net = bf.Network([2, 5, 3], "sigmoid", seed=seed)
            report = bf.fit_classifier(
                net, X, labels, max_iter=max_iter, full_sweeps=2, margin=0.05
            )
            reasons[report.stopped] += 1
            assert report.iterations == len(report.misses) == len(report.accuracy) <= max_iter
            falling = np.minimum.accumulate(report.misses)
            if report.stopped == "the misses stopped falling":
                assert report.misses[-1] >= falling[-2]
            else:
                assert report.stopped == f"max_iter = {max_iter}"
                assert report.iterations == max_iter
            for k in range(3, report.iterations):
                assert report.misses[k - 1] < falling[k - 2]
    assert len(reasons) >= 3


def test_it_stops_when_no_row_is_missed():
    X, labels = blobs(spread=0.01)
    net = bf.Network([2, 8, 3], "sigmoid")
    report = bf.fit_classifier(net, X, labels)
    assert report.stopped == "no row is missed"
    assert report.misses[-1] == 0
    assert (net.predict(X) == labels).all()


def test_all_rows_may_be_missed():
    # Two rows that cannot be told apart, one of each class: the best that can be done misses one of them, and a network
    # whose output is held at the wrong class by its weights misses all rows of the first sweeps.
    X, labels = np.ones((2, 1)), np.array([0, 1])
    net = bf.Network([1, 2, 2], "sigmoid")
    report = bf.fit_classifier(net, X, labels)
    assert min(report.misses) == 1
    assert all(np.isfinite(W).all() for W in net.weights)


@pytest.mark.parametrize("resolve", [False, True])
def test_line_9_of_the_algorithm_can_be_switched_on(resolve):
    X, labels = blobs()
    net = bf.Network([2, 8, 3], "sigmoid")
    start = net.weights
    bf.fit_classifier(net, X, labels, resolve=resolve, max_iter=1, margin=0.05, label_floor=0.02)
    expected = reference_bpls.sweep(
        start, ["sigmoid", "softmax"], True, X, smoothed(labels, 3, 0.02), [0.05], resolve=resolve
    )
    np.testing.assert_allclose(net.weights[-1], expected[-1], rtol=0, atol=1e-4)


# Margins.


def test_the_margin_is_chosen_by_the_training_misses():
    X, labels, *_ = digits()
    natural = 1 / 20
    fewest = []
    for share in MARGIN_SHARES:
        net = bf.Network([64, 20, 10], seed=3)
        trial = bf.fit_classifier(net, X, labels, margin=share * natural, max_iter=3)
        fewest.append(min(trial.misses))
    net = bf.Network([64, 20, 10], seed=3)
    report = bf.fit_classifier(net, X, labels)
    assert report.margins == [MARGIN_SHARES[int(np.argmin(fewest))] * natural]


def test_given_margins_are_used_and_reported():
    X, labels = blobs()
    net = bf.Network([2, 8, 5, 3], ["tanh", "softmax"])
    assert bf.fit_classifier(net, X, labels, margin=[0.2, 0.01]).margins == [0.2, 0.01]
    assert bf.fit_classifier(net, X, labels, margin=np.float32(0.25)).margins == [0.25, 0.25]


# Activations, depths and dtypes.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hidden", [[20], [30, 20], [30, 25, 20]])
def test_every_activation_learns_the_digits(name, hidden):
    pytest.importorskip("sklearn", reason="digits is scikit-learn's")
    X, labels, *_ = digits()
    net = bf.Network([64, *hidden, 10], name, seed=0)
    X = (X / 8 - 1).astype(np.float64)
    report = bf.fit_classifier(net, X, labels)
    assert max(report.accuracy) > (0.6 if name == "leaky_relu" else 0.85)
    assert (net.predict(X) == labels).mean() == pytest.approx(max(report.accuracy))


@pytest.mark.parametrize("name", NAMES)
def test_every_output_activation_tells_classes_apart(name):
    X, labels = blobs(spread=0.3)
    net = bf.Network([2, 8, 3], "sigmoid", name)
    bf.fit_classifier(net, X, labels)
    assert (net.predict(X) == labels).mean() > 0.9
    assert (net.forward(X).argmax(axis=1) == labels).mean() > 0.9


@pytest.mark.parametrize("bias", [True, False])
def test_networks_without_hidden_layers_and_without_bias_train(bias):
    X, labels = blobs(spread=0.3)
    for hidden in ([], [8]):
        net = bf.Network([2, *hidden, 3], "tanh", bias=bias)
        report = bf.fit_classifier(net, X, labels)
        assert max(report.accuracy) > 0.9


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_every_dtype_reaches_about_the_same(dtype):
    pytest.importorskip("sklearn", reason="digits is scikit-learn's")
    X, labels, X_test, y_test = digits()
    net = bf.Network([64, 40, 10], seed=0, input_scale=1 / 16)
    report = bf.fit_classifier(net, X.astype(dtype), labels)
    assert net.input_scale == 1 / 16
    assert max(report.accuracy) > 0.95
    assert (net.predict(X_test.astype(dtype)) == y_test).mean() > 0.9


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_no_float_copy_of_the_data_is_made(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (20_000, 100)).astype(dtype)
    labels = (X[:, 0] > X[:, 1]).astype(int)
    net = bf.Network([100, 3, 2], "tanh")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        bf.fit_classifier(net, X, labels, margin=0.05)
        most = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    # The misses are gathered, less than half of the rows; all else is a few columns.
    assert most < X.nbytes / 2 + 20_000 * 4 * 40
    assert dtype != np.uint8 or most < 20_000 * 100 * 4


# Same seed, same bits.

FIT = """
    import hashlib
    import numpy as np
    import bpls_fast as bf

    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (6000, 40), dtype=np.uint8)
    labels = X[:, :5].argmax(axis=1)
    bits = hashlib.sha256()
    for rows in (X, X.astype(np.float32), X.astype(np.float64)):
        net = bf.Network([40, 70, 30, 5], ["softmax", "tanh"], seed=5, input_scale=1 / 255)
        report = bf.fit_classifier(net, rows, labels, sample_weight=rng.uniform(size=6000))
        bits.update(str(report.misses).encode())
        for W in net.weights:
            bits.update(W.tobytes())
    print(bits.hexdigest())
"""


def test_the_same_seed_gives_the_same_bits_in_every_process_at_every_thread_count():
    runs = [output_of(run_code(FIT, BPLS_NUM_THREADS=threads)) for threads in ("1", "2", "2", "3")]
    assert len(set(runs)) == 1
