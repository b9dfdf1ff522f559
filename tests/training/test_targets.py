"""Targets of classes, against the activations of the outputs."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.targets import LABEL_FLOOR, class_targets, one_hot_targets


@pytest.mark.parametrize("name", bf.activations)
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_output_of_a_class_is_the_largest_on_its_targets(name, classes):
    activation = bf.activations[name]
    targets = class_targets(classes, activation, 0.01)
    assert targets.shape == (classes, classes)
    assert np.isfinite(targets).all()
    outputs = activation.forward(targets)
    np.testing.assert_array_equal(outputs.argmax(axis=1), np.arange(classes))
    others = outputs[~np.eye(classes, dtype=bool)]
    np.testing.assert_allclose(others, others[0], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("sigmoid", 0.01, 0.99), ("tanh", -0.98, 0.98), ("identity", 0.01, 0.99)],
)
def test_targets_stay_away_from_the_ends_of_the_range(name, low, high):
    outputs = bf.activations[name].forward(class_targets(2, bf.activations[name], 0.01))
    np.testing.assert_allclose(outputs, [[high, low], [low, high]], rtol=1e-9)


def test_softmax_targets_are_probabilities():
    outputs = bf.activations["softmax"].forward(class_targets(4, bf.activations["softmax"], 0.02))
    np.testing.assert_allclose(outputs, np.full((4, 4), 0.02) + 0.92 * np.eye(4), rtol=1e-9)


def test_refined_sweeps_fit_one_hot_rows_for_softmax_and_bounded_targets_for_others():
    classes = np.array(["a", "b", "c"])
    np.testing.assert_array_equal(one_hot_targets(classes, bf.activations["softmax"]), np.eye(3))
    sigmoid = bf.activations["sigmoid"]
    np.testing.assert_array_equal(
        one_hot_targets(classes, sigmoid), class_targets(3, sigmoid, LABEL_FLOOR)
    )
