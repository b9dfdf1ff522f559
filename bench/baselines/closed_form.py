"""What users of scikit-learn would try first: its MLP, random Fourier features with a ridge, a random network (ELM).

The ELM runs on our own kernels, a block of rows at a time, so that only the method differs. The conversion to floats
is not timed; drawing random weights is.
"""

import time
from collections.abc import Iterator

import numpy as np

import bpls_fast as bf
from bpls_fast.datasets import DataSet

from .. import SMALL
from ..cases.networks import CLASSES, Setting

ELM_SIZES = (100, 300) if SMALL else (500, 1000, 2000, 4000)
RBF_SIZES = (100,) if SMALL else (300, 1000, 3000)
BLOCK = 5000


def mlp_epochs(setting: Setting, data: DataSet, epochs: int) -> Iterator[tuple[float, float]]:
    """Train scikit-learn's MLP with its defaults; yield the seconds of each epoch and the accuracy after it.

    It has no softmax for hidden layers and uses ReLU, its default, instead.
    """
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(setting.hidden, random_state=0)
    for _ in range(epochs):
        began = time.perf_counter()
        model.partial_fit(data.x_train, data.y_train, classes=np.arange(CLASSES))
        took = time.perf_counter() - began
        yield took, float(model.score(data.x_test, data.y_test))


def rbf_ridge(data: DataSet, size: int, seed: int) -> tuple[float, float]:
    """Fit RBFSampler + RidgeClassifier with their defaults; return seconds and accuracy."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline

    began = time.perf_counter()
    sampler = RBFSampler(gamma="scale", n_components=size, random_state=seed)
    model = make_pipeline(sampler, RidgeClassifier()).fit(data.x_train, data.y_train)
    took = time.perf_counter() - began
    return took, float(model.score(data.x_test, data.y_test))


def elm(data: DataSet, size: int, seed: int) -> tuple[float, float]:
    """Solve the output layer on top of a random ReLU layer; return seconds and accuracy."""
    began = time.perf_counter()
    inputs = data.x_train.shape[1]
    W = np.random.default_rng(seed).standard_normal((inputs + 1, size), np.float32)
    W /= np.float32(np.sqrt(inputs))
    G, C = np.zeros((size + 1, size + 1)), np.zeros((size + 1, CLASSES))
    targets = np.eye(CLASSES, dtype=np.float32)[data.y_train]
    for first in range(0, len(targets), BLOCK):
        rows = slice(first, first + BLOCK)
        A = bf.linear(data.x_train[rows], W, bias=True, activation="relu")
        block_G, block_C = bf.gram(A, targets[rows], bias=True)
        G += block_G
        C += block_C
    outputs = bf.solve(G, C).astype(np.float32)
    took = time.perf_counter() - began
    A = bf.linear(data.x_test, W, bias=True, activation="relu")
    guesses = bf.linear(A, outputs, bias=True).argmax(axis=1)
    return took, float((guesses == data.y_test).mean())
