"""Refined sweeps on MNIST and Fashion-MNIST."""

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.required import real_images

SETTINGS = {
    ("mnist", (60,), "softmax", 5): (98.0, 96.3),
    ("mnist", (100, 70), "softmax", 5): (98.3, 96.3),
    ("fashion-mnist", (60,), "softmax", 5): (91.5, 87.8),
    ("fashion-mnist", (100, 70), "softmax", 5): (91.5, 87.6),
    ("mnist", (100, 70), "relu", 5): (0, 97.8),
    ("mnist", (100, 70), "relu", 12): (0, 98.0),
    ("fashion-mnist", (100, 70), "relu", 5): (0, 88.8),
    ("fashion-mnist", (100, 70), "relu", 12): (0, 89.3),
}
"""Training and test accuracy in percent that so many passes over the data must reach, on the mean of five seeds."""


def accuracies(name, hidden, activation, passes, seed):
    X, labels, X_test, y_test = real_images(name)
    net = bf.Network([784, *hidden, 10], activation=activation, seed=seed)
    report = bf.fit_refined(net, X, labels, max_passes=passes, seed=seed)
    assert sum(report.rows) <= passes * len(X)
    train, test = (net.predict(X) == labels).mean(), (net.predict(X_test) == y_test).mean()
    return 100 * train, 100 * test


def test_one_pass_over_the_images_beats_the_papers_adam_after_forty_epochs():
    _, test = accuracies("mnist", (60,), "softmax", 1, seed=0)
    assert test >= 92.91


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "hidden", "activation", "passes"), SETTINGS)
def test_the_mean_accuracy_of_five_seeds_is_what_is_promised(name, hidden, activation, passes):
    runs = np.array([accuracies(name, hidden, activation, passes, seed) for seed in range(5)])
    print(
        f"{name} {hidden} {activation}, {passes} passes: mean {runs.mean(axis=0).round(2)}, "
        f"spread {runs.std(axis=0, ddof=1).round(2)}"
    )
    assert (runs.mean(axis=0) >= SETTINGS[name, hidden, activation, passes]).all()
