"""The scikit-learn estimators: scikit-learn's own checks, and what is promised beyond them."""

import pickle
import re
import tracemalloc

import images
import numpy as np
import pytest
from reference import same_bits
from required import required
from subprocesses import output_of, run_code

import bpls_fast as bf

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_wine, make_friedman1, make_friedman3
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from bpls_fast.estimators.base import BLOCK, EPS_GRID, Start, _cross_validated_eps, _moments
from bpls_fast.training.bpls.algorithm1 import REFINEMENTS

SEEDS = range(5)
ESTIMATORS = [bf.BPLSClassifier, bf.BPLSRegressor]

SETTINGS = [
    bf.BPLSClassifier(),
    bf.BPLSClassifier(hidden_layer_sizes=()),
    bf.BPLSClassifier(hidden_layer_sizes=(20, 10), activation=("tanh", "elu")),
    bf.BPLSClassifier(activation="tanh", class_weight="balanced"),
    bf.BPLSClassifier(activation="relu"),
    bf.BPLSClassifier(early_stopping=True),
    bf.BPLSClassifier(method="paper"),
    bf.BPLSClassifier(hidden_layer_sizes=(), method="paper", eps=1e-4),
    bf.BPLSClassifier(
        hidden_layer_sizes=(20, 10), activation=("tanh", "elu"), method="paper", eps=1e-4
    ),
    bf.BPLSClassifier(
        activation="sigmoid", class_weight="balanced", method="paper", margin=0.1, eps=1e-4
    ),
    bf.BPLSClassifier(
        activation="relu", method="paper", target="per_output", choose_output="damped", eps=1e-4
    ),
    bf.BPLSRegressor(),
    bf.BPLSRegressor(hidden_layer_sizes=()),
    # With 10 neurons above, repeated rows and weights of 2 differ by 4e-8 on the rows of one check, which allows 2e-8.
    bf.BPLSRegressor(hidden_layer_sizes=(20, 12), activation=("sigmoid", "relu")),
    bf.BPLSRegressor(activation="relu"),
    bf.BPLSRegressor(early_stopping=True),
    bf.BPLSRegressor(method="paper"),
    bf.BPLSRegressor(hidden_layer_sizes=(), method="paper", eps=1e-3),
    bf.BPLSRegressor(
        hidden_layer_sizes=(20, 10), activation=("sigmoid", "tanh"), method="paper", eps=1e-3
    ),
    bf.BPLSRegressor(activation="softmax", method="paper", safeguard=False, eps=1e-3),
]


@parametrize_with_checks(SETTINGS)
def test_the_checks_of_scikit_learn_pass(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("needs SCIPY_ARRAY_API in a process of its own: the next test")
    if estimator.early_stopping and "sample_weight_equivalence" in check.func.__name__:
        pytest.skip(
            "of a row that is there twice, one may be held out: it is not a row of weight 2"
        )
    check(estimator)


@pytest.mark.parametrize("name", ["BPLSClassifier", "BPLSRegressor"])
def test_every_check_runs_with_the_array_api_switched_on(name):
    finished = run_code(
        f"""
        import warnings
        import bpls_fast as bf
        from sklearn.exceptions import SkipTestWarning
        from sklearn.utils.estimator_checks import check_estimator
        warnings.simplefilter("error", SkipTestWarning)
        check_estimator(bf.{name}())
        """,
        SCIPY_ARRAY_API="1",
    )
    output_of(finished)


@pytest.fixture(scope="module")
def digits():
    return bf.datasets.load("digits")


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


def weights_of(estimator):
    return [W.copy() for W in estimator.network_.weights]


def all_same_bits(one, other):
    return all(same_bits(a, b) for a, b in zip(one, other, strict=True))


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


@pytest.mark.parametrize("estimator", ESTIMATORS)
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
    one = estimator((10,), random_state=0, eps=1e-3).fit(X, y)
    other = estimator((10,), random_state=0, eps=1e-3).fit(moved, y)
    outputs = one.network_.decision(X)
    np.testing.assert_allclose(
        other.network_.decision(moved), outputs, rtol=0, atol=rtol * outputs.std()
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
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


@pytest.mark.parametrize("estimator", ESTIMATORS)
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


@pytest.mark.parametrize("estimator", ESTIMATORS)
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


def test_moments_are_those_of_the_weighted_columns():
    random = np.random.default_rng(0)
    X = random.normal(5, [1e-3, 1, 1e3], size=(2 * BLOCK + 7, 3))
    weights = random.integers(0, 4, len(X)).astype(float)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    for given, rows in ((_moments(X, weights), repeated), (_moments(X, None), X)):
        np.testing.assert_allclose(given, (rows.mean(axis=0), rows.std(axis=0)), rtol=1e-9)


# The ridge of a regressor


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("hidden", [(60,), (200,)])
@pytest.mark.parametrize("seed", range(5))
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


def generalized_cross_validation(A, Y, eps):
    """Compute the error by the n by n matrix that maps Y to what is fitted."""
    A = np.column_stack([A, np.ones(len(A))])
    G = A.T @ A
    ridge = eps * np.trace(G) / len(G)
    solve = np.linalg.solve(G + ridge * np.eye(len(G)), A.T)
    H = np.zeros((len(A), len(A)))
    for _ in range(1 + REFINEMENTS):
        H += A @ solve @ (np.eye(len(A)) - H)
    return np.sum((Y - H @ Y) ** 2) / (len(A) - np.trace(H)) ** 2


@pytest.mark.parametrize("noise", [0.01, 1.0, 5.0])
def test_the_ridge_is_the_one_that_cross_validation_prefers(noise):
    X, y = make_friedman1(120, noise=noise, random_state=0)
    Y = ((y - y.mean()) / y.std())[:, np.newaxis]
    net = bf.Network([10, 30, 1], activation="tanh", output_activation="identity", seed=0)
    eps = _cross_validated_eps(Start(net, X, np.zeros(10), 0), Y, None)
    A = net.layer_inputs(X)[-1]
    errors = [generalized_cross_validation(A, Y, candidate) for candidate in EPS_GRID]
    assert eps == EPS_GRID[np.argmin(errors)]


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


# Determinism, copies, files


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_same_random_state_gives_the_same_bits_and_another_one_others(estimator, wine):
    def fitted(state):
        return weights_of(estimator(random_state=state).fit(*wine))

    assert all_same_bits(fitted(3), fitted(3))
    assert all_same_bits(fitted(np.random.RandomState(3)), fitted(np.random.RandomState(3)))
    assert not all_same_bits(fitted(3), fitted(4))
    assert not all_same_bits(fitted(None), fitted(None))


@pytest.mark.parametrize("name", ["BPLSClassifier", "BPLSRegressor"])
def test_the_bits_do_not_depend_on_the_process_or_its_threads(name):
    code = f"""
        import hashlib
        import bpls_fast as bf
        x, y, _, _ = bf.datasets.load("digits")
        fitted = bf.{name}(random_state=0).fit(x / 16.0, y)
        print(hashlib.sha256(b"".join(W.tobytes() for W in fitted.network_.weights)).hexdigest())
    """
    printed = {output_of(run_code(code, BPLS_NUM_THREADS=threads)) for threads in ("1", "2")}
    assert len(printed) == 1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_pickle_predicts_the_same_bits(estimator, wine):
    X, y = wine
    fitted = estimator(random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert same_bits(again.predict(X), fitted.predict(X))
    assert str(again.report_) == str(fitted.report_)


def test_the_network_of_an_estimator_is_saved_and_predicts_without_it(tmp_path, wine):
    X, y = wine
    names = np.array(["red", "rosé", "white"])[y]
    classifier = bf.BPLSClassifier(random_state=0).fit(X, names)
    regressor = bf.BPLSRegressor(random_state=0).fit(X, y)
    for fitted, expected in (
        (classifier, classifier.predict(X)),
        (regressor, regressor.predict(X)[:, np.newaxis]),
    ):
        fitted.network_.save(tmp_path / "net.npz")
        np.testing.assert_array_equal(bf.Network.load(tmp_path / "net.npz").predict(X), expected)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_clone_has_the_parameters_and_no_fit(estimator, wine):
    fitted = estimator((7,), margin=0.2, random_state=5).fit(*wine)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "network_")


def test_the_report_is_that_of_the_fit(wine):
    X, y = wine
    classifier = bf.BPLSClassifier(method="paper", random_state=0, max_iter=4, eps=1e-3).fit(X, y)
    assert isinstance(classifier.report_, bf.FitReport)
    assert classifier.n_iter_ == classifier.report_.iterations <= 4
    assert classifier.report_.eps == 1e-3
    assert classifier.report_.accuracy[classifier.report_.best] == classifier.score(X, y)
    regressor = bf.BPLSRegressor(method="paper", random_state=0).fit(X, y)
    error = np.sqrt(np.mean((regressor.predict(X) - y) ** 2)) / y.std()
    assert regressor.n_iter_ == 1
    assert min(regressor.report_.loss) == pytest.approx(error)
    refined = bf.BPLSRegressor(random_state=0, max_iter=2).fit(X, y)
    assert refined.n_iter_ == refined.report_.iterations == len(refined.report_.loss) == 2


# Labels, probabilities, weights


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["red", "rosé", "white"]),
        np.array(["red", "rosé", "white"], dtype=object),
        np.array([-5, 0, 1000]),
        np.array([0, 1, 2], dtype=np.uint8),
        np.array([1.0, 2.0, 4.0]),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_labels_of_any_type_come_back(labels, wine):
    X, y = wine
    classifier = bf.BPLSClassifier(random_state=0).fit(X, labels[y])
    np.testing.assert_array_equal(classifier.classes_, labels)
    predicted = classifier.predict(X)
    assert predicted.dtype == labels.dtype
    assert np.mean(predicted == labels[y]) >= 0.95


def test_booleans_are_labels_and_two_classes_have_one_decision(wine):
    X, y = wine
    classifier = bf.BPLSClassifier(random_state=0).fit(X, y == 1)
    assert classifier.predict(X).dtype == bool
    decision = classifier.decision_function(X)
    np.testing.assert_array_equal(decision > 0, classifier.predict(X))
    odds = classifier.predict_proba(X)
    np.testing.assert_allclose(np.log(odds[:, 1] / odds[:, 0]), decision, atol=1e-9)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_probabilities_sum_to_one_and_the_largest_names_the_class(dtype, digits):
    x, y, x_test, _ = digits
    classifier = bf.BPLSClassifier(random_state=0).fit(x.astype(dtype), y)
    probabilities = classifier.predict_proba(x_test.astype(dtype))
    assert probabilities.dtype == np.float64
    assert (probabilities > 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    predicted = classifier.predict(x_test.astype(dtype))
    np.testing.assert_array_equal(classifier.classes_[probabilities.argmax(axis=1)], predicted)


@pytest.mark.parametrize("class_weight", ["balanced", {"rare": 9.0}])
def test_a_heavy_class_is_missed_less_often(class_weight):
    y = np.repeat(["common", "rare"], [900, 100])
    X = np.random.default_rng(0).normal(size=(1000, 2)) + (y == "rare")[:, np.newaxis]
    rare = X[y == "rare"]
    recalls = [
        np.mean(
            bf.BPLSClassifier(class_weight=weight, random_state=0).fit(X, y).predict(rare) == "rare"
        )
        for weight in (None, class_weight)
    ]
    assert recalls[0] < 0.5 < recalls[1]


# With the rest of scikit-learn and pandas


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_grid_search_through_a_pipeline_finds_parameters(estimator, wine):
    pipeline = make_pipeline(StandardScaler(), estimator(random_state=0))
    step = estimator.__name__.lower()
    grid = {f"{step}__hidden_layer_sizes": [(2,), (30,)], f"{step}__activation": ["tanh", "elu"]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(*wine)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert search.best_estimator_.predict(wine[0]).shape == wine[1].shape


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_data_frames_bring_the_names_of_their_columns(estimator):
    pandas = required("pandas")
    frame = load_wine(as_frame=True)
    fitted = estimator(random_state=0).fit(frame.data, frame.target)
    assert fitted.feature_names_in_.tolist() == frame.data.columns.tolist()
    assert fitted.n_features_in_ == frame.data.shape[1]
    expected = estimator(random_state=0).fit(frame.data.to_numpy(), frame.target.to_numpy())
    assert same_bits(fitted.predict(frame.data), expected.predict(frame.data.to_numpy()))
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame.data[frame.data.columns[::-1]])
    text = pandas.Series(frame.target_names[frame.target])
    if estimator is bf.BPLSClassifier:
        assert set(estimator().fit(frame.data, text).classes_) == set(frame.target_names)


# Wrong arguments


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "refind"}, "method is 'refind'; expected 'refined' or 'paper'"),
        ({"hidden_layer_sizes": (60, 0)}, r"hidden_layer_sizes is \(60, 0\); expected whole"),
        ({"hidden_layer_sizes": (2.5,)}, r"hidden_layer_sizes is \(2\.5,\); expected whole"),
        ({"hidden_layer_sizes": "60"}, "hidden_layer_sizes is '60'; expected whole"),
        ({"hidden_layer_sizes": [[60]]}, r"hidden_layer_sizes is \[\[60\]\]; expected whole"),
        ({"activation": "swish"}, "activation is 'swish'; expected one of identity"),
        ({"activation": ("tanh", "tanh")}, "activation names 2 activations; expected one for each"),
        ({"max_iter": 0}, "max_iter is 0; expected a whole number >= 1"),
        ({"max_passes": 0}, "max_passes is 0; expected a number above 0"),
        ({"early_stopping": 1}, "early_stopping is 1; expected True or False"),
        ({"early_stopping": True, "validation_fraction": 0}, "validation_fraction is 0; expected"),
        ({"n_iter_no_change": 0}, "n_iter_no_change is 0; expected a whole number >= 1"),
        (
            {"method": "paper", "target": "both"},
            "target is 'both'; expected 'joint' or 'per_output'",
        ),
        (
            {"method": "paper", "choose_output": "best"},
            "choose_output is 'best'; expected one of mean",
        ),
        (
            {"method": "paper", "margin": 0.7},
            "margin is 0.7; expected one number above 0 and below 0.5",
        ),
        ({"eps": -1.0}, "eps"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
def test_a_wrong_parameter_is_named_by_fit(estimator, arguments, message, wine):
    with pytest.raises((TypeError, ValueError), match=message):
        estimator(**arguments).fit(*wine)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "paper", "max_iter": 0}, "max_iter is 0; expected a whole number >= 1"),
        ({"class_weight": "heavy"}, "class_weight is 'heavy'; expected 'balanced'"),
        ({"class_weight": {7: 1.0}}, "class_weight names 7; expected labels among"),
    ],
)
def test_a_wrong_parameter_of_the_classifier_is_named_by_fit(arguments, message, wine):
    with pytest.raises(ValueError, match=message):
        bf.BPLSClassifier(**arguments).fit(*wine)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_a_wrong_weight_of_a_row_is_refused(estimator, weight, wine):
    weights = np.ones(len(wine[1]))
    weights[3] = weight
    with pytest.raises(ValueError, match="sample_weight"):
        estimator().fit(*wine, sample_weight=weights)


def test_a_whole_number_is_one_hidden_layer(wine):
    assert bf.BPLSClassifier(7).fit(*wine).network_.layer_sizes == (13, 7, 3)
    assert bf.BPLSRegressor([7, 5], "elu").fit(*wine).network_.layer_sizes == (13, 7, 5, 1)


def test_without_scikit_learn_one_sentence_says_what_to_install():
    finished = run_code("""
        import sys
        sys.modules["sklearn"] = None
        from bpls_fast import *
        import bpls_fast as bf
        assert "BPLSClassifier" not in dir(bf)
        try:
            bf.BPLSClassifier
        except ImportError as error:
            print(error)
    """)
    printed = output_of(finished)
    assert printed.count("\n") == 1
    assert re.search(r"scikit-learn.*pip install 'bpls_fast\[sklearn\]'", printed)


def test_the_estimators_are_listed_and_load_scikit_learn_only_when_used():
    finished = run_code("""
        import sys
        import bpls_fast as bf
        assert {"BPLSClassifier", "BPLSRegressor"} <= set(dir(bf))
        assert "sklearn" not in sys.modules
        assert bf.BPLSClassifier.__module__ == bf.BPLSRegressor.__module__ == "bpls_fast.estimators"
        assert "sklearn" in sys.modules
    """)
    output_of(finished)


# The first layer, standardized, in the fits themselves


@pytest.mark.parametrize("bias", [False, True])
def test_a_standardized_first_layer_does_not_drown_small_columns(bias):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 4)) * [1e-6, 1.0, 1e3, 1e6] + ([5e-6, 3, 0, 0] if bias else 0)
    W = random.normal(size=(4, 2)) / X.std(axis=0)[:, np.newaxis]
    Y = X @ W + (1.0 if bias else 0.0)
    errors = []
    for standardize in (False, True):
        net = bf.Network([4, 2], output_activation="identity", bias=bias)
        bf.fit_injective(net, X, Y, eps=1e-4, standardize=standardize)
        errors.append(np.abs(net.forward(X) - Y).max())
    assert errors[1] < 1e-8 < 1e-2 < errors[0]


@pytest.mark.parametrize("fit", [bf.fit_classifier, bf.fit_injective])
def test_standardize_must_be_a_truth_value(fit):
    net = bf.Network([2, 3, 2], activation="tanh", output_activation="sigmoid")
    y = np.array([0, 1, 0, 1])
    with pytest.raises(TypeError, match="standardize is 'yes'; expected True or False"):
        fit(
            net, np.ones((4, 2)), y if fit is bf.fit_classifier else np.eye(2)[y], standardize="yes"
        )
