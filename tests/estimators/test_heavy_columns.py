"""Columns as they come: heavy tails, zeros, constants and other units need no preparation."""

import copy
import pickle

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.estimators import each_estimator

pytest.importorskip("sklearn")

COLUMNS = {
    "Pareto": lambda rng, shape: rng.pareto(1, shape) + 1,
    "lognormal": lambda rng, shape: rng.lognormal(0, 3, shape),
}
LEAST = {"Pareto": 0.6, "lognormal": 0.2}


def ranks(X):
    return X.argsort(axis=0).argsort(axis=0) / len(X)


TARGETS = {
    "logarithms": lambda X: np.log(X[:, 0]) + np.log(X[:, 1]) - np.log(X[:, 2]),
    "all logarithms": lambda X: np.log1p(X).sum(axis=1),
    "ranks": lambda X: ranks(X)[:, 0] + 2 * ranks(X)[:, 1] - ranks(X)[:, 2],
    "tanh": lambda X: (
        np.tanh((X - np.median(X, 0)) / (np.quantile(X, 0.75, 0) - np.median(X, 0))) @ W
    ),
    "a sine of a logarithm": lambda X: np.sin(np.log1p(X[:, 0])) + 0.5 * np.log1p(X[:, 1]),
}
W = np.array([1.0, -1.0, 0.5, 0.3, -0.2, 0.1])


def table(columns, target, seed, rows=1000):
    """Return training and test rows."""
    rng = np.random.default_rng(seed)
    X = COLUMNS[columns](rng, (rows, 6))
    y = TARGETS[target](X)
    y += 0.1 * y.std() * rng.normal(size=rows)
    held = rows * 7 // 10
    return X[:held], y[:held], X[held:], y[held:]


def check(model, columns, target, seeds):
    scores = []
    for seed in seeds:
        X, y, x_test, y_test = table(columns, target, seed)
        fitted = model(seed).fit(X, y)
        scores.append(fitted.score(x_test, y_test))
        p = fitted.predict(x_test)
        size = y.max() - y.min()
        assert np.abs(p - (y.max() + y.min()) / 2).max() < 2 * size
    print(columns, target, np.mean(scores), min(scores))
    assert min(scores) > LEAST[columns]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_heavy_tails_are_learnt_from(columns, target):
    check(lambda seed: bf.BPLSRegressor(random_state=seed), columns, target, range(3))


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("networks", [1, 4])
def test_heavy_tails_are_learnt_from_with_twenty_seeds(columns, target, networks):
    def model(seed):
        return bf.BPLSRegressor(
            60 if networks == 1 else 100, n_networks=networks, random_state=seed
        )

    check(model, columns, target, range(20))


@pytest.mark.parametrize("columns", COLUMNS)
def test_the_method_of_the_paper_learns_from_heavy_tails(columns):
    scores = []
    for seed in range(3):
        X, y, x_test, y_test = table(columns, "logarithms", seed)
        fitted = bf.BPLSRegressor((60,), method="paper", random_state=seed).fit(X, y)
        scores.append(fitted.score(x_test, y_test))
    assert min(scores) > LEAST[columns]


def test_a_classifier_learns_from_heavy_tails():
    scores = []
    for seed in range(4):
        X, y, x_test, y_test = table("lognormal", "logarithms", seed)
        fitted = bf.BPLSClassifier(random_state=0).fit(X, y > 0)
        scores.append(fitted.score(x_test, y_test > 0))
    assert np.mean(scores) > 0.82


@each_estimator
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_limits_are_in_the_network(estimator, dtype, tmp_path):
    X, y, x_test, _ = table("Pareto", "logarithms", 0)
    X, x_test = X.astype(dtype), x_test.astype(dtype)
    y = y > 0 if estimator is bf.BPLSClassifier else y
    fitted = estimator((20,), random_state=0).fit(X, y)
    net = fitted.network_
    lower, upper = net.input_limits
    assert (upper.astype(dtype) < X).any()
    inside = np.clip(x_test, lower.astype(dtype), upper.astype(dtype))
    assert np.array_equal(fitted.predict(x_test), fitted.predict(inside))
    net.to_safetensors(tmp_path / "net")
    loaded = bf.Network.from_safetensors(tmp_path / "net")
    assert np.array_equal(loaded.predict(x_test), net.predict(x_test))
    assert np.array_equal(
        pickle.loads(pickle.dumps(fitted)).predict(x_test), fitted.predict(x_test)
    )


def test_the_members_of_a_committee_have_the_limits():
    X, y, x_test, _ = table("Pareto", "ranks", 0)
    fitted = bf.BPLSRegressor((20,), n_networks=3, random_state=0).fit(X, y)
    far = x_test.copy()
    far[:, 0] = 1e12
    near = np.clip(far, *fitted.network_.input_limits)
    for found, expected in zip(
        fitted.predict(far, return_std=True), fitted.predict(near, return_std=True), strict=True
    ):
        assert np.array_equal(found, expected)
    for found, expected in zip(
        fitted.predict_interval(far), fitted.predict_interval(near), strict=True
    ):
        assert np.array_equal(found, expected)


@each_estimator
def test_the_training_rows_are_not_changed_and_ordinary_ones_not_copied(estimator):
    X, y, _, _ = table("Pareto", "logarithms", 0)
    before = X.copy()
    estimator((5,), random_state=0).fit(X, y > 0)
    assert np.array_equal(X, before)


@each_estimator
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_offsets_are_subtracted_after_the_limits(estimator, offset):
    """Columns far from 0 are shifted during training; the network takes them as they are."""
    X, y, x_test, _ = table("Pareto", "logarithms", 1)
    y = y > 0 if estimator is bf.BPLSClassifier else y
    plain = estimator((20,), random_state=0).fit(X, y)
    shifted = estimator((20,), random_state=0).fit(X + offset, y)
    np.testing.assert_allclose(
        shifted.network_.input_limits, plain.network_.input_limits + offset, rtol=1e-6
    )
    found, expected = shifted.network_.forward(x_test + offset), plain.network_.forward(x_test)
    np.testing.assert_allclose(found, expected, atol=0.05 * np.abs(expected).max())


def test_bytes_have_no_limits():
    rng = np.random.default_rng(0)
    for X in (
        rng.integers(0, 256, (200, 4), np.uint8),
        np.c_[rng.integers(0, 256, (200, 4)), rng.integers(0, 2, (200, 2))].astype(np.uint8),
    ):
        fitted = bf.BPLSRegressor((5,), random_state=0).fit(X, X[:, 0] / 10.0)
        assert fitted.network_.input_limits is None


def test_other_columns_keep_working_beside_heavy_ones():
    """One-hot, binary and constant columns, zeros, and units that differ by 1e8 or more."""
    rng = np.random.default_rng(0)
    rows = 1500
    kind = rng.integers(0, 4, rows)
    flag = rng.integers(0, 2, rows)
    small, large = 1e-8 * rng.normal(size=rows), 1e8 * rng.normal(size=rows)
    events = np.where(rng.random(rows) < 0.9, 0, rng.lognormal(0, 2, rows))
    heavy = rng.pareto(1, rows) + 1
    X = np.column_stack([np.eye(4)[kind], flag, np.full(rows, 3.0), small, large, events, heavy])
    y = kind - 2 * flag + 1e8 * small + np.sin(1e-8 * large) + np.log1p(events) + np.log(heavy)
    fitted = bf.BPLSRegressor(random_state=0).fit(X[:1000], y[:1000])
    assert fitted.score(X[1000:], y[1000:]) > 0.9


@each_estimator
def test_rows_far_beyond_all_training_rows_are_harmless(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    y = X[:, 0] + X[:, 1]
    fitted = estimator((30,), "relu", random_state=0).fit(
        X, y > 0 if estimator is bf.BPLSClassifier else y
    )
    far = fitted.network_.forward(1e30 * X)
    assert np.abs(far).max() < 20 * np.abs(y).max()


# Streams.


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("batch", [50, 400])
def test_a_stream_learns_from_heavy_tails(columns, batch):
    X, y, x_test, y_test = table(columns, "logarithms", 0, rows=6000)
    stream = bf.BPLSRegressor(random_state=0)
    for begin in range(0, len(X), batch):
        stream.partial_fit(X[begin : begin + batch], y[begin : begin + batch])
    assert stream.score(x_test, y_test) > LEAST[columns]
    assert np.isfinite(stream.network_.input_limits).all()


def test_the_limits_of_a_stream_follow_a_column_that_drifts():
    rng = np.random.default_rng(0)
    stream = bf.BPLSRegressor((20,), random_state=0)
    for day in range(30):
        x = np.c_[day + rng.uniform(size=400), rng.normal(size=400)]
        stream.partial_fit(x, x[:, 1] + x[:, 0] / 10)
    assert stream.network_.input_limits[1, 0] >= 30


def test_a_stream_after_a_fit_begins_with_the_limits_of_the_fit():
    X, y, _, _ = table("Pareto", "logarithms", 0)
    fitted = bf.BPLSRegressor((20,), random_state=0).fit(X, y)
    limits = fitted.network_.input_limits
    fitted.partial_fit(X[:50], y[:50])
    assert np.array_equal(fitted.network_.input_limits, limits)


def test_a_warm_start_keeps_the_limits_that_the_weights_were_learnt_with():
    X, y, _, _ = table("Pareto", "logarithms", 0)
    model = bf.BPLSRegressor((20,), warm_start=True, random_state=0).fit(X, y)
    limits = model.network_.input_limits
    model.fit(3 * X, y)
    assert np.array_equal(model.network_.input_limits, limits)


def test_a_failed_call_leaves_the_limits_of_a_stream():
    X, y, _, _ = table("Pareto", "logarithms", 0)
    stream = bf.BPLSRegressor((20,), random_state=0).partial_fit(X, y)
    before = copy.deepcopy(stream._limits)
    with pytest.raises(ValueError, match="X has dtype uint8"):
        stream.partial_fit(X.clip(0, 255).astype(np.uint8), y)
    assert np.array_equal(stream._limits, before)
