"""Several networks as one: their hidden layers side by side, their outputs averaged."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bpls_fast.network.network import Network

__all__ = ["check_joinable", "joined_network"]


def joined_network(networks: Sequence[Network]) -> Network:
    """Return one network whose outputs, before their activation, are the means of those of several networks.

    For softmax outputs, these are the geometric means of the probabilities.

    Parameters
    ----------
    networks : sequence of Network
        At least one; with the same inputs, outputs, activations, bias, input scale, input limits and number of layers.
        The hidden activations act on each neuron alone, so they are not softmax, unless there is one network.

    Returns
    -------
    Network
        Every hidden layer has the neurons of that layer of all networks.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> from bpls_fast.network.committee import joined_network
    >>> nets = [bf.Network([4, 3, 2], "tanh", "identity", seed=seed) for seed in (0, 1)]
    >>> joined = joined_network(nets)
    >>> joined.layer_sizes
    (4, 6, 2)
    >>> x = np.ones((1, 4))
    >>> bool(np.allclose(joined.forward(x), (nets[0].forward(x) + nets[1].forward(x)) / 2))
    True
    """
    check_joinable(networks)
    first = networks[0]
    if len(networks) == 1:
        return first.with_weights(first.weights)
    layers = list(zip(*(net.weights for net in networks), strict=True))
    top, bias = len(layers) - 1, first.bias
    weights = []
    for layer, matrices in enumerate(layers):
        if layer == top:
            weights.append(_stacked(matrices, bias and layer > 0) / len(matrices))
        elif layer == 0:
            weights.append(np.concatenate(matrices, axis=1))
        else:
            weights.append(_block_diagonal(matrices, bias))
    if top == 0:
        weights = [np.sum(layers[0], axis=0) / len(networks)]
    joined = copy.copy(first)
    hidden = [W.shape[1] for W in weights[:-1]]
    joined.layer_sizes = (first.layer_sizes[0], *hidden, first.layer_sizes[-1])
    return joined.owning(weights)


def check_joinable(networks: Sequence[Network]) -> None:
    """Refuse networks that `joined_network` cannot join."""
    first = networks[0]
    for net in networks[1:]:
        for name in ("activations", "bias", "input_scale"):
            found, expected = getattr(net, name), getattr(first, name)
            if found != expected:
                raise ValueError(f"networks differ in {name}: {found}; expected {expected}")
        limits, same = net.input_limits, first.input_limits
        if limits is not same and (
            limits is None or same is None or not np.array_equal(limits, same)
        ):
            raise ValueError("networks differ in input_limits; expected the same")
        ends, expected_ends = ([n.layer_sizes[0], n.layer_sizes[-1]] for n in (net, first))
        if ends != expected_ends:
            raise ValueError(
                f"networks differ in inputs and outputs: {ends}; expected {expected_ends}"
            )
    hidden = [activation.name for activation in first.activations[:-1]]
    if len(networks) > 1 and "softmax" in hidden:
        raise ValueError(
            f"the hidden activations are {', '.join(hidden)} and there are {len(networks)} networks; "
            "expected activations that act on each neuron alone, or one network"
        )


def _stacked(matrices: Sequence[NDArray[np.float64]], bias: bool) -> NDArray[np.float64]:
    """Return matrices below each other; with a bias, the sum of their last rows at the end."""
    if not bias:
        return np.concatenate(matrices)
    last = np.sum([W[-1:] for W in matrices], axis=0)
    return np.concatenate([*(W[:-1] for W in matrices), last])


def _block_diagonal(matrices: Sequence[NDArray[np.float64]], bias: bool) -> NDArray[np.float64]:
    """Return matrices along a diagonal of blocks; with a bias, their last rows next to each other at the end."""
    rows = sum(len(W) - bias for W in matrices)
    joined = np.zeros((rows + bias, sum(W.shape[1] for W in matrices)))
    row = column = 0
    for W in matrices:
        count = len(W) - bias
        place = slice(column, column + W.shape[1])
        joined[row : row + count, place] = W[:count]
        joined[rows:, place] = W[count:]
        row, column = row + count, place.stop
    return joined
