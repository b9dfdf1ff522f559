"""What the estimators learn: accuracy, units and offsets of columns, the default ridge."""

import tracemalloc

import numpy as np
import pytest

import bpls_fast as bf
from tests.support import images

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, make_friedman1, make_friedman3
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.support.estimators import each_estimator

SEEDS = range(5)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


# What they learn


def test_digits_are_learnt_from_bytes(digits):
    x, y, x_test, y_test = digits
    fits = [bf.BPLSClassifier(random_state=seed).fit(x, y) for seed in SEEDS]
    assert np.mean([fit.score(x, y) for fit in fits]) >= 0.95
    assert np.mean([fit.score(x_test, y_test) for fit in fits]) >= 0.90


def test_a_table_of_columns_in_many_units_is_learnt(wine):
    scores = cross_val_score(bf.BPLSClassifier(random_state=0), *wine)
    assert scores.mean() >= 0.94


def mean_r2(estimator, X, y):
    """Score on a quarter of the rows, on average over splits; the seed of the start is the split's."""
    scores = []
    for seed in SEEDS:
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
        fitted = clone(estimator)
        if "random_state" in fitted.get_params():
            fitted.set_params(random_state=seed)
        scores.append(fitted.fit(X_train, y_train).score(X_test, y_test))
    return np.mean(scores)


def test_few_noisy_rows_are_fitted_as_well_as_by_ridge_regression(diabetes):
    ridge = make_pipeline(StandardScaler(), Ridge())
    linear = mean_r2(ridge, *diabetes)
    assert mean_r2(bf.BPLSRegressor(method="paper"), *diabetes) >= linear - 0.03
    assert mean_r2(bf.BPLSRegressor(), *diabetes) >= linear - 0.06


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "softmax"])
def test_what_is_not_linear_is_fitted_far_better_than_by_a_linear_model(activation):
    X, y = make_friedman3(1000, noise=0.1, random_state=0)
    fitted = mean_r2(bf.BPLSRegressor(activation=activation), X, y)
    assert fitted >= mean_r2(LinearRegression(), X, y) + 0.2


def test_many_outputs_are_fitted_each_in_its_own_units():
    X, y = make_friedman1(800, random_state=0)
    Y = np.column_stack([y, 1e6 * y + 3e7, -1e-5 * y])
    regressor = bf.BPLSRegressor(random_state=0).fit(X, Y)
    assert regressor.predict(X).shape == Y.shape
    each = regressor.predict(X)
    for column in range(3):
        residual = np.mean((each[:, column] - Y[:, column]) ** 2)
        assert residual <= 0.3 * Y[:, column].var()


def test_one_output_keeps_the_shape_of_y(diabetes):
    X, y = diabetes
    assert bf.BPLSRegressor().fit(X, y).predict(X[:7]).shape == (7,)
    assert bf.BPLSRegressor().fit(X, y[:, np.newaxis]).predict(X[:7]).shape == (7, 1)


def test_without_hidden_layers_a_regressor_is_linear_regression(diabetes):
    X, y = diabetes
    X = X * np.logspace(-6, 6, X.shape[1]) + 1e3  # columns that a ridge on X itself would drown
    regressor = bf.BPLSRegressor(hidden_layer_sizes=()).fit(X, y)
    expected = LinearRegression().fit(diabetes[0], y).predict(diabetes[0])
    # The smallest column is 1e-6 * 0.05 beside 1e3: twenty billion deviations, of which float64 keeps six digits.
    np.testing.assert_allclose(regressor.predict(X), expected, rtol=1e-4)


def test_a_constant_output_is_given_back():
    X = np.random.default_rng(0).normal(size=(30, 3))
    predicted = bf.BPLSRegressor(random_state=0).fit(X, np.full(30, 7.5)).predict(X)
    np.testing.assert_allclose(predicted, 7.5)


def test_more_than_a_hundred_classes_are_learnt():
    X = np.random.default_rng(0).normal(size=(130, 5))
    X, y = np.tile(X, (3, 1)), np.tile(np.arange(130), 3)
    classifier = bf.BPLSClassifier((200,), "sigmoid", random_state=0).fit(X, y)
    assert classifier.predict_proba(X).shape == (390, 130)
    assert classifier.score(X, y) >= 0.9


# Units, offsets and types of the columns


@each_estimator
@pytest.mark.parametrize(
    ("dtype", "scale", "offset", "rtol"),
    [
        ("float64", 1e-9, 0.0, 1e-6),
        ("float64", 1e9, 0.0, 1e-6),
        ("float64", 1.0, 1e7, 1e-3),
        ("float32", 1e9, 0.0, 1e-2),
        ("float32", 1.0, 1e3, 5e-2),
    ],
)
def test_units_and_offsets_of_the_columns_do_not_matter(estimator, dtype, scale, offset, rtol):
    X, y = make_friedman1(400, random_state=0)
    if estimator is bf.BPLSClassifier:
        y = y > y.mean()
    moved = (X * scale + offset).astype(dtype)
    # Rounding may change what is chosen; without a choice it is all that changes.
    fixed = {"loss": "squared"} if estimator is bf.BPLSClassifier else {}
    one, other = (
        estimator((10,), n_networks=1, random_state=0, eps=1e-3, **fixed).fit(rows, y)
        for rows in (X, moved)
    )
    outputs = one.network_.decision(X)
    np.testing.assert_allclose(
        other.network_.decision(moved), outputs, rtol=0, atol=rtol * outputs.std()
    )


@each_estimator
@pytest.mark.parametrize(("scale", "offset"), [(1e9, 0.0), (1.0, 1e3)])
def test_units_and_offsets_do_not_matter_to_the_score(estimator, scale, offset):
    X, y = make_friedman1(1000, random_state=0)
    if estimator is bf.BPLSClassifier:
        y = y > y.mean()
    moved = (X * scale + offset).astype(np.float32)
    scores = [
        estimator(random_state=0).fit(rows[:500], y[:500]).score(rows[500:], y[500:])
        for rows in (X, moved)
    ]
    assert scores[1] == pytest.approx(scores[0], abs=0.03)


@each_estimator
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.0, 0.1, -3e5])
def test_a_constant_column_changes_nothing(estimator, dtype, value):
    X, y = make_friedman1(300, random_state=0)
    X = X.astype(dtype)
    if estimator is bf.BPLSClassifier:
        y = y > y.mean()
    wider = np.column_stack([X, np.full(len(X), value, dtype)])
    fitted = estimator((10,), random_state=0).fit(wider, y)
    assert not fitted.network_.weights[0][-2].any()
    assert fitted.score(wider, y) >= (0.8 if estimator is bf.BPLSClassifier else 0.6)


@each_estimator
def test_bytes_and_the_same_numbers_as_floats_are_predicted_alike(estimator, digits):
    x, y, x_test, _ = digits
    fitted = estimator((20,), random_state=0).fit(x, y)
    expected = fitted.predict(x_test)
    for dtype in (np.float32, np.float64, np.int64):
        given = fitted.predict(x_test.astype(dtype))
        if estimator is bf.BPLSClassifier:
            np.testing.assert_array_equal(given, expected)
        else:
            np.testing.assert_allclose(given, expected, rtol=0, atol=1e-4)


@each_estimator
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_a_fit_makes_no_float_copy_of_the_rows(estimator, dtype):
    X = images.load(dtype, 20_000)
    y = X[:, ::5].mean(axis=1) > X[:, ::5].mean()
    fitted = estimator((8,), eps=1e-3, random_state=0)
    fitted.fit(X[:500], y[:500])
    tracemalloc.start()
    try:
        fitted.fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Hidden values, the rows that margins are compared on and the missed rows take some.
    assert peak < 0.75 * max(X.nbytes, X.size * np.dtype(np.float32).itemsize)


# The ridge of a regressor


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("hidden", [(60,), (200,)])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (2, 3, 4))]
)
def test_a_fit_with_the_default_ridge_does_not_warn(seed, hidden, dtype):
    X, y = load_digits(return_X_y=True)
    for estimator in (bf.BPLSRegressor, bf.BPLSClassifier):
        estimator(hidden, random_state=seed).fit(X.astype(dtype), y)  # warnings are errors


@pytest.mark.parametrize("hidden", [(), (60,), (200,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_default_ridge_is_above_the_rounding_of_nearly_equal_columns(weighted, dtype, hidden):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400, 1)) + 1e-3 * rng.normal(size=(400, 300))).astype(dtype)
    weights = rng.uniform(size=400) if weighted else None
    bf.BPLSRegressor(hidden, random_state=0).fit(X, X[:, 0] ** 2, weights)


def test_a_noisier_output_gets_a_larger_ridge():
    X, clean = make_friedman3(300, random_state=0)
    noise = np.random.default_rng(0).normal(0, 3 * clean.std(), 300)
    chosen = [
        bf.BPLSRegressor(method="paper", random_state=0).fit(X, y).report_.eps
        for y in (clean, clean + noise)
    ]
    assert chosen[0] < 1e-4 < 1e-2 < chosen[1]


def test_the_size_of_small_weights_does_not_change_the_ridge(diabetes):
    X, y = diabetes
    weights = np.random.default_rng(0).uniform(0.1, 1, len(y))
    chosen = {
        bf.BPLSRegressor(method="paper", random_state=0).fit(X, y, weights * factor).report_.eps
        for factor in (1.0, 1e-3, 1 / weights.sum())
    }
    assert len(chosen) == 1
