"""The scikit-learn estimators; they need scikit-learn."""

from bpls_fast.estimators.base import BPLSClassifier, BPLSRegressor

__all__ = ["BPLSClassifier", "BPLSRegressor"]
