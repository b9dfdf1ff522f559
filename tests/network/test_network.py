"""The network: its shapes, its forward pass against NumPy's, and what it refuses."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpls_fast as bf
from tests.support import reference_bpls
from tests.support.networks import networks
from tests.support.reference import ACTIVATIONS, in_layout


def names_of(net):
    return [activation.name for activation in net.activations]


# Weights.


def test_weights_have_a_row_for_every_input_and_one_for_the_bias():
    assert [W.shape for W in bf.Network([4, 3, 2]).weights] == [(5, 3), (4, 2)]
    assert [W.shape for W in bf.Network([4, 3, 2], bias=False).weights] == [(4, 3), (3, 2)]
    assert [W.shape for W in bf.Network([4, 2]).weights] == [(5, 2)]


def test_initial_weights_are_uniform_between_low_and_high():
    W = bf.Network([99, 100], low=-0.25, high=0.75, seed=3).weights[0]
    assert W.dtype == np.float64
    assert -0.25 <= W.min() < -0.24
    assert 0.74 < W.max() <= 0.75
    # The mean of 10,000 uniform numbers is off by 0.0029 on average; 6 times that is chance no more.
    assert abs(W.mean() - 0.25) < 6 * 1 / np.sqrt(12 * W.size)


def test_an_activation_may_be_given_as_an_object():
    tanh, identity = bf.activations["tanh"], bf.activations["identity"]
    for hidden in (tanh, [tanh, "tanh"]):
        net = bf.Network([2, 3, 3, 1], hidden, identity)
        assert net.activations == (tanh, tanh, identity)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    def first(seed):
        return bf.Network([3, 4, 2], seed=seed).weights[0].tobytes()

    assert first(1) == first(1) == first(np.random.default_rng(1))
    assert first(1) != first(2)
    assert first(None) != first(None)


def test_assigned_weights_are_checked_and_copied():
    net = bf.Network([2, 1], bias=False)
    W = np.array([[1.0], [2.0]])
    net.weights = [W]
    W[0] = 7
    assert net.weights[0].tolist() == [[1.0], [2.0]]
    for wrong in ([W, W], [W.T], [np.array([[np.nan], [1.0]])], [np.array([[np.inf], [1.0]])]):
        with pytest.raises(ValueError, match="weights"):
            net.weights = wrong
        assert net.weights[0].tolist() == [[1.0], [2.0]]


def test_a_network_with_other_weights_leaves_the_first_alone():
    net = bf.Network([2, 1], bias=False, seed=0)
    before = net.weights[0].copy()
    other = net.with_weights([np.ones((2, 1))])
    other.weights[0][:] = 5
    np.testing.assert_array_equal(net.weights[0], before)


# Forward.


@given(net=networks(), rows=st.integers(0, 9), seed=st.integers(0, 999))
def test_forward_is_that_of_plain_numpy(net, rows, seed):
    X = np.random.default_rng(seed).normal(size=(rows, net.layer_sizes[0]))
    expected = reference_bpls.layer_inputs(net.weights, names_of(net), net.bias, X)
    # Values are of order 1 to 1000 (six inputs, weights below 1, four layers): rounding is far below.
    np.testing.assert_allclose(net.forward(X), expected[-1], rtol=1e-10, atol=1e-12)
    for values, wanted in zip(net.layer_inputs(X), expected[:-1], strict=True):
        np.testing.assert_allclose(values, wanted, rtol=1e-10, atol=1e-12)
    narrow = net.forward(X.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, expected[-1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("bias", [True, False])
def test_bytes_are_read_as_numbers_between_0_and_1(bias):
    X = np.random.default_rng(0).integers(0, 256, (20, 5), dtype=np.uint8)
    net = bf.Network([5, 4, 2], "tanh", "identity", bias)
    assert net.forward(X).dtype == np.float32
    np.testing.assert_allclose(net.forward(X), net.forward(X / 255), rtol=1e-5, atol=1e-5)


def test_input_scale_multiplies_every_input():
    X = np.random.default_rng(0).integers(0, 256, (20, 5), dtype=np.uint8)
    net = bf.Network([5, 4, 2], "tanh", "identity", input_scale=0.5)
    plain = bf.Network([5, 4, 2], "tanh", "identity")
    np.testing.assert_allclose(net.forward(X / 4), plain.forward(X / 8), rtol=1e-12)
    np.testing.assert_allclose(net.forward(X), plain.forward(X / 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["Fortran order", "every second row", "reversed", "read-only"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_rows_of_any_layout_give_the_bits_of_contiguous_ones(layout, dtype):
    X = np.random.default_rng(0).integers(0, 256, (20, 5)).astype(dtype)
    net = bf.Network([5, 4, 2], "sigmoid", input_scale=1 / 255)
    assert net.forward(in_layout(X, layout)).tobytes() == net.forward(X).tobytes()


@pytest.mark.parametrize("X", [[[1, 2]], np.array([[1, 2]], np.int16), np.array([[1, 2]], ">f4")])
def test_other_real_numbers_are_converted(X):
    net = bf.Network([2, 1], output_activation="identity")
    assert net.forward(X).tobytes() == net.forward(np.array([[1.0, 2.0]])).tobytes()


def test_decision_is_what_the_output_activation_is_given():
    net = bf.Network([3, 4, 2], "tanh", "sigmoid")
    X = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_allclose(ACTIVATIONS["sigmoid"](net.decision(X)), net.forward(X), rtol=1e-12)


def test_predict_gives_outputs_without_classes_and_labels_with_them():
    net = bf.Network([3, 2], output_activation="sigmoid")
    X = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_array_equal(net.predict(X), net.forward(X))
    net.classes = np.array(["no", "yes"])
    labels = net.predict(X)
    assert set(labels) == {"no", "yes"}
    np.testing.assert_array_equal(labels == "yes", net.forward(X)[:, 1] > net.forward(X)[:, 0])


def test_predict_one_is_predict_of_one_row():
    net = bf.Network([3, 2], output_activation="sigmoid")
    X = np.random.default_rng(0).normal(size=(5, 3))
    assert net.predict_one(X[2]).tobytes() == net.predict(X)[2].tobytes()
    net.classes = np.array([3, 7])
    assert net.predict_one(X[2]) == net.predict(X)[2]
    assert net.predict_one([1, 2, 3]) in (3, 7)
    with pytest.raises(ValueError, match=r"x has 2 dimensions.*3 numbers"):
        net.predict_one(X)


@given(net=networks())
def test_pickled_and_copied_networks_give_the_same_bits(net):
    X = np.random.default_rng(0).normal(size=(4, net.layer_sizes[0]))
    for other in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert other.forward(X).tobytes() == net.forward(X).tobytes()
        other.weights[0][:] = 0
    assert any(W.any() for W in net.weights)


@given(net=networks())
def test_the_representation_builds_a_network_of_the_same_shape(net):
    again = eval(repr(net), {"Network": bf.Network})
    assert again.layer_sizes == net.layer_sizes
    assert again.bias == net.bias
    assert names_of(again) == names_of(net)


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "exception", "message"),
    [
        ({"layer_sizes": [3]}, ValueError, "layer_sizes.*at least two"),
        ({"layer_sizes": []}, ValueError, "layer_sizes.*at least two"),
        ({"layer_sizes": [3, 0, 2]}, ValueError, "layer_sizes.*>= 1"),
        ({"layer_sizes": [3, -1]}, ValueError, "layer_sizes.*>= 1"),
        ({"layer_sizes": [3, 2.5]}, ValueError, "layer_sizes.*whole"),
        ({"layer_sizes": 3}, TypeError, "layer_sizes.*sequence"),
        ({"layer_sizes": ["a", 2]}, TypeError, "layer_sizes.*whole"),
        ({"layer_sizes": [float("inf"), 2]}, TypeError, "layer_sizes.*whole"),
        ({"activation": "swish"}, ValueError, "^activation is 'swish'.*sigmoid"),
        ({"activation": ["tanh"]}, ValueError, "activation names 1.*2 hidden"),
        ({"activation": None}, TypeError, "^activation is None; expected one of"),
        ({"activation": [["a"]] * 2}, ValueError, r"^activation is \['a'\]; expected one of"),
        ({"seed": "a"}, TypeError, "^seed is 'a'; expected"),
        ({"seed": -1}, ValueError, "^seed is -1; expected"),
        ({"activation": ["tanh", None]}, ValueError, "^activation is None"),
        ({"layer_sizes": [3, 2], "activation": "swish"}, ValueError, "^activation is 'swish'"),
        ({"output_activation": "swish"}, ValueError, "^output_activation is 'swish'"),
        ({"bias": 1}, TypeError, "bias is 1"),
        ({"low": 2.0}, ValueError, "low and high are 2.0 and 1.0"),
        ({"low": float("nan")}, ValueError, "low and high"),
        ({"high": float("inf")}, ValueError, "low and high"),
        ({"low": -1e308, "high": 1e308}, ValueError, "low and high"),
        ({"low": "a"}, ValueError, "low and high are 'a'"),
        ({"input_scale": 0.0}, ValueError, "input_scale is 0.0"),
        ({"input_scale": float("nan")}, ValueError, "input_scale is nan"),
        ({"input_scale": "1"}, TypeError, "input_scale is '1'"),
    ],
)
def test_a_wrong_argument_is_named(arguments, exception, message):
    with pytest.raises(exception, match=message):
        bf.Network(**{"layer_sizes": [3, 4, 5, 2], **arguments})


@pytest.mark.parametrize(
    ("X", "exception", "message"),
    [
        (np.zeros(3), ValueError, "X has 1 dimensions; expected 2"),
        (np.zeros((2, 4)), ValueError, "X has 4 columns; expected 3"),
        (np.zeros((2, 3), complex), TypeError, "X has dtype complex128"),
        (np.array([["a", "b", "c"]]), TypeError, "X has dtype <U1"),
        (np.array([[0, 1, np.nan]]), ValueError, r"X contains NaN at \[0, 2\]"),
        (np.array([[0, 1, 2], [0, np.inf, 2]]), ValueError, r"X contains infinity at \[1, 1\]"),
    ],
)
@pytest.mark.parametrize("method", ["forward", "predict", "decision"])
def test_wrong_rows_are_named(method, X, exception, message):
    with pytest.raises(exception, match=message):
        getattr(bf.Network([3, 2, 2]), method)(X)


def test_weights_too_large_for_the_rows_are_refused():
    net = bf.Network([1, 1], output_activation="identity")
    net.weights = [np.full((2, 1), 1e39)]
    with pytest.raises(ValueError, match="W contains infinity"):
        net.forward(np.ones((1, 1), np.float32))
    assert net.forward(np.ones((1, 1))) == 2e39


def test_a_network_that_owns_weights_checks_them_without_a_copy():
    net = bf.Network([3, 4, 2], "tanh", seed=0)
    weights = [W + 1 for W in net.weights]
    other = net.owning(weights)
    assert all(found is given for found, given in zip(other.weights, weights, strict=True))
    assert net.weights[0] is not other.weights[0]
    with pytest.raises(ValueError, match="shapes"):
        net.owning(weights[:1])
    with pytest.raises(bf.NonFiniteError, match="NaN"):
        net.owning([weights[0], np.full_like(weights[1], np.nan)])
