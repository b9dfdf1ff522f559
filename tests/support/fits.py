"""Small fits of the paper's two algorithms, for what every fit reports."""

import numpy as np

import bpls_fast as bf


def fit_classes(**options):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    X = np.eye(3)[labels] + 0.5 * rng.normal(size=(300, 3))
    net = bf.Network([3, 8, 3], "sigmoid", seed=0)
    return net, X, labels, bf.fit_classifier(net, X, labels, **options)


def fit_numbers(**options):
    X = np.linspace(-1, 1, 50)[:, np.newaxis]
    net = bf.Network([1, 8, 1], "tanh", "identity", seed=0)
    return net, X, bf.fit_injective(net, X, X**2, **options)
