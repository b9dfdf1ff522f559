"""Cases of a layer: activations, their inverses, and the linear step with an activation. NumPy works in place."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import bpls_fast as bf
from bpls_fast import _core

from ..measure.case import Array, Call, Case, relative_error
from ..measure.libraries import blas, torch
from . import images


def numpy_relu(z: Array) -> Array:
    return np.maximum(z, 0, out=z)


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


INVERTIBLE = {
    "sigmoid": Elementwise(
        numpy_sigmoid, numpy_logit, lambda z: torch.sigmoid(z), lambda n: torch.logit(n)
    ),
    "tanh": Elementwise(np.tanh, np.arctanh, lambda z: torch.tanh(z), lambda n: torch.atanh(n)),
    "softmax": Elementwise(
        numpy_softmax, numpy_centred_log, lambda z: torch.softmax(z, 1), torch_centred_log
    ),
}
FORWARD: dict[str, tuple[Callable[[Array], Array], Callable[[Any], Any]]] = {
    "relu": (numpy_relu, lambda z: z.relu_()),
    **{name: (a.numpy_forward, a.torch_forward) for name, a in INVERTIBLE.items()},
}
"""Activations in NumPy and in PyTorch; those that can do so overwrite their argument."""


def activation_case(name: str, rows: int, cols: int, *, inverse: bool) -> Case:
    library = INVERTIBLE[name]
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
    cols: int = images.PIXELS,
    of_images: bool = True,
    bare: bool = False,
) -> Case:
    in_numpy, in_torch = FORWARD[activation]

    def arrays() -> tuple[Array, ...]:
        scale = 0.1 / 255 if dtype == "uint8" else 0.1
        W = np.random.default_rng(0).standard_normal((cols + 1, outputs), np.float32)
        if not of_images:
            # Outputs of both signs, however few rows there are.
            W[-1] = -W[:-1].sum(0) * (127.5 if dtype == "uint8" else 0.5)
        W = (W * np.float32(scale)).astype(np.float64 if dtype == "float64" else np.float32)
        return images.rows_of(dtype, rows, cols, of_images=of_images), W

    def error(A: Array, W: Array) -> Callable[[Array], float]:
        exact = in_numpy(A.astype(np.float64) @ W[:-1] + W[-1])
        return lambda result: relative_error(result, exact)

    def with_bias(product: Callable[[], Array], bias: Array) -> Call:
        def call() -> Array:
            Z = product()
            Z += bias
            return in_numpy(Z)

        return call

    def numpy_forms(A: Array, W: Array) -> Sequence[Call]:
        weight = W[:-1]
        return [with_bias(lambda: A @ weight, W[-1])]

    def scipy_forms(A: Array, W: Array) -> Sequence[Call]:
        gemm, gemv, weight = blas("gemm", A.dtype), blas("gemv", A.dtype), W[:-1]
        if outputs == 1:
            w = weight.ravel()
            return [with_bias(lambda: gemv(1.0, A.T, w, trans=1)[:, None], W[-1])]
        return [with_bias(lambda: gemm(1.0, weight.T, A.T).T, W[-1])]

    def torch_forms(A: Array, W: Array) -> Sequence[Call]:
        X, weight, bias = torch.from_numpy(A), torch.from_numpy(W[:-1]), torch.from_numpy(W[-1])
        by_outputs = weight.T.contiguous()  # as torch.nn.Linear keeps it
        linear = torch.nn.functional.linear
        forms = [
            lambda: in_torch(linear(X, by_outputs, bias)),
            lambda: in_torch(torch.addmm(bias, X, weight)),
        ]
        if outputs == 1:
            w = weight.ravel()
            forms.append(lambda: in_torch(torch.addmv(bias, X, w)[:, None]))
        return forms

    def bare_call(A: Array, W: Array, n_threads: int, repeats: int) -> float:
        return _core.time_linear(A, W, activation, n_threads, repeats)

    return Case(
        kernel=f"linear {activation}",
        dtype=dtype,
        size=f"{images.shape_text(rows, cols, of_images=of_images)} -> {outputs}",
        make_arrays=arrays,
        ours=functools.partial(bf.linear, bias=True, activation=activation),
        others={"numpy": numpy_forms, "scipy": scipy_forms, "torch": torch_forms},
        make_error=error,
        tolerance=1e-4,
        operations=0 if of_images else 2 * rows * cols * outputs,
        arithmetic="float64" if dtype == "float64" else "float32",
        bare=bare_call if bare else None,
    )
