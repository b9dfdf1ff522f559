"""Sums over rows of products of columns on the GPU: `gram` and `cross`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.cuda import libraries, runtime
from bpls_fast.cuda.array import Array, HostRows, add_up, device_blocks, empty, zeros
from bpls_fast.cuda.device import products
from bpls_fast.cuda.kernels.arguments import (
    arithmetic_of,
    check_apart,
    checked_out,
    checked_rows,
    checked_targets,
    checked_weight,
    scalar_type,
    write_result,
)
from bpls_fast.cuda.kernels.rows import check_finite
from bpls_fast.kernels import NonFiniteError

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
    out: Any = None,
    check_finite: bool = True,
) -> Any:
    """Return AᵀWA, and with B also AᵀWB, float64."""
    rows, weight = checked_rows(A, "A"), checked_weight(sample_weight, A)
    targets = None if B is None else checked_targets(B, rows, "B")
    factors = _column_factors(scale, rows.shape[1], bias)
    width = rows.shape[1] + bias
    shapes = [(width, width), *([] if targets is None else [(width, targets.shape[1])])]
    outs = _outs(out, shapes, {"A": A, "B": B, "sample_weight": sample_weight})
    if center:
        sums: list[Any] = _centred(rows, targets, weight, bias, check_finite)
    else:
        sums = _sums(rows, targets, weight, bias, check_finite)
    if factors is not None:
        sums[0] *= factors
        for total in sums:
            total *= factors[:, np.newaxis]
        if check_finite:
            _check_sums(sums, {"A": rows, "B": targets})
    results = [
        write_result(total, given, A, B, sample_weight)
        for total, given in zip(sums, outs, strict=True)
    ]
    return results[0] if B is None else tuple(results)


def cross(
    A: Any,
    D: Any,
    *,
    bias: bool = False,
    scale: Any = None,
    sample_weight: Any = None,
    out: Any = None,
    check_finite: bool = True,
) -> Any:
    """Return AᵀWD, float64."""
    rows, weight = checked_rows(A, "A"), checked_weight(sample_weight, A)
    targets = checked_targets(D, rows, "D")
    factors = _column_factors(scale, rows.shape[1], bias)
    shape = (rows.shape[1] + bias, targets.shape[1])
    _outs(out, [shape], {"A": A, "D": D, "sample_weight": sample_weight})
    C = zeros(shape)
    for place, block in device_blocks(rows):
        w = None if weight is None else weight[place]
        _add_products(block, targets[place], w, C, bias, 0, symmetric=False)
    if factors is not None:
        C *= factors[:, np.newaxis]
    if check_finite:
        _check_sums([C], {"A": rows, "D": targets})
    return write_result(C, out, A, D, sample_weight)


def _outs(out: Any, shapes: Sequence[tuple[int, ...]], arguments: dict[str, Any]) -> list[Any]:
    """Check `out`, an array or, where there are two results, a tuple; return one, or None, for each result."""
    if out is None:
        return [None] * len(shapes)
    if len(shapes) == 1:
        given = {"out": out}
    elif isinstance(out, tuple) and len(out) == 2:
        given = {"out[0]": out[0], "out[1]": out[1]}
        check_apart(out[1], "out[1]", **{"out[0]": out[0]})
    else:
        raise TypeError(
            f"out is a {type(out).__name__}; expected None or a tuple of two arrays, (G, C)"
        )
    for (name, array), shape in zip(given.items(), shapes, strict=True):
        check_apart(checked_out(array, shape, np.float64, name), name, **arguments)
    return list(given.values())


def _sums(
    A: Array | HostRows, B: Array | None, weight: Array | None, bias: bool, finite: bool
) -> list[Array]:
    """Return G, and with B also C, before they are scaled."""
    width = A.shape[1] + bias
    G = zeros((width, width))
    C = None if B is None else zeros((width, B.shape[1]))
    for place, block in device_blocks(A):
        w = None if weight is None else weight[place]
        _add_products(block, block, w, G, bias, bias, symmetric=True)
        if C is not None and B is not None:
            _add_products(block, B[place], w, C, bias, 0, symmetric=False)
    threads = products.ADD_UP_THREADS
    tiles = -(-width // threads[0])
    runtime.launch(products.mirror_kernel(threads), (tiles, tiles), threads, G.data)
    sums = [G] if C is None else [G, C]
    if finite:
        _check_sums(sums, {"A": A, "B": B})
    return sums


def _centred(
    A: Array | HostRows, B: Array | None, weight: Array | None, bias: bool, finite: bool
) -> list[NDArray[np.float64]]:
    """Centre the finished sums on the host: they are small."""
    G, *others = [np.asarray(total) for total in _sums(A, B, weight, True, finite)]
    n = len(G) - 1
    if G[n, n] > 0:
        mean = G[:n, n] / G[n, n]
        for C in others:
            C[:n] -= np.outer(mean, C[n])
        G[:n, :n] -= np.outer(mean, G[n, :n])
        G[:n, :n] = np.triu(G[:n, :n]) + np.triu(G[:n, :n], 1).T
        G[:n, n] = G[n, :n] = 0.0
    return [G[: n + bias, : n + bias].copy(), *(C[: n + bias] for C in others)]


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


def _check_sums(sums: list[Any], operands: dict[str, Array | HostRows | None]) -> None:
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
