"""Training sets of the plane, drawn from a seed."""

import numpy as np


def blobs(d=300, classes=3, spread=0.6, seed=0, dtype=np.float64):
    """Draw classes around points of a circle, some of them mixed."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, d)
    angle = 2 * np.pi * labels / classes
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + spread * rng.normal(size=(d, 2))
    return X.astype(dtype), labels


def rings(rows=400, seed=0):
    """Draw three classes that no line separates."""
    x = np.random.default_rng(seed).normal(size=(rows, 2))
    return x, np.digitize((x**2).sum(axis=1), [0.7, 2.2])
