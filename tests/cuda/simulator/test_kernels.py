"""Every kernel of the GPU against NumPy, within the error that it may make: odd sizes, one row, one column, no row."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast import kernels as surface
from bpls_fast.cuda import kernels, runtime
from bpls_fast.cuda.array import Array, asarray
from bpls_fast.cuda.device import elements, functions, products, systems
from bpls_fast.cuda.device.products import Tile
from bpls_fast.cuda.device.systems import Block
from bpls_fast.cuda.kernels import products as sums_of_products
from tests.support import reference
from tests.support.reference import A_DTYPES, FLOATS, assert_within, random_values, same_bits

SHAPES = [(1, 1), (1, 6), (9, 1), (7, 3), (8, 4), (21, 9)]
"""Rows and columns; the tiles of the simulator are 4 by 4, read two rows at a time."""


def rng_of(*seed):
    return np.random.default_rng([len(seed), *seed])


def values(shape, dtype, seed=0):
    return random_values(rng_of(seed, *shape), shape, dtype, decades=0.5)


@pytest.mark.parametrize("dtype", A_DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_gram_and_cross_product_are_within_the_bounds_of_the_cpu(shape, dtype, bias, weighted):
    A, B = values(shape, dtype), values((shape[0], 3), np.float32, 1)
    weight = np.abs(values((shape[0],), np.float64, 2)) if weighted else None
    options = {"bias": bias, "sample_weight": weight}
    G, C = bf.gram(A, B, backend="cuda", **options)
    assert_within(G, reference.gram(A, **options), reference.gram_bound(A, **options))
    assert_within(C, reference.cross(A, B, **options), reference.cross_bound(A, B, **options))
    assert (G == G.T).all()
    assert same_bits(bf.cross(A, B, backend="cuda", **options), C)


@pytest.mark.parametrize("dtype", A_DTYPES)
@pytest.mark.parametrize("scale", [0.5, np.array([1.0, -2.0, 0.25])])
@pytest.mark.parametrize("center", [False, True])
def test_columns_are_scaled_and_centred(dtype, scale, center):
    A, B = values((11, 3), dtype), values((11, 2), np.float64, 1)
    options = {"bias": True, "scale": scale, "center": center}
    G, C = bf.gram(A, B, backend="cuda", **options)
    assert_within(G, reference.gram(A, **options), reference.gram_bound(A, **options))
    assert_within(C, reference.cross(A, B, **options), reference.cross_bound(A, B, **options))
    assert (G == G.T).all()


def test_sums_over_several_blocks_of_rows_are_added_in_float64(monkeypatch):
    A, B = values((41, 5), np.float32), values((41, 2), np.float32, 1)
    monkeypatch.setattr(products, "BLOCK_ROWS", dict.fromkeys(products.BLOCK_ROWS, 8))
    monkeypatch.setattr(sums_of_products, "PARTIAL_BYTES", 2 * 5 * 5 * 4)  # two blocks at a time
    G, C = bf.gram(A, B, backend="cuda")
    assert_within(G, reference.gram(A), reference.gram_bound(A))
    assert_within(C, reference.cross(A, B), reference.cross_bound(A, B))
    bytes_ = values((41, 5), np.uint8)
    assert (bf.gram(bytes_, backend="cuda") == bf.gram(bytes_)).all()


def test_weights_have_the_type_of_the_arithmetic(monkeypatch):
    launched, launch = [], runtime.launch

    def recorded(kernel, grid, block, *arguments):
        launched.append([array.dtype for array in arguments if hasattr(array, "dtype")])
        launch(kernel, grid, block, *arguments)

    monkeypatch.setattr(runtime, "launch", recorded)
    A = values((9, 3), np.float32)
    bf.gram(asarray(A), sample_weight=np.ones(9), backend="cuda")
    of_products = [types for types in launched if types.count(np.float32) >= 4]
    assert of_products == [[np.float32] * 4]  # A twice, the weights, the sums


def test_a_grid_is_no_longer_than_a_grid_may_be(monkeypatch):
    monkeypatch.setattr(sums_of_products, "LARGEST_GRID", 2)
    monkeypatch.setattr(products, "BLOCK_ROWS", dict.fromkeys(products.BLOCK_ROWS, 4))
    grids, launch = [], runtime.launch
    monkeypatch.setattr(
        runtime, "launch", lambda kernel, grid, *a: grids.append(grid) or launch(kernel, grid, *a)
    )
    A = values((33, 2), np.float64)
    np.testing.assert_allclose(bf.gram(A, backend="cuda"), bf.gram(A), rtol=1e-12)
    assert {grid[2] for grid in grids if isinstance(grid, tuple) and len(grid) == 3} == {1, 2}


def test_the_largest_bytes_fit_their_sums():
    assert 255**2 * products.BLOCK_ROWS[np.dtype(np.uint8)] < 2**32
    A = np.full((12, 3), 255, np.uint8)
    assert (bf.gram(A, backend="cuda") == 12 * 255**2).all()


def test_no_row_gives_zeros():
    A, B = np.empty((0, 3), np.float32), np.empty((0, 2), np.float32)
    G, C = bf.gram(A, B, bias=True, backend="cuda")
    assert G.shape == (4, 4)
    assert C.shape == (4, 2)
    assert not G.any()
    assert not C.any()
    assert bf.linear(A, np.ones((3, 2), np.float32), backend="cuda").shape == (0, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_the_tiles_of_a_real_gpu_give_the_same(dtype):
    tile = {np.float32: Tile(64, 8, 16), np.float64: Tile(32, 4, 16), np.uint8: Tile(64, 8, 8)}[
        dtype
    ]
    A = values((5, 3), dtype)
    total, kinds = np.zeros((4, 4)), {np.uint8: np.uint32}
    partial = np.zeros((1, 4, 4), kinds.get(dtype, dtype))
    if dtype == np.uint8:
        products.bytes_kernel(tile)[(1, 1, 1), tile.threads](A, partial, 0, 8, 1)
    else:
        kernel = products.floats_kernel(tile, dtype, False)
        kernel[(1, 1, 1), tile.threads](A, A, A, partial, 0, 8, 1, 1, 1)
    products.add_up_kernel()[1, (32, 8)](partial, total, 1)
    products.mirror_kernel((32, 8))[1, (32, 8)](total)
    assert_within(total, reference.gram(A, bias=True), reference.gram_bound(A, bias=True))


@pytest.mark.parametrize("activation", list(bf.activations))
@pytest.mark.parametrize("dtype", A_DTYPES)
@pytest.mark.parametrize(("shape", "width"), [((1, 1), 1), ((5, 3), 4), ((9, 6), 7)])
def test_a_layer_is_within_the_bounds_of_the_cpu(shape, width, dtype, activation):
    A = values(shape, dtype)
    W = values((shape[1] + 1, width), np.float64 if dtype == np.float64 else np.float32, 1)
    W = W / 64 if dtype == np.uint8 else W
    options = {"bias": True, "activation": activation}
    expected = reference.linear(A, W, **options)
    found = bf.linear(A, W, backend="cuda", **options)
    assert found.dtype == (np.float64 if dtype == np.float64 else np.float32)
    assert_within(found, expected, reference.linear_bound(A, W, **options))


@pytest.mark.parametrize("activation", list(bf.activations))
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "width", [1, 3, 4, 6]
)  # softmax over rows of at most 4 is part of the layer
def test_tangents_residuals_and_targets_are_those_of_the_cpu(width, dtype, activation):
    act, tolerance = bf.activations[activation], 200 * np.finfo(dtype).eps
    A, W = values((7, 5), dtype), values((6, width), dtype, 1)
    M = values((width, width), dtype, 2) / 10
    N = act.forward(values((7, width), dtype, 3))
    options = {"bias": True, "activation": activation}
    found = bf.tangent(A, W, N, backend="cuda", **options)
    np.testing.assert_allclose(
        found, bf.tangent(A, W, N, **options), rtol=tolerance, atol=10 * tolerance
    )
    given = asarray(N)
    assert bf.tangent(asarray(A), W, given, out=given, **options) is given
    np.testing.assert_array_equal(np.asarray(given), found)
    R = surface.residual(A, W, N, bias=True)
    on_gpu = surface.residual(asarray(A), W, asarray(N), bias=True)
    np.testing.assert_allclose(np.asarray(on_gpu), R, rtol=tolerance, atol=10 * tolerance)
    values_ = act.forward(values((7, width), dtype, 4))
    expected = surface.target(R, M, values_, activation=activation, margin=0.05)
    target = kernels.target(R, M, values_, activation=activation, margin=0.05)
    np.testing.assert_allclose(target, expected, rtol=tolerance, atol=100 * tolerance)


@pytest.mark.parametrize("activation", ["tanh", "softmax"])
@pytest.mark.parametrize("width", [3, 6])
def test_results_are_written_where_they_are_wanted(width, activation):
    A, W = values((7, 5), np.float32), values((5, width), np.float32, 1)
    N = bf.linear(A, W, activation=activation)
    tangent = bf.tangent(A, W, N, activation=activation)
    for on_gpu in (False, True):
        rows = asarray(A) if on_gpu else A
        for call, arrays, expected in ((bf.linear, (), N), (bf.tangent, (N,), tangent)):
            out = np.full_like(N, np.nan)
            options = {"activation": activation, "out": out, "backend": "cuda"}
            assert call(rows, W, *arrays, **options) is out
            np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
    out = np.full_like(N, np.nan)
    assert surface.residual(asarray(A), W, N, out=out) is out
    np.testing.assert_allclose(out, N - A @ W, rtol=1e-4, atol=1e-5)
    out = N.copy()
    assert bf.tangent(A, W, out, activation=activation, out=out, backend="cuda") is out
    np.testing.assert_allclose(out, tangent, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", ["tanh", "softmax"])
def test_a_tangent_may_overwrite_the_memory_it_reads(activation):
    A, W = values((7, 5), np.float32), values((5, 3), np.float32, 1)
    N = bf.linear(A, W, activation=activation)
    expected = np.asarray(bf.tangent(asarray(A), W, asarray(N), activation=activation))
    memory = asarray(np.concatenate([N, N]))
    for at in (0, 1, 7):  # the same memory by another name, some of it, none of it
        memory[:7] = N
        out = memory[at : at + 7]
        found = bf.tangent(asarray(A), W, memory[:7], activation=activation, out=out)
        assert found is out
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_target_of_leaky_relu_has_a_least_value(dtype):
    N = np.array([[-2.0, 0.5]], dtype)
    R, M = np.zeros((1, 1), dtype), np.zeros((1, 2), dtype)
    found = kernels.target(R, M, N, activation="leaky_relu", margin=0.1)
    np.testing.assert_allclose(found, [[-10.0, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(
        found, surface.target(R, M, N, activation="leaky_relu", margin=0.1), rtol=1e-6
    )


@pytest.mark.parametrize("activation", list(bf.activations))
@pytest.mark.parametrize("dtype", FLOATS)
def test_activations_are_those_of_the_cpu_from_end_to_end_of_the_range(dtype, activation):
    act, eps = bf.activations[activation], np.finfo(dtype).eps
    z = np.array(
        [0.0, -0.0, 1e-6, -1e-6, 0.5, -0.5, 3, -3, 30, -30, 80, -80, 700, -700, np.nan], dtype
    )
    z = np.stack([z, z[::-1]]) if activation != "softmax" else values((5, 7), dtype)
    n = act.forward(z)
    same = {"rtol": 8 * eps, "atol": 4 * np.finfo(dtype).tiny}
    np.testing.assert_allclose(kernels.activations[activation].forward(z), n, **same)
    np.testing.assert_allclose(
        kernels.activations[activation].derivative(z), act.derivative(z), **same
    )
    for margin in (None, 0.01):
        found = kernels.activations[activation].inverse(n, margin=margin)
        np.testing.assert_allclose(
            found, act.inverse(n, margin=margin), rtol=16 * eps, atol=8 * eps
        )
    v, n = values(z.shape, dtype, 1), act.forward(np.nan_to_num(z))
    found = kernels.activations[activation].jacobian(v, n)
    np.testing.assert_allclose(found, act.jacobian(v, n), rtol=16 * eps, atol=8 * eps)
    found = kernels.activations[activation].squared_slopes(n)
    np.testing.assert_allclose(found, act.squared_slopes(n), rtol=64 * eps, atol=eps)


def test_softmax_of_infinite_rows_is_that_of_the_cpu():
    z = np.array([[np.inf, 0.0], [-np.inf, -np.inf], [-np.inf, 1.0], [np.nan, 0.0]])
    np.testing.assert_array_equal(
        kernels.activations["softmax"].forward(z), bf.activations["softmax"].forward(z)
    )


def test_activations_take_arrays_of_any_shape():
    for shape in ((3,), (2, 3, 4), (0, 2)):
        z = np.asarray(rng_of(1).normal(size=shape))
        found = kernels.activations["tanh"].forward(z)
        assert found.shape == shape
        np.testing.assert_allclose(found, np.tanh(z), rtol=1e-15)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("m", [1, 5])
def test_solutions_are_as_close_as_those_of_the_cpu(n, m):
    A = rng_of(n).normal(size=(2 * n + 3, n))
    G, C = A.T @ A, rng_of(m).normal(size=(n, m))
    W = bf.solve(G, C, backend="cuda")
    expected = reference.solve(G, C)
    bound = reference.solve_bound(reference.regularised(G), W, expected)
    assert (np.linalg.norm(W - expected, axis=0) <= bound).all()
    systems_, sides = np.stack([G, 3 * G]), np.stack([C, C])
    batch = bf.solve_batched(systems_, sides, backend="cuda")
    for W, G, C in zip(batch, systems_, sides, strict=True):
        bound = reference.solve_bound(reference.regularised(G), W, expected)
        assert (np.linalg.norm(W - reference.solve(G, C), axis=0) <= bound).all()


@pytest.mark.parametrize(("n", "m"), [(5, 2), (13, 9), (20, 1), (34, 2), (65, 3)])
def test_the_blocks_of_a_real_gpu_solve_the_same(n, m, monkeypatch):
    real = [Block(8, 8), Block(16, 8), Block(32, 8)]
    for name, value in (("BLOCKS", real), ("PER_THREAD", 4), ("RIDGE_THREADS", 64)):
        monkeypatch.setattr(systems, name, value)
    A = rng_of(1).normal(size=(2 * n, n))
    G, C = A.T @ A, rng_of(2).normal(size=(n, m))
    np.testing.assert_allclose(bf.solve(G, C, backend="cuda"), bf.solve(G, C), rtol=1e-9)


def test_a_layer_is_solved_in_one_call():
    A, B, weight = values((12, 4), np.float32), values((12, 2), np.float32, 1), np.arange(1.0, 13)
    options = {"bias": True, "sample_weight": weight, "eps": 1e-3}
    found = bf.solve_layer(A, B, backend="cuda", **options)
    np.testing.assert_allclose(found, bf.solve_layer(A, B, **options), rtol=1e-4, atol=1e-5)


def test_a_singular_system_names_the_pivot():
    G = np.ones((6, 6))
    with pytest.raises(np.linalg.LinAlgError, match=r"pivot 2 of 6 .* increase eps"):
        bf.solve(G, np.ones((6, 1)), eps=0, backend="cuda")
    with pytest.raises(np.linalg.LinAlgError, match=r"system 1: .* pivot 2 of 6"):
        bf.solve_batched(np.stack([np.eye(6), G]), np.ones((2, 6, 1)), eps=0, backend="cuda")


def test_an_absolute_ridge_is_added_as_it_is():
    found = bf.solve(np.zeros((2, 2)), np.ones((2, 1)), eps=0.5, relative=False, backend="cuda")
    np.testing.assert_allclose(found, 2.0, rtol=1e-15)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("weighted", [False, True])
def test_column_sums_are_those_of_the_cpu(dtype, weighted, monkeypatch):
    monkeypatch.setattr(elements, "SUM_ROWS", 4)
    elements.column_sums_kernel.cache_clear()
    P, Q = values((11, 5), dtype), values((11, 5), dtype, 1)
    weight = np.arange(11.0) if weighted else None
    for operands in ((P,), (P, Q)):
        found = surface.column_sums(asarray(operands[0]), *operands[1:] or [None], weight)
        np.testing.assert_allclose(
            found, surface.column_sums(*operands, *[None] * (2 - len(operands)), weight), rtol=1e-12
        )
    elements.column_sums_kernel.cache_clear()


def test_missed_rows_are_those_of_the_cpu_and_the_first_of_equals_wins():
    outputs = values((30, 3), np.float32)
    outputs[4] = 1.0
    labels = rng_of(3).integers(0, 3, 30)
    labels[4] = 0
    assert (surface.missed(asarray(outputs), labels) == surface.missed(outputs, labels)).all()


def test_the_same_call_gives_the_same_bits():
    A, B = values((40, 7), np.float32), values((40, 3), np.float32, 1)
    first, second = (bf.gram(A, B, backend="cuda") for _ in range(2))
    assert all(map(same_bits, first, second))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda A: kernels.gram(A[0]), ValueError, "A has 1 dimension"),
        (lambda A: kernels.gram(A.astype(np.int16)), TypeError, "A has dtype int16"),
        (lambda A: kernels.gram(A[:, :0]), ValueError, "A has no columns"),
        (lambda A: kernels.gram(A, A[:2]), ValueError, "B has 2 rows; expected 4"),
        (lambda A: kernels.cross(A, A.astype(np.uint8)), TypeError, "D has dtype uint8"),
        (lambda A: kernels.gram(A, sample_weight=np.ones(3)), ValueError, "sample_weight has 3"),
        (lambda A: kernels.gram(A, scale=[1.0, np.inf, 1.0]), ValueError, "scale"),
        (lambda A: kernels.gram(A * np.nan), ValueError, r"A contains NaN at \[0, 0\]"),
        (lambda A: kernels.gram(A * 1e300), ValueError, "overflow"),
        (lambda A: kernels.linear(A, A), ValueError, "W has 4 rows; expected 3"),
        (lambda A: kernels.linear(A, A[:3] * np.inf), ValueError, "W contains infinity"),
        (lambda A: kernels.linear(A, A[:3], out=asarray(A[:1])), ValueError, "out has shape"),
        (lambda A: kernels.linear(A, A[:3], out=A[:1].copy()), ValueError, "out has shape"),
        (lambda A: kernels.tangent(A, A[:3], A[:1]), ValueError, "N has shape"),
        (lambda A: kernels.solve(A, A), ValueError, "G is 4 x 3"),
        (lambda A: kernels.solve(np.eye(3), A), ValueError, "C has shape"),
        (lambda A: kernels.solve(np.eye(4), A, eps=-1), ValueError, "eps is -1"),
        (lambda A: kernels.solve(np.eye(4), A, eps="1"), TypeError, "eps is a str"),
        (lambda A: kernels.activations["tanh"].inverse(A, margin=0.7), ValueError, "margin is 0.7"),
        (lambda A: kernels.activations["tanh"].jacobian(A, A[:2]), ValueError, "v has shape"),
        (lambda A: bf.gram(A, backend="gpu"), ValueError, "backend is 'gpu'; expected one of auto"),
    ],
)
def test_what_is_wrong_is_named_before_anything_runs(call, error, message):
    with pytest.raises(error, match=message):
        call(np.ones((4, 3)) + np.arange(3))


def test_every_kernel_of_the_cpu_has_its_namesake():
    only_on_the_cpu = {"Activation", "NonFiniteError", "PackedNetwork", "linear_bytes"}
    assert set(kernels.__all__) == set(surface.__all__) - only_on_the_cpu
    assert list(kernels.activations) == list(surface.activations)


def test_constants_keep_the_arithmetic_of_float32():
    for name in bf.activations:
        if name != "softmax":
            act = functions.functions(name, np.float32)
            for value in (
                act.forward(np.float32(0.3)),
                act.slope(np.float32(0.3)),
                act.derivative(np.float32(0.3)),
            ):
                assert type(value) is np.float32


def test_results_stay_where_the_arguments_are():
    A = values((4, 3), np.float64)
    assert isinstance(bf.gram(A, backend="cuda"), np.ndarray)
    for found in (
        bf.gram(asarray(A)),
        bf.linear(asarray(A), np.ones((3, 1))),
        bf.solve(asarray(np.eye(3)), np.ones((3, 1))),
        bf.activations["tanh"].forward(asarray(A)),
    ):
        assert isinstance(found, Array)


@pytest.mark.parametrize("dtype", A_DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (0, 3)])
def test_clipped_rows_are_those_of_the_cpu_to_the_bit(shape, dtype):
    X = values(shape, dtype)
    limits = np.sort(values((2, shape[1]), np.float64, 1), axis=0)
    limits[1, 0] = np.inf
    found = surface.clip_rows(asarray(X), limits)
    assert isinstance(found, Array)
    assert same_bits(np.asarray(found), surface.clip_rows(X, limits))


def test_rows_to_clip_must_be_finite_and_have_limits():
    with pytest.raises(bf.NonFiniteError, match="X contains NaN"):
        surface.clip_rows(asarray(np.array([[np.nan]])), np.zeros((2, 1)))
    with pytest.raises(ValueError, match=r"limits has shape \(2, 2\); expected \(2, 1\)"):
        surface.clip_rows(asarray(np.ones((3, 1))), np.zeros((2, 2)))


@pytest.mark.parametrize("dtype", A_DTYPES)
def test_a_network_with_limits_gives_the_same_on_both(dtype):
    net = bf.Network([3, 4, 2], "tanh", seed=0, input_limits=[[0, 0, 1], [1, 2, 1]])
    X = np.abs(3 * values((9, 3), np.float64)).astype(dtype)
    expected = net.forward(X)
    for found in (net.forward(asarray(X)), net.to("cuda").forward(X), net.forward(asarray(X))):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)
