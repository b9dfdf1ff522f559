"""The estimators among others: determinism, copies, files, labels, probabilities, pipelines, data frames."""

import pickle

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.reference import same_bits
from tests.support.required import required
from tests.support.subprocesses import output_of, run_code

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.support.estimators import each_estimator


def weights_of(estimator):
    return [W.copy() for W in estimator.network_.weights]


def all_same_bits(one, other):
    return all(same_bits(a, b) for a, b in zip(one, other, strict=True))


# Determinism, copies, files


@each_estimator
def test_the_same_random_state_gives_the_same_bits_and_another_one_others(estimator, wine):
    def fitted(state):
        return weights_of(estimator(random_state=state).fit(*wine))

    assert all_same_bits(fitted(3), fitted(3))
    assert all_same_bits(fitted(np.random.RandomState(3)), fitted(np.random.RandomState(3)))
    assert not all_same_bits(fitted(3), fitted(4))
    assert not all_same_bits(fitted(None), fitted(None))


@pytest.mark.parametrize(
    "name", ["BPLSClassifier", pytest.param("BPLSRegressor", marks=pytest.mark.thorough)]
)
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


@each_estimator
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


@each_estimator
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


@pytest.mark.parametrize("method", ["refined", "paper"])
def test_a_weight_of_two_for_all_rows_gives_what_every_row_twice_gives(method):
    X = np.random.default_rng(0).normal(size=(450, 4))
    y = X[:, 0] * X[:, 1]
    labels, twice = np.digitize(y, [-0.3, 0.3]), np.repeat(X, 2, axis=0)
    weights = np.full(len(X), 2.0)
    classifier = bf.BPLSClassifier(method=method, random_state=0)
    one = classifier.fit(X, labels, weights).predict_proba(X)
    other = classifier.fit(twice, np.repeat(labels, 2)).predict_proba(X)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
    regressor = bf.BPLSRegressor(method=method, random_state=0)
    one = regressor.fit(X, y, weights).predict(X)
    np.testing.assert_allclose(one, regressor.fit(twice, np.repeat(y, 2)).predict(X), atol=1e-6)


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


@each_estimator
def test_a_grid_search_through_a_pipeline_finds_parameters(estimator, wine):
    pipeline = make_pipeline(StandardScaler(), estimator(random_state=0))
    step = estimator.__name__.lower()
    grid = {f"{step}__hidden_layer_sizes": [(2,), (30,)], f"{step}__activation": ["tanh", "elu"]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(*wine)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert search.best_estimator_.predict(wine[0]).shape == wine[1].shape


@each_estimator
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
