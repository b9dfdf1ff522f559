"""Targets of classes: what the outputs should be, before their activation, for each label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import Activation
from bpls_fast.training.data import Array

__all__ = ["LABEL_FLOOR", "class_targets", "one_hot_targets"]

LABEL_FLOOR = 1e-2
"""Distance of a target from the ends of the output's range, as a share of the range."""


def class_targets(classes: int, activation: Activation, floor: float) -> NDArray[np.float64]:
    """Return, in row k, the pre-activations that the outputs should have for class k.

    An output should be at the upper end of its range for its class and at the lower end for others. No finite
    pre-activation reaches an end, so targets stay `floor` away from it. A range without two ends counts as [0, 1].
    """
    low, high = activation.range
    if not np.isfinite(low) or not np.isfinite(high):
        low, high = (0.0, 1.0) if high > 0 else (-1.0, 0.0)
    step = floor * (high - low)
    values = np.full((classes, classes), low + step)
    shared = classes - 1 if activation.name == "softmax" else 1
    np.fill_diagonal(values, high - shared * step)
    return activation.inverse(values)


def one_hot_targets(classes: Array, output: Activation) -> Array:
    """Return the targets that refined sweeps fit: one-hot rows for softmax outputs, which are calibrated afterwards."""
    if output.name == "softmax":
        return np.eye(len(classes))
    return class_targets(len(classes), output, min(LABEL_FLOOR, 0.5 / len(classes)))
