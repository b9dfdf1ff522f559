"""Parameters that the estimators refuse, and what they say without scikit-learn."""

import re

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.subprocesses import output_of, run_code

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")
from sklearn import config_context
from sklearn.utils._param_validation import InvalidParameterError

from bpls_fast.training.methods import METHODS
from tests.support.estimators import each_estimator

# Wrong arguments


@each_estimator
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden_layer_sizes": (60, 0)}, r"hidden_layer_sizes is \(60, 0\); expected whole"),
        ({"hidden_layer_sizes": (2.5,)}, r"hidden_layer_sizes is \(2\.5,\); expected whole"),
        ({"hidden_layer_sizes": [[60]]}, r"hidden_layer_sizes is \[\[60\]\]; expected whole"),
        ({"activation": ("tanh", "tanh")}, "activation names 2 activations; expected one for each"),
        (
            {"method": "paper", "margin": (0.1, 0.7)},
            r"margin is \(0.1, 0.7\); expected one number above 0 and below 0.5",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
def test_a_wrong_parameter_is_named_by_fit(estimator, arguments, message, wine):
    with pytest.raises((TypeError, ValueError), match=message):
        estimator(**arguments).fit(*wine)


@pytest.mark.parametrize("estimator", ["BPLSClassifier", "BPLSRegressor"])
@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("method", "refind"),
        ("hidden_layer_sizes", "60"),
        ("hidden_layer_sizes", 0),
        ("activation", "swish"),
        ("max_iter", 0),
        ("max_iter", 1.5),
        ("max_passes", 0),
        ("eps", -1.0),
        ("eps", np.inf),
        ("eps", "auto"),
        ("early_stopping", 1),
        ("validation_fraction", -0.1),
        ("validation_fraction", 1.0),
        ("n_iter_no_change", 0),
        ("warm_start", "yes"),
        ("forgetting", 2),
        ("target", "both"),
        ("choose_output", "best"),
        ("margin", 0.7),
        ("random_state", -1),
        ("backend", "tpu"),
        ("verbose", -1),
    ],
)
def test_a_parameter_outside_its_constraints_is_named_by_scikit_learns_error(
    estimator, parameter, value, wine
):
    with pytest.raises(InvalidParameterError, match=f"The '{parameter}' parameter of {estimator}"):
        getattr(bf, estimator)(**{parameter: value}).fit(*wine)


@pytest.mark.parametrize(
    ("estimator", "parameter", "value"),
    [
        (bf.BPLSClassifier, "class_weight", "heavy"),
        (bf.BPLSRegressor, "margin", None),
        (bf.BPLSRegressor, "choose_output", "label"),
        (bf.BPLSRegressor, "safeguard", "yes"),
    ],
)
def test_a_parameter_of_one_estimator_has_constraints(estimator, parameter, value, wine):
    with pytest.raises(InvalidParameterError, match=f"The '{parameter}' parameter"):
        estimator(**{parameter: value}).fit(*wine)


@each_estimator
def test_early_stopping_needs_validation_rows(estimator, wine):
    assert estimator(validation_fraction=0, random_state=0).fit(*wine).score(*wine) > 0.9
    with pytest.raises(ValueError, match="validation_fraction is 0; expected a number above 0"):
        estimator(validation_fraction=0, early_stopping=True).fit(*wine)


@each_estimator
def test_scikit_learn_can_be_told_to_skip_the_validation_of_parameters(estimator, wine):
    with config_context(skip_parameter_validation=True):
        assert estimator(verbose=False, target="both", random_state=0).fit(*wine)


def test_a_class_weight_for_an_unknown_label_is_refused(wine):
    with pytest.raises(ValueError, match="class_weight names 7; expected labels among"):
        bf.BPLSClassifier(class_weight={7: 1.0}).fit(*wine)


@each_estimator
def test_every_parameter_has_a_constraint(estimator):
    assert set(estimator._parameter_constraints) == set(estimator().get_params())


@each_estimator
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_and_continues_where_it_says_so(estimator, method, wine):
    fitted = estimator(method=method, warm_start=True, random_state=0).fit(*wine)
    assert fitted.score(*wine) > 0.9
    if METHODS[method].can_continue:
        assert fitted.fit(*wine).score(*wine) > 0.9
    else:
        with pytest.raises(ValueError, match="warm_start is True; expected False with method="):
            fitted.fit(*wine)


@each_estimator
@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_a_wrong_weight_of_a_row_is_refused(estimator, weight, wine):
    weights = np.ones(len(wine[1]))
    weights[3] = weight
    with pytest.raises(ValueError, match="sample_weight"):
        estimator().fit(*wine, sample_weight=weights)


def test_a_whole_number_is_one_hidden_layer(wine):
    assert bf.BPLSClassifier(7, n_networks=1).fit(*wine).network_.layer_sizes == (13, 7, 3)
    assert bf.BPLSRegressor([7, 5], "elu", n_networks=1).fit(*wine).network_.layer_sizes == (
        13,
        7,
        5,
        1,
    )


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
        assert bf.BPLSClassifier.__module__.startswith("bpls_fast.estimators")
        assert "sklearn" in sys.modules
    """)
    output_of(finished)
