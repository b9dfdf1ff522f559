"""Parameters that the estimators refuse, and what they say without scikit-learn."""

import re

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.subprocesses import output_of, run_code

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")
from tests.support.estimators import each_estimator

# Wrong arguments


@each_estimator
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


@each_estimator
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
