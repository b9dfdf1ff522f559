"""Algorithm 2 on degenerate data, sweeps that fail, and the arguments it refuses."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.bpls.backward_sweep import BackwardSweep
from tests.support.degenerate import DATA, SCALES, assert_trains_or_refuses
from tests.support.reference import ACTIVATIONS
from tests.support.reference_bpls import CHOICES
from tests.support.samples import blobs

NAMES = list(ACTIVATIONS)


# Degenerate data.


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
    solve_inputs, solved = BackwardSweep.solve_inputs, []

    def solve_inputs_and_break_one(*arguments):
        solved.append(solve_inputs(*arguments))
        return solved[-1] * value if len(solved) == broken else solved[-1]

    monkeypatch.setattr(BackwardSweep, "solve_inputs", solve_inputs_and_break_one)
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
