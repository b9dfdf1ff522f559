"""Refined sweeps over all rows in plain NumPy and float64, from the formulas of the method.

Rule of this file: nothing here calls bpls_fast. Letters: N are the values of a hidden layer, T is what the outputs
should be, R what is left of it, w are weights of rows.
"""

from typing import NamedTuple

import numpy as np

from tests.support.reference import ACTIVATIONS, with_ones


def derivative_matrices(name, Z):
    """Give the Jacobian of the activation for every row of pre-activations, as full matrices."""
    N = ACTIVATIONS[name](Z)
    if name == "softmax":
        return np.eye(Z.shape[1]) * N[:, np.newaxis] - N[:, :, np.newaxis] * N[:, np.newaxis]
    slopes = {
        "identity": lambda: np.ones_like(Z),
        "sigmoid": lambda: N * (1 - N),
        "tanh": lambda: 1 - N**2,
        "relu": lambda: np.where(Z > 0, 1.0, 0.0),
        "leaky_relu": lambda: np.where(Z > 0, 1.0, 0.01),
        "elu": lambda: np.exp(np.minimum(Z, 0)),
        "softplus": lambda: ACTIVATIONS["sigmoid"](Z),
        "softminus": lambda: ACTIVATIONS["sigmoid"](-Z),
    }[name]()
    return np.eye(Z.shape[1]) * slopes[:, np.newaxis]


def ridged(G, eps):
    return G + eps * np.trace(G) / len(G) * np.eye(len(G))


class Problem(NamedTuple):
    """The rows, the network that is not trained, and the constants of the method."""

    X: np.ndarray
    T: np.ndarray
    w: np.ndarray
    names: list  # of the hidden activations
    bias: bool
    eps: float
    output_eps: float
    standardize: bool = False
    damping: float = 0.5
    conjugacy: float = 0.9
    halvings: int = 6
    upper_ridge: float = 0.1  # of layers above the first, as a share of eps
    lengths_eps: float = 1e-9  # where every effect has size 1


class State(NamedTuple):
    """The network on some rows: pre-activations and values of the hidden layers, the output layer, what is left."""

    Z: list
    N: list
    G: np.ndarray  # of the last hidden layer, with the ridge
    W: np.ndarray
    R: np.ndarray
    loss: float


def state_of(problem, hidden):
    Z, N = [], []
    A = problem.X
    for W, name in zip(hidden, problem.names, strict=True):
        Z.append(with_ones(A, problem.bias) @ W)
        A = ACTIVATIONS[name](Z[-1])
        N.append(A)
    A, w, T = with_ones(A, problem.bias), problem.w[:, np.newaxis], problem.T
    G = ridged(A.T @ (w * A), problem.output_eps)
    ridge = problem.output_eps * np.trace(A.T @ (w * A)) / len(G)
    W = np.linalg.solve(G, A.T @ (w * T))
    R = T - A @ W
    loss = np.sum(w * R**2) + ridge * np.sum(W**2)
    return State(Z, N, G, W, R, loss)


def without_bias(W, bias):
    return W[: len(W) - bias]


def standardizing(X, w, bias):
    """Give the matrix that takes X, with its ones, to columns of mean 0 and mean square 1."""
    n = X.shape[1]
    mean = w @ X / w.sum() if bias else np.zeros(n)
    deviation = np.sqrt(w @ (X - mean) ** 2 / w.sum()) if bias else np.sqrt(w @ X**2)
    M = np.eye(n + bias)
    M[:n, :n] = np.diag(1 / deviation)
    if bias:
        M[n, :n] = -mean / deviation
    return M


def gradients_and_steps(problem, hidden, state):
    """Pull the residual back layer by layer; the step of each is its least-squares solution, over the curvature."""
    w, bias = problem.w, problem.bias
    gradients, steps = [], []
    pulled, above = w[:, np.newaxis] * state.R, state.W
    curvature = np.eye(state.R.shape[1])
    for layer in reversed(range(len(hidden))):
        J = derivative_matrices(problem.names[layer], state.Z[layer])
        V = without_bias(above, bias)
        pulled = np.einsum("dij,dj->di", J, pulled @ V.T)
        diagonal = np.einsum("dii->di", J)
        slopes = np.einsum("d,di,dj->ij", w, diagonal, diagonal) / w.sum()
        if problem.names[layer] == "softmax" or len(hidden) == 1:
            slopes = np.diag(slopes.diagonal())  # neurons are taken to be independent
        curvature = (V @ curvature @ V.T) * slopes
        A = with_ones(state.N[layer - 1] if layer else problem.X, bias)
        G, gradient = A.T @ (w[:, np.newaxis] * A), A.T @ pulled
        M = np.eye(len(G))
        if layer == 0 and problem.standardize:
            M = standardizing(problem.X, w, bias)
        ridge = problem.eps * (problem.upper_ridge if layer else 1)
        step = M @ np.linalg.solve(ridged(M.T @ G @ M, ridge), M.T @ gradient)
        step = np.linalg.solve(ridged(curvature, problem.damping), step.T).T
        gradients.insert(0, gradient / w.sum())
        steps.insert(0, step)
        above = hidden[layer]
    return gradients, steps


def effects_of(problem, hidden, state, directions):
    """Give what each layer's direction does to the outputs, to first order and under the present output layer."""
    effects = []
    for layer, direction in enumerate(directions):
        A = with_ones(state.N[layer - 1] if layer else problem.X, problem.bias)
        change = A @ direction
        for higher in range(layer, len(hidden)):
            if higher > layer:
                change = change @ without_bias(hidden[higher], problem.bias)
            J = derivative_matrices(problem.names[higher], state.Z[higher])
            change = np.einsum("dij,dj->di", J, change)
        effects.append(change @ without_bias(state.W, problem.bias))
    return effects


def lengths_of(problem, state, effects):
    """Minimize the loss of the linearized network over the lengths, the output layer solved for each of them."""
    w, A = problem.w[:, np.newaxis], with_ones(state.N[-1], problem.bias)
    rest = [E - A @ np.linalg.solve(state.G, A.T @ (w * E)) for E in effects]
    M = np.array([[np.sum(w * E * F) for F in rest] for E in effects])
    sizes = np.sqrt(M.diagonal())
    scaled = M / np.outer(sizes, sizes) + problem.lengths_eps * np.eye(len(M))
    return np.linalg.solve(scaled, [np.sum(w * E * state.R) for E in effects] / sizes) / sizes


def dot(one, other):
    return sum(np.sum(a * b) for a, b in zip(one, other, strict=True))


class Unclear(Exception):  # noqa: N818
    """What a sweep decides hangs on rounding."""


class Swept(NamedTuple):
    """Hidden weights and output layer after some sweeps, the loss before each, what the sweeps did on the way."""

    hidden: list
    W: np.ndarray
    losses: list
    conjugated: int  # sweeps that kept a part of the last directions
    halved: int  # steps that were too long


def sweeps(problem, hidden, count):
    losses, last, conjugated, halved, failed = [], None, 0, 0, False
    state = state_of(problem, hidden)
    for _ in range(count):
        losses.append(state.loss / problem.w.sum())
        gradients, steps = gradients_and_steps(problem, hidden, state)
        slope, directions = dot(gradients, steps), steps
        if last is not None:
            beta = (slope - dot(last[0], steps)) / last[2]
            beta = np.clip(beta, 0, problem.conjugacy)
            conjugate = [s + beta * d for s, d in zip(steps, last[1], strict=True)]
            if dot(gradients, conjugate) > 0:
                directions = conjugate
                conjugated += beta > 0
        effects = effects_of(problem, hidden, state, directions)
        lengths = lengths_of(problem, state, effects)
        last = gradients, directions, slope
        for halving in range(problem.halvings):
            moved = [
                W + length * d for W, length, d in zip(hidden, lengths, directions, strict=True)
            ]
            after = state_of(problem, moved)
            if abs(after.loss - state.loss) < 1e-9 * state.loss:
                raise Unclear
            if after.loss < state.loss:
                hidden, state = moved, after
                failed = False
                if halving:
                    last = None
                break
            lengths = lengths / 2
            halved += 1
        else:
            if failed:  # twice in a row: a fit ends here
                break
            last, failed = None, True
    return Swept(hidden, state.W, losses, conjugated, halved)
