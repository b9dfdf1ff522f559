"""One layer of a network on the GPU: `linear`, `tangent`, `residual` and `target`."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpls_fast.cuda import runtime
from bpls_fast.cuda.array import Array, asarray, device_blocks, empty
from bpls_fast.cuda.device import layers
from bpls_fast.cuda.kernels.activations import clipped_margin, softmax_rows
from bpls_fast.cuda.kernels.arguments import (
    arithmetic_of,
    check_apart,
    check_same,
    checked_floats,
    checked_out,
    checked_rows,
    may_overlap,
    scalar_type,
    write_result,
)
from bpls_fast.cuda.kernels.rows import check_finite
from bpls_fast.kernels.backend import on_device, split_on_out_of_memory

__all__ = ["linear", "residual", "tangent", "target"]

NO_LIMIT = -np.inf
"""The lower limit of targets that have none."""


def linear(
    A: Any,
    W: Any,
    *,
    bias: bool = False,
    activation: str = "identity",
    out: Any = None,
    check_finite: bool = True,
) -> Any:
    """Return act(A W + b)."""

    def layer(rows: Any) -> Any:
        result = _layer("forward", activation, rows, W, None, bias, out, check_finite)
        return write_result(result, out, A, W)

    if on_device(A) or out is not None:
        return layer(A)
    return split_on_out_of_memory(layer, np.asarray(A))


def tangent(
    A: Any,
    W: Any,
    N: Any,
    *,
    bias: bool = False,
    activation: str = "identity",
    out: Any = None,
    check_finite: bool = True,
) -> Any:
    """Return J (A W + b), with the Jacobian J of the activation where it has the values N."""
    values = checked_floats(N, "N", 2)
    given = asarray(out) if on_device(out) else None
    if given is None or not may_overlap(given, values):
        result = _layer("tangent", activation, A, W, values, bias, out, check_finite)
    else:  # the kernel must not overwrite what it still reads
        check_same(given, values, "out")
        given[:] = _layer("tangent", activation, A, W, values, bias, None, check_finite)
        result = given
    return write_result(result, out, A, W, N)


def residual(
    A: Any, W: Any, B: Any, *, bias: bool = False, out: Any = None, check_finite: bool = True
) -> Any:
    """Return B - (A W + b)."""
    check_apart(out, B=B)
    result = _layer(
        "residual", "identity", A, W, checked_floats(B, "B", 2), bias, out, check_finite
    )
    return write_result(result, out, A, W, B)


def target(
    R: Any,
    M: Any,
    N: Any,
    *,
    activation: str,
    margin: float,
    out: Any = None,
    check_finite: bool = True,
) -> Any:
    """Return the inverse of the activation at N + R M, after clipping to at least `margin` inside the range."""
    values = checked_floats(N, "N", 2)
    least = -margin if activation == "leaky_relu" else NO_LIMIT
    check_apart(out, N=N)
    result = _layer("target", activation, R, M, values, False, out, check_finite, margin, least)
    return write_result(result, out, R, M, N)


def _layer(
    ending: str,
    name: str,
    A: Any,
    W: Any,
    other: Array | None,
    bias: bool,
    out: Any,
    finite: bool,
    margin: float = 0.0,
    least: float = NO_LIMIT,
) -> Array:
    """Run one kernel of a layer; `device.layers` says what its endings make of the product and of `other`."""
    rows, weights = checked_rows(A, "A"), checked_floats(W, "W", 2)
    if weights.shape[0] != rows.shape[1] + bias:
        expected = f"{rows.shape[1]} columns of A" + (" and the bias" if bias else "")
        raise ValueError(
            f"W has {weights.shape[0]} rows; expected {rows.shape[1] + bias}, for the {expected}"
        )
    real = arithmetic_of(rows, weights)
    shape = (len(rows), weights.shape[1])
    given = checked_out(out, shape, real)
    check_apart(given, A=A, W=W)
    if other is not None and (other.shape, other.dtype) != (shape, real):
        raise ValueError(
            f"N has shape {other.shape} and dtype {other.dtype}; expected {shape} and {real}"
        )
    if finite:
        check_finite(rows, "A")
        check_finite(weights, "W")
    result = given if isinstance(given, Array) else empty(shape, real)
    tile = layers.TILE[real]
    if name == "softmax" and weights.shape[1] > tile.side:
        return _wide_softmax(ending, rows, weights, other, bias, result, margin)
    kernel = layers.layer_kernel(tile, scalar_type(real), ending, name)
    inside = margin if name == "softmax" else clipped_margin(margin, real)
    numbers = (real.type(inside), real.type(least))
    for place, block in device_blocks(rows):
        if len(block):
            written = result[place]
            read = written if other is None else other[place]
            grid = (-(-len(block) // tile.side), -(-weights.shape[1] // tile.side))
            arguments = (block.data, weights.data, read.data, written.data, int(bias))
            runtime.launch(kernel, grid, tile.threads, *arguments, *numbers)
    return result


def _wide_softmax(
    ending: str, A: Any, W: Array, other: Array | None, bias: bool, result: Array, margin: float
) -> Array:
    """Run a layer with softmax over rows wider than a tile: first the product, then the rows."""
    before = "target" if ending == "target" else "forward"
    _layer(before, "identity", A, W, other, bias, result, False)
    if ending == "tangent" and other is not None:
        softmax_rows("jacobian", other, result, margin, result)
    else:
        softmax_rows("inverse" if ending == "target" else "forward", result, result, margin, result)
    return result
