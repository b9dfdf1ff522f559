"""Cases of a layer: activations, their inverses, and the linear step with an activation. NumPy works in place."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import bpls_fast as bf
from bpls_fast import _core

from ..measure.case import Array, Call, Case, relative_error
from ..measure.libraries import torch
from . import images


def numpy_sigmoid(z: Array) -> Array:
    n: Array = np.negative(z)
    np.exp(n, out=n)
    n += 1
    return np.reciprocal(n, out=n)


def numpy_logit(n: Array) -> Array:
    z: Array = 1 - n
    np.divide(n, z, out=z)
    return np.log(z, out=z)


def numpy_softmax(z: Array) -> Array:
    n: Array = z - z.max(1, keepdims=True)
    np.exp(n, out=n)
    n /= n.sum(1, keepdims=True)
    return n


def numpy_centred_log(n: Array) -> Array:
    z: Array = np.log(n)
    z -= z.mean(1, keepdims=True)
    return z


def torch_centred_log(n: Any) -> Any:
    z = n.log()
    return z.sub_(z.mean(1, keepdim=True))


@dataclass(frozen=True)
class Elementwise:
    """An activation in both libraries. They need not clip the argument of an inverse."""

    numpy_forward: Callable[[Array], Array]
    numpy_inverse: Callable[[Array], Array]
    torch_forward: Callable[[Any], Any]
    torch_inverse: Callable[[Any], Any]


ACTIVATIONS = {
    "sigmoid": Elementwise(
        numpy_sigmoid, numpy_logit, lambda z: torch.sigmoid(z), lambda n: torch.logit(n)
    ),
    "tanh": Elementwise(np.tanh, np.arctanh, lambda z: torch.tanh(z), lambda n: torch.atanh(n)),
    "softmax": Elementwise(
        numpy_softmax, numpy_centred_log, lambda z: torch.softmax(z, 1), torch_centred_log
    ),
}


def activation_case(name: str, rows: int, cols: int, *, inverse: bool) -> Case:
    library = ACTIVATIONS[name]
    in_numpy = library.numpy_inverse if inverse else library.numpy_forward
    in_torch = library.torch_inverse if inverse else library.torch_forward
    ours = bf.activations[name]

    def arrays() -> tuple[Array, ...]:
        z = np.random.default_rng(0).standard_normal((rows, cols), np.float32)
        return (library.numpy_forward(z) if inverse else z,)

    def error(values: Array) -> Callable[[Array], float]:
        exact = in_numpy(values.astype(np.float64))
        return lambda result: relative_error(result, exact)

    def torch_forms(values: Array) -> Sequence[Call]:
        return [functools.partial(in_torch, torch.from_numpy(values))]

    return Case(
        kernel=f"{name} {'inverse' if inverse else 'forward'}",
        dtype="float32",
        size=f"{rows} x {cols}",
        make_arrays=arrays,
        ours=ours.inverse if inverse else ours.forward,
        others={
            "numpy": lambda values: [functools.partial(in_numpy, values)],
            "torch": torch_forms,
        },
        make_error=error,
        tolerance=1e-5,
    )


def linear_case(
    dtype: str,
    activation: str,
    rows: int,
    outputs: int,
    *,
    of_images: bool = True,
    bare: bool = False,
) -> Case:
    library = ACTIVATIONS[activation]

    def arrays() -> tuple[Array, ...]:
        scale = 0.1 / 255 if dtype == "uint8" else 0.1
        W = np.random.default_rng(0).standard_normal((images.PIXELS + 1, outputs), np.float32)
        return images.rows_of(dtype, rows, of_images=of_images), W * np.float32(scale)

    def error(A: Array, W: Array) -> Callable[[Array], float]:
        exact = library.numpy_forward(A.astype(np.float64) @ W[:-1] + W[-1])
        return lambda result: relative_error(result, exact)

    def numpy_forms(A: Array, W: Array) -> Sequence[Call]:
        def call() -> Array:
            Z = A @ W[:-1]
            Z += W[-1]
            return library.numpy_forward(Z)

        return [call]

    def torch_forms(A: Array, W: Array) -> Sequence[Call]:
        X, weight, bias = torch.from_numpy(A), torch.from_numpy(W[:-1]), torch.from_numpy(W[-1])
        by_outputs = weight.T.contiguous()  # as torch.nn.Linear keeps it
        linear = torch.nn.functional.linear
        return [
            lambda: library.torch_forward(linear(X, by_outputs, bias)),
            lambda: library.torch_forward(torch.addmm(bias, X, weight)),
        ]

    def bare_call(A: Array, W: Array, n_threads: int, repeats: int) -> float:
        return _core.time_linear(A, W, activation, n_threads, repeats)

    return Case(
        kernel=f"linear {activation}",
        dtype=dtype,
        size=f"{images.shape_text(rows, of_images=of_images)} -> {outputs}",
        make_arrays=arrays,
        ours=functools.partial(bf.linear, bias=True, activation=activation),
        others={"numpy": numpy_forms, "torch": torch_forms},
        make_error=error,
        tolerance=1e-4,
        operations=0 if of_images else 2 * rows * images.PIXELS * outputs,
        bare=bare_call if bare else None,
    )
