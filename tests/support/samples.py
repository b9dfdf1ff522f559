"""Training sets with few columns, drawn from a seed."""

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


def three_blobs(rows=300):
    """Draw three classes around the unit vectors of space, some of them mixed."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, rows)
    return 2 * np.eye(3)[labels] + random.normal(size=(rows, 3)), labels
