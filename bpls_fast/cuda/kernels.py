"""The kernels of `bpls_fast.kernels` and of its activations, by the same names, on the GPU.

Arguments are checked before anything is launched. Results are on the device if an argument was, else on the host. The
same input gives the same bits: every sum has one order, which depends on the shapes alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.cuda import elements, layers, libraries, products, runtime, systems
from bpls_fast.cuda.array import (
    Array,
    HostRows,
    add_up,
    asarray,
    column_totals,
    each,
    empty,
    flat,
    matrices,
    movable,
    parts,
    zeros,
)
from bpls_fast.kernels import NonFiniteError
from bpls_fast.kernels.backend import on_device, split_on_out_of_memory

__all__ = [
    "column_sums",
    "cross",
    "derivative",
    "forward",
    "gram",
    "inverse",
    "jacobian",
    "linear",
    "missed",
    "residual",
    "solve",
    "solve_batched",
    "solve_layer",
    "squared_slopes",
    "tangent",
    "target",
]

FLOATS = ("float32", "float64")
PARTIAL_BYTES = 1 << 26
"""The tiles of a Gram matrix that wait to be added up take at most so many bytes."""

LARGEST_GRID = 65535
"""Blocks that a grid has at most along its second and third side."""

NONE = -np.inf  # a lower limit that limits nothing


# ---- sums of products


def gram(
    A: Any,
    B: Any = None,
    *,
    bias: bool = False,
    scale: Any = None,
    center: bool = False,
    sample_weight: Any = None,
) -> Any:
    """Give AᵀWA, and with B also AᵀWB, float64."""
    if center:
        return _centred(A, B, bias, scale, sample_weight)
    rows, weight = _rows(A, "A"), _weight(sample_weight, A)
    targets = None if B is None else _targets(B, rows, "B")
    width = rows.shape[1] + bias
    G = zeros((width, width))
    C = None if targets is None else zeros((width, targets.shape[1]))
    for place, part in parts(rows):
        w = None if weight is None else weight[place]
        _add_products(part, part, w, G, bias, bias, symmetric=True)
        if C is not None and targets is not None:
            _add_products(part, targets[place], w, C, bias, 0, symmetric=False)
    tiles, block = -(-width // products.ADD_UP_THREADS[0]), products.ADD_UP_THREADS
    runtime.launch(products.mirror_kernel(block), (tiles, tiles), block, G.data)
    factors = _factors(scale, rows.shape[1], bias)
    if factors is not None:
        G *= factors
        G *= factors[:, np.newaxis]
        if C is not None:
            C *= factors[:, np.newaxis]
    _check_sums([G] if C is None else [G, C], {"A": rows, "B": targets})
    if C is None:
        return _given(G, A, sample_weight)
    return _given(G, A, B, sample_weight), _given(C, A, B, sample_weight)


def cross(
    A: Any, D: Any, *, bias: bool = False, scale: Any = None, sample_weight: Any = None
) -> Any:
    """Give AᵀWD, float64."""
    rows, weight = _rows(A, "A"), _weight(sample_weight, A)
    targets = _targets(D, rows, "D")
    C = zeros((rows.shape[1] + bias, targets.shape[1]))
    for place, part in parts(rows):
        w = None if weight is None else weight[place]
        _add_products(part, targets[place], w, C, bias, 0, symmetric=False)
    factors = _factors(scale, rows.shape[1], bias)
    if factors is not None:
        C *= factors[:, np.newaxis]
    _check_sums([C], {"A": rows, "D": targets})
    return _given(C, A, D, sample_weight)


def _centred(A: Any, B: Any, bias: bool, scale: Any, sample_weight: Any) -> Any:
    """Centre the finished sums, which are small, on the host."""
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
    factors = _factors(scale, n, True)
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
    """Add [A 1]ᵀ W [B 1] to the total, so many blocks of rows at a time that their tiles take little memory."""
    p, q = total.shape
    exact = symmetric and A.dtype == np.uint8 and weight is None
    real: np.dtype[Any] = np.dtype(np.float64 if np.float64 in (A.dtype, B.dtype) else np.float32)
    kind: np.dtype[Any] = np.dtype(np.uint8) if exact else real
    tile, rows = products.TILE[kind], products.BLOCK_ROWS[kind]
    sums = np.dtype(np.uint32) if exact else real
    at_once = min(max(1, PARTIAL_BYTES // (p * q * sums.itemsize)), LARGEST_GRID)
    if weight is not None:
        weight = weight.astype(
            real, copy=False
        )  # a conversion in the kernel would be float64 in float32's
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
        beyond = min(first + count * rows, len(A))
        if exact:
            kernel = products.bytes_kernel(tile)
            arguments: tuple[Any, ...] = (A.data, partial.data, first, rows, int(ones))
            runtime.launch(kernel, (*grid, count), tile.threads, *arguments)
        elif not libraries.products(A, B, weight, partial, slice(first, beyond), ones, ones_B):
            kernel = products.floats_kernel(tile, arithmetic(real), weight is not None)
            w = A.data if weight is None else weight.data
            arguments = (A.data, B.data, w, partial.data, first, rows)
            flags = (int(ones), int(ones_B), int(symmetric))
            runtime.launch(kernel, (*grid, count), tile.threads, *arguments, *flags)
        add_up(partial, total, symmetric=symmetric)
        first = beyond


# ---- systems


def solve(G: Any, C: Any, *, eps: float = 1e-6, relative: bool = True) -> Any:
    """Give W with (G + ridge·I) W = C, float64; the upper triangle of G is used."""
    g, c = _floats(G, "G", 2), _floats(C, "C", 2)
    W = _solve(_batch(g), _batch(c), eps, relative, alone=True)
    return _given(W.reshape(*W.shape[1:]), G, C)


def solve_batched(G: Any, C: Any, *, eps: float = 1e-6, relative: bool = True) -> Any:
    """Give W[k] with (G[k] + ridge[k]·I) W[k] = C[k], float64; a small system takes one block of threads."""
    W = _solve(_floats(G, "G", 3), _floats(C, "C", 3), eps, relative, alone=False)
    return _given(W, G, C)


def solve_layer(
    A: Any,
    B: Any,
    *,
    bias: bool = False,
    eps: float = 1e-6,
    relative: bool = True,
    sample_weight: Any = None,
) -> Any:
    """Give the least-squares solution of A W = B: `gram` and `solve`."""
    G, C = gram(movable(A), B, bias=bias, sample_weight=sample_weight)
    return _given(solve(G, C, eps=eps, relative=relative), A, B, sample_weight)


def _solve(G: Array, C: Array, eps: float, relative: bool, *, alone: bool) -> Array:
    count, n, width = G.shape
    if n != width or n == 0:
        raise ValueError(f"G is {n} x {width}; expected a square matrix")
    if C.shape[:2] != (count, n):
        raise ValueError(f"C has shape {C.shape}; expected {(count, n)} rows like G, then columns")
    if not isinstance(eps, (int, float, np.integer, np.floating)):
        raise TypeError(f"eps is a {type(eps).__name__}; expected a number")
    if not (np.isfinite(eps) and eps >= 0):
        raise ValueError(f"eps is {eps!r}; expected a finite number >= 0")
    check_finite(G, "G")
    check_finite(C, "C")
    m = C.shape[2]
    if count == 0 or m == 0:
        return zeros((count, n, m))
    large = systems.BLOCKS[-1]
    fitting = next((block for block in systems.BLOCKS if n <= block.size), large)
    S, diagonal, ridge = empty((count, n + m, n), float), empty((count, n), float), zeros((count,))
    failed = asarray(np.full(count, -1, np.int64))
    find_ridge = systems.ridge_kernel(systems.RIDGE_THREADS)
    numbers = (float(eps), int(relative))
    runtime.launch(find_ridge, count, systems.RIDGE_THREADS, G.data, *numbers, ridge.data)
    arrays = (G.data, C.data, ridge.data, S.data, diagonal.data)
    grid = (count, _tiles(n + m, fitting), _tiles(n, fitting))
    runtime.launch(systems.assemble_kernel(fitting), grid, fitting.threads, *arrays)
    least = n * float(np.finfo(float).eps)
    if n <= large.size:
        kernel, arguments = (
            systems.small_kernel(fitting),
            (S.data, diagonal.data, least, failed.data),
        )
        runtime.launch(kernel, (count, _tiles(m, fitting)), fitting.threads, *arguments)
    elif not (alone and libraries.solve(S, n)):
        _factor(S, diagonal, least, failed)
    _check_pivots(np.asarray(failed), np.asarray(ridge), n, alone)
    W = empty((count, n, m), float)
    grid = (count, _tiles(n, fitting), _tiles(m, fitting))
    runtime.launch(systems.solution_kernel(fitting), grid, fitting.threads, S.data, W.data)
    return W


def _factor(S: Array, diagonal: Array, least: float, failed: Array) -> None:
    """Turn the last rows of every system in S, the right-hand sides, into the solution."""
    block, per = systems.BLOCKS[-1], systems.PER_THREAD
    size, (count, height, n) = block.size, S.shape
    inverses = empty((count, _tiles(n, block) * size, size), float)
    panel, update = systems.panel_kernel(block), systems.update_kernel(size, per)
    for first in range(0, n, size):
        beyond = min(first + size, n)
        below = _tiles(height - beyond, block)
        arguments = (S.data, diagonal.data, least, first, inverses.data, failed.data)
        runtime.launch(panel, (count, below), block.threads, *arguments)
        if beyond < n:
            grid = (count, below, _tiles(n - beyond, block))
            runtime.launch(update, grid, (size // per) ** 2, S.data, first)
    of_sides, back = (count, -(-(height - n) // block.lines)), systems.back_kernel(block)
    runtime.launch(back, of_sides, block.threads, S.data, inverses.data)


def _tiles(length: int, block: systems.Block) -> int:
    return -(-length // block.size)


def _check_pivots(failed: NDArray[Any], ridge: NDArray[Any], n: int, alone: bool) -> None:
    bad = np.flatnonzero(failed >= 0)
    if len(bad):
        system = int(bad[0])
        name = "" if alone else f"system {system}: "
        raise np.linalg.LinAlgError(
            f"{name}G + {ridge[system]:.3g}·I is not positive definite: pivot {failed[system] + 1} of {n} is no more "
            "than rounding error; increase eps"
        )


def _batch(matrix: Array) -> Array:
    return matrix.reshape(1, *matrix.shape)


# ---- layers


def linear(
    A: Any,
    W: Any,
    *,
    bias: bool = False,
    activation: str = "identity",
    out: Any = None,
    check_finite: bool = True,
) -> Any:
    """Give act(A W + b)."""

    def layer(rows: Any) -> Any:
        result = _layer("forward", activation, rows, W, None, bias, out, check_finite)
        return _written(result, out, A, W)

    return (
        layer(A)
        if on_device(A) or out is not None
        else split_on_out_of_memory(layer, np.asarray(A))
    )


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
    """Give J (A W + b), with the Jacobian J of the activation where it has the values N."""
    values = _floats(N, "N", 2)
    given = asarray(out) if on_device(out) else None
    if given is None or not _overlap(given, values):
        result = _layer("tangent", activation, A, W, values, bias, out, check_finite)
    else:  # what is read must not be overwritten on the way
        _check_same(given, values, "out")
        given[:] = _layer("tangent", activation, A, W, values, bias, None, check_finite)
        result = given
    return _written(result, out, A, W, N)


def residual(
    A: Any, W: Any, B: Any, *, bias: bool = False, out: Any = None, check_finite: bool = True
) -> Any:
    """Give B - (A W + b)."""
    result = _layer("residual", "identity", A, W, _floats(B, "B", 2), bias, out, check_finite)
    return _written(result, out, A, W, B)


def target(
    R: Any, M: Any, N: Any, activation: str, margin: float, least: float | None = None
) -> Any:
    """Give the inverse of the activation at N + R M, at least `margin` inside its range, of values >= `least`."""
    values = _floats(N, "N", 2)
    result = _layer("target", activation, R, M, values, False, None, True, margin, least)
    return _given(result, R, M, N)


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
    least: float | None = None,
) -> Array:
    rows, weights = _rows(A, "A"), _floats(W, "W", 2)
    if weights.shape[0] != rows.shape[1] + bias:
        expected = f"{rows.shape[1]} columns of A" + (" and the bias" if bias else "")
        raise ValueError(
            f"W has {weights.shape[0]} rows; expected {rows.shape[1] + bias}, for the {expected}"
        )
    if finite:
        check_finite(rows, "A")
        check_finite(weights, "W")
    real: np.dtype[Any] = np.dtype(
        np.float64 if np.float64 in (rows.dtype, weights.dtype) else np.float32
    )
    shape = (len(rows), weights.shape[1])
    given = asarray(out) if on_device(out) else None if out is None else np.asarray(out)
    for name_, array in (("out", given), ("N", other)):
        if array is not None and (array.shape, array.dtype) != (shape, real):
            raise ValueError(
                f"{name_} has shape {array.shape} and dtype {array.dtype}; expected {shape} and {real}"
            )
    result = given if isinstance(given, Array) else empty(shape, real)
    tile = layers.TILE[real]
    if name == "softmax" and weights.shape[1] > tile.side:
        return _wide_softmax(ending, rows, weights, other, bias, result, margin)
    kernel = layers.layer_kernel(tile, arithmetic(real), ending, name)
    inside = margin if name == "softmax" else _inside(margin, real)
    numbers = (real.type(inside), real.type(NONE if least is None else least))
    for place, part in parts(rows):
        if len(part):
            written = result[place]
            read = written if other is None else other[place]
            grid = (-(-len(part) // tile.side), -(-weights.shape[1] // tile.side))
            arguments = (part.data, weights.data, read.data, written.data, int(bias))
            runtime.launch(kernel, grid, tile.threads, *arguments, *numbers)
    return result


def _wide_softmax(
    ending: str, A: Any, W: Array, other: Array | None, bias: bool, result: Array, margin: float
) -> Array:
    """Make a layer that ends with softmax over rows wider than a tile: the product, then the rows."""
    before = "target" if ending == "target" else "forward"
    _layer(before, "identity", A, W, other, bias, result, False)
    if ending == "tangent" and other is not None:
        _softmax("jacobian", other, result, margin, result)
    else:
        _softmax("inverse" if ending == "target" else "forward", result, result, margin, result)
    return result


# ---- activations


def forward(name: str, z: Any) -> Any:
    """Give act(z)."""
    return _activation("forward", name, z, z)


def inverse(name: str, n: Any, margin: float | None = None) -> Any:
    """Give the z with act(z) = n, of values at least `margin` inside the range."""
    if margin is not None and not 0 < margin < 0.5:
        raise ValueError(f"margin is {margin!r}; expected a number above 0 and below 0.5")
    return _activation("inverse", name, n, n, margin)


def derivative(name: str, z: Any) -> Any:
    """Give d act(z)_i / d z_i."""
    if name == "softmax":
        n = forward(name, movable(z))
        return _given(n - n * n, z)
    return _activation("derivative", name, z, z)


def jacobian(name: str, v: Any, n: Any) -> Any:
    """Give J v with the Jacobian J where the activation has the values n."""
    return _activation("jacobian", name, n, v)


def squared_slopes(name: str, n: Any, weight: Any = None) -> NDArray[np.float64]:
    """Give, for each column, the sum over rows of the squared slope at the values n; on the host."""
    values = _floats(n, "n", 2)
    # On its diagonal the Jacobian of softmax is that of sigmoid: n (1 - n).
    same = "sigmoid" if name == "softmax" else name
    totals = column_totals("slopes", values, None, _weight(weight, values), same)
    sums: NDArray[np.float64] = np.asarray(totals)[0]
    return sums


def _activation(what: str, name: str, z: Any, v: Any, margin: float | None = None) -> Any:
    values, other = _floats(z, "z"), _floats(v, "v")
    _check_same(other, values, "v")
    result = empty(values.shape, values.dtype)
    if not result.size:
        return _given(result, z, v)
    if name == "softmax":
        _softmax(what, values, other, margin, result)
    else:
        real: Any = values.dtype.type
        kernel = elements.activation_kernel(what, name, real)
        number = real(_inside(margin, values.dtype))
        given, beside, out = matrices(values, other, result)
        each(kernel, out, given, beside, number)
    return _given(result, z, v)


def _softmax(what: str, z: Array, v: Array, margin: float | None, out: Array) -> None:
    if not z.size:
        return
    real: Any = z.dtype.type
    block = elements.row_block(z.shape[-1])
    kernel = elements.softmax_kernel(what, real, block)
    rows = z.size // z.shape[-1]
    number = real(np.finfo(real).eps if margin is None else margin)
    arguments = (flat(z), flat(v), number, flat(out))
    runtime.launch(kernel, -(-rows // block[1]), block, *arguments)


def _inside(margin: float | None, dtype: np.dtype[Any]) -> float:
    """Give the margin, no smaller than the spacing of the floats next to 1."""
    eps = float(np.finfo(dtype).eps)
    return eps if margin is None else max(margin, eps)


# ---- rows


def column_sums(P: Any, Q: Any = None, weight: Any = None) -> NDArray[np.float64]:
    """Give Σ_i w_i P_ij Q_ij for each column j, on the host; without Q of P alone."""
    p = _rows(P, "P")
    q = p if Q is None else _rows(Q, "Q")
    w = _weight(weight, p)
    if not isinstance(p, Array) or not isinstance(q, Array):
        raise TypeError("P and Q are rows on the host; expected rows on the device")
    totals = column_totals("values" if Q is None else "products", p, q, w)
    sums: NDArray[np.float64] = np.asarray(totals)[0]
    return sums


def missed(outputs: Any, labels: Any) -> NDArray[np.intp]:
    """Give the rows whose largest output is not that of their label, on the host."""
    values = _floats(outputs, "outputs", 2)
    wanted = labels if isinstance(labels, Array) else asarray(np.asarray(labels, np.int64))
    flags = empty(len(values), np.uint8)
    if len(values):
        block = elements.row_block(values.shape[1])
        kernel = elements.missed_kernel(arithmetic(values.dtype), block)
        arguments = (values.data, wanted.data, flags.data)
        runtime.launch(kernel, -(-len(values) // block[1]), block, *arguments)
    return np.flatnonzero(np.asarray(flags))


def check_finite(values: Array | HostRows, name: str) -> None:
    """Say where the first NaN or infinity is, if there is one."""
    if values.dtype.kind != "f":
        return
    for place, part in parts(values):
        if not part.size:
            continue
        flag, (matrix,) = zeros(1, np.int32), matrices(part)
        grid, block = elements.spread(*matrix.shape)
        runtime.launch(elements.not_finite_kernel(), grid, block, matrix, flag.data)
        if np.asarray(flag)[0]:
            host = np.asarray(part)
            at = np.argwhere(~np.isfinite(host))[0]
            kind = "NaN" if np.isnan(host[tuple(at)]) else "infinity"
            at[0] += place.start
            raise NonFiniteError(f"{name} contains {kind} at {at.tolist()}; expected finite values")


def arithmetic(dtype: np.dtype[Any]) -> Any:
    """Give the type of NumPy that kernels are made for."""
    return dtype.type


# ---- arguments


def _rows(values: Any, name: str) -> Array | HostRows:
    array = movable(_number_array(values, name))
    if array.dtype not in (np.uint8, np.float32, np.float64):
        raise TypeError(f"{name} has dtype {array.dtype}; expected uint8, float32 or float64")
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimension(s), shape {array.shape}; expected 2")
    if array.shape[1] == 0:
        raise ValueError(f"{name} has no columns; expected at least one")
    return array


def _floats(values: Any, name: str, ndim: int | None = None) -> Array:
    array = asarray(_number_array(values, name))
    if array.dtype.name not in FLOATS:
        raise TypeError(f"{name} has dtype {array.dtype}; expected float32 or float64")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(
            f"{name} has {array.ndim} dimension(s), shape {array.shape}; expected {ndim}"
        )
    return array


def _number_array(values: Any, name: str) -> Any:
    if isinstance(values, (Array, HostRows, np.ndarray)) or hasattr(
        values, "__cuda_array_interface__"
    ):
        return values
    if hasattr(values, "__dlpack_device__"):
        return values
    return np.asarray(values)


def _targets(values: Any, rows: Array | HostRows, name: str) -> Array:
    array = _floats(values, name, 2)
    if len(array) != len(rows):
        raise ValueError(
            f"{name} has {len(array)} rows; expected {len(rows)}, one for each row of A"
        )
    return array


def _weight(values: Any, rows: Any) -> Array | None:
    if values is None:
        return None
    array = _floats(values, "sample_weight", 1)
    if len(array) != rows.shape[0]:
        raise ValueError(
            f"sample_weight has {len(array)} weights; expected {rows.shape[0]}, one for each row"
        )
    return array


def _factors(scale: Any, n: int, bias: bool) -> NDArray[np.float64] | None:
    """Give what the rows and columns of the sums are multiplied by."""
    if scale is None or (np.ndim(scale) == 0 and float(scale) == 1.0):
        return None
    given = np.asarray(scale, dtype=np.float64)
    if given.shape not in ((), (n,)) or not np.isfinite(given).all():
        raise ValueError(f"scale has shape {given.shape}; expected a finite number or {n} of them")
    factors = np.ones(n + bias)
    factors[:n] = given
    return factors


def _check_same(array: Array, like: Array, name: str) -> None:
    if (array.shape, array.dtype) != (like.shape, like.dtype):
        raise ValueError(
            f"{name} has shape {array.shape} and dtype {array.dtype}; expected {like.shape} and {like.dtype}"
        )


def _check_sums(sums: list[Array], operands: dict[str, Any]) -> None:
    """Raise if sums are not finite, and say whose fault it is."""
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


def _overlap(a: Array, b: Array) -> bool:
    """Say whether the memory of two arrays overlaps, or lies so closely that it might."""
    if not a.size or not b.size:
        return False
    (first, beyond), (other, beyond_other) = runtime.extent(a.data), runtime.extent(b.data)
    return first < beyond_other and other < beyond


def _written(result: Array, out: Any, *arguments: Any) -> Any:
    """Give `out`, where given, with the result in it, else the result as `_given` does."""
    if out is None:
        return _given(result, *arguments)
    if not on_device(out):
        np.asarray(out)[...] = np.asarray(result)
    return out


def _given(result: Array, *arguments: Any) -> Any:
    """Give a result on the device if an argument was there, else on the host."""
    return result if any(map(on_device, arguments)) else np.asarray(result)
