"""Kernels over the rows of a matrix: sums of columns, misclassified, gathered and clipped rows, the check for NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from bpls_fast import _core
from bpls_fast._core import NonFiniteError
from bpls_fast.kernels.backend import device_kernels

__all__ = ["check_finite", "clip_rows", "column_sums", "missed", "take_rows"]


def column_sums(
    P: NDArray[Any], Q: NDArray[Any] | None = None, sample_weight: NDArray[Any] | None = None
) -> NDArray[float64]:
    """Return the sum over rows of w P Q for each column, without Q of w P.

    The result is in host memory. The order of the additions depends on the shapes alone.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.kernels import column_sums
    >>> P = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> column_sums(P, P)
    array([10., 20.])
    """
    if (gpu := device_kernels("auto", P)) is not None:
        return gpu.column_sums(P, Q, sample_weight)
    operands = [P] if Q is None else [P, Q]
    letters = ",".join(["ij"] * len(operands))
    if sample_weight is not None:
        operands, letters = [sample_weight, *operands], f"i,{letters}"
    sums: NDArray[float64] = np.einsum(f"{letters}->j", *operands, dtype=float64)
    return sums


def missed(outputs: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return the numbers of the rows whose largest output is not that of their label, in host memory.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.kernels import missed
    >>> missed(np.array([[0.9, 0.1], [0.7, 0.3]]), np.array([0, 1]))
    array([1])
    """
    if (gpu := device_kernels("auto", outputs)) is not None:
        return gpu.missed(outputs, labels)
    return np.flatnonzero(outputs.argmax(axis=1) != labels)


def take_rows(X: Any, rows: NDArray[np.intp], out: Any) -> Any:
    """Copy the rows of X with these numbers into `out`, and return it; `out` decides where the call runs.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.kernels import take_rows
    >>> take_rows(np.eye(3), np.array([2, 0]), np.empty((2, 3)))
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    if (gpu := device_kernels("auto", out)) is not None:
        return gpu.take_rows(X, rows, out)
    if X.strides[1] != X.itemsize and X.shape[1] > 1:
        return np.take(X, rows, axis=0, out=out, mode="clip")
    _core.take_rows(X, rows, out, None)
    return out


def clip_rows(X: Any, limits: NDArray[float64]) -> Any:
    """Return a copy of X with every value moved to the nearest one inside the limits of its column.

    Parameters
    ----------
    X : (d, n) array of uint8, float32 or float64
        NaN and infinity raise NonFiniteError.
    limits : (2, n) array of float64
        The lower and the upper limit of every column; they are rounded to the dtype of the result.

    Returns
    -------
    (d, n) array
        float64 if X is, else float32; on the GPU if X is there.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.kernels import clip_rows
    >>> clip_rows(np.array([[5.0, -1.0]]), np.array([[0.0, 0.0], [2.0, np.inf]]))
    array([[2., 0.]])
    """
    with np.errstate(over="ignore"):  # a limit beyond the range of float32 is none
        limits = limits.astype(float64 if X.dtype == float64 else np.float32)
    if (gpu := device_kernels("auto", X)) is not None:
        return gpu.clip_rows(X, limits)
    clipped = _core.clip_rows(X, limits, None)
    if clipped is None:
        check_finite(X, "X")
    return clipped


def check_finite(values: Any, name: str) -> None:
    """Raise NonFiniteError, which names the place, if an array holds NaN or infinity; only floats can.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.kernels import check_finite
    >>> check_finite(np.array([1.0, np.nan]), "X")
    Traceback (most recent call last):
    bpls_fast.NonFiniteError: X contains NaN at [1]; expected finite numbers
    """
    if (gpu := device_kernels("auto", values)) is not None:
        gpu.check_finite(values, name)
        return
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return  # one pass without a temporary; a sum may overflow where no value does
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        place = wrong[0].tolist()
        kind = "NaN" if np.isnan(values[tuple(place)]) else "infinity"
        raise NonFiniteError(f"{name} contains {kind} at {place}; expected finite numbers")
