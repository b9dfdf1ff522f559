"""Kernels over the rows of a matrix on the GPU: sums of columns, misclassified, gathered and clipped rows, NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.cuda import runtime
from bpls_fast.cuda.array import (
    Array,
    HostRows,
    as_matrices,
    asarray,
    column_totals,
    device_blocks,
    empty,
    rows_to_device,
    take,
    zeros,
)
from bpls_fast.cuda.device import elements
from bpls_fast.cuda.kernels.arguments import (
    checked_floats,
    checked_rows,
    checked_weight,
    scalar_type,
)
from bpls_fast.kernels import NonFiniteError

__all__ = ["check_finite", "clip_rows", "column_sums", "missed", "take_rows"]


def column_sums(P: Any, Q: Any = None, sample_weight: Any = None) -> NDArray[np.float64]:
    """Return Σ_i w_i P_ij Q_ij for each column j, in host memory; without Q the sums of P alone."""
    p = checked_rows(P, "P")
    q = p if Q is None else checked_rows(Q, "Q")
    weight = checked_weight(sample_weight, p)
    if not isinstance(p, Array) or not isinstance(q, Array):
        raise TypeError("P and Q are rows on the host; expected rows on the device")
    totals = column_totals("values" if Q is None else "products", p, q, weight)
    sums: NDArray[np.float64] = np.asarray(totals)[0]
    return sums


def missed(outputs: Any, labels: Any) -> NDArray[np.intp]:
    """Return the numbers of the rows whose largest output is not that of their label, in host memory."""
    values = checked_floats(outputs, "outputs", 2)
    expected = labels if isinstance(labels, Array) else asarray(np.asarray(labels, np.int64))
    flags = empty(len(values), np.uint8)
    if len(values):
        block = elements.row_block(values.shape[1])
        kernel = elements.missed_kernel(scalar_type(values.dtype), block)
        arguments = (values.data, expected.data, flags.data)
        runtime.launch(kernel, -(-len(values) // block[1]), block, *arguments)
    return np.flatnonzero(np.asarray(flags))


def take_rows(X: Array | HostRows, rows: NDArray[np.intp], out: Array) -> Array:
    """Copy the rows of X with these numbers into `out`; rows that are on the host are moved."""
    if isinstance(X, Array):
        return take(X, rows, out)
    for place, block in device_blocks(HostRows(X.values[rows])):
        out[place] = block
    return out


def clip_rows(X: Any, limits: NDArray[Any]) -> Array:
    """Return a copy of X with every value moved into the limits of its column, in the dtype of the limits."""
    rows = checked_rows(X, "X")
    if limits.shape != (2, rows.shape[1]):
        raise ValueError(f"limits has shape {limits.shape}; expected (2, {rows.shape[1]})")
    check_finite(rows, "X")
    out, ends = empty(rows.shape, limits.dtype), asarray(limits)
    kernel = elements.clip_kernel(scalar_type(limits.dtype))
    for place, block in device_blocks(rows):
        if len(block):
            grid, threads = elements.element_grid(*block.shape)
            runtime.launch(kernel, grid, threads, block.data, ends.data, out[place].data)
    return out


def check_finite(values: Any, name: str) -> None:
    """Raise NonFiniteError, which names the place, if an array holds NaN or infinity."""
    array = rows_to_device(values)
    if array.dtype.kind != "f":
        return
    for place, block in device_blocks(array):
        if not block.size:
            continue
        flag, (matrix,) = zeros(1, np.int32), as_matrices(block)
        grid, threads = elements.element_grid(*matrix.shape)
        runtime.launch(elements.not_finite_kernel(), grid, threads, matrix, flag.data)
        if np.asarray(flag)[0]:
            host = np.asarray(block)
            at = np.argwhere(~np.isfinite(host))[0]
            kind = "NaN" if np.isnan(host[tuple(at)]) else "infinity"
            at[0] += place.start
            raise NonFiniteError(f"{name} contains {kind} at {at.tolist()}; expected finite values")
