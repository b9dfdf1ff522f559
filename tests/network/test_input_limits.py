"""The limits of a network's inputs: what is outside is moved to the nearer limit, by every way to predict."""

import copy
import pickle

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.kernels import clip_rows
from bpls_fast.network.committee import joined_network
from tests.support.reference import same_bits

LIMITS = np.array([[-1.0, 0.0, -np.inf, -0.25, 2.0], [1.0, 0.5, 3.0, np.inf, 2.0]])
ROWS = 3 * np.random.default_rng(1).normal(size=(130, 5))
DTYPES = [np.float32, np.float64]
HIDDEN = [(), (7,), (60, 8)]


def network(hidden=(7,), limits=LIMITS, **options):
    return bf.Network([5, *hidden, 3], "tanh", "softmax", seed=2, input_limits=limits, **options)


def clipped(rows):
    """Return rows inside the limits, by NumPy."""
    ends = LIMITS.astype(rows.dtype if rows.dtype.kind == "f" else np.float32)
    return np.minimum(np.maximum(rows.astype(ends.dtype), ends[0]), ends[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
def test_outputs_are_those_of_rows_inside_the_limits(hidden, dtype):
    net, free = network(hidden), network(hidden, None)
    rows = ROWS.astype(dtype)
    assert same_bits(net.forward(rows), free.forward(clipped(rows)))
    assert same_bits(net.decision(rows), free.decision(clipped(rows)))
    assert same_bits(net.layer_inputs(rows)[0], clipped(rows))
    assert not np.array_equal(net.forward(rows), free.forward(rows))


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES, np.uint8])
@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
def test_every_way_to_predict_gives_the_same_bits(hidden, dtype, labelled):
    net = network(hidden)
    if labelled:
        net.classes = np.array(["a", "b", "c"])
    rows = np.abs(ROWS).astype(dtype) if dtype == np.uint8 else ROWS.astype(dtype)
    predictor = bf.Predictor(net)
    for given in (rows, np.asfortranarray(rows), rows[::-1], rows[:1]):
        assert same_bits(predictor.forward(given), net.forward(given))
        assert same_bits(predictor.predict(given), net.predict(given))
    for row, expected in zip(rows, net.predict(rows), strict=True):
        assert np.array_equal(net.predict_one(row), expected)
        assert np.array_equal(predictor.predict_one(row), expected)


def test_bytes_are_not_scaled_by_default_in_a_network_with_limits():
    rows = np.array([[0, 1, 2, 3, 4], [9, 0, 250, 7, 1]], np.uint8)
    assert np.array_equal(network().forward(rows), network().forward(rows.astype(np.float32)))
    scaled, free = network(input_scale=0.5), network(limits=None, input_scale=0.5)
    assert np.array_equal(scaled.forward(rows), free.forward(clipped(rows)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_refused_as_without_limits(dtype, wrong):
    rows = ROWS[:3].astype(dtype)
    rows[1, 0] = wrong
    net = network()
    predictor = bf.Predictor(net)
    for predict in (net.forward, net.predict, predictor.forward, predictor.predict):
        with pytest.raises(bf.NonFiniteError, match=r"X contains .* at \[1, 0\]"):
            predict(rows)
    for predict_one in (net.predict_one, predictor.predict_one):
        with pytest.raises(bf.NonFiniteError, match="X contains"):
            predict_one(rows[1])


@pytest.mark.parametrize("dtype", [*DTYPES, np.uint8])
def test_clip_rows_gives_what_numpy_gives(dtype):
    for shape in ((1, 5), (3, 5), (400, 5), (0, 5)):
        rows = (50 * np.abs(np.random.default_rng(0).normal(size=shape))).astype(dtype)
        for given in (rows, np.asfortranarray(rows), rows[::-1]):
            assert same_bits(clip_rows(given, LIMITS), clipped(given))


def test_a_limit_beyond_float32_is_none_for_float32():
    rows = np.array([[3e38, -3e38]], np.float32)
    limits = np.array([[-1e300, -1.0], [1e300, 1e39]])
    assert np.array_equal(clip_rows(rows, limits), np.array([[3e38, -1]], np.float32))


def test_limits_change_predictions_at_once():
    net = network(limits=None)
    net.predict_one(ROWS[0])
    net.input_limits = LIMITS
    assert np.array_equal(net.predict_one(ROWS[0]), net.predict(ROWS[:1])[0])
    with pytest.raises(ValueError, match="read-only"):
        net.input_limits[0, 0] = 5.0
    net.input_limits = None
    assert np.array_equal(net.forward(ROWS), network(limits=None).forward(ROWS))


def test_copies_keep_the_limits():
    net = network()
    for other in (
        copy.copy(net),
        copy.deepcopy(net),
        pickle.loads(pickle.dumps(net)),
        net.with_weights(net.weights),
        joined_network([net, net]),
        joined_network([net]),
    ):
        assert np.array_equal(other.input_limits, LIMITS)
        np.testing.assert_allclose(other.forward(ROWS), net.forward(ROWS), rtol=1e-12)
    predictor = pickle.loads(pickle.dumps(bf.Predictor(net)))
    assert np.array_equal(predictor.forward(ROWS), net.forward(ROWS))


def test_networks_with_other_limits_are_not_joined():
    for other in (network(limits=None), network(limits=2 * LIMITS)):
        with pytest.raises(ValueError, match="networks differ in input_limits"):
            joined_network([network(), other])


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (LIMITS[:, :4], r"input_limits has shape \(2, 4\); expected \(2, 5\)"),
        (LIMITS.T, r"input_limits has shape \(5, 2\); expected \(2, 5\)"),
        (3.0, r"input_limits has shape \(\); expected \(2, 5\)"),
        (LIMITS[::-1], r"input_limits of input 0 are 1.0 and -1.0; expected numbers"),
        (np.full((2, 5), np.nan), "input_limits of input 0 are nan and nan; expected numbers"),
        (np.full((2, 5), np.inf), "input_limits of input 0 are inf and inf; expected numbers"),
        (np.full((2, 5), -np.inf), "input_limits of input 0 are -inf and -inf; expected numbers"),
    ],
)
def test_limits_that_are_none_are_refused(limits, message):
    with pytest.raises(ValueError, match=message):
        network(limits=limits)
    net = network()
    with pytest.raises(ValueError, match=message):
        net.input_limits = limits
    assert np.array_equal(net.input_limits, LIMITS)


def test_limits_that_are_no_numbers_are_refused():
    with pytest.raises(TypeError, match="input_limits is 'ab'; expected two rows of numbers"):
        network(limits="ab")


@pytest.mark.parametrize("fit", ["refined", "injective", "classifier"])
def test_fits_train_on_rows_inside_the_limits_and_keep_them(fit):
    rows = np.random.default_rng(3).normal(size=(200, 5))
    labels = (rows[:, 0] > 0).astype(int)
    far = rows.copy()
    far[::10, 0] *= 1e6
    limits = np.array([[-2.0] * 5, [2.0] * 5])
    train = {
        "refined": bf.fit_refined,
        "injective": lambda net, X, y: bf.fit_injective(net, X, np.eye(2)[y] * 0.8 + 0.1),
        "classifier": bf.fit_classifier,
    }[fit]
    output = "sigmoid" if fit == "injective" else "softmax"
    limited = bf.Network([5, 8, 2], "tanh", output, seed=0, input_limits=limits)
    free = bf.Network([5, 8, 2], "tanh", output, seed=0)
    train(limited, far, labels)
    train(free, np.clip(far, -2, 2), labels)
    assert np.array_equal(limited.input_limits, limits)
    assert np.array_equal(limited.forward(far), free.forward(np.clip(far, -2, 2)))
