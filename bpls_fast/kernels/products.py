"""Products of rows of data: Gram matrices, cross products and layers forward."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from bpls_fast import _core
from bpls_fast.kernels.backend import device_kernels

__all__ = ["cross", "gram", "linear", "residual", "tangent"]


@overload
def gram(
    A: ArrayLike,
    B: None = None,
    *,
    bias: bool = False,
    scale: ArrayLike | None = None,
    center: bool = False,
    sample_weight: ArrayLike | None = None,
    backend: str = "auto",
    n_threads: int | None = None,
) -> NDArray[float64]: ...
@overload
def gram(
    A: ArrayLike,
    B: ArrayLike,
    *,
    bias: bool = False,
    scale: ArrayLike | None = None,
    center: bool = False,
    sample_weight: ArrayLike | None = None,
    backend: str = "auto",
    n_threads: int | None = None,
) -> tuple[NDArray[float64], NDArray[float64]]: ...
def gram(
    A: ArrayLike,
    B: ArrayLike | None = None,
    *,
    bias: bool = False,
    scale: ArrayLike | None = None,
    center: bool = False,
    sample_weight: ArrayLike | None = None,
    backend: str = "auto",
    n_threads: int | None = None,
) -> Any:
    """Gram matrix AᵀA, and with B the cross product AᵀB in the same pass over A.

    Parameters
    ----------
    A : (d, n) array of uint8, float32 or float64
        The data, one row per sample. No row at all gives zeros.
    B : (d, m) array of float32 or float64, optional
        The targets.
    bias : bool
        As if A had a last column of ones.
    scale : float or (n,) array of float32 or float64, optional
        As if every column of A were multiplied by its factor, finite; not the column of ones.
    center : bool
        As if the mean of every column of A, weighted by `sample_weight`, were subtracted first:
        (A - mean) * scale.
    sample_weight : (d,) array of float32 or float64, optional
        Finite weights >= 0: AᵀWA and AᵀWB with W = diag(sample_weight).
    backend, n_threads
        Where the call runs, and its threads.

    Returns
    -------
    G : (n + bias, n + bias) array of float64
        Full and exactly symmetric.
    C : (n + bias, m) array of float64
        Only where B is given.

    Notes
    -----
    uint8 without weights is exact. float32 (and uint8 with weights) is accumulated in float32 over
    256 rows and in float64 across these blocks: an entry is off by less than 1.6e-5 times the sum of
    the magnitudes of its products, and by about 1e-7 of it on ordinary data; weights are rounded to
    float32, and products below its smallest normal number, 1.2e-38, may vanish. float64 runs in
    float64. C runs in float32 if neither A nor B is float64.

    `scale` and `center` act on the finished float64 sums and take no time. So the error of a centred
    entry is relative to the sums that are not centred: of two columns whose means are k and l times
    their standard deviations, in G or in C, it grows by a factor of 1 + kl. That is nothing for uint8
    without weights and little for float64; of float32 (in C too, if only A is float32) with a kl above
    1000 subtract the means yourself, those of B too. All weights zero: there is no mean, and nothing is
    subtracted.

    Columns of A that are zero over a few thousand rows, as the borders of images are, are left out of
    the work on these rows.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> A = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.uint8)
    >>> bf.gram(A)
    array([[35., 44.],
           [44., 56.]])
    >>> G, C = bf.gram(A, np.ones((3, 1)), bias=True)
    >>> G
    array([[35., 44.,  9.],
           [44., 56., 12.],
           [ 9., 12.,  3.]])
    >>> C.ravel()
    array([ 9., 12.,  3.])
    >>> bf.gram(A, scale=0.5, center=True)
    array([[2., 2.],
           [2., 2.]])
    """
    if (gpu := device_kernels(backend, A, B, sample_weight)) is not None:
        on_gpu: Any = gpu.gram(
            A, B, bias=bias, scale=scale, center=center, sample_weight=sample_weight
        )
        return on_gpu
    return _core.gram(A, B, bias, scale, center, sample_weight, n_threads)


def cross(
    A: ArrayLike,
    D: ArrayLike,
    *,
    bias: bool = False,
    scale: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    backend: str = "auto",
    n_threads: int | None = None,
) -> NDArray[float64]:
    """Cross product AᵀD alone, in one pass over A.

    Parameters
    ----------
    A : (d, n) array of uint8, float32 or float64
    D : (d, m) array of float32 or float64
    bias : bool
        As if A had a last column of ones.
    scale : float or (n,) array of float32 or float64, optional
        As if every column of A were multiplied by its factor, finite; not the column of ones.
    sample_weight : (d,) array of float32 or float64, optional
        Finite weights >= 0: AᵀWD.
    backend, n_threads
        Where the call runs, and its threads.

    Returns
    -------
    (n + bias, m) array of float64
        With the accuracy that `gram` states for C.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> bf.cross(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [10.0]]))
    array([[31.],
           [42.]])
    """
    if (gpu := device_kernels(backend, A, D, sample_weight)) is not None:
        on_gpu: NDArray[float64] = gpu.cross(
            A, D, bias=bias, scale=scale, sample_weight=sample_weight
        )
        return on_gpu
    return _core.cross(A, D, bias, scale, sample_weight, n_threads)


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
    """One layer forward, act(A W + b), in one pass over A.

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
        Where to write: C-contiguous, of the result's dtype, apart from A and W in memory. It is left
        as it was if the call raises; A is read once more for that.
    check_finite : bool
        Whether NaN and infinities in A and W are refused. Without it they go into the result, as in
        IEEE arithmetic.
    backend, n_threads
        Where the call runs, and its threads.

    Returns
    -------
    (d, m) array
        `out` where given. float64 if A or W is, else float32. A row's bits do not depend on the rows
        around it.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> bf.linear(np.array([[1.0, -1.0]]), np.array([[2.0, 1.0], [1.0, 3.0]]), activation="relu")
    array([[1., 0.]])
    """
    if (gpu := device_kernels(backend, A, W, out)) is not None:
        on_gpu: NDArray[Any] = gpu.linear(
            A, W, bias=bias, activation=activation, out=out, check_finite=check_finite
        )
        return on_gpu
    return _core.linear(A, W, bias, activation, out, check_finite, n_threads)


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

    J is the Jacobian of the activation where it has the values N. So a change dW of a layer's weights changes its
    values by `tangent(A, dW, N)`, and a change dA of what enters it by `tangent(dA, W, N)`. J is symmetric:
    `tangent(R, W.T, N)`, with the weights W of the layer above, pulls residuals R back to the pre-activations.

    Parameters
    ----------
    A : (d, n) array of uint8, float32 or float64
    W : (n + bias, m) array of float32 or float64
        With `bias`, its last row is b.
    N : (d, m) array
        What the activation gave: C-contiguous, of the result's dtype.
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
    if (gpu := device_kernels(backend, A, W, N, out)) is not None:
        on_gpu: NDArray[Any] = gpu.tangent(
            A, W, N, bias=bias, activation=activation, out=out, check_finite=check_finite
        )
        return on_gpu
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
    """Give B - (A W + b), in `out` where given.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.kernels import residual
    >>> residual(np.eye(2), np.ones((2, 1)), np.array([[3.0], [1.0]]))
    array([[2.],
           [0.]])
    """
    if (gpu := device_kernels("auto", A, W, B)) is not None:
        on_gpu: NDArray[Any] = gpu.residual(A, W, B, bias=bias, out=out, check_finite=check_finite)
        return on_gpu
    R = linear(A, W, bias=bias, out=out, check_finite=check_finite)
    np.subtract(B, R, out=R)
    return R
