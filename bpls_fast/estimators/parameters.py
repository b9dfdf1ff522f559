"""The parameters that both estimators have, and which values scikit-learn's validation lets through.

The constructors are those of dataclasses: they assign every parameter unchanged, as scikit-learn expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from bpls_fast.kernels.activations import Activation, activations
from bpls_fast.kernels.backend import BACKENDS
from bpls_fast.training.bpls.backward_sweep import TARGETS
from bpls_fast.training.methods import DEFAULT_METHOD, METHODS
from bpls_fast.training.refined.sweeps import AUTO

__all__ = ["AUTO", "CONSTRAINTS", "MARGIN", "SharedParameters", "checked_sizes"]

COUNT = Interval(Integral, 1, None, closed="left")
MARGIN = Interval(Real, 0, 0.5, closed="neither")

CONSTRAINTS: dict[str, list[Any]] = {
    "hidden_layer_sizes": ["array-like", COUNT],
    "activation": [StrOptions({*activations, AUTO}), "array-like"],
    "method": [StrOptions(set(METHODS))],
    "n_networks": [COUNT, StrOptions({AUTO})],
    "max_iter": [COUNT, None],
    "max_passes": [Interval(Real, 0, np.inf, closed="right"), None],
    "eps": [Interval(Real, 0, None, closed="left"), None],
    "input_scale": [Interval(Real, 0, None, closed="neither"), None],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="left")],
    "n_iter_no_change": [COUNT],
    "warm_start": ["boolean"],
    "forgetting": [Interval(Real, 0, 1, closed="both")],
    "target": [StrOptions(set(TARGETS))],
    "random_state": ["random_state"],
    "backend": [StrOptions(set(BACKENDS))],
    "verbose": ["verbose"],
}


@dataclass(eq=False, repr=False)
class SharedParameters:
    """The parameters of both estimators; `BPLSClassifier` describes them."""

    hidden_layer_sizes: Sequence[int] | int = (100,)
    activation: str | Sequence[str | Activation] = AUTO
    _: KW_ONLY
    method: str = DEFAULT_METHOD
    n_networks: int | str = AUTO
    max_iter: int | None = None
    max_passes: float | None = None
    eps: float | None = None
    input_scale: float | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    warm_start: bool = False
    forgetting: float = 0.5
    target: str = "joint"
    choose_output: str = "mean"
    random_state: Any = None
    backend: str = "auto"
    verbose: int = 0


def checked_sizes(hidden_layer_sizes: Sequence[int] | int) -> list[int]:
    """Return the neurons of each hidden layer; the constraints do not look inside a sequence."""
    sizes = np.atleast_1d(np.asarray(hidden_layer_sizes))
    if sizes.ndim != 1 or (sizes.size and (sizes.dtype.kind not in "iu" or sizes.min() < 1)):
        raise ValueError(
            f"hidden_layer_sizes is {hidden_layer_sizes!r}; expected whole numbers >= 1, one for each hidden layer"
        )
    checked: list[int] = sizes.astype(int).tolist()
    return checked
