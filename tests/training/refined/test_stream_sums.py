"""What a stream keeps of its rows: without hidden layers it can be said exactly, for chunks of any size."""

import pickle

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.reference import same_bits

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

ROWS = 3000


def table():
    """Make columns in three units, far from zero, and what depends on all of them alike."""
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, 3)) * [1e-3, 1, 1e3] + [1, 5, 1e4]
    return X, X @ [1e3, 1, 1e-3] + 0.1 * random.normal(size=ROWS)


def streamed(X, y, size, weights=None, hidden=(), **options):
    model = bf.BPLSRegressor(hidden, random_state=0, **options)
    for first in range(0, len(X), size):
        part = slice(first, first + size)
        model.partial_fit(X[part], y[part], None if weights is None else weights[part])
    return model


def least_squares(X, y, w):
    """Give the function that linear regression on weighted rows finds."""
    mean, deviation = X.mean(axis=0), X.std(axis=0)

    def features(rows):
        return np.c_[(rows - mean) / deviation, np.ones(len(rows))]

    root = np.sqrt(w)
    coefficients = np.linalg.lstsq(features(X) * root[:, np.newaxis], y * root, rcond=None)[0]
    return lambda rows: features(rows) @ coefficients


@pytest.mark.parametrize("size", [1, 7, 500, ROWS])
def test_without_forgetting_a_linear_stream_is_regression_on_all_rows(size):
    X, y = table()
    expected = least_squares(X, y, np.ones(ROWS))(X)
    predicted = streamed(X, y, size, forgetting=1.0).predict(X)
    # The ridge is 1e-6 of columns of mean square 1.
    np.testing.assert_allclose(predicted, expected, atol=1e-5 * y.std())


def test_with_nothing_kept_a_linear_stream_is_regression_on_its_last_chunk():
    X, y = table()
    y[:-500] *= -3
    expected = least_squares(X[-500:], y[-500:], np.ones(500))(X)
    predicted = streamed(X, y, 500, forgetting=0.0).predict(X)
    np.testing.assert_allclose(predicted, expected, atol=1e-5 * y.std())


@pytest.mark.parametrize("size", [7, 250])
def test_the_past_fades_with_the_rows_that_came_since_and_not_with_the_calls(size):
    X, y = table()
    half = len(X) // 2
    y[:half] *= -1
    by_calls = streamed(X, y, size, forgetting=0.01).predict(X)
    one_by_one = streamed(X, y, 1, forgetting=0.01).predict(X)
    remembered = streamed(X, y, size, forgetting=1.0).predict(X)
    # Inside of a call nothing fades.
    assert np.abs(by_calls - one_by_one).max() <= 0.05 * y.std()
    assert np.abs(remembered - one_by_one).max() >= 0.5 * y.std()


@pytest.mark.parametrize("size", [50, ROWS])
def test_weights_of_a_linear_stream_are_repetitions(size):
    X, y = table()
    weights = np.random.default_rng(1).integers(0, 4, ROWS).astype(float)
    weights[::size] = 1  # no chunk weighs nothing
    expected = least_squares(X, y, weights)(X)
    predicted = streamed(X, y, size, weights, forgetting=1.0).predict(X)
    np.testing.assert_allclose(predicted, expected, atol=1e-5 * y.std())


def test_a_linear_classifier_learns_bytes_from_a_stream_as_from_all_of_them():
    x, y, x_test, y_test = bf.datasets.load("digits")
    whole = bf.BPLSClassifier((), random_state=0).fit(x, y)
    model = bf.BPLSClassifier((), random_state=0, forgetting=1.0)
    for first in range(0, len(x), 100):
        part = slice(first, first + 100)
        model.partial_fit(x[part], y[part], classes=range(10))
    assert np.mean(model.predict(x_test) == whole.predict(x_test)) >= 0.99
    assert model.score(x_test, y_test) >= 0.9


@pytest.mark.parametrize("hidden", [(), (12,), (12, 8)], ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_a_stream_in_a_pickle_goes_on_with_the_same_bits(hidden, dtype):
    x, y, _, _ = bf.datasets.load("digits")
    x = x.astype(dtype)
    model = bf.BPLSClassifier(hidden, "tanh", random_state=0)
    for part in (slice(0, 300), slice(300, 700)):
        model.partial_fit(x[part], y[part], classes=range(10))
    again = pickle.loads(pickle.dumps(model))
    for later in (model, again):
        later.partial_fit(x[700:], y[700:])
    pairs = zip(model.network_.weights, again.network_.weights, strict=True)
    assert all(same_bits(a, b) for a, b in pairs)


@pytest.mark.parametrize("hidden", [(), (12,)], ids=str)
def test_the_same_chunks_give_the_same_bits(hidden):
    X, y = table()
    one, other = (streamed(X, y, 700, hidden=hidden).network_.weights for _ in range(2))
    assert all(same_bits(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("hidden", [(), (12,)], ids=str)
def test_a_chunk_that_is_refused_changes_nothing(hidden):
    X, y = table()
    model = streamed(X, y, 1000, hidden=hidden)
    untouched = pickle.loads(pickle.dumps(model))
    broken = X[:20].copy()
    broken[3, 1] = np.nan
    for rows, outputs, weights in (
        (broken, y[:20], None),
        (X[:20, :2], y[:20], None),
        (X[:20], y[:19], None),
        (X[:20], np.c_[y[:20], y[:20]], None),
        (X[:20], y[:20], -np.ones(20)),
        (X[:0], y[:0], None),
    ):
        with pytest.raises(ValueError, match=r".+"):
            model.partial_fit(rows, outputs, weights)
    for after in (model, untouched):
        after.partial_fit(X[:100], y[:100])
    pairs = zip(model.network_.weights, untouched.network_.weights, strict=True)
    assert all(same_bits(a, b) for a, b in pairs)


@pytest.mark.parametrize("size", [100, 600])
def test_rows_of_the_caller_can_be_changed_after_the_call(size):
    X, y = table()
    model, other = (bf.BPLSRegressor((12,), random_state=0) for _ in range(2))
    memory, outputs, weights = np.empty((size, 3)), np.empty(size), np.empty(size)
    for first in range(0, ROWS, size):
        part = slice(first, first + size)
        memory[:], outputs[:], weights[:] = X[part], y[part], 2.0
        model.partial_fit(memory, outputs, weights)
        memory[:], outputs[:], weights[:] = 7, 7, 7
        other.partial_fit(X[part].copy(), y[part].copy(), np.full(size, 2.0))
    pairs = zip(model.network_.weights, other.network_.weights, strict=True)
    assert all(same_bits(a, b) for a, b in pairs)
