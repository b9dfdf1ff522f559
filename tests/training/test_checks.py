"""The checks of what a fit is given: what they return, and the argument that they name."""

import re

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training import checks

X = np.arange(12.0).reshape(6, 2)
LABELS = np.array(["b", "a", "c", "a", "b", "a"])


def network(output="softmax"):
    return bf.Network([2, 3], output_activation=output, seed=0)


def test_labels_become_the_numbers_of_outputs():
    rows, index, classes, weight = checks.checked_classification(network(), X, LABELS, None, None)
    assert rows is X
    assert classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(classes[index], LABELS)
    assert weight is None


def test_small_whole_numbers_are_the_outputs_themselves():
    labels = np.array([2, 0, 2, 2, 0, 0], np.uint8)
    _, index, classes, _ = checks.checked_classification(network(), X, labels, None, None)
    assert classes.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(index, labels)


def test_weights_are_scaled_by_a_power_of_two_and_rows_without_weight_are_left_out():
    given = np.array([0, 8.0, 12.0, 0, 4.0, 8.0])
    samples, _ = checks.checked_samples(network(), X, LABELS, given, None)
    np.testing.assert_array_equal(samples.X, X[given > 0])
    np.testing.assert_array_equal(samples.sample_weight, given[given > 0] / 16)
    assert samples.repetition == 16


def test_balanced_classes_have_equal_weight_in_sum():
    *_, index, classes, _ = checks.checked_classification(network(), X, LABELS, None, None)
    totals = np.bincount(index).astype(float)
    weights = checks.class_weights("balanced", classes, index, totals)
    np.testing.assert_allclose(weights * totals, len(X) / 3)


def test_numbers_become_pre_activations_in_the_type_of_the_rows():
    Y = np.random.default_rng(0).uniform(0.1, 0.9, (6, 3))
    rows = X.astype(np.float32)
    samples, classes = checks.checked_samples(network("sigmoid"), rows, Y, None, None)
    assert classes is None
    assert samples.targets.dtype == np.float32
    np.testing.assert_allclose(samples.targets, np.log(Y / (1 - Y)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Y": LABELS[:5]}, "labels has 5 rows; expected 6"),
        ({"Y": np.ones((6, 2))}, "Y has 2 columns; expected 3"),
        ({"Y": np.array([0, 1, 7, 8, 9, 0])}, "labels hold 5 classes; expected 3"),
        ({"sample_weight": np.ones(5)}, "sample_weight has shape (5,); expected (6,)"),
        ({"sample_weight": np.zeros(6)}, "sample_weight has a negative weight or no positive one"),
        ({"class_weight": "equal"}, "class_weight is 'equal'; expected 'balanced'"),
        ({"class_weight": {"z": 1.0}}, "class_weight names 'z'"),
        ({"class_weight": {"a": -1.0}}, "expected finite weights >= 0"),
    ],
)
def test_a_wrong_argument_is_named(change, message):
    arguments = {"X": X, "Y": LABELS, "sample_weight": None, "class_weight": None, **change}
    with pytest.raises(ValueError, match=re.escape(message)):
        checks.checked_samples(network(), **arguments)


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (lambda v: checks.check_count(v, "n"), [1, np.int64(3)], [0, 1.0, True, "1", None]),
        (lambda v: checks.check_bool(v, "n"), [True, np.False_], [1, 0.0, "yes", None]),
        (lambda v: checks.check_choice(v, "n", ("a", "b")), ["a", "b"], ["c", None, 1]),
        (lambda v: checks.check_number(v, "n"), [0, 0.5, np.float32(2)], [-1, np.nan, np.inf, "1"]),
        (lambda v: checks.check_number(v, "n", above=0), [0.1, 5], [0, -1, np.inf]),
        (lambda v: checks.check_number(v, "n", finite=False), [0, np.inf], [-1, np.nan]),
    ],
    ids=["count", "bool", "choice", "number", "above", "infinite"],
)
def test_options_are_checked_and_named(check, right, wrong):
    for value in right:
        check(value)
    for value in wrong:
        with pytest.raises((TypeError, ValueError), match=r"^n is .*; expected "):
            check(value)
