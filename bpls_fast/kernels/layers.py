"""One layer of a network: forward, its derivative, what is left of a target, and the target of the layer below."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast import _core
from bpls_fast._core import on_host
from bpls_fast.kernels.activations import activations
from bpls_fast.kernels.backend import device_kernels
from bpls_fast.kernels.function import kernel

__all__ = ["linear", "linear_bytes", "residual", "tangent", "target"]


@kernel(_core.linear)
def linear(
    A: ArrayLike,
    W: ArrayLike,
    *,
    bias: bool = False,
    activation: str = "identity",
    out: NDArray[Any] | None = None,
    check_finite: bool = True,
    backend: str = "auto",
    n_threads: int | None = None,
) -> NDArray[Any]:
    """Return the values of one layer, act(A W + b), in one pass over A.

    Parameters
    ----------
    A : (d, n) array of uint8, float32 or float64
    W : (n + bias, m) array of float32 or float64
        With `bias`, its last row is b.
    bias : bool
        Whether W has that last row.
    activation : str
        A name of `bpls_fast.activations`.
    out : (d, m) array, optional
        The array to write to: C-contiguous, of the result's dtype, not overlapping A or W. It is not changed if the
        call raises; for that, A is read once more.
    check_finite : bool
        Whether NaN and infinities in A and W are refused. Otherwise they propagate as in IEEE arithmetic.
    backend, n_threads
        Where the call runs, and its threads.

    Returns
    -------
    (d, m) array
        `out` where given. float64 if A or W is, else float32. The bits of a row do not depend on the other rows.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> bf.linear(np.array([[1.0, -1.0]]), np.array([[2.0, 1.0], [1.0, 3.0]]), activation="relu")
    array([[1., 0.]])
    """
    if gpu := device_kernels(backend, A, W, out):
        return gpu.linear(
            A, W, bias=bias, activation=activation, out=out, check_finite=check_finite
        )
    return _core.linear(A, W, bias, activation, out, check_finite, n_threads)


@kernel(_core.tangent)
def tangent(
    A: ArrayLike,
    W: ArrayLike,
    N: NDArray[Any],
    *,
    bias: bool = False,
    activation: str = "identity",
    out: NDArray[Any] | None = None,
    check_finite: bool = True,
    backend: str = "auto",
    n_threads: int | None = None,
) -> NDArray[Any]:
    """Differentiate through one layer: J (A W + b), in one pass over A.

    J is the Jacobian of the activation where it has the values N. To first order, a change dW of the weights changes
    the values of the layer by `tangent(A, dW, N)`, and a change dA of its inputs by `tangent(dA, W, N)`. J is
    symmetric: with the weights W of the layer above, `tangent(R, W.T, N)` pulls residuals R back to the
    pre-activations.

    Parameters
    ----------
    A : (d, n) array of uint8, float32 or float64
    W : (n + bias, m) array of float32 or float64
        With `bias`, its last row is b.
    N : (d, m) array
        The values of the layer: C-contiguous, of the result's dtype.
    bias : bool
        Whether W has that last row.
    activation : str
        A name of `bpls_fast.activations`.
    out, check_finite, backend, n_threads
        As in `linear`.

    Returns
    -------
    (d, m) array
        `out` where given. float64 if A or W is, else float32.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> A, W, dW = np.array([[1.0, 2.0]]), np.array([[0.5], [0.1]]), np.array([[1e-6], [0.0]])
    >>> N = bf.linear(A, W, activation="tanh")
    >>> bool(abs(bf.linear(A, W + dW, activation="tanh") - N - bf.tangent(A, dW, N, activation="tanh")) < 1e-11)
    True
    """
    if gpu := device_kernels(backend, A, W, N, out):
        return gpu.tangent(
            A, W, N, bias=bias, activation=activation, out=out, check_finite=check_finite
        )
    return _core.tangent(A, W, N, bias, activation, out, check_finite, n_threads)


def residual(
    A: ArrayLike,
    W: ArrayLike,
    B: NDArray[Any],
    *,
    bias: bool = False,
    out: NDArray[Any] | None = None,
    check_finite: bool = True,
) -> NDArray[Any]:
    """Return B - (A W + b), in `out` where given.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.kernels import residual
    >>> residual(np.eye(2), np.ones((2, 1)), np.array([[3.0], [1.0]]))
    array([[2.],
           [0.]])
    """
    if not on_host("auto", A, W, B, out) and (gpu := device_kernels("auto", A, W, B, out)):
        return gpu.residual(A, W, B, bias=bias, out=out, check_finite=check_finite)
    _check_apart(out, "B", B)
    R = linear(A, W, bias=bias, out=out, check_finite=check_finite)
    np.subtract(B, R, out=R)
    return R


def target(
    R: NDArray[Any],
    M: NDArray[Any],
    N: NDArray[Any],
    *,
    activation: str,
    margin: float,
    out: NDArray[Any] | None = None,
    check_finite: bool = True,
) -> NDArray[Any]:
    """Return the pre-activations at which the activation has the values N + R M.

    Parameters
    ----------
    R : (d, outputs) array of float32 or float64
        The residuals of the layer above.
    M : (outputs, m) array
        What a residual changes in every neuron.
    N : (d, m) array
        The values of the layer.
    activation : str
        A name of `bpls_fast.activations`.
    margin : float
        How far inside the range the values are kept, as in `Activation.inverse`. Leaky ReLU has no end below, but a
        steep inverse, 100 times what it is given: its values are kept at -margin or above.
    out, check_finite
        As in `linear`, for R and M.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.kernels import target
    >>> target(np.ones((1, 1)), np.array([[0.5]]), np.array([[2.0]]), activation="relu", margin=0.01)
    array([[2.5]])
    """
    if not on_host("auto", R, M, N, out) and (gpu := device_kernels("auto", R, M, N, out)):
        return gpu.target(
            R, M, N, activation=activation, margin=margin, out=out, check_finite=check_finite
        )
    _check_apart(out, "N", N)
    values = linear(R, M, out=out, check_finite=check_finite)
    values += N
    if activation == "leaky_relu":
        np.maximum(values, -margin, out=values)
    return activations[activation].inverse(values, margin=margin, out=values)


def _check_apart(out: NDArray[Any] | None, name: str, array: NDArray[Any]) -> None:
    """Refuse an `out` that may share memory with an argument that is read after it is written."""
    if out is not None and np.may_share_memory(out, array):
        raise ValueError(f"out may overlap {name} in memory; expected an array of its own")


def linear_bytes(
    A: NDArray[np.uint8],
    W: NDArray[np.int8],
    scale: NDArray[np.float32],
    *,
    out: NDArray[np.float32] | None = None,
    n_threads: int | None = None,
) -> NDArray[np.float32]:
    """Return (A W) scale: bytes times small integers, exact before every column is scaled. It runs on the CPU.

    Parameters
    ----------
    A : (d, n) array of uint8
        The values of a row next to each other in memory; at most 65,536 columns.
    W : (n, m) array of int8
    scale : (m,) array of float32
        The factor of every column.
    out : (d, m) array of float32, optional
        The array to write to: C-contiguous, not overlapping an input. It is not changed if the call raises.
    n_threads : int, optional
        Threads of this call.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.kernels import linear_bytes
    >>> A, W = np.array([[3, 2]], np.uint8), np.array([[1], [-1]], np.int8)
    >>> linear_bytes(A, W, np.array([0.5], np.float32))
    array([[0.5]], dtype=float32)
    """
    return _core.linear_bytes(A, W, scale, out, n_threads)
