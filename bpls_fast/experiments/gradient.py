"""The gradient methods that the paper compares with, in PyTorch, at the paper's settings.

PyTorch is optional and imported inside the functions. The learning rate is 1e-3 (1e-1 for AdaGrad on the toy
problems), the other options have their usual defaults, and every update uses a single row.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.experiments.published import GRADIENT_METHODS

__all__ = ["epochs", "optimizer", "seconds_per_step", "torch_installed", "train_many"]

Array = NDArray[Any]

LEARNING_RATE = 1e-3
MOMENTUM = 0.9
WARM_UP_STEPS = 100


def torch_installed() -> bool:
    """Return whether PyTorch is installed."""
    return importlib.util.find_spec("torch") is not None


def train_many(
    method: str,
    X: Array,
    Y: Array,
    weights: Sequence[Array],
    *,
    activation: str,
    epochs: int,
    learning_rate: float = LEARNING_RATE,
) -> list[Array]:
    """Train many small networks without biases at once, each on its own targets.

    The runs are the leading dimension of every array, and one loop trains them all. The updates of these methods are
    element-wise, so the runs do not affect each other.

    Parameters
    ----------
    method : str
        One of `GRADIENT_METHODS`.
    X : (d, inputs) array
        The data, the same in every run.
    Y : (runs, d, outputs) array
        The targets of each run.
    weights : sequence of (runs, n, m) arrays
        The initial weights of each run, layer by layer.
    activation : {"identity", "sigmoid"}
        The activation of every layer.
    epochs : int
        Passes over the rows. Each row is one update; every epoch visits the rows in a new random order.
    learning_rate : float

    Returns
    -------
    list of (runs, n, m) arrays
        The trained weights.
    """
    torch = _torch()
    layers = [torch.tensor(W, requires_grad=True) for W in weights]
    descent = optimizer(method, layers, learning_rate)
    act = torch.sigmoid if activation == "sigmoid" else torch.nn.Identity()
    rows, targets = torch.tensor(X), torch.tensor(Y)
    order = np.random.default_rng(0)
    for _ in range(epochs):
        for row in order.permutation(len(X)):
            outputs = rows[row].expand(len(Y), 1, -1)
            for W in layers:
                outputs = act(outputs @ W)
            descent.zero_grad()
            # The mean over the outputs, summed over the runs: every run gets its own gradient.
            (outputs[:, 0] - targets[:, row]).square().mean(dim=1).sum().backward()
            descent.step()
    return [W.detach().numpy() for W in layers]


def epochs(
    method: str,
    weights: Sequence[Array],
    X: Array,
    labels: Array,
    count: int,
    seed: int = 0,
    every: int | None = None,
) -> Iterator[list[Array]]:
    """Train a softmax classifier row by row and yield its weights after every epoch.

    The last row of each weight matrix is the bias.

    Parameters
    ----------
    method : str
        One of `GRADIENT_METHODS`.
    weights : sequence of arrays
        The initial weights, as in `bpls_fast.Network.weights`.
    X : (d, inputs) array of uint8
        Images; they are scaled to [0, 1].
    labels : (d,) array of int
    count : int
        The number of epochs.
    seed : int
        Seed of the order of the rows, which is new in every epoch.
    every : int, optional
        Also yield the weights after this many rows within an epoch.
    """
    step, layers = _single_row_step(method, weights, X, labels)
    order = np.random.default_rng(seed)
    for _ in range(count):
        rows = order.permutation(len(X))
        for first in range(0, len(X), every or len(X)):
            for row in rows[first : first + (every or len(X))]:
                step(row)
            yield [
                np.vstack([layer.weight.detach().T, layer.bias.detach()[np.newaxis]])
                for layer in layers
            ]


def seconds_per_step(
    method: str, weights: Sequence[Array], X: Array, labels: Array, steps: int
) -> float:
    """Return the mean time of an update by a single row: that of `steps` updates after a warm-up."""
    step, _ = _single_row_step(method, weights, X, labels)
    for row in range(WARM_UP_STEPS):
        step(row % len(X))
    began = time.perf_counter()
    for row in range(steps):
        step(row % len(X))
    return (time.perf_counter() - began) / steps


def _single_row_step(
    method: str, weights: Sequence[Array], X: Array, labels: Array
) -> tuple[Any, list[Any]]:
    """Return the function that updates the weights by one row, and the layers that hold them."""
    torch = _torch()
    rows = torch.tensor(X, dtype=torch.float32) / 255
    classes = torch.tensor(labels)
    layers = []
    for W in weights:
        layer = torch.nn.Linear(len(W) - 1, W.shape[1])
        layer.load_state_dict({"weight": torch.tensor(W[:-1].T), "bias": torch.tensor(W[-1])})
        layers += [layer, torch.nn.Softmax(1)]
    model = torch.nn.Sequential(*layers[:-1])  # the loss includes the last softmax
    descent = optimizer(method, list(model.parameters()), LEARNING_RATE)

    def step(row: int) -> None:
        descent.zero_grad()
        outputs = model(rows[row : row + 1])
        torch.nn.functional.cross_entropy(outputs, classes[row : row + 1]).backward()
        descent.step()

    return step, layers[::2]


def optimizer(method: str, parameters: list[Any], learning_rate: float) -> Any:
    """Return PyTorch's optimizer of that name, fused: its fastest form on a CPU."""
    optim = _torch().optim
    if method == "Adam":
        return optim.Adam(parameters, learning_rate, fused=True)
    if method == "NAG":
        return optim.SGD(parameters, learning_rate, momentum=MOMENTUM, nesterov=True, fused=True)
    if method == "SGD":
        return optim.SGD(parameters, learning_rate, fused=True)
    if method == "AdaGrad":
        return optim.Adagrad(parameters, learning_rate, fused=True)
    raise ValueError(f"method is {method!r}; expected one of {', '.join(GRADIENT_METHODS)}")


def _torch() -> Any:
    return importlib.import_module("torch")
