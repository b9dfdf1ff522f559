"""Rows of bytes: images, whose columns share one unit, and tables, whose columns do not."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.estimators.byte_tables import is_table
from tests.support.required import real_images

pytest.importorskip("sklearn")


def table(count=1000, one_hot=False):
    """Return ten dummies that determine y beside five columns of noise, and y."""
    random = np.random.default_rng(0)
    dummies = random.integers(0, 2, (count, 10))
    if one_hot:
        dummies = np.eye(10, dtype=int)[random.integers(0, 10, count)]
    noise = random.integers(0, 256, (count, 5))
    return np.c_[dummies, noise].astype(np.uint8), dummies @ np.linspace(-1, 2, 10)


@pytest.mark.parametrize("one_hot", [False, True])
@pytest.mark.parametrize("method", ["refined", "paper"])
def test_a_table_of_bytes_is_learnt_like_the_same_numbers(method, one_hot):
    X, y = table(one_hot=one_hot)
    train, test = slice(700), slice(700, None)
    scores = []
    for dtype in (np.uint8, np.int64):
        rows = X.astype(dtype)
        model = bf.BPLSRegressor(method=method, random_state=0).fit(rows[train], y[train])
        scores.append(model.score(rows[test], y[test]))
    assert scores[0] == pytest.approx(scores[1], abs=2e-3)
    assert scores[0] > 0.99


def test_classes_of_a_table_of_bytes_are_learnt_like_those_of_the_same_numbers():
    X, y = table()
    of_bytes, of_floats = (
        bf.BPLSClassifier(random_state=0).fit(rows, y > 2) for rows in (X, X.astype(np.float32))
    )
    np.testing.assert_allclose(
        of_bytes.predict_proba(X), of_floats.predict_proba(X.astype(np.float32)), atol=1e-6
    )


@pytest.mark.parametrize("rows", [50, 200, 2000])
def test_a_stream_decides_by_its_first_rows_and_keeps_to_it(rows):
    X, y = table(2000)
    streams = []
    for whole in (X, X.astype(np.float32)):
        model = bf.BPLSRegressor(random_state=0)
        for first in range(0, len(X), rows):
            # Columns of zeros after the first rows would be images by themselves.
            part = whole[first : first + rows].copy()
            part[:, :10] *= first < 1000
            model.partial_fit(part, y[first : first + rows])
        streams.append(model.predict(X))
    np.testing.assert_allclose(streams[0], streams[1], rtol=0, atol=1e-5)


def test_a_stream_after_a_fit_reads_bytes_as_the_fit_did():
    X, y = table()
    predicted = []
    for rows in (X, X.astype(np.float32)):
        model = bf.BPLSRegressor(random_state=0).fit(rows, y)
        predicted.append(model.partial_fit(rows[:300], y[:300]).predict(rows))
    np.testing.assert_allclose(predicted[0], predicted[1], rtol=0, atol=1e-5)


def test_the_network_of_a_table_takes_bytes_and_the_same_numbers_as_floats():
    X, y = table()
    net = bf.BPLSRegressor(random_state=0).fit(X, y).network_
    assert net.input_scale == 1
    np.testing.assert_allclose(net.forward(X), net.forward(X.astype(np.float64)), atol=1e-5)


@pytest.mark.parametrize("scale", [1 / 255, 1 / 16])
def test_bytes_are_images_if_the_user_says_so(scale):
    X, y = table()
    net = bf.BPLSRegressor(random_state=0, input_scale=scale).fit(X, y).network_
    assert net.input_scale == scale
    stream = bf.BPLSRegressor(random_state=0, input_scale=scale).partial_fit(X, y)
    assert stream.network_.input_scale == scale


def test_the_scale_of_images_changes_nothing_by_default(digits):
    X, y = digits.x_train, digits.y_train
    one, other = (
        bf.BPLSClassifier(random_state=0, input_scale=scale).fit(X, y) for scale in (None, 1 / 255)
    )
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.network_.input_scale == 1 / 255


@pytest.mark.parametrize("scale", [0, -1.0, "image"])
def test_a_scale_that_is_no_positive_number_is_refused(scale):
    X, y = table(50)
    with pytest.raises(ValueError, match="input_scale"):
        bf.BPLSRegressor(input_scale=scale).fit(X, y)


@pytest.mark.parametrize("rows", [10, 50, 200, 1000, None])
@pytest.mark.parametrize("name", ["digits", "mnist", "fashion-mnist"])
def test_images_are_no_table(name, rows, digits):
    X = (digits if name == "digits" else real_images(name)).x_train
    assert not is_table(X[:rows])


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (3, 2), (4001, 3)])
def test_columns_in_one_unit_are_no_table(shape):
    random = np.random.default_rng(0)
    for values in (1, 2, 256):
        assert not is_table(random.integers(0, values, shape, np.uint8))
