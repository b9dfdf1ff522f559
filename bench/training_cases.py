"""Training beside the same algorithm in NumPy and PyTorch: one sweep, and a whole fit, on Fashion-MNIST with 100-70.

Everyone starts from the same weights and keeps the same margins; the answer is the trained weights. Rounding shows
in them: float32 rounds to 6e-8, and a solve with a ridge of 1e-6 multiplies that by up to 1e6.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import images
import numpy as np
import same_algorithm
from kernel_cases import SMALL, Array, Call, Case, largest
from same_algorithm import InNumpy, InTorch, Library

import bpls_fast as bf
from bpls_fast.training.report import Recorder
from bpls_fast.training.data import class_targets
from bpls_fast.training.bpls.backward_sweep import Sweep

HIDDEN = (30, 20) if SMALL else (100, 70)
ROWS = 2000 if SMALL else images.ROWS
EVERY = (
    4 if SMALL else 1
)  # pixels: with more of them than rows no two libraries would round to the same weights
MARGINS = [0.4 / width for width in HIDDEN]
CLASSES = 10
LABEL_FLOOR = 1e-2
EPS = 1e-6
MAX_ITER = 15
FULL_SWEEPS = 3
TOLERANCE = 2.0**-24 / EPS


def data(dtype: str) -> tuple[Array, Array]:
    """Give images and labels."""
    X, labels = images.load_fashion(dtype, ROWS)
    return X[:, ::EVERY], labels


def start(X: Array) -> bf.Network:
    return bf.Network([X.shape[1], *HIDDEN, CLASSES], seed=0)


def targets(X: Array, labels: Array) -> Array:
    """Give what the outputs should be, before their softmax, for each row."""
    of_class = class_targets(CLASSES, bf.activations["softmax"], LABEL_FLOOR)
    targets: Array = of_class.astype(np.float64 if X.dtype == np.float64 else np.float32)[labels]
    return targets


def flat(weights: Sequence[Any]) -> Array:
    return np.concatenate([np.asarray(W).ravel() for W in weights])


def our_sweep(X: Array, labels: Array, n_threads: int) -> Array:
    """Run the rows forward, then sweep back. The limit on threads is the one that everyone has."""
    net = start(X)
    sweep = Sweep(net, Recorder("sweep", EPS), margin=MARGINS)
    return flat(sweep(net.layer_inputs(X), targets(X, labels)))


def our_fit(X: Array, labels: Array, n_threads: int) -> Array:
    net = start(X)
    bf.fit_classifier(
        net,
        X,
        labels,
        max_iter=MAX_ITER,
        eps=EPS,
        full_sweeps=FULL_SWEEPS,
        margin=MARGINS,
        label_floor=LABEL_FLOOR,
    )
    return flat(net.weights)


def their_sweep(library: Callable[[], Library], X: Array, labels: Array) -> Sequence[Call]:
    lib = library()
    rows, B = lib.with_ones(lib.array(X)), lib.array(targets(X, labels))
    weights = [lib.array(W) for W in start(X).weights]

    def call() -> Array:
        A = same_algorithm.layer_inputs(lib, rows, weights)
        return flat(same_algorithm.sweep(lib, A, B, MARGINS)[0])

    return [call]


def their_fit(library: Callable[[], Library], X: Array, labels: Array) -> Sequence[Call]:
    lib = library()
    rows, B = lib.with_ones(lib.array(X)), lib.array(targets(X, labels))
    weights, classes = [lib.array(W) for W in start(X).weights], lib.array(labels)

    def call() -> Array:
        return flat(
            same_algorithm.fit(lib, rows, B, classes, weights, MARGINS, MAX_ITER, FULL_SWEEPS)
        )

    return [call]


def training_case(
    name: str, dtype: str, ours: Callable[..., Array], theirs: Callable[..., Sequence[Call]]
) -> Case:
    def error(X: Array, labels: Array) -> Callable[[Array], float]:
        wide = X / 255 if dtype == "uint8" else X.astype(np.float64)
        (call,) = theirs(InNumpy, wide, labels)
        exact = call()
        return lambda weights: largest(weights - exact, exact)

    pixels = images.PIXELS // EVERY
    return Case(
        kernel=name,
        dtype=dtype,
        size=f"{ROWS} x {pixels}, {'-'.join(map(str, HIDDEN))}",
        make_arrays=lambda: data(dtype),
        ours=ours,
        others={
            "numpy": functools.partial(theirs, InNumpy),
            "torch": functools.partial(theirs, InTorch),
        },
        make_error=error,
        tolerance=TOLERANCE,
        to_float=lambda X: np.divide(X, 255, dtype=np.float32),
        rounds=5,
    )


SWEEPS = [training_case("sweep", dtype, our_sweep, their_sweep) for dtype in ("float32", "uint8")]
FITS = [
    training_case("fit_classifier", dtype, our_fit, their_fit) for dtype in ("float32", "uint8")
]
TRAINING = [*SWEEPS, *FITS]
