"""Calibration: the factor that turns the outputs of a least-squares fit into probabilities under softmax."""

from __future__ import annotations

import numpy as np

from bpls_fast.kernels import activations
from bpls_fast.kernels.backend import to_numpy
from bpls_fast.network import Network
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Array, Batch

__all__ = ["CALIBRATION_ROWS", "calibrated"]

CALIBRATION_ROWS = 1000
"""The most rows that probabilities are calibrated on."""

LARGEST_FACTOR = 10.0
"""With it, outputs that reach their targets, 1 and 0, are far apart; rows without a miss would ask for infinity."""


def calibrated(network: Network, has_labels: bool, batch: Batch, context: FitContext) -> Network:
    """Return the network with softmax outputs scaled to probabilities on the trial rows; other networks unchanged."""
    if not has_labels or network.activations[-1].name != "softmax":
        return network
    few = batch.trial_rows(CALIBRATION_ROWS)
    with context.phase("forward"):
        *hidden, output = network.weights
        return network.with_weights([*hidden, output * _best_factor(network.decision(few.X), few)])


def _best_factor(outputs: Array, batch: Batch) -> float:
    """Return the factor of the outputs with the least softmax cross-entropy, by Newton's method."""
    outputs = to_numpy(outputs).astype(np.float64)
    right = np.take_along_axis(outputs, to_numpy(batch.T).argmax(axis=1)[:, np.newaxis], axis=1)
    outputs -= right
    weight = np.ones(len(outputs))
    if batch.sample_weight is not None:
        weight = to_numpy(batch.sample_weight).astype(np.float64)
    factor = 5.0
    for _ in range(10):
        p = activations["softmax"].forward(factor * outputs)
        p *= outputs
        mean = p.sum(axis=1)
        p *= outputs
        slope, curvature = weight @ mean, weight @ (p.sum(axis=1) - mean**2)
        if not curvature > 0:
            break
        change = float(np.clip(slope / curvature, factor - LARGEST_FACTOR, factor / 2))
        factor -= change
        if abs(change) < 1e-2 * factor:
            break
    return factor
