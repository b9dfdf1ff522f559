"""tangent, Activation.jacobian and squared_slopes, against formulas in float64 and against finite differences.

Also: what `check_finite=False` lets through, here and in `linear`.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpls_fast as bf
from tests.support import reference
from tests.support.reference import (
    A_DTYPES,
    ACTIVATIONS,
    BLOCK_ROWS,
    FLOATS,
    U32,
    U64,
    assert_within,
    same_bits,
)

DTYPE_PAIRS = list(itertools.product(A_DTYPES, FLOATS))
ELEMENTWISE = [name for name in ACTIVATIONS if name != "softmax"]
LAYOUTS = reference.LAYOUTS + reference.REPEATING_LAYOUTS

SLOPES = {
    "identity": np.ones_like,
    "sigmoid": lambda n: n * (1 - n),
    "tanh": lambda n: (1 - n) * (1 + n),
    "relu": lambda n: np.where(n > 0, 1.0, 0.0),
    "leaky_relu": lambda n: np.where(n > 0, 1.0, 0.01),
    "elu": lambda n: 1 + np.minimum(n, 0),
    "softmax": lambda n: n * (1 - n),  # the diagonal alone
    "softplus": lambda n: -np.expm1(-n),
    "softminus": lambda n: -np.expm1(n),
}
"""The diagonal of the Jacobian, in terms of the values n of the activation."""

each_name = pytest.mark.parametrize("name", ACTIVATIONS)
each_float = pytest.mark.parametrize("dtype", FLOATS)


def unit_roundoff(dtype):
    return U64 if dtype == np.float64 else U32


def jacobian(name, v, n):
    """Give J v, row by row, in float64."""
    v, n = v.astype(np.float64), n.astype(np.float64)
    if name == "softmax":
        return n * (v - np.sum(n * v, axis=-1, keepdims=True))
    return SLOPES[name](n) * v


def jacobian_bound(name, v, n, u, v_error=0.0):
    """How far a kernel with unit roundoff u may be from J v, if v itself is off by v_error.

    A slope is at most 1 and costs no more than 4 ULP <= 8 u of 1 (a rounded n² in 1 - n² counts so), the product one
    more, and as much is left to the formulas of this file. Softmax: the mean Σ n v has m terms with two roundings each,
    the difference and the product one each.
    """
    v, n = np.abs(v).astype(np.float64), np.abs(n).astype(np.float64)
    v_error = np.broadcast_to(v_error, v.shape)
    if name == "softmax":
        mean = np.sum(n * v, axis=-1, keepdims=True)
        mean_error = np.sum(n * v_error, axis=-1, keepdims=True)
        mean_error = mean_error + 2 * reference.gamma(v.shape[-1] + 2, u) * mean
        return n * (v_error + mean_error + 8 * u * (v + mean)) + smallest_normal(u)
    return np.abs(SLOPES[name](n)) * v_error + 20 * u * v + smallest_normal(u)


def smallest_normal(u):
    return 2.0**-126 if u == U32 else 2.0**-1022


def values_of(name, shape, dtype, seed=0):
    """Make values that the activation takes, some of them at the ends of its range."""
    z = np.random.default_rng(seed).normal(size=shape) * 3
    if z.ndim and z.size:
        z.flat[:: max(2, z.size // 4)] *= 20
    return bf.activations[name].forward(z.astype(dtype))


def random_arguments(seed, rows, n, m, dtypes, *, name, bias=False):
    rng = np.random.default_rng(seed)
    A = reference.random_values(rng, (rows, n), dtypes[0], decades=0.0)
    W = reference.random_values(rng, (n + bias, m), np.float64, decades=0.5).astype(dtypes[1])
    dtype = np.float64 if np.float64 in dtypes else np.float32
    return A, W, values_of(name, (rows, m), dtype, seed)


# tangent


@each_name
@given(
    rows=st.integers(0, 20) | st.sampled_from([65, 200]),
    n=st.integers(1, 20) | st.sampled_from([64, 65, 300]),
    m=st.integers(1, 26) | st.sampled_from([48, 49, 50]),
    seed=st.integers(0, 2**32 - 1),
    dtypes=st.sampled_from(DTYPE_PAIRS),
    layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 2),
    bias=st.booleans(),
)
def test_tangent_is_within_the_bound_of_the_reference(
    rows, n, m, seed, dtypes, layouts, bias, name, n_threads
):
    A, W, N = random_arguments(seed, rows, n, m, dtypes, name=name, bias=bias)
    A, W = map(reference.in_layout, (A, W), layouts)
    given_N = N.copy()
    result = bf.tangent(A, W, N, bias=bias, activation=name, n_threads=n_threads)
    assert result.dtype == N.dtype
    assert same_bits(N, given_N)
    V = reference.linear(A, W, bias=bias)
    bound = jacobian_bound(
        name, V, N, unit_roundoff(N.dtype), reference.linear_bound(A, W, bias=bias)
    )
    assert_within(result, jacobian(name, V, N), bound)


def smooth_layer(seed, name):
    """Make a layer no pre-activation of which is within 0.01 of a kink."""
    rng = np.random.default_rng(seed)
    A, W = rng.normal(size=(7, 4)), rng.normal(size=(5, 6))
    Z = reference.linear(A, W, bias=True)
    kinked = name in ("relu", "leaky_relu", "elu")
    return rng, A, W, not kinked or np.abs(Z).min() > 0.01


H = 1e-5
DIFFERENCE_ERROR = (
    1e-7  # H² times third derivatives and directions of order 10; rounding is 1e-16 / H
)


@each_name
@given(seed=st.integers(0, 2**32 - 1))
def test_a_change_of_the_weights_changes_the_values_by_the_tangent(name, seed):
    rng, A, W, smooth = smooth_layer(seed, name)
    if not smooth:
        return
    dW = rng.normal(size=W.shape)
    N = bf.linear(A, W, bias=True, activation=name)
    higher, lower = (reference.linear(A, W + h * dW, bias=True, activation=name) for h in (H, -H))
    tangent = bf.tangent(A, dW, N, bias=True, activation=name)
    np.testing.assert_allclose(tangent, (higher - lower) / (2 * H), atol=DIFFERENCE_ERROR)


@each_name
@given(seed=st.integers(0, 2**32 - 1))
def test_a_change_of_what_enters_changes_the_values_by_the_tangent(name, seed):
    rng, A, W, smooth = smooth_layer(seed, name)
    if not smooth:
        return
    dA = rng.normal(size=A.shape)
    N = bf.linear(A, W, bias=True, activation=name)
    higher, lower = (reference.linear(A + h * dA, W, bias=True, activation=name) for h in (H, -H))
    tangent = bf.tangent(dA, W[:-1], N, activation=name)
    np.testing.assert_allclose(tangent, (higher - lower) / (2 * H), atol=DIFFERENCE_ERROR)


@each_name
def test_residuals_are_pulled_back_to_the_gradient_of_the_pre_activations(name):
    rng = np.random.default_rng(1)
    Z, V, R = rng.normal(size=(5, 4)), rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    Z[np.abs(Z) < 0.01] = 1.0
    N = bf.activations[name].forward(Z)
    pulled = bf.tangent(R, V.T, N, activation=name)
    for place in np.ndindex(Z.shape):
        moved = np.zeros_like(Z)
        moved[place] = H
        higher, lower = (np.sum(R * (ACTIVATIONS[name](Z + d) @ V)) for d in (moved, -moved))
        assert pulled[place] == pytest.approx((higher - lower) / (2 * H), abs=DIFFERENCE_ERROR)


@each_name
@pytest.mark.parametrize("dtypes", DTYPE_PAIRS)
def test_tangent_fills_out_which_may_be_the_values_themselves(name, dtypes):
    A, W, N = random_arguments(3, 65, 30, 25, dtypes, name=name)
    expected = bf.tangent(A, W, N, activation=name)
    out = np.full_like(N, np.nan)
    assert bf.tangent(A, W, N, activation=name, out=out) is out
    assert same_bits(out, expected)
    assert bf.tangent(A, W, N, activation=name, out=N) is N
    assert same_bits(N, expected)


@pytest.mark.parametrize("shift", [-25, -1, 1, 25])
def test_out_that_overlaps_the_values_is_refused(shift):
    memory = np.ones(65 * 25 + 50)
    N, out = (memory[first : first + 65 * 25].reshape(65, 25) for first in (25, 25 + shift))
    with pytest.raises(ValueError, match="out may overlap N in memory"):
        bf.tangent(np.ones((65, 3)), np.ones((3, 25)), N, activation="sigmoid", out=out)
    assert (memory == 1).all()


def test_nested_lists_are_arrays():
    A, W, N = random_arguments(4, 50, 4, 40, (np.float64, np.float64), name="sigmoid")
    expected = bf.tangent(A, W, N, activation="sigmoid")
    for _ in range(5):
        lists = bf.tangent(A.tolist(), W.tolist(), N.tolist(), activation="sigmoid")
        assert same_bits(lists, expected)


@each_name
@pytest.mark.parametrize("dtypes", DTYPE_PAIRS)
@pytest.mark.parametrize(
    ("rows", "n", "m"),
    [pytest.param(3001, 90, 25, id="many rows"), pytest.param(70, 90, 1100, id="many columns")],
)
def test_bits_do_not_depend_on_the_threads_or_the_run(rows, n, m, name, dtypes):
    A, W, N = random_arguments(rows, rows, n, m, dtypes, name=name)
    reference.assert_same_bits_at_every_thread_count(
        lambda n_threads: bf.tangent(A, W, N, activation=name, n_threads=n_threads)
    )


@each_name
def test_a_row_does_not_depend_on_the_rows_around_it(name, n_threads):
    A, W, N = random_arguments(5, 65, 70, 51, (np.float32, np.float32), name=name, bias=True)
    options = {"bias": True, "activation": name}
    together = bf.tangent(A, W, N, n_threads=n_threads, **options)
    alone = [bf.tangent(A[i : i + 1], W, N[i : i + 1], **options) for i in range(len(A))]
    assert same_bits(together, np.vstack(alone))


# jacobian


@each_name
@each_float
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple)
    | st.sampled_from([(40, 33), (3, 200), (700,)]),
    seed=st.integers(0, 2**32 - 1),
    layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 2),
)
def test_jacobian_is_within_the_bound_of_the_reference(name, dtype, shape, seed, layouts):
    v = reference.random_values(np.random.default_rng(seed), shape, dtype, decades=1.0)
    v, n = map(reference.in_layout, (v, values_of(name, shape, dtype, seed)), layouts)
    before = v.copy(), n.copy()
    result = bf.activations[name].jacobian(v, n)
    assert result.dtype == dtype
    assert result.flags.c_contiguous
    assert all(map(same_bits, (v, n), before))
    bound = jacobian_bound(name, v, n, unit_roundoff(dtype))
    assert_within(result, jacobian(name, v, n), bound)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_the_jacobian_at_the_values_is_the_derivative_at_the_pre_activations(name):
    z = np.linspace(-4, 4, 801)
    activation = bf.activations[name]
    slopes = activation.jacobian(np.ones_like(z), activation.forward(z))
    # Values near an end of a range have lost what tells their slopes apart: e⁻⁴ to one ULP of 1.
    np.testing.assert_allclose(slopes, activation.derivative(z), rtol=1e-12)


@each_name
def test_the_jacobian_is_symmetric(name):
    rng = np.random.default_rng(2)
    n = values_of(name, (50, 12), np.float64, 2)
    v, w = rng.normal(size=(2, 50, 12))
    J = bf.activations[name].jacobian
    np.testing.assert_allclose(
        np.sum(w * J(v, n), axis=1), np.sum(v * J(w, n), axis=1), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("name", ELEMENTWISE)
@each_float
def test_a_zero_dimensional_array_gives_a_zero_dimensional_array(name, dtype):
    n = values_of(name, (), dtype)
    result = bf.activations[name].jacobian(np.array(2, dtype), n)
    assert result.shape == ()
    assert result == pytest.approx(2 * SLOPES[name](np.float64(n)), rel=1e-5)


@each_name
@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (2, 0, 5)])
def test_empty_arrays_give_an_empty_array(name, shape):
    assert bf.activations[name].jacobian(np.ones(shape), np.ones(shape)).shape == shape


@each_name
@each_float
def test_the_number_of_threads_changes_no_bit_of_the_jacobian(name, dtype):
    v, n = np.ones((3001, 70), dtype), values_of(name, (3001, 70), dtype)
    reference.assert_same_bits_at_every_thread_count(
        lambda n_threads: bf.activations[name].jacobian(v, n, n_threads=n_threads)
    )


@each_name
@each_float
def test_nan_gives_nan_in_its_place_and_nowhere_else(name, dtype):
    v, n = np.ones((9, 21), dtype), values_of(name, (9, 21), dtype)
    v[2, 20] = n[5, 3] = np.nan
    # The mean of a row of softmax needs all of it.
    expected = np.zeros((9, 21), bool)
    expected[2, 20] = expected[5, 3] = True
    if name == "softmax":
        expected[[2, 5]] = True
    np.testing.assert_array_equal(np.isnan(bf.activations[name].jacobian(v, n)), expected)


@pytest.mark.parametrize(
    ("v", "n", "exception", "message"),
    [
        (np.ones(3), np.ones(4), ValueError, r"n has shape \(4,\); expected that of v, \(3,\)"),
        (np.ones((2, 3)), np.ones(6), ValueError, r"n has shape \(6,\); expected that of v, \(2"),
        (np.ones(3), np.ones(3, np.float32), TypeError, "n has dtype float32; expected that of v"),
        (np.ones(3, int), np.ones(3), TypeError, "v has dtype int64; expected"),
        (np.ones(3), np.ones(3, np.uint8), TypeError, "n has dtype uint8; expected"),
    ],
)
@each_name
def test_a_wrong_argument_of_jacobian_is_named(name, v, n, exception, message):
    with pytest.raises(exception, match=message):
        bf.activations[name].jacobian(v, n)


@pytest.mark.parametrize(("value", "exception"), [(0, ValueError), (1.5, TypeError)])
@pytest.mark.parametrize("arguments", [("jacobian", 2), ("squared_slopes", 1)])
def test_a_wrong_n_threads_is_named(arguments, value, exception):
    method, count = arguments
    with pytest.raises(exception, match="n_threads"):
        getattr(bf.activations["tanh"], method)(*[np.ones((2, 2))] * count, n_threads=value)


# squared_slopes


def squared_slopes_bound(sums, rows, u):
    """Blocks of rows in the kernel's type; of a slope 8 u as above, squared, and one ULP for the product."""
    block = reference.gamma(BLOCK_ROWS + 2, u) + reference.gamma(rows // BLOCK_ROWS + 2, U64)
    return block * sums + rows * 20 * u


@each_name
@each_float
@given(
    rows=st.integers(0, 30) | st.sampled_from([255, 256, 257, 1500]),
    m=st.integers(1, 40) | st.sampled_from([100]),
    seed=st.integers(0, 2**32 - 1),
    layout=st.sampled_from(LAYOUTS),
)
def test_squared_slopes_are_within_the_bound_of_the_reference(name, dtype, rows, m, seed, layout):
    n = reference.in_layout(values_of(name, (rows, m), dtype, seed), layout)
    before = n.copy()
    sums = bf.activations[name].squared_slopes(n)
    assert same_bits(n, before)
    assert reference.is_new_float64(sums, (m,))
    expected = np.square(SLOPES[name](n.astype(np.float64))).sum(axis=0)
    assert_within(sums, expected, squared_slopes_bound(expected, rows, unit_roundoff(dtype)))


@each_name
@each_float
def test_the_number_of_threads_changes_no_bit_of_the_squared_slopes(name, dtype):
    n = values_of(name, (6001, 70), dtype)
    reference.assert_same_bits_at_every_thread_count(
        lambda n_threads: bf.activations[name].squared_slopes(n, n_threads=n_threads)
    )


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4)])
def test_squared_slopes_are_those_of_a_matrix(shape):
    with pytest.raises(ValueError, match=f"n has {len(shape)} dimensions; expected 2"):
        bf.activations["tanh"].squared_slopes(np.ones(shape))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float16", "complex128", "O"])
def test_another_dtype_of_squared_slopes_is_refused(dtype):
    with pytest.raises(TypeError, match="n has dtype"):
        bf.activations["tanh"].squared_slopes(np.ones((2, 2)).astype(dtype))


# check_finite


def kernel_call(kernel, A, W, **options):
    if kernel == "linear":
        return bf.linear(A, W, **options)
    N = np.full((len(A), W.shape[1]), 0.5, np.result_type(A, W))
    return bf.tangent(A, W, N, **options)


each_kernel = pytest.mark.parametrize("kernel", ["linear", "tangent"])


@each_kernel
@each_name
@pytest.mark.parametrize("dtypes", list(itertools.product(FLOATS, FLOATS)))
def test_without_the_check_finite_numbers_give_the_same_bits(kernel, name, dtypes):
    A, W, _ = random_arguments(6, 65, 30, 25, dtypes, name=name)
    checked = kernel_call(kernel, A, W, activation=name)
    assert same_bits(kernel_call(kernel, A, W, activation=name, check_finite=False), checked)


@each_kernel
@each_name
@each_float
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("gives_out", [False, True])
def test_a_row_that_is_not_finite_goes_through_and_leaves_the_others_alone(
    kernel, name, dtype, value, gives_out, n_threads
):
    A, W, _ = random_arguments(7, 200, 30, 25, (dtype, dtype), name=name)
    W[2, ::2] = np.abs(W[2, ::2]) + 1
    W[2, 1::2] = 0  # by which an infinity is NaN
    others = np.arange(200) != 130
    expected = kernel_call(kernel, A, W, activation=name)
    A[130, 2] = value
    out = np.zeros_like(expected) if gives_out else None
    result = kernel_call(
        kernel, A, W, activation=name, check_finite=False, out=out, n_threads=n_threads
    )
    assert same_bits(result[others], expected[others])
    with np.errstate(invalid="ignore"):
        z = A[130].astype(np.float64) @ W.astype(np.float64)
        N = np.full((1, 25), -0.5 if name == "softminus" else 0.5)
        row = ACTIVATIONS[name](z) if kernel == "linear" else jacobian(name, z[np.newaxis], N)[0]
    if name == "softmax" or (kernel == "tangent" and name == "relu"):
        row = np.where(np.isfinite(row), np.nan, row) if name == "softmax" else row
    np.testing.assert_array_equal(np.isnan(result[130]), np.isnan(row))
    np.testing.assert_array_equal(np.isposinf(result[130]), np.isposinf(row))
    np.testing.assert_array_equal(np.isneginf(result[130]), np.isneginf(row))


@each_kernel
@each_float
def test_a_weight_that_is_nan_goes_through_to_its_neuron_alone(kernel, dtype):
    A, W, _ = random_arguments(8, 65, 30, 25, (dtype, dtype), name="tanh")
    others = np.arange(25) != 11
    expected = kernel_call(kernel, A, W, activation="tanh")
    W[3, 11] = np.nan
    result = kernel_call(kernel, A, W, activation="tanh", check_finite=False)
    assert np.isnan(result[:, 11]).all()
    assert same_bits(result[:, others], expected[:, others])


@each_kernel
@pytest.mark.parametrize("name", ["A", "W"])
def test_with_the_check_a_number_that_is_not_finite_is_named_and_out_is_left_alone(kernel, name):
    A, W, _ = random_arguments(9, 65, 30, 25, (np.float64, np.float64), name="tanh")
    {"A": A, "W": W}[name][7, 5] = np.nan
    out = np.full((65, 25), -7.0)
    for written in (None, out):
        with pytest.raises(ValueError, match=rf"\b{name} contains NaN at \[7, 5\]"):
            kernel_call(kernel, A, W, out=written)
    assert (out == -7).all()


@each_kernel
@pytest.mark.parametrize("value", ["no", 1, None])
def test_check_finite_must_be_a_truth_value(kernel, value):
    with pytest.raises(TypeError, match="check_finite"):
        kernel_call(kernel, np.ones((2, 3)), np.ones((3, 2)), check_finite=value)
