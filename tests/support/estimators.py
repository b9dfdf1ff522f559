"""What the tests of the estimators share; without scikit-learn they are skipped."""

import pytest

import bpls_fast as bf

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

each_estimator = pytest.mark.parametrize("estimator", [bf.BPLSClassifier, bf.BPLSRegressor])
