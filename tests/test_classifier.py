"""Algorithm 2: beside plain NumPy, on the real images, on data that no method likes, and what it refuses."""

import collections
import datetime
import enum
import tracemalloc

import numpy as np
import pytest
import reference_fit
from degenerate import DATA, SCALES, assert_trains_or_refuses
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from reference import ACTIVATIONS, with_ones
from required import real_images
from subprocesses import output_of, run_code

import bpls_fast as bf
from bpls_fast.experiments import TABLE1
from bpls_fast.training.bpls.algorithm2 import MARGIN_SHARES
from bpls_fast.training.bpls.backward_sweep import Sweep

NAMES = list(ACTIVATIONS)
CHOICES = ["mean", "last", "label", "cyclic", "least_squares", "damped"]


def blobs(d=300, classes=3, spread=0.6, seed=0, dtype=np.float64):
    """Classes around points of the plane, some of them mixed."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, d)
    angle = 2 * np.pi * labels / classes
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + spread * rng.normal(size=(d, 2))
    return X.astype(dtype), labels


def digits():
    return bf.datasets.load("digits")


# Beside plain NumPy.


def smoothed(labels, classes, floor):
    """Give the logits that an output of softmax should have: the floor, or what is left of 1."""
    values = np.full((len(labels), classes), floor)
    values[np.arange(len(labels)), labels] = 1 - (classes - 1) * floor
    return reference_fit.inverse("softmax", values, 1e-15)


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
            return reference_fit.algorithm_2(
                start, names, True, X, B, labels, margins, 5, full_sweeps, **options
            )
        except reference_fit.IllConditionedError:
            reject()

    def decisions(weights):
        values = reference_fit.layer_inputs(weights[:-1], names[:-1], True, X)[-1]
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


# Labels.


class Colour(enum.IntEnum):
    RED = 5
    BLUE = 7
    GREEN = 9


LABELS = {
    "int64 from 0": np.array([0, 1, 2]),
    "int8 not from 0": np.array([-3, 5, 100], np.int8),
    "uint8": np.array([7, 200, 255], np.uint8),
    "float": np.array([0.5, 1.5, 2.5]),
    "str": np.array(["cat", "dog", "fish"]),
    "bytes": np.array([b"cat", b"dog", b"fish"]),
    "str objects": np.array(["cat", "dog", "fish"], object),
    "dates": np.array(["2024-01-01", "2024-01-02", "2025-01-01"], "datetime64[D]"),
    "date objects": np.array([datetime.date(2024, 1, day) for day in (1, 2, 3)], object),
    "enum members": np.array(list(Colour), object),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_type_are_predicted_as_they_were_given(kind):
    X, index = blobs(spread=0.2)
    names = LABELS[kind]
    net = bf.Network([2, 8, 3], "sigmoid")
    bf.fit_classifier(net, X, names[index])
    predicted = net.predict(X)
    assert predicted.dtype == names.dtype
    assert (predicted == names[index]).mean() > 0.95
    assert list(net.classes) == sorted(names)


def test_boolean_labels_are_two_classes():
    X, index = blobs(classes=2)
    net = bf.Network([2, 8, 2], "sigmoid")
    bf.fit_classifier(net, X, index == 1)
    assert net.classes.tolist() == [False, True]
    assert (net.predict(X) == (index == 1)).mean() > 0.9


def test_labels_may_be_a_list_or_a_column():
    X, index = blobs()
    nets = [bf.Network([2, 8, 3], "sigmoid") for _ in range(3)]
    for net, labels in zip(nets, (index, index.tolist(), index[:, np.newaxis]), strict=True):
        bf.fit_classifier(net, X, labels)
    assert len({net.weights[0].tobytes() for net in nets}) == 1


def test_the_names_of_the_classes_change_nothing_else():
    X, index = blobs()
    nets = [bf.Network([2, 8, 3], "sigmoid") for _ in range(2)]
    bf.fit_classifier(nets[0], X, index)
    bf.fit_classifier(nets[1], X, np.array(["a", "b", "c"])[index])
    for A, B in zip(nets[0].weights, nets[1].weights, strict=True):
        assert A.tobytes() == B.tobytes()


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float16, np.float64])
def test_whole_numbers_of_any_type_may_leave_classes_out(dtype):
    X, index = blobs(classes=2)
    net = bf.Network([2, 8, 5], "sigmoid")
    bf.fit_classifier(net, X, (3 * index).astype(dtype))
    assert net.classes.dtype == dtype
    assert net.classes.tolist() == [0, 1, 2, 3, 4]
    assert set(net.predict(X)) == {0, 3}


def test_more_outputs_than_the_type_of_the_labels_can_count_are_named_in_a_wider_one():
    X, index = blobs(classes=2)
    net = bf.Network([2, 300], output_activation="identity")
    bf.fit_classifier(net, X, index.astype(np.uint8))
    assert net.classes.tolist() == list(range(300))


def test_hundreds_of_classes_train_without_a_floor_being_given():
    labels = np.arange(1200) % 150
    X = np.eye(150)[labels] + 0.05 * np.random.default_rng(0).normal(size=(1200, 150))
    for activation in ("softmax", "sigmoid"):
        net = bf.Network([150, 150], output_activation=activation)
        bf.fit_classifier(net, X, labels)
        assert (net.predict(X) == labels).mean() > 0.99


@pytest.mark.parametrize(("classes", "floor"), [(2, 1e-2), (50, 1e-2), (51, 0.5 / 51)])
def test_the_default_floor_shrinks_with_the_number_of_classes(classes, floor):
    X, labels = blobs(classes=2)
    nets = [bf.Network([2, classes], seed=0) for _ in range(2)]
    bf.fit_classifier(nets[0], X, labels)
    bf.fit_classifier(nets[1], X, labels, label_floor=floor)
    assert nets[0].weights[0].tobytes() == nets[1].weights[0].tobytes()


# Weights.


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"class_weight": {0: 3.0}}])
def test_a_weight_counts_like_copies_of_the_row(options):
    X, labels = blobs(200)
    times = np.random.default_rng(1).integers(0, 4, 200)
    weighted, repeated = (bf.Network([2, 6, 3], "sigmoid") for _ in range(2))
    fixed = {"margin": 0.05, "max_iter": 3, **options}
    a = bf.fit_classifier(weighted, X, labels, sample_weight=times, **fixed)
    b = bf.fit_classifier(repeated, X.repeat(times, axis=0), labels.repeat(times), **fixed)
    np.testing.assert_allclose(weighted.decision(X), repeated.decision(X), atol=1e-5)
    assert a.accuracy == pytest.approx(b.accuracy)


def test_a_class_weight_multiplies_the_weights_of_its_rows():
    X, labels = blobs()
    names = np.array(["a", "b", "c"])
    one, other = (bf.Network([2, 6, 3], "sigmoid") for _ in range(2))
    bf.fit_classifier(one, X, names[labels], class_weight={"b": 4.0})
    bf.fit_classifier(other, X, names[labels], sample_weight=np.where(labels == 1, 4.0, 1.0))
    assert one.weights[0].tobytes() == other.weights[0].tobytes()


def test_balanced_classes_weigh_the_same():
    X, labels = blobs(400, 2, spread=1.0)
    keep = (labels == 0) | (np.arange(400) % 8 == 0)
    X, labels = X[keep], labels[keep]
    plain, balanced = (bf.Network([2, 6, 2], "sigmoid") for _ in range(2))
    bf.fit_classifier(plain, X, labels)
    report = bf.fit_classifier(balanced, X, labels, class_weight="balanced")
    recalls = [(balanced.predict(X[labels == k]) == k).mean() for k in (0, 1)]
    assert max(report.accuracy) == pytest.approx(np.mean(recalls), abs=1e-6)
    assert (balanced.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


def test_rows_of_no_weight_do_not_count():
    X, labels = blobs(100)
    weights = np.arange(100) % 2
    wrong = np.where(weights, labels, 2 - labels)
    nets = [bf.Network([2, 6, 3], "sigmoid") for _ in range(2)]
    reports = [
        bf.fit_classifier(net, X, seen, sample_weight=weights, margin=0.05, max_iter=3)
        for net, seen in zip(nets, (labels, wrong), strict=True)
    ]
    assert nets[0].weights[0].tobytes() == nets[1].weights[0].tobytes()
    assert reports[0].accuracy == reports[1].accuracy


def test_the_margin_is_searched_where_the_weight_is():
    X, labels = blobs(20_000)
    weights = np.zeros(20_000)
    weights[[1, 7, 9]] = 1  # none of them among 5000 rows at equal distances
    net = bf.Network([2, 6, 3], "sigmoid")
    report = bf.fit_classifier(net, X, labels, sample_weight=weights)
    assert max(report.accuracy) == 1.0


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
    expected = reference_fit.sweep(
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


# Data that no method likes.


@pytest.mark.filterwarnings("ignore:eps = ")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", NAMES)
def test_degenerate_data_train(data, name, dtype):
    X, labels = DATA[data]
    for hidden in ([], [4], [6, 3]):
        net = bf.Network([X.shape[1], *hidden, 3], name, seed=1)
        report = bf.fit_classifier(net, X.astype(dtype), labels)
        assert all(np.isfinite(W).all() for W in net.weights)
        assert (net.predict(X.astype(dtype)) != labels).sum() == min(report.misses)


@pytest.mark.filterwarnings("ignore:eps = ")
@pytest.mark.parametrize("target", CHOICES)
@pytest.mark.parametrize("data", DATA)
def test_degenerate_data_train_by_every_reading_of_the_formula(data, target):
    X, labels = DATA[data]
    for name in NAMES:
        net = bf.Network([X.shape[1], 6, 3, 3], name, seed=1)
        bf.fit_classifier(net, X, labels, target="per_output", choose_output=target)
        assert all(np.isfinite(W).all() for W in net.weights)


@pytest.mark.filterwarnings("ignore:eps = ")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", NAMES)
def test_huge_and_tiny_numbers_train_or_are_refused(scale, name):
    X, labels = blobs(30)
    for hidden in ([], [4], [6, 3]):
        net = bf.Network([2, *hidden, 3], name)
        assert_trains_or_refuses(net, lambda n: bf.fit_classifier(n, scale * X, labels))


@pytest.mark.filterwarnings("ignore:eps = ")
def test_a_sweep_that_grows_too_large_ends_the_fit_with_the_best_weights():
    X = 1e8 + np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    labels = np.arange(30) % 3
    stopped = set()
    for name in ("elu", "softplus", "leaky_relu"):
        net = bf.Network([5, 6, 3, 3], name, seed=1)
        report = bf.fit_classifier(net, X, labels)
        stopped.add(report.stopped)
        assert report.iterations == len(report.misses) >= 1
        assert (net.predict(X) != labels).sum() == min(report.misses)
    assert "the numbers of a sweep grew too large" in stopped


@pytest.mark.parametrize("broken", [2, 3])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_sweep_whose_weights_are_not_finite_ends_the_fit_with_the_best_weights(
    monkeypatch, value, broken
):
    solve_inputs, solved = Sweep.solve_inputs, []

    def solve_inputs_and_break_one(*arguments):
        solved.append(solve_inputs(*arguments))
        return solved[-1] * value if len(solved) == broken else solved[-1]

    monkeypatch.setattr(Sweep, "solve_inputs", solve_inputs_and_break_one)
    X, labels = blobs(spread=1.0)
    net = bf.Network([2, 8, 3], "sigmoid")
    report = bf.fit_classifier(net, X, labels, margin=0.1, full_sweeps=2)
    assert report.stopped == "the numbers of a sweep grew too large"
    assert report.iterations == len(report.misses) == broken - 1
    assert (net.predict(X) != labels).sum() == min(report.misses)


def test_a_ridge_that_is_too_small_grows_warns_once_and_is_reported():
    X, labels = blobs()
    net = bf.Network([4, 8, 3], "sigmoid")
    with pytest.warns(RuntimeWarning, match=r"^eps = 0 was too small and grew to .*pivot") as seen:
        report = bf.fit_classifier(net, np.hstack([X, X]), labels, eps=0)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert 0 < report.eps < 1e-6
    assert max(report.accuracy) > 0.7


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "exception", "message"),
    [
        ({"net": None}, TypeError, "net is None"),
        ({"X": np.zeros((6, 3))}, ValueError, "X has 3 columns; expected 2"),
        ({"X": np.zeros((0, 2)), "labels": []}, ValueError, "X has no rows"),
        ({"X": np.full((6, 2), np.nan)}, ValueError, r"X contains NaN at \[0, 0\]"),
        ({"labels": [0, 1, 2]}, ValueError, "labels has 3 rows; expected 6"),
        ({"labels": np.zeros((6, 2))}, ValueError, "labels have 2 dimensions"),
        ({"labels": [0, 1, 2, 3, 0, 1]}, ValueError, "labels hold 4 classes; expected 3"),
        ({"labels": [0.0, 1.0, 1.5, 2.0] + [0.0] * 2}, ValueError, "labels hold 4 classes"),
        ({"labels": list("aabbaa")}, ValueError, "labels hold 2 classes; expected 3"),
        ({"labels": [0.5, np.nan, 1, 2, 1, 2]}, ValueError, r"labels contains NaN at \[1\]"),
        (
            {"labels": np.array([0, "a", 1, 2, "b", 3], object)},
            TypeError,
            "labels cannot be sorted",
        ),
        ({"labels": np.array([None, 1, 2] * 2, object)}, TypeError, "labels cannot be sorted"),
        ({"sample_weight": np.ones(5)}, ValueError, "sample_weight has shape"),
        ({"class_weight": "equal"}, ValueError, "class_weight is 'equal'"),
        ({"class_weight": [1, 2, 3]}, TypeError, r"class_weight is \[1, 2, 3\]"),
        ({"class_weight": {7: 1.0}}, ValueError, "class_weight names 7.*0, 1, 2"),
        ({"class_weight": {0: "a"}}, TypeError, "class_weight is {0: 'a'}; expected numbers"),
        ({"class_weight": {0: -1.0}}, ValueError, "class_weight is .*>= 0"),
        ({"class_weight": {0: np.nan}}, ValueError, "class_weight is .*finite"),
        ({"class_weight": dict.fromkeys(range(3), 0.0)}, ValueError, "class_weight is .*above 0"),
        (
            {"class_weight": {0: 0.0}, "sample_weight": [1, 0, 0, 1, 0, 0]},
            ValueError,
            "class_weight leaves no row",
        ),
        ({"max_iter": 0}, ValueError, "max_iter is 0"),
        ({"max_iter": True}, ValueError, "max_iter is True"),
        ({"full_sweeps": 1.5}, ValueError, "full_sweeps is 1.5"),
        ({"label_floor": 0.0}, ValueError, "label_floor is 0.0.*below 0.333"),
        ({"label_floor": 0.4}, ValueError, "label_floor is 0.4.*below 0.333"),
        ({"label_floor": "small"}, TypeError, "label_floor is 'small'; expected a number"),
        ({"label_floor": [0.1]}, TypeError, r"label_floor is \[0.1\]; expected a number"),
        ({"label_floor": np.nan}, ValueError, "label_floor is nan"),
        ({"resolve": "no"}, TypeError, "resolve is 'no'"),
        ({"eps": -1}, ValueError, "eps is -1"),
        ({"target": "all"}, ValueError, "target is 'all'"),
        ({"choose_output": "first"}, ValueError, "choose_output is 'first'"),
        ({"margin": 0.7}, ValueError, "margin is 0.7"),
        ({"callback": "print"}, TypeError, "callback is 'print'"),
    ],
)
def test_a_wrong_argument_is_named_and_the_network_stays_as_it_was(arguments, exception, message):
    net = bf.Network([2, 4, 3], "tanh")
    before = [W.copy() for W in net.weights]
    X = np.random.default_rng(0).normal(size=(6, 2))
    good = {"net": net, "X": X, "labels": [0, 1, 2, 0, 1, 2]}
    with pytest.raises(exception, match=message):
        bf.fit_classifier(**{**good, **arguments})
    assert net.classes is None
    assert net.input_scale is None
    for W, old in zip(net.weights, before, strict=True):
        np.testing.assert_array_equal(W, old)


def test_a_callback_that_raises_leaves_the_network_as_it_was():
    X, labels = blobs()
    net = bf.Network([2, 6, 3], "sigmoid")
    before = net.weights[0].copy()

    def callback(report):
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        bf.fit_classifier(net, X, labels, callback=callback)
    np.testing.assert_array_equal(net.weights[0], before)
    assert net.classes is None


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


# The real images: the row BPLS of the paper's Table I, best training and test accuracy in percent.

TABLE_1 = {setting: rows["BPLS"] for setting, rows in TABLE1.items()}
SETTINGS = [pytest.param(*setting, id=f"{setting[0]} {setting[1]}") for setting in TABLE_1]


def accuracies(name, hidden, seed):
    X, labels, X_test, y_test = real_images(name)
    net = bf.Network([784, *hidden, 10], activation="softmax", seed=seed)
    report = bf.fit_classifier(net, X, labels)
    assert report.iterations <= 15
    train = (net.predict(X) == labels).mean()
    assert train == pytest.approx(max(report.accuracy))
    return 100 * train, 100 * (net.predict(X_test) == y_test).mean()


@pytest.mark.parametrize(("name", "hidden"), SETTINGS)
def test_the_accuracy_on_images_is_at_least_the_papers(name, hidden):
    train, test = accuracies(name, hidden, seed=0)
    assert train >= TABLE_1[name, hidden][0]
    assert test >= TABLE_1[name, hidden][1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "hidden"), SETTINGS)
def test_the_mean_accuracy_of_five_seeds_is_at_least_the_papers(name, hidden):
    runs = np.array([accuracies(name, hidden, seed) for seed in range(5)])
    print(
        f"{name} {hidden}: mean {runs.mean(axis=0).round(2)}, spread {runs.std(axis=0, ddof=1).round(2)}"
    )
    assert (runs.mean(axis=0) >= TABLE_1[name, hidden]).all()
