"""Regression targets of any offset and unit, whatever the type of the rows."""

import numpy as np
import pytest

import bpls_fast as bf

pytest.importorskip("sklearn")

METHODS = ("refined", "paper")
ROW_TYPES = (np.float32, np.uint8)


def rows_of(dtype, count=400):
    """Return rows, and targets with standard deviation near 1 that they determine."""
    x = np.random.default_rng(0).uniform(0, 255, (count, 3)).astype(dtype)
    scaled = x.astype(np.float64) / 80
    return x, scaled[:, 0] + np.sin(scaled[:, 1])


@pytest.mark.parametrize("dtype", ROW_TYPES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("offset", "unit"),
    [(1e9, 1.0), (-1e7, 1e-3), (0.0, 1e38), (1e60, 1e55), (0.0, 1e-200), (0.0, 1e200)],
)
def test_the_offset_and_the_unit_of_y_do_not_matter(dtype, method, offset, unit):
    x, y = rows_of(dtype)
    # Rounding may change what is chosen; without a choice it is all that changes.
    model = bf.BPLSRegressor(30, "tanh", n_networks=1, method=method, random_state=0)
    expected = model.fit(x, y).predict(x)
    predicted = model.fit(x, offset + unit * y).predict(x)
    assert predicted.dtype == np.float64
    # The sums of a fit round otherwise where y does; 10⁹ + y has six decimals left.
    np.testing.assert_allclose((predicted - offset) / unit, expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize(("offset", "unit"), [(1e9, 1.0), (-1e7, 1e-3), (1e60, 1e55)])
def test_several_networks_learn_y_in_any_unit(offset, unit):
    x, y = rows_of(np.float32)
    model = bf.BPLSRegressor(random_state=0)
    scores = [model.fit(x, target).score(x, target) for target in (y, offset + unit * y)]
    assert scores[1] == pytest.approx(scores[0], abs=0.01)


@pytest.mark.parametrize("dtype", ROW_TYPES)
def test_a_stream_of_targets_far_from_zero_is_learnt(dtype):
    x, y = rows_of(dtype, 1500)
    model = bf.BPLSRegressor(30, random_state=0)
    for part in np.array_split(np.arange(len(x)), 3):
        model.partial_fit(x[part], 1e9 + y[part])
    assert model.score(x, 1e9 + y) > 0.9


def test_the_uncertainty_of_targets_far_from_zero_has_their_spread():
    x, y = rows_of(np.float32)
    model = bf.BPLSRegressor(20, n_networks=3, random_state=0).fit(x, 1e9 + y)
    outputs, deviations = model.predict(x, return_std=True)
    lower, upper = model.predict_interval(x, coverage=0.8)
    assert np.abs(outputs - 1e9 - y).mean() < 0.2
    assert (deviations < 1).all()
    assert ((lower <= 1e9 + y) & (1e9 + y <= upper)).mean() > 0.7
    assert (upper - lower).max() < 2


@pytest.mark.parametrize("dtype", [*ROW_TYPES, np.float64])
@pytest.mark.parametrize("method", METHODS)
def test_an_exported_network_predicts_what_the_regressor_does(tmp_path, dtype, method):
    x, y = rows_of(dtype)
    model = bf.BPLSRegressor(30, method=method, random_state=0).fit(x, 7 + y)
    model.network_.save(tmp_path / "net.npz")
    alone = bf.Network.load(tmp_path / "net.npz")
    tolerance = 0 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(alone.forward(x)[:, 0], model.predict(x), rtol=0, atol=tolerance)


def test_float64_rows_have_every_digit_of_an_exported_network():
    x, y = rows_of(np.float32)
    model = bf.BPLSRegressor(30, random_state=0).fit(x, 1e9 + y)
    outputs = model.network_.forward(x.astype(np.float64))[:, 0]
    np.testing.assert_allclose(outputs, model.predict(x), rtol=0, atol=1e-3)
