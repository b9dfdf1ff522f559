"""The start of refined sweeps: pre-activations of equal spread."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.data import Samples
from bpls_fast.training.refined.start import OFFSET, SOFTMAX_SPREAD, scaled_start
from tests.support.reference import ACTIVATIONS, with_ones

HIDDEN = ["sigmoid", "tanh", "relu", "leaky_relu", "elu", "softplus", "softmax"]


@pytest.mark.parametrize("name", HIDDEN)
def test_the_start_spreads_pre_activations_alike(name):
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 4)) * [1, 10, 100, 1000] + 50
    net = bf.Network([4, 9, 7, 2], name, seed=0)
    A = X
    for W in scaled_start(net, Samples(X, X[:, :2], None, None), random)[:-1]:
        Z = with_ones(A, True) @ W
        spread = SOFTMAX_SPREAD if name == "softmax" else 1.0
        np.testing.assert_allclose(Z.std(axis=0), spread, rtol=1e-6)
        assert np.abs(Z.mean(axis=0)).max() <= OFFSET * spread
        assert np.abs(Z.mean(axis=0)).max() > 0.1 * spread
        A = ACTIVATIONS[name](Z)


def test_a_pre_activation_that_does_not_vary_is_not_scaled():
    X = np.ones((20, 4))
    net = bf.Network([4, 5, 2], "tanh", seed=0)
    hidden, _ = scaled_start(net, Samples(X, X[:, :2], None, None), np.random.default_rng(0))
    np.testing.assert_array_equal(hidden[:-1], net.weights[0][:-1])
