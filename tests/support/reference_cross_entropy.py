"""Cross-entropy sweeps in plain NumPy and float64, from the formulas of the method.

Rule of this file: nothing here calls bpls_fast. Letters: N are the values of a layer, p those of the outputs, D is a
residual pulled back to the pre-activations of a layer, w are weights of rows.
"""

from typing import NamedTuple

import numpy as np

from tests.support.reference import ACTIVATIONS, with_ones
from tests.support.reference_refined import (
    Unclear,
    derivative_matrices,
    ridged,
    standardizing,
    without_bias,
)


class Problem(NamedTuple):
    """The rows, the network that is not trained, and the constants of the method."""

    X: np.ndarray
    T: np.ndarray  # one-hot
    w: np.ndarray
    names: list  # of the hidden activations
    bias: bool
    eps: float
    decay: float
    standardize: bool = False
    damping: float = 0.1
    length_ridge: float = 0.01
    halvings: int = 6
    shorter: float = 1.0
    trial: int | None = None  # rows that the lengths are found on, where not all
    kept_gram: float = (
        0.9  # share of the earlier Gram matrices of hidden values, where there are trial rows
    )

    @property
    def activations(self):
        return [*self.names, "softmax"]

    def trial_rows(self):
        rows = slice(self.trial)
        return self._replace(X=self.X[rows], T=self.T[rows], w=self.w[rows])


def forward(problem, weights):
    """Return what enters every layer, ones included, and the pre-activations of every layer."""
    A, Z, N = [], [], problem.X
    for W, name in zip(weights, problem.activations, strict=True):
        A.append(with_ones(N, problem.bias))
        Z.append(A[-1] @ W)
        N = ACTIVATIONS[name](Z[-1])
    return A, Z


def decays(problem, weights):
    """Return the decay of every weight: that of standardized columns in the first layer, none for biases."""
    found = [np.full_like(W, problem.decay) for W in weights]
    if problem.standardize:
        M = standardizing(problem.X, problem.w, problem.bias)
        found[0] /= np.square(M.diagonal())[:, np.newaxis]
    for of_layer in found:
        of_layer[len(of_layer) - problem.bias :] = 0.0
    return found


def loss_of(problem, weights, of_weights):
    _, Z = forward(problem, weights)
    logs = Z[-1] - np.log(np.exp(Z[-1]).sum(axis=1, keepdims=True))
    penalty = sum(np.sum(d * W**2) for d, W in zip(of_weights, weights, strict=True)) / 2
    return penalty - problem.w @ (problem.T * logs).sum(axis=1) / problem.w.sum()


def gradients_and_steps(problem, weights, of_weights, earlier=None):
    """Return both for every layer; `earlier` are the sums NᵀwN and Σw of each layer in earlier sweeps."""
    A, Z = forward(problem, weights)
    w, total, bias = problem.w[:, np.newaxis], problem.w.sum(), problem.bias
    p = ACTIVATIONS["softmax"](Z[-1])
    D, C = w * (problem.T - p), np.diag((w * p).sum(axis=0) / total) - p.T @ (w * p) / total
    gradients, steps = [], []
    for layer in reversed(range(len(weights))):
        gradient = A[layer].T @ D / total - of_weights[layer] * weights[layer]
        G = A[layer].T @ (w * A[layer]) / total
        if layer and problem.trial is not None:
            few = slice(problem.trial)
            sums = [A[layer][few].T @ (w * A[layer])[few], problem.w[few].sum()]
            if layer in earlier:
                kept = zip(sums, earlier[layer], strict=True)
                sums = [now + problem.kept_gram * before for now, before in kept]
            earlier[layer] = sums
            G = sums[0] / sums[1]
        M = np.eye(len(G))
        if layer == 0 and problem.standardize:
            M = standardizing(problem.X, problem.w, bias)
        step = M @ np.linalg.solve(ridged(M.T @ G @ M, problem.eps), M.T @ gradient)
        step = np.linalg.solve(ridged(C, problem.damping), step.T).T
        gradients.insert(0, gradient)
        steps.insert(0, step)
        if layer:
            W, name = without_bias(weights[layer], bias), problem.names[layer - 1]
            J = derivative_matrices(name, Z[layer - 1])
            D = np.einsum("dij,dj->di", J, D @ W.T)
            slopes = np.einsum("dii->di", J)
            products = slopes.T @ (w * slopes) / total
            if name == "softmax":
                products = np.diag(products.diagonal())
            C = (W @ C @ W.T) * products
    return gradients, steps


def lengths_of(problem, weights, of_weights, gradients, directions):
    """Minimize the Gauss-Newton model of the loss over the lengths of all directions."""
    A, Z = forward(problem, weights)
    J = [derivative_matrices(name, z) for name, z in zip(problem.activations, Z, strict=True)]
    effects = []
    for layer, direction in directions:
        change = A[layer] @ direction
        for higher in range(layer + 1, len(weights)):
            change = np.einsum("dij,dj->di", J[higher - 1], change)
            change = change @ without_bias(weights[higher], problem.bias)
        effects.append(change)
    curved = [np.einsum("d,dij,dj->di", problem.w, J[-1], E) for E in effects]
    Q = np.array([[np.sum(E * F) for F in curved] for E in effects]) / problem.w.sum()
    for row, (layer, one) in enumerate(directions):
        for column, (same, other) in enumerate(directions):
            if layer == same:
                Q[row, column] += np.sum(of_weights[layer] * one * other)
    slopes = [np.sum(gradients[layer] * direction) for layer, direction in directions]
    sizes = np.sqrt(np.where(Q.diagonal() > 0, Q.diagonal(), 1.0))
    scaled = Q / np.outer(sizes, sizes) + problem.length_ridge * np.eye(len(Q))
    return np.linalg.solve(scaled, slopes / sizes) / sizes


class Swept(NamedTuple):
    """The weights after some sweeps, the loss before each, and the moves that were too long."""

    weights: list
    losses: list
    halved: int


def sweeps(problem, weights, count):
    losses, last, halved = [], None, 0
    of_weights, trial, earlier = decays(problem, weights), problem.trial_rows(), {}
    for _ in range(count):
        losses.append(loss_of(problem, weights, of_weights))
        gradients, steps = gradients_and_steps(problem, weights, of_weights, earlier)
        directions = [*enumerate(steps), *enumerate(last or [])]
        lengths = lengths_of(trial, weights, of_weights, gradients, directions)
        move = [np.zeros_like(W) for W in weights]
        for length, (layer, direction) in zip(lengths, directions, strict=True):
            move[layer] += problem.shorter * length * direction
        before, last = loss_of(trial, weights, of_weights), None
        for _ in range(problem.halvings):
            moved = [W + change for W, change in zip(weights, move, strict=True)]
            after = loss_of(trial, moved, of_weights)
            if abs(after - before) < 1e-9 * before:
                raise Unclear
            if after < before:
                weights, last = moved, move
                break
            move = [change / 2 for change in move]
            halved += 1
    return Swept(weights, losses, halved)
