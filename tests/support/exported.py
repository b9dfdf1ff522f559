"""Networks and rows that the tests of all formats export, and what "equal" means for them."""

import numpy as np

import bpls_fast as bf
from tests.support.reference import ACTIVATIONS, same_bits

NAMES = list(ACTIVATIONS)
ROWS = np.random.default_rng(7).normal(size=(40, 6))


def network(name, *, bias=True, scale=None, classes=None):
    """Make a network of three layers with the named activation in all of them."""
    net = bf.Network([6, 5, 4, 3], name, name, bias, seed=3, input_scale=scale)
    net.classes = classes
    return net


def assert_same_network(net, expected):
    """Check everything, the weights and labels to the bit."""
    assert repr(net) == repr(expected)
    assert net.input_scale == expected.input_scale
    assert np.array_equal(net.input_limits, expected.input_limits)
    for W, wanted in zip(net.weights, expected.weights, strict=True):
        assert same_bits(W, wanted)
        assert W.flags.writeable
    assert (net.classes is None) == (expected.classes is None)
    if net.classes is not None:
        assert same_bits(net.classes, expected.classes)


def assert_equal_outputs(outputs, expected):
    """Check the outputs of another library; those of these networks are of order 1 or 10."""
    assert outputs.shape == expected.shape
    np.testing.assert_allclose(outputs, expected, rtol=1e-6, atol=1e-6)
