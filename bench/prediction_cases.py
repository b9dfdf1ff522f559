"""Prediction: one row and many through one 784-60-10 network, ReLU and softmax, beside what else runs such networks.

Everyone has the same weights and gets float32 rows that lie ready.
"""

import functools
import importlib.util
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from kernel_cases import (
    INSTALLED,
    SMALL,
    Array,
    Call,
    Case,
    Forms,
    largest,
    numpy_softmax,
    torch,
)
from threadpoolctl import threadpool_info

import bpls_fast as bf

SIZES = (784, 60, 10)
MANY = 500 if SMALL else 10_000
_to_onnx = vars(bf.Network).get("to_onnx")
INSTALLED |= {
    "TorchScript": INSTALLED["torch"],
    "onnxruntime": _to_onnx is not None and importlib.util.find_spec("onnxruntime") is not None,
    "MLPClassifier": importlib.util.find_spec("sklearn") is not None,
}


@functools.cache
def network() -> bf.Network:
    net = bf.Network(SIZES, activation="relu", seed=0)
    net.weights = [W / np.sqrt(len(W)) for W in net.weights]  # outputs are not all 0 or 1
    return net


def run(weights: Sequence[Array], X: Array) -> Array:
    """Run the network as NumPy does, in the type of its weights."""
    hidden, output = weights
    N = X @ hidden[:-1]
    N += hidden[-1]
    np.maximum(N, 0, out=N)
    Z = N @ output[:-1]
    Z += output[-1]
    return numpy_softmax(Z)


def numpy_forms(X: Array) -> Sequence[Call]:
    return [functools.partial(run, [W.astype(np.float32) for W in network().weights], X)]


def torch_model() -> Any:
    layers = []
    for W in network().weights:
        layers.append(torch.nn.Linear(len(W) - 1, W.shape[1]))
        layers[-1].load_state_dict({"weight": torch.tensor(W[:-1].T), "bias": torch.tensor(W[-1])})
    hidden, output = layers
    return torch.nn.Sequential(hidden, torch.nn.ReLU(), output, torch.nn.Softmax(dim=1)).eval()


def torch_forms(X: Array) -> Sequence[Call]:
    return [functools.partial(torch_model(), torch.from_numpy(X))]


def script_forms(X: Array) -> Sequence[Call]:
    rows = torch.from_numpy(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        call = functools.partial(torch.jit.freeze(torch.jit.trace(torch_model(), rows)), rows)
    for _ in range(3):  # it optimizes as it runs
        call()
    return [call]


def onnx_forms(X: Array) -> Sequence[Call]:
    import onnxruntime

    assert _to_onnx is not None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = max(pool["num_threads"] for pool in threadpool_info())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        _to_onnx(network(), path)
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


def case(rows: int, ours: Callable[..., Array]) -> Case:
    def error(X: Array) -> Callable[[Array], float]:
        exact = run(network().weights, X.astype(np.float64))
        return lambda outputs: largest(outputs - exact, exact)

    others: dict[str, Forms] = {
        "numpy": numpy_forms,
        "torch": torch_forms,
        "TorchScript": script_forms,
        "onnxruntime": onnx_forms,
        "MLPClassifier": sklearn_forms,
    }
    return Case(
        kernel="prediction",
        dtype="float32",
        size=f"{rows} row" + "s" * (rows > 1),
        make_arrays=lambda: (np.random.default_rng(0).random((rows, SIZES[0]), np.float32),),
        ours=ours,
        others=others,
        make_error=error,
        tolerance=1e-4,
        rounds=25,
    )


def one_row(X: Array, n_threads: int) -> Array:
    outputs: Array = network().predict_one(X[0])
    return outputs


def many_rows(X: Array, n_threads: int) -> Array:
    return network().forward(X)


PREDICTION = [case(1, one_row), case(MANY, many_rows)]
