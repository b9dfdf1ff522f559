"""Degenerate training data, and what a fit may do with them: train, or refuse and leave the network unchanged."""

import numpy as np
import pytest

ROWS, COLUMNS = 30, 5
_rng = np.random.default_rng(0)
_X = _rng.normal(size=(ROWS, COLUMNS))
_labels = _rng.integers(0, 3, ROWS)


def _with_column(value):
    X = _X.copy()
    X[:, 2] = value
    return X


DATA = {
    "a constant column": (_with_column(7), _labels),
    "a column of zeros": (_with_column(0), _labels),
    "a huge column": (_with_column(1e9 * _X[:, 2]), _labels),
    "zeros": (0 * _X, _labels),
    "equal columns": (np.repeat(_X[:, :1], COLUMNS, axis=1), _labels),
    "equal rows": (np.repeat(_X[:1], ROWS, axis=0), _labels),
    "duplicated rows": (np.repeat(_X[:3], 10, axis=0), np.repeat([0, 1, 2], 10)),
    "duplicated rows of several classes": (np.repeat(_X[:3], 10, axis=0), _labels),
    "one class": (_X, 0 * _labels),
    "a class with one row": (_X, np.r_[0, 1 + np.arange(ROWS - 1) % 2]),
    "fewer rows than columns": (_X[:4], np.array([0, 1, 2, 1])),
    "one row": (_X[:1], np.array([2])),
    "two rows": (_X[:2], np.array([0, 2])),
    "one column": (_X[:, :1], _labels),
    "a large offset": (_X + 1e4, _labels),
}
"""Rows and labels 0, 1, 2; the fits must train on all of them."""

SCALES = [1e-310, 1e-160, 1e-40, 1e-20, 1e-8, 1e8, 1e20, 1e40, 1e160, 1e300]
"""What rows are multiplied by; the fits may refuse them."""


def assert_trains_or_refuses(net, fit):
    before = [W.copy() for W in net.weights]
    try:
        fit(net)
    except ValueError as error:
        assert "too large" in str(error)  # noqa: PT017
        for W, old in zip(net.weights, before, strict=True):
            np.testing.assert_array_equal(W, old)
        assert net.classes is None
        assert net.input_scale is None
    else:
        for W in net.weights:
            if not np.isfinite(W).all():
                pytest.fail("the weights hold NaN or infinity")
