"""Regularized linear systems, solved by Cholesky: one system, that of a layer, or many of one size."""

from __future__ import annotations

from numpy import float64
from numpy.typing import ArrayLike, NDArray

from bpls_fast import _core
from bpls_fast.kernels.backend import device_kernels
from bpls_fast.kernels.function import kernel

__all__ = ["solve", "solve_batched", "solve_layer"]


@kernel(_core.solve)
def solve(
    G: ArrayLike,
    C: ArrayLike,
    *,
    eps: float = 1e-6,
    relative: bool = True,
    out: NDArray[float64] | None = None,
    check_finite: bool = True,
    backend: str = "auto",
    n_threads: int | None = None,
) -> NDArray[float64]:
    """Solve (G + eps·I) W = C by Cholesky, in float64.

    Parameters
    ----------
    G : (n, n) array of float32 or float64
        Symmetric up to 1e-6 of its largest entry; the upper triangle is used.
    C : (n, m) array of float32 or float64
        One column per right-hand side.
    eps : float
        The ridge, finite and >= 0.
    relative : bool
        Whether eps is relative to the mean of G's diagonal, which makes it independent of the scale of the data.
    out : (n, m) array of float64, optional
        The array to write to: C-contiguous, not overlapping G or C. It is not changed if the call raises, unless
        `check_finite` is False.
    check_finite : bool
        Whether G and C are checked: both are finite, and G is symmetric. Otherwise NaN and infinities propagate or
        make a pivot fail, and the lower triangle of G is not read.
    backend, n_threads
        Where the call runs, and its threads.

    Returns
    -------
    W : (n, m) array of float64
        `out` where given.

    Raises
    ------
    numpy.linalg.LinAlgError
        A pivot is at most n·2⁻⁵² times its diagonal entry: only rounding error is left of it. The message names the
        pivot and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> bf.solve(np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([[10.0], [9.0]]), eps=0)
    array([[1.5],
           [2. ]])
    """
    if gpu := device_kernels(backend, G, C, out):
        return gpu.solve(G, C, eps=eps, relative=relative, out=out, check_finite=check_finite)
    return _core.solve(G, C, eps, relative, out, check_finite, n_threads)


@kernel(_core.solve_layer)
def solve_layer(
    A: ArrayLike,
    B: ArrayLike,
    *,
    bias: bool = False,
    eps: float = 1e-6,
    relative: bool = True,
    sample_weight: ArrayLike | None = None,
    out: NDArray[float64] | None = None,
    check_finite: bool = True,
    backend: str = "auto",
    n_threads: int | None = None,
) -> NDArray[float64]:
    """Return the weights of one layer: the least-squares solution of A W = B, `gram` and `solve` in one call.

    Parameters
    ----------
    A : (d, n) array of uint8, float32 or float64
        The inputs of the layer.
    B : (d, m) array of float32 or float64
        Its targets.
    bias : bool
        Whether the layer has a bias: the last row of the result.
    eps, relative
        The ridge, as in `solve`.
    sample_weight : (d,) array of float32 or float64, optional
        Finite weights >= 0 of the rows.
    out, check_finite
        The array to write to, as in `solve`, and whether values are checked, as in `gram`.
    backend, n_threads
        Where the call runs, and its threads.

    Returns
    -------
    W : (n + bias, m) array of float64
        `out` where given.

    Raises
    ------
    numpy.linalg.LinAlgError
        As in `solve`.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> A = np.array([[0.0], [1.0], [2.0]])
    >>> bf.solve_layer(A, 3 * A + 1, bias=True, eps=0).round(6)
    array([[3.],
           [1.]])
    """
    if gpu := device_kernels(backend, A, B, sample_weight, out):
        return gpu.solve_layer(
            A,
            B,
            bias=bias,
            eps=eps,
            relative=relative,
            sample_weight=sample_weight,
            out=out,
            check_finite=check_finite,
        )
    return _core.solve_layer(A, B, bias, eps, relative, sample_weight, out, check_finite, n_threads)


@kernel(_core.solve_batched)
def solve_batched(
    G: ArrayLike,
    C: ArrayLike,
    *,
    eps: float = 1e-6,
    relative: bool = True,
    out: NDArray[float64] | None = None,
    check_finite: bool = True,
    backend: str = "auto",
    n_threads: int | None = None,
) -> NDArray[float64]:
    """Solve many systems of one size, each as accurately as `solve` does.

    Parameters
    ----------
    G : (k, n, n) array of float32 or float64
    C : (k, n, m) array of float32 or float64
    eps, relative
        The ridge, as in `solve`; relative to each system's own diagonal.
    out, check_finite
        The array to write to, and whether values are checked, as in `solve`.
    backend, n_threads
        Where the call runs, and its threads.

    Returns
    -------
    W : (k, n, m) array of float64
        `out` where given.

    Raises
    ------
    numpy.linalg.LinAlgError
        As in `solve`; the message also names the first system that failed.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> G = np.array([[[2.0]], [[4.0]]])
    >>> bf.solve_batched(G, np.ones((2, 1, 1)), eps=0).ravel()
    array([0.5 , 0.25])
    """
    if gpu := device_kernels(backend, G, C, out):
        return gpu.solve_batched(
            G, C, eps=eps, relative=relative, out=out, check_finite=check_finite
        )
    return _core.solve_batched(G, C, eps, relative, out, check_finite, n_threads)
