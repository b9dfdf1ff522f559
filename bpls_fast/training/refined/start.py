"""The start of a fit: hidden weights shifted and scaled so that all pre-activations spread alike over the data."""

from __future__ import annotations

import numpy as np

from bpls_fast.kernels import column_sums, linear
from bpls_fast.kernels.backend import to_numpy
from bpls_fast.network.network import Network, scaled_inputs
from bpls_fast.training.data import Samples, Weights, float_of

__all__ = ["scaled_start"]

SOFTMAX_SPREAD = 0.8
"""The standard deviation of softmax pre-activations at the start; for other activations it is 1."""

OFFSET = 0.5
"""The largest distance of the mean of a pre-activation from 0 at the start, in standard deviations."""


def scaled_start(net: Network, samples: Samples, random: np.random.Generator) -> Weights:
    """Return the weights of a network, with hidden layers scaled to pre-activations of equal spread over some rows.

    With a bias, pre-activations also get random means, within OFFSET spreads of 0: for symmetric data and a mean of 0,
    tanh would only give odd functions.
    """
    X, dtype = samples.X, float_of(samples.X)
    shares = np.full(len(X), 1 / len(X))
    if samples.sample_weight is not None:
        shares = to_numpy(samples.sample_weight) / samples.sample_weight.sum(dtype=np.float64)
    *hidden, output = net.weights
    scaled: Weights = []
    A = X
    for W, activation in zip(hidden, net.activations, strict=False):
        from_inputs = W if scaled else scaled_inputs(W, net.scale_of(X), net.bias)
        Z = linear(A, from_inputs.astype(dtype), bias=net.bias)
        mean = np.zeros(Z.shape[1])
        if net.bias:
            mean = column_sums(Z, None, shares)
            Z -= mean.astype(dtype)
        spread = np.sqrt(column_sums(Z, Z, shares))
        varies = spread > 100 * np.finfo(dtype).eps * np.hypot(spread, mean)  # else it is rounding
        size = SOFTMAX_SPREAD if activation.name == "softmax" else 1.0
        factor = size / np.where(varies, spread, 1.0)
        W = W * factor
        np.multiply(Z, factor.astype(dtype), out=Z)
        if net.bias:
            offset = size * random.uniform(-OFFSET, OFFSET, len(factor))
            W[-1] += offset - mean * factor
            Z += offset.astype(dtype)
        scaled.append(W)
        A = activation.forward(Z)
    return [*scaled, output]
