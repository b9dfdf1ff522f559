"""Reductions over rows: sums of columns, misclassified rows, squared slopes, finite values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from bpls_fast.kernels.backend import device_kernels

__all__ = ["column_sums", "missed"]


def column_sums(
    P: NDArray[Any], Q: NDArray[Any] | None = None, sample_weight: NDArray[Any] | None = None
) -> NDArray[float64]:
    """Give the sum over rows of w P Q for each column, without Q of w P; on the host, in one order.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.kernels import column_sums
    >>> P = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> column_sums(P, P)
    array([10., 20.])
    """
    if (gpu := device_kernels("auto", P)) is not None:
        on_gpu: NDArray[float64] = gpu.column_sums(P, Q, sample_weight)
        return on_gpu
    operands = [P] if Q is None else [P, Q]
    letters = ",".join(["ij"] * len(operands))
    if sample_weight is not None:
        operands, letters = [sample_weight, *operands], f"i,{letters}"
    sums: NDArray[float64] = np.einsum(f"{letters}->j", *operands, dtype=float64)
    return sums


def missed(outputs: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """Give the rows whose largest output is not that of their label, on the host.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.kernels import missed
    >>> missed(np.array([[0.9, 0.1], [0.7, 0.3]]), np.array([0, 1]))
    array([1])
    """
    if (gpu := device_kernels("auto", outputs)) is not None:
        on_gpu: NDArray[np.intp] = gpu.missed(outputs, labels)
        return on_gpu
    return np.flatnonzero(outputs.argmax(axis=1) != labels)
