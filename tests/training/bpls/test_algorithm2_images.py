"""Algorithm 2 on MNIST and Fashion-MNIST: the accuracy of the paper's Table I."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.experiments import TABLE1
from tests.support.required import real_images

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


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "hidden"), SETTINGS)
def test_the_mean_accuracy_of_five_seeds_is_at_least_the_papers(name, hidden):
    runs = np.array([accuracies(name, hidden, seed) for seed in range(5)])
    print(
        f"{name} {hidden}: mean {runs.mean(axis=0).round(2)}, spread {runs.std(axis=0, ddof=1).round(2)}"
    )
    assert (runs.mean(axis=0) >= TABLE_1[name, hidden]).all()
