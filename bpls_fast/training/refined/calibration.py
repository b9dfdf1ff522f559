"""Calibration: outputs scaled to probabilities under softmax, or shrunk to the mean where they explain little."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import activations, column_sums
from bpls_fast.kernels.backend import to_numpy
from bpls_fast.network import Network
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Array, Batch, Samples

__all__ = ["CALIBRATION_ROWS", "Correction", "calibrated", "correction"]

CALIBRATION_ROWS = 1000
"""The most rows that probabilities are calibrated on."""

SIGNIFICANT = 2.0
"""Standard errors that the factor of numbers must be above 0, to be more than chance."""

LARGEST_FACTOR = 10.0
"""With it, outputs that reach their targets, 1 and 0, are far apart; rows without a miss would ask for infinity."""


def calibrated(network: Network, has_labels: bool, batch: Batch, context: FitContext) -> Network:
    """Return the network with softmax outputs scaled to probabilities on the trial rows; other networks unchanged."""
    if not has_labels or network.activations[-1].name != "softmax":
        return network
    few = batch.trial_rows(CALIBRATION_ROWS)
    with context.phase("forward"):
        *hidden, output = network.weights
        labels = to_numpy(few.T).argmax(axis=1)
        factor = _best_factor(network.decision(few.X), labels, few.sample_weight)
        return network.with_weights([*hidden, output * factor])


class Correction(NamedTuple):
    """What rows that a network was not trained on say about its outputs before their activation: factors and shifts."""

    factors: NDArray[np.float64]
    shifts: NDArray[np.float64]

    def apply(self, network: Network) -> Network:
        """Return a network with corrected outputs, which shares the weights of the hidden layers."""
        *hidden, output = network.weights
        output = output * self.factors
        if network.bias:
            output[-1] += self.shifts
        return network.owning([*hidden, output])


def correction(network: Network, outputs: Array, samples: Samples) -> Correction:
    """Return the correction of a network's outputs by those for rows that it was not trained on.

    Softmax outputs get the factor with the least cross-entropy. Numbers are shrunk to their mean by the factor, from 0
    to 1, with the least squared error, and further the less certain it is: outputs that explain nothing, or nothing
    that few rows can show, become the mean.

    Parameters
    ----------
    network : Network
    outputs : (d, outputs) array
        The outputs before their activation for the rows of `samples`.
    samples : Samples
    """
    count = network.layer_sizes[-1]
    weight = None if samples.sample_weight is None else to_numpy(samples.sample_weight)
    if samples.labels is not None:
        is_softmax = network.activations[-1].name == "softmax"
        factor = _best_factor(outputs, samples.labels, weight) if is_softmax else 1.0
        return Correction(np.full(count, factor), np.zeros(count))
    T, N = (to_numpy(values).astype(np.float64) for values in (samples.targets, outputs))
    means = np.zeros((2, count))
    if network.bias:
        means[:] = [column_sums(values, None, weight) for values in (N, T)]
        means /= samples.total_weight()
    N, T = N - means[0], T - means[1]
    squares, products = column_sums(N, N, weight), column_sums(N, T, weight)
    divisors = np.where(squares > 0, squares, 1.0)
    factors = np.maximum(products / divisors, 0.0)
    left = column_sums(T - factors * N, T - factors * N, weight)
    errors = left / divisors / max(samples.repetitions() - 2, 1)  # squares of those of the factors
    certain = np.maximum(1 - SIGNIFICANT**2 * errors / np.where(factors > 0, factors**2, 1.0), 0.0)
    factors = np.minimum(factors, 1.0) * certain
    return Correction(factors, means[1] - factors * means[0])


def _best_factor(outputs: Array, labels: NDArray[np.intp], sample_weight: Array | None) -> float:
    """Return the factor of the outputs with the least softmax cross-entropy, by Newton's method."""
    outputs = to_numpy(outputs).astype(np.float64)
    outputs -= np.take_along_axis(outputs, labels[:, np.newaxis], axis=1)
    weight = np.ones(len(outputs))
    if sample_weight is not None:
        weight = to_numpy(sample_weight).astype(np.float64)
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
