"""Sums over rows of products of columns: Gram matrices and cross products."""

from __future__ import annotations

from typing import Any, overload

from numpy import float64
from numpy.typing import ArrayLike, NDArray

from bpls_fast import _core
from bpls_fast.kernels.backend import device_kernels
from bpls_fast.kernels.function import kernel

__all__ = ["cross", "gram"]


@overload
def gram(
    A: ArrayLike,
    B: None = None,
    *,
    bias: bool = False,
    scale: ArrayLike | None = None,
    center: bool = False,
    sample_weight: ArrayLike | None = None,
    out: NDArray[float64] | None = None,
    check_finite: bool = True,
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
    out: tuple[NDArray[float64], NDArray[float64]] | None = None,
    check_finite: bool = True,
    backend: str = "auto",
    n_threads: int | None = None,
) -> tuple[NDArray[float64], NDArray[float64]]: ...
@kernel(_core.gram)
def gram(
    A: ArrayLike,
    B: ArrayLike | None = None,
    *,
    bias: bool = False,
    scale: ArrayLike | None = None,
    center: bool = False,
    sample_weight: ArrayLike | None = None,
    out: Any = None,
    check_finite: bool = True,
    backend: str = "auto",
    n_threads: int | None = None,
) -> Any:
    """Return the Gram matrix AᵀA, and with B the cross product AᵀB from the same pass over A.

    Parameters
    ----------
    A : (d, n) array of uint8, float32 or float64
        The data, one row per sample. Without rows the sums are zero.
    B : (d, m) array of float32 or float64, optional
        The targets.
    bias : bool
        As if A had a last column of ones.
    scale : float or (n,) array of float32 or float64, optional
        Finite factors: as if every column of A, but not the column of ones, were multiplied by its own.
    center : bool
        As if the mean of every column of A, weighted by `sample_weight`, were subtracted first:
        (A - mean) * scale.
    sample_weight : (d,) array of float32 or float64, optional
        Finite weights >= 0: AᵀWA and AᵀWB with W = diag(sample_weight).
    out : array, or with B a tuple of two, optional
        The arrays to write G, or (G, C), to: C-contiguous, not overlapping each other or an input. They are not changed
        if the call raises, unless `check_finite` is False.
    check_finite : bool
        Whether NaN, infinities, overflows and negative weights are refused. Otherwise they propagate.
    backend, n_threads
        Where the call runs, and its threads.

    Returns
    -------
    G : (n + bias, n + bias) array of float64
        Full and exactly symmetric.
    C : (n + bias, m) array of float64
        Only if B is given. With `out`, its arrays.

    Notes
    -----
    uint8 without weights is exact. float32 (and uint8 with weights) is accumulated in float32 over blocks of 256 rows
    and in float64 across blocks. The error of an entry is below 1.6e-5 times the sum of the magnitudes of its products,
    and about 1e-7 times that sum on ordinary data. Weights are rounded to float32, and products below its smallest
    normal number, 1.2e-38, may vanish. float64 is accumulated in float64. C is accumulated in float32 unless A or B is
    float64.

    `scale` and `center` are applied to the finished float64 sums and cost nothing. The error of a centred entry is
    therefore relative to the sums before centring: for two columns whose means are k and l times their standard
    deviations it grows by a factor of 1 + kl, in G and in C. This does not matter for uint8 without weights and rarely
    for float64. For float32 (in C also if only A is float32) with kl above 1000, subtract the means first, also those
    of B. If all weights are zero there is no mean, and nothing is subtracted.

    Columns of A that are zero over a few thousand rows, such as the borders of images, are skipped on these rows.

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
    if gpu := device_kernels(backend, A, B, sample_weight, out):
        return gpu.gram(
            A,
            B,
            bias=bias,
            scale=scale,
            center=center,
            sample_weight=sample_weight,
            out=out,
            check_finite=check_finite,
        )
    return _core.gram(A, B, bias, scale, center, sample_weight, out, check_finite, n_threads)


@kernel(_core.cross)
def cross(
    A: ArrayLike,
    D: ArrayLike,
    *,
    bias: bool = False,
    scale: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    out: NDArray[float64] | None = None,
    check_finite: bool = True,
    backend: str = "auto",
    n_threads: int | None = None,
) -> NDArray[float64]:
    """Return the cross product AᵀD, in one pass over A.

    Parameters
    ----------
    A : (d, n) array of uint8, float32 or float64
    D : (d, m) array of float32 or float64
    bias : bool
        As if A had a last column of ones.
    scale : float or (n,) array of float32 or float64, optional
        Finite factors: as if every column of A, but not the column of ones, were multiplied by its own.
    sample_weight : (d,) array of float32 or float64, optional
        Finite weights >= 0: AᵀWD.
    out, check_finite
        The array to write to, and whether values are checked, as in `gram`.
    backend, n_threads
        Where the call runs, and its threads.

    Returns
    -------
    (n + bias, m) array of float64
        `out` where given. As accurate as C of `gram`.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> bf.cross(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [10.0]]))
    array([[31.],
           [42.]])
    """
    if gpu := device_kernels(backend, A, D, sample_weight, out):
        return gpu.cross(
            A,
            D,
            bias=bias,
            scale=scale,
            sample_weight=sample_weight,
            out=out,
            check_finite=check_finite,
        )
    return _core.cross(A, D, bias, scale, sample_weight, out, check_finite, n_threads)
