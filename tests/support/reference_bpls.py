"""The paper's two algorithms in plain NumPy and float64, with every option, close to the letter.

Rule of this file: nothing here calls bpls_fast.
"""

import numpy as np

from tests.support.reference import ACTIVATIONS, with_ones

CHOICES = ["mean", "last", "label", "cyclic", "least_squares", "damped"]
"""The literal readings of the paper's formula, one output at a time."""


def inverse(name, n, margin):
    """Give the z with act(z) = n, n first moved into the range, `margin` away from an end that is never reached."""
    if name == "identity":
        return n
    if name == "sigmoid":
        n = np.clip(n, margin, 1 - margin)
        return np.log(n) - np.log1p(-n)
    if name == "tanh":
        return np.arctanh(np.clip(n, margin - 1, 1 - margin))
    if name == "relu":
        return np.maximum(n, 0)
    if name == "leaky_relu":
        n = np.maximum(n, -margin)
        return np.where(n > 0, n, 100 * n)
    if name == "elu":
        return np.where(n > 0, n, np.log1p(np.clip(n, margin - 1, 0)))
    if name == "softplus":
        return np.log(np.expm1(np.maximum(n, margin)))
    if name == "softminus":
        return -np.log(np.expm1(np.maximum(-n, margin)))
    assert name == "softmax"
    logs = np.log(np.maximum(n, margin))
    return logs - logs.mean(axis=1, keepdims=True)


def layer_inputs(weights, names, bias, X):
    """Give what enters every layer, from the first on, and what leaves the last."""
    values = [X]
    for W, name in zip(weights, names, strict=True):
        values.append(ACTIVATIONS[name](with_ones(values[-1], bias) @ W))
    return values


def solve(A, B, bias, sample_weight, eps=1e-6, refinements=0):
    """Give the weights of a layer, the ridge relative to the mean of the Gram's diagonal."""
    A = with_ones(A, bias)
    w = np.ones(len(A)) if sample_weight is None else sample_weight
    G, C = (A.T * w) @ A, (A.T * w) @ B
    ridge = G + eps * G.trace() / len(G) * np.eye(len(G))
    W = np.linalg.solve(ridge, C)
    for _ in range(refinements):
        W = W + np.linalg.solve(ridge, C - G @ W)
    return W


class IllConditionedError(Exception):
    """No two methods agree on the answer."""


def pseudo_inverse(V):
    """Give V⁺. Where the outputs are softmax, targets have rows of mean zero and V has not its full rank."""
    singular = np.linalg.svd(V, compute_uv=False)
    share = singular / singular[0]
    if ((share > 1e-9) & (share < 1e-4)).any():
        raise IllConditionedError("a singular value is neither zero nor clearly above it")
    return np.linalg.pinv(V, rcond=1e-9)


def updated_neurons(n, B, W, bias, choice, labels):
    """Give what the neurons below should have been: equation (6) of the paper, or all its outputs at once."""
    Z = with_ones(n, bias) @ W
    V = W[: n.shape[1]]
    if choice == "joint":
        return n + (B - Z) @ pseudo_inverse(V)
    neurons, outputs = V.shape
    updated = np.empty_like(n)
    for i in range(neurons):
        # What neuron i should be for each output j: (b_j - the sum over the others) / w_ij.
        wanted = [
            np.full(len(n), np.nan)
            if V[i, j] == 0
            else (B[:, j] - (Z[:, j] - V[i, j] * n[:, i])) / V[i, j]
            for j in range(outputs)
        ]
        by_output = np.stack(wanted, axis=1)
        by_output = np.where(np.isnan(by_output), n[:, [i]], by_output)
        if choice == "mean" or (choice == "label" and labels is None):
            updated[:, i] = by_output.mean(axis=1)
        elif choice == "label":
            updated[:, i] = by_output[np.arange(len(n)), labels]
        elif choice == "last":
            updated[:, i] = by_output[:, -1]
        elif choice == "cyclic":
            updated[:, i] = by_output[:, i % outputs]
        else:  # the value with the smallest squared error over all outputs, or a share of the way to it
            share = 1 / neurons if choice == "damped" else 1
            step = (B - Z) @ V[i] / (V[i] @ V[i])
            updated[:, i] = n[:, i] + share * step
    return updated


def sweep(
    weights,
    names,
    bias,
    X,
    B,
    margins,
    sample_weight=None,
    labels=None,
    choice="joint",
    resolve=False,
    refinements=0,
):
    """Lines 4 to 11 of Algorithm 1, lines 3 to 14 of Algorithm 2."""
    A = layer_inputs(weights, names, bias, X)
    new = [None] * len(weights)
    for layer in range(len(weights) - 1, 0, -1):
        W = solve(A[layer], B, bias, sample_weight, refinements=refinements)
        n = updated_neurons(A[layer], B, W, bias, choice, labels)
        below = names[layer - 1]
        pulled = inverse(below, n, margins[layer - 1])
        if resolve:
            W = solve(ACTIVATIONS[below](pulled), B, bias, sample_weight)
        new[layer], B, labels = W, pulled, None
    new[0] = solve(A[0], B, bias, sample_weight, refinements=refinements)
    return new


def algorithm_2(
    weights,
    names,
    bias,
    X,
    B,
    labels,
    margins,
    max_iter,
    full_sweeps,
    sample_weight=None,
    **options,
):
    """Give the weights after every sweep, the misses of each, and which has the lowest share of them."""
    w = np.ones(len(X)) if sample_weight is None else sample_weight
    history, rates, tried = [], [], []
    now, missed = weights, np.arange(len(X))
    for iteration in range(max_iter):
        if iteration < full_sweeps:
            now = sweep(now, names, bias, X, B, margins, sample_weight, labels, **options)
        else:
            some = None if sample_weight is None else sample_weight[missed]
            part = sweep(
                now, names, bias, X[missed], B[missed], margins, some, labels[missed], **options
            )
            m = rates[-1]
            now = [(1 - m) * W + m * V for W, V in zip(now, part, strict=True)]
        Z = with_ones(layer_inputs(now[:-1], names[:-1], bias, X)[-1], bias) @ now[-1]
        missed = np.flatnonzero(Z.argmax(axis=1) != labels)
        fell = not rates or w[missed].sum() / w.sum() < min(rates)
        history.append(len(missed))
        rates.append(w[missed].sum() / w.sum())
        tried.append(now)
        if not len(missed) or (not fell and iteration >= full_sweeps):
            break
    return tried, history, int(np.argmin(rates))
