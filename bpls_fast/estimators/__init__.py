"""The scikit-learn estimators; they need scikit-learn."""

try:
    import sklearn as sklearn
except ImportError as error:
    raise ImportError(
        "the estimators need scikit-learn, install it with: pip install 'bpls_fast[sklearn]'"
    ) from error

from bpls_fast.estimators.classifier import BPLSClassifier
from bpls_fast.estimators.regressor import BPLSRegressor

__all__ = ["BPLSClassifier", "BPLSRegressor"]
