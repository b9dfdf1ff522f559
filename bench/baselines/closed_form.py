"""What scikit-learn's users would try first: its MLP, random Fourier features under a ridge, a random network (ELM).

The ELM runs on our own kernels, block by block of rows, so that only the method differs. Floats that lie ready are not
timed; drawing random weights is.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from kernel_cases import SMALL
from numpy.typing import NDArray
from settings import CLASSES, Setting

import bpls_fast as bf
from bpls_fast.datasets import DataSet

Array = NDArray[Any]

ELM_SIZES = (100, 300) if SMALL else (500, 1000, 2000, 4000)
RBF_SIZES = (100,) if SMALL else (300, 1000, 3000)
BLOCK = 5000


def as_floats(data: DataSet) -> DataSet:
    """Give the images as float32 between 0 and 1."""
    scaled = [np.divide(x, 255, dtype=np.float32) for x in (data.x_train, data.x_test)]
    return data._replace(x_train=scaled[0], x_test=scaled[1])


def mlp_epochs(setting: Setting, data: DataSet, epochs: int) -> Iterator[tuple[float, float]]:
    """Train scikit-learn's MLP with its defaults; give the seconds of each epoch and the accuracy after it.

    It has no softmax in hidden layers: there it gets ReLU, its default.
    """
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(setting.hidden, random_state=0)
    for _ in range(epochs):
        began = time.perf_counter()
        model.partial_fit(data.x_train, data.y_train, classes=np.arange(CLASSES))
        took = time.perf_counter() - began
        yield took, float(model.score(data.x_test, data.y_test))


def rbf_ridge(data: DataSet, size: int, seed: int) -> tuple[float, float]:
    """Fit RBFSampler + RidgeClassifier with their defaults; give seconds and accuracy."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline

    began = time.perf_counter()
    sampler = RBFSampler(gamma="scale", n_components=size, random_state=seed)
    model = make_pipeline(sampler, RidgeClassifier()).fit(data.x_train, data.y_train)
    took = time.perf_counter() - began
    return took, float(model.score(data.x_test, data.y_test))


def elm(data: DataSet, size: int, seed: int) -> tuple[float, float]:
    """Solve the outputs of a random ReLU layer; give seconds and accuracy."""
    began = time.perf_counter()
    inputs = data.x_train.shape[1]
    W = np.random.default_rng(seed).standard_normal((inputs + 1, size), np.float32)
    W /= np.float32(np.sqrt(inputs))
    G, C = np.zeros((size + 1, size + 1)), np.zeros((size + 1, CLASSES))
    targets = np.eye(CLASSES, dtype=np.float32)[data.y_train]
    for first in range(0, len(targets), BLOCK):
        rows = slice(first, first + BLOCK)
        A = bf.linear(data.x_train[rows], W, bias=True, activation="relu")
        of_block = bf.gram(A, targets[rows], bias=True)
        G += of_block[0]
        C += of_block[1]
    outputs = bf.solve(G, C).astype(np.float32)
    took = time.perf_counter() - began
    A = bf.linear(data.x_test, W, bias=True, activation="relu")
    guesses = bf.linear(A, outputs, bias=True).argmax(axis=1)
    return took, float((guesses == data.y_test).mean())
