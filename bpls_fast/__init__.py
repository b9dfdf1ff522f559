"""Closed-form training of neural networks: back-propagating least squares on compiled kernels.

Importing this package loads NumPy and the compiled extension, nothing else. The fit functions, `datasets` and the
estimators, which need scikit-learn, load when they are first used.
"""

from typing import TYPE_CHECKING, Any

try:
    from bpls_fast.kernels.extension import __version__
except ModuleNotFoundError as error:
    if error.name != "bpls_fast._core":
        raise
    raise ImportError(
        f"{__path__[0]} has no compiled extension: it is the source tree, not an installed package. "
        "Start Python in another folder, or install with: pip install -e ."
    ) from error
from bpls_fast.configuration import config, get_cmake_dir, get_include, get_libs, show_config
from bpls_fast.import_hook import register_with_threadpoolctl
from bpls_fast.kernels import (
    Activation,
    NonFiniteError,
    activations,
    cross,
    gram,
    linear,
    solve,
    solve_batched,
    solve_layer,
    tangent,
)
from bpls_fast.network import Network, Predictor

if TYPE_CHECKING:
    from bpls_fast import datasets as datasets
    from bpls_fast.estimators import BPLSClassifier as BPLSClassifier
    from bpls_fast.estimators import BPLSRegressor as BPLSRegressor
    from bpls_fast.training.bpls.algorithm1 import fit_injective as fit_injective
    from bpls_fast.training.bpls.algorithm2 import fit_classifier as fit_classifier
    from bpls_fast.training.cost import Cost as Cost
    from bpls_fast.training.refined.fit import fit_refined as fit_refined
    from bpls_fast.training.report import FitReport as FitReport

__all__ = [
    "Activation",
    "Cost",
    "FitReport",
    "Network",
    "NonFiniteError",
    "Predictor",
    "__version__",
    "activations",
    "config",
    "cross",
    "datasets",
    "fit_classifier",
    "fit_injective",
    "fit_refined",
    "get_cmake_dir",
    "get_include",
    "get_libs",
    "gram",
    "linear",
    "show_config",
    "solve",
    "solve_batched",
    "solve_layer",
    "tangent",
]

# The modules of names that load on first use.
_LAZY = {
    "Cost": "bpls_fast.training.cost",
    "FitReport": "bpls_fast.training.report",
    "fit_classifier": "bpls_fast.training.bpls.algorithm2",
    "fit_injective": "bpls_fast.training.bpls.algorithm1",
    "fit_refined": "bpls_fast.training.refined.fit",
}
# Not in __all__, so that a star import does not need scikit-learn.
_ESTIMATORS = dict.fromkeys(("BPLSClassifier", "BPLSRegressor"), "bpls_fast.estimators")

register_with_threadpoolctl()


def __getattr__(name: str) -> Any:
    import importlib

    if name == "datasets":
        return importlib.import_module("bpls_fast.datasets")
    module = _LAZY.get(name) or _ESTIMATORS.get(name)
    if module is None:
        raise AttributeError(f"module 'bpls_fast' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    from importlib.util import find_spec

    return sorted([*__all__, *(_ESTIMATORS if find_spec("sklearn") else [])])
