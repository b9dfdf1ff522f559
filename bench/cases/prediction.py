"""Cases of prediction: one row and many through a 784-60-10 network, ReLU and softmax.

All contenders have the same weights and get rows made in advance; bytes are given to the others as a float32 copy.
Four pixels in five of an MNIST image are zeros, which we skip; a dense row has none.
"""

import functools
import itertools
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

import bpls_fast as bf

from .. import SMALL
from ..measure.case import Array, Call, Case, Forms, relative_error
from ..measure.libraries import torch
from ..measure.peaks import burst_peak, read_rate
from . import images
from .layers import numpy_softmax

SIZES = (images.PIXELS, 60, 10)
MULTIPLY_ADDS = sum(inputs * outputs for inputs, outputs in itertools.pairwise(SIZES))
MANY = 500 if SMALL else 10_000


@functools.cache
def network() -> bf.Network:
    net = bf.Network(SIZES, activation="relu", seed=0)
    net.weights = [W / np.sqrt(len(W)) for W in net.weights]  # outputs are not all 0 or 1
    return net


def as_floats(X: Array) -> Array:
    return np.divide(X, 255, dtype=np.float32)


def run(weights: Sequence[Array], X: Array) -> Array:
    """Run the network in NumPy, in the type of its weights."""
    hidden, output = weights
    N = X @ hidden[:-1]
    N += hidden[-1]
    np.maximum(N, 0, out=N)
    Z = N @ output[:-1]
    Z += output[-1]
    return numpy_softmax(Z)


# ---- the competitors, on rows in float32


def numpy_forms(X: Array) -> Sequence[Call]:
    return [functools.partial(run, [W.astype(np.float32) for W in network().weights], X)]


def torch_forms(X: Array) -> Sequence[Call]:
    return [functools.partial(network().to_torch().eval(), torch.from_numpy(X))]


def script_forms(X: Array) -> Sequence[Call]:
    rows = torch.from_numpy(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(network().to_torch().eval(), rows)
        call = functools.partial(torch.jit.freeze(traced), rows)
    for _ in range(3):  # it optimizes as it runs
        call()
    return [call]


def onnx_forms(X: Array) -> Sequence[Call]:
    """Run the exported network. For many rows its threads must not spin after a call.

    They would spin for longer than the pause, on the core that the next contender needs; its own best time is the same.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = max(pool["num_threads"] for pool in threadpool_info())
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(len(X) == 1)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        network().to_onnx(path)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: X}
    return [lambda: session.run(None, feed)[0]]


def sklearn_forms(X: Array) -> Sequence[Call]:
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(SIZES[1], max_iter=1)
    classes = np.arange(SIZES[-1])
    model.partial_fit(X[:1].repeat(len(classes), axis=0), classes, classes=classes)
    model.coefs_ = [W[:-1].astype(np.float32) for W in network().weights]
    model.intercepts_ = [W[-1].astype(np.float32) for W in network().weights]
    return [lambda: model.predict_proba(X)]


OTHERS: dict[str, Forms] = {
    "numpy": numpy_forms,
    "torch": torch_forms,
    "TorchScript": script_forms,
    "onnxruntime": onnx_forms,
    "MLPClassifier": sklearn_forms,
}


def of_rows(forms: Forms, X: Array) -> Sequence[Call]:
    """Pass a single row as a matrix: the others take no vector."""
    return forms(np.atleast_2d(X))


# ---- the cases


def bare(x: Array, n_threads: int, repeats: int) -> float:
    """Return the seconds of one row without Python, which uses one thread."""
    return network().packed().time(x, repeats)[0]


def floors() -> dict[str, float]:
    """Return the seconds of a row's multiply-adds at the peak, and of reading the weights once from their cache."""
    weights = 4 * MULTIPLY_ADDS
    return {
        "the multiply-adds at the peak": 2 * MULTIPLY_ADDS / burst_peak("float32", 1),
        "reading the weights": weights / read_rate(weights),
    }


def error(X: Array) -> Callable[[Array], float]:
    rows = np.atleast_2d(X).astype(np.float64) / (255 if X.dtype == np.uint8 else 1)
    exact = run(network().weights, rows)
    return lambda outputs: relative_error(outputs.reshape(exact.shape), exact)


def dense() -> Array:
    return images.dense("float32", MANY)


def case(size: str, dtype: str, make: Callable[[], Array], *, operations: float = 0) -> Case:
    one = size.startswith("one")
    predictor = bf.Predictor(network())
    return Case(
        kernel="prediction",
        dtype=dtype,
        size=size,
        make_arrays=lambda: (make(),),
        ours=predictor.predict_one if one else predictor.forward,
        takes_threads=not one,
        others={name: functools.partial(of_rows, forms) for name, forms in OTHERS.items()},
        make_error=error,
        tolerance=1e-5,
        operations=operations,
        bare=bare if one else None,
        floors=floors if one else None,
        to_float=as_floats,
        rounds=25,
    )


PREDICTION = [
    case("one image", "float32", lambda: images.load("float32", MANY)[0]),
    case("one image", "uint8", lambda: images.load("uint8", MANY)[0]),
    case("one dense row", "float32", lambda: dense()[0]),
    case(f"{MANY} images", "float32", lambda: images.load("float32", MANY)),
    case(f"{MANY} dense rows", "float32", dense, operations=2 * MULTIPLY_ADDS * MANY),
]
