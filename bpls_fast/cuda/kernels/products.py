"""Sums over rows of products of columns on the GPU: `gram` and `cross`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.cuda import libraries, runtime
from bpls_fast.cuda.array import Array, HostRows, add_up, asarray, device_blocks, empty, zeros
from bpls_fast.cuda.device import products
from bpls_fast.cuda.kernels.arguments import (
    arithmetic_of,
    checked_rows,
    checked_targets,
    checked_weight,
    like_arguments,
    scalar_type,
)
from bpls_fast.cuda.kernels.rows import check_finite
from bpls_fast.kernels import NonFiniteError
from bpls_fast.kernels.backend import on_device

__all__ = ["cross", "gram"]

PARTIAL_BYTES = 1 << 26
"""The most bytes that tiles of a Gram matrix take before they are added up."""

LARGEST_GRID = 65535
"""The largest number of blocks along the second and third side of a grid."""


def gram(
    A: Any,
    B: Any = None,
    *,
    bias: bool = False,
    scale: Any = None,
    center: bool = False,
    sample_weight: Any = None,
) -> Any:
    """Return AᵀWA, and with B also AᵀWB, float64."""
    if center:
        return _centred(A, B, bias, scale, sample_weight)
    rows, weight = checked_rows(A, "A"), checked_weight(sample_weight, A)
    targets = None if B is None else checked_targets(B, rows, "B")
    width = rows.shape[1] + bias
    G = zeros((width, width))
    C = None if targets is None else zeros((width, targets.shape[1]))
    for place, block in device_blocks(rows):
        w = None if weight is None else weight[place]
        _add_products(block, block, w, G, bias, bias, symmetric=True)
        if C is not None and targets is not None:
            _add_products(block, targets[place], w, C, bias, 0, symmetric=False)
    threads = products.ADD_UP_THREADS
    tiles = -(-width // threads[0])
    runtime.launch(products.mirror_kernel(threads), (tiles, tiles), threads, G.data)
    factors = _column_factors(scale, rows.shape[1], bias)
    if factors is not None:
        G *= factors
        G *= factors[:, np.newaxis]
        if C is not None:
            C *= factors[:, np.newaxis]
    _check_sums([G] if C is None else [G, C], {"A": rows, "B": targets})
    if C is None:
        return like_arguments(G, A, sample_weight)
    return like_arguments(G, A, B, sample_weight), like_arguments(C, A, B, sample_weight)


def cross(
    A: Any, D: Any, *, bias: bool = False, scale: Any = None, sample_weight: Any = None
) -> Any:
    """Return AᵀWD, float64."""
    rows, weight = checked_rows(A, "A"), checked_weight(sample_weight, A)
    targets = checked_targets(D, rows, "D")
    C = zeros((rows.shape[1] + bias, targets.shape[1]))
    for place, block in device_blocks(rows):
        w = None if weight is None else weight[place]
        _add_products(block, targets[place], w, C, bias, 0, symmetric=False)
    factors = _column_factors(scale, rows.shape[1], bias)
    if factors is not None:
        C *= factors[:, np.newaxis]
    _check_sums([C], {"A": rows, "D": targets})
    return like_arguments(C, A, D, sample_weight)


def _centred(A: Any, B: Any, bias: bool, scale: Any, sample_weight: Any) -> Any:
    """Centre the finished sums on the host: they are small."""
    sums = gram(A, B, bias=True, sample_weight=sample_weight)
    G, C = (np.asarray(sums), None) if B is None else map(np.asarray, sums)
    n = len(G) - 1
    if G[n, n] > 0:
        mean = G[:n, n] / G[n, n]
        if C is not None:
            C[:n] -= np.outer(mean, C[n])
        G[:n, :n] -= np.outer(mean, G[n, :n])
        G[:n, :n] = np.triu(G[:n, :n]) + np.triu(G[:n, :n], 1).T
        G[:n, n] = G[n, :n] = 0.0
    factors = _column_factors(scale, n, True)
    if factors is None:
        factors = np.ones(n + 1)
    G = G * np.outer(factors, factors)
    G = G[: n + bias, : n + bias].copy()
    given = any(map(on_device, (A, B, sample_weight)))
    if C is None:
        return asarray(G) if given else G
    C = (C * factors[:, np.newaxis])[: n + bias]
    return (asarray(G), asarray(C)) if given else (G, C)


def _add_products(
    A: Array,
    B: Array,
    weight: Array | None,
    total: Array,
    ones: int,
    ones_B: int,
    *,
    symmetric: bool,
) -> None:
    """Add [A 1]ᵀ W [B 1] to the total, a few blocks of rows at a time to bound the memory of their tiles."""
    p, q = total.shape
    exact = symmetric and A.dtype == np.uint8 and weight is None
    real = arithmetic_of(A, B)
    kind: np.dtype[Any] = np.dtype(np.uint8) if exact else real
    tile, rows = products.TILE[kind], products.BLOCK_ROWS[kind]
    sums = np.dtype(np.uint32) if exact else real
    at_once = min(max(1, PARTIAL_BYTES // (p * q * sums.itemsize)), LARGEST_GRID)
    if weight is not None:
        # A conversion inside a float32 kernel would be a float64 instruction.
        weight = weight.astype(real, copy=False)
    grid = (-(-p // tile.side), -(-q // tile.side))
    first = 0
    while first < len(A):
        count = min(at_once, -(-(len(A) - first) // rows))
        try:
            partial = empty((count, p, q), sums)
        except runtime.OutOfMemoryError:
            if count == 1:
                raise
            at_once = count // 2
            continue
        end = min(first + count * rows, len(A))
        if exact:
            kernel = products.bytes_kernel(tile)
            arguments: tuple[Any, ...] = (A.data, partial.data, first, rows, int(ones))
            runtime.launch(kernel, (*grid, count), tile.threads, *arguments)
        elif not libraries.products(A, B, weight, partial, slice(first, end), ones, ones_B):
            kernel = products.floats_kernel(tile, scalar_type(real), weight is not None)
            w = A.data if weight is None else weight.data
            arguments = (A.data, B.data, w, partial.data, first, rows)
            flags = (int(ones), int(ones_B), int(symmetric))
            runtime.launch(kernel, (*grid, count), tile.threads, *arguments, *flags)
        add_up(partial, total, symmetric=symmetric)
        first = end


def _column_factors(scale: Any, n: int, bias: bool) -> NDArray[np.float64] | None:
    """Return the factors of the rows and columns of the sums, or None where all are 1."""
    if scale is None or (np.ndim(scale) == 0 and float(scale) == 1.0):
        return None
    given = np.asarray(scale, dtype=np.float64)
    if given.shape not in ((), (n,)) or not np.isfinite(given).all():
        raise ValueError(f"scale has shape {given.shape}; expected a finite number or {n} of them")
    factors = np.ones(n + bias)
    factors[:n] = given
    return factors


def _check_sums(sums: list[Array], operands: dict[str, Array | HostRows | None]) -> None:
    """Raise if sums are not finite; the message names the operand that is the cause."""
    for total in sums:
        try:
            check_finite(total, "the product")
        except NonFiniteError:
            given = {name: array for name, array in operands.items() if array is not None}
            for name, array in given.items():
                check_finite(array, name)
            names = " or ".join(given)
            raise NonFiniteError(
                f"{names} has values whose products overflow; scale the columns or convert to float64"
            ) from None
