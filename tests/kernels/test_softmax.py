"""Softmax along the last axis: against the formula in a wider type, its inverse, huge and missing values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bpls_fast as bf
from tests.support.activation_formulas import INF, WIDER, Array, each_dtype, exact_softmax


def softmax_tolerance(z: Array) -> Array:
    spread = z.max(axis=-1, keepdims=True) - z.min(axis=-1, keepdims=True)
    return np.finfo(z.dtype).eps * (6 + spread.astype(WIDER[z.dtype]))


def rows(dtype: type, columns: int, spread: float) -> Array:
    return np.random.default_rng(columns).uniform(-spread, spread, (400, columns)).astype(dtype)


each_row_shape = pytest.mark.parametrize(
    ("columns", "spread"), [(1, 5), (2, 30), (3, 1), (10, 5), (17, 20), (100, 3)]
)


@each_dtype
@each_row_shape
def test_softmax_is_the_formula_along_the_last_axis(
    dtype: type, columns: int, spread: float
) -> None:
    z = rows(dtype, columns, spread)
    n = exact_softmax(z.astype(WIDER[z.dtype]))
    tolerance = softmax_tolerance(z)
    softmax = bf.activations["softmax"]
    assert np.all(np.abs(softmax.forward(z) - n) <= tolerance * n)
    # n (1 - n) by way of a rounded n: its error is that of n, not one relative to 1 - n.
    assert np.all(np.abs(softmax.derivative(z) - n * (1 - n)) <= 2 * tolerance * n)
    np.testing.assert_array_equal(softmax.forward(z[7]), softmax.forward(z)[7])
    cube = z.reshape(4, 100, columns)
    assert softmax.forward(cube).tobytes() == softmax.forward(z).tobytes()


@each_dtype
@each_row_shape
def test_softmax_rows_sum_to_one(dtype: type, columns: int, spread: float) -> None:
    z = rows(dtype, columns, spread)
    n = bf.activations["softmax"].forward(z)
    assert np.all(n >= 0)
    sums = n.astype(WIDER[z.dtype]).sum(axis=-1, keepdims=True)
    assert np.all(np.abs(sums - 1) <= softmax_tolerance(z))


@each_dtype
@given(data=st.data())
def test_softmax_rows_sum_to_one_for_any_finite_row(dtype: type, data: st.DataObject) -> None:
    finite = hnp.from_dtype(np.dtype(dtype), allow_nan=False, allow_infinity=False)
    shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9)
    n = bf.activations["softmax"].forward(data.draw(hnp.arrays(dtype, shapes, elements=finite)))
    # Terms far below the largest round to 0 whatever their exponent's error: only the sum counts.
    np.testing.assert_allclose(n.sum(axis=-1), 1, rtol=16 * np.finfo(dtype).eps)


@each_dtype
@pytest.mark.parametrize("shift", [-1024.0, 64.0, 4096.0])
def test_softmax_does_not_change_when_a_row_is_shifted(dtype: type, shift: float) -> None:
    z = np.random.default_rng(3).integers(-64, 65, (50, 9)).astype(dtype) / 16
    softmax = bf.activations["softmax"]
    shifted = z + dtype(shift)
    np.testing.assert_array_equal(shifted - dtype(shift), z)  # the shift itself rounds nothing
    n = softmax.forward(z)
    assert np.all(np.abs(softmax.forward(shifted) - n) <= 2 * softmax_tolerance(z) * n)


@each_dtype
def test_softmax_of_huge_values_does_not_overflow(dtype: type) -> None:
    top = np.finfo(dtype).max
    z = np.array([[top, -top, 0], [top, top, -top], [-top, -top, -top]], dtype)
    expected = np.array([[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]], dtype)
    np.testing.assert_allclose(
        bf.activations["softmax"].forward(z), expected, rtol=4 * np.finfo(dtype).eps
    )


@each_dtype
@pytest.mark.parametrize("method", ["forward", "derivative"])
def test_softmax_rows_with_infinities_or_nan_do_what_is_stated(dtype: type, method: str) -> None:
    z = np.array(
        [
            [0, -INF, 0],
            [0, INF, 0],
            [-INF, -INF, -INF],
            [0, np.nan, 0],
            [-INF, np.nan, INF],
            [-INF, 7, -INF],
            [0, 0, -INF],
        ],
        dtype,
    )
    half = 0.5 if method == "forward" else 0.25
    one = 1 if method == "forward" else 0
    expected = np.full((7, 3), np.nan, dtype)
    expected[0] = [half, 0, half]
    expected[5] = [0, one, 0]
    expected[6] = [half, half, 0]
    result = getattr(bf.activations["softmax"], method)(z)
    np.testing.assert_allclose(result, expected, rtol=4 * np.finfo(dtype).eps)


@each_dtype
@each_row_shape
def test_softmax_inverse_is_the_centred_logarithm(dtype: type, columns: int, spread: float) -> None:
    n = np.exp(rows(dtype, columns, min(spread, 5)))
    wide = np.log(n.astype(WIDER[n.dtype]))
    z = wide - wide.mean(axis=-1, keepdims=True)
    allowed = 6 * np.finfo(dtype).eps * np.abs(wide).max(axis=-1, keepdims=True)
    result = bf.activations["softmax"].inverse(n)
    assert np.all(np.abs(result - z) <= allowed)


@each_dtype
@each_row_shape
def test_softmax_and_its_inverse_undo_each_other_up_to_a_constant_per_row(
    dtype: type, columns: int, spread: float
) -> None:
    softmax = bf.activations["softmax"]
    z = rows(dtype, columns, min(spread, 5))
    n = softmax.forward(z)
    wide = z.astype(WIDER[z.dtype])
    centred = wide - wide.mean(axis=-1, keepdims=True)
    # The relative error of n is the absolute error of its logarithm, which is 15 at most here.
    tolerance = 2 * softmax_tolerance(z) + 6 * np.finfo(dtype).eps * 15
    assert np.all(np.abs(softmax.inverse(n) - centred) <= tolerance)
    assert np.all(np.abs(softmax.forward(softmax.inverse(n)) - n) <= 2 * tolerance * n)


@each_dtype
@pytest.mark.parametrize("margin", [None, 2.0**-10])
def test_softmax_inverse_lifts_values_to_the_margin_and_leaves_the_upper_end(
    dtype: type, margin: float | None
) -> None:
    inverse = bf.activations["softmax"].inverse
    floor = np.finfo(dtype).eps if margin is None else margin
    n = np.array([[0, 1, 0], [-3, 0.5, 0.5], [2, 1, 0.25], [-INF, 1, 1]], dtype)
    lifted = np.maximum(n, dtype(floor))
    result = inverse(n, margin=margin)
    np.testing.assert_array_equal(result, inverse(lifted, margin=margin))
    logs = np.log(lifted.astype(np.float64))
    expected = logs - logs.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(result, expected, atol=40 * 11 * np.finfo(dtype).eps)


@each_dtype
def test_softmax_inverse_of_a_row_with_nan_is_nan_in_that_row_only(dtype: type) -> None:
    n = np.full((3, 4), 0.25, dtype)
    n[1, 2] = np.nan
    result = bf.activations["softmax"].inverse(n)
    np.testing.assert_array_equal(np.isnan(result).all(axis=1), [False, True, False])
    np.testing.assert_array_equal(result[[0, 2]], 0)


def test_softmax_derivative_agrees_with_central_differences() -> None:
    softmax = bf.activations["softmax"]
    z = rows(np.float64, 6, 4)
    h = 2.0**-17
    derivative = softmax.derivative(z)
    for column in range(z.shape[1]):
        step = np.zeros(6)
        step[column] = h
        up, down = z + step, z - step
        differences = (softmax.forward(up) - softmax.forward(down))[:, column]
        differences /= up[:, column] - down[:, column]
        # The third derivative of a diagonal element is below 1; the values are below 1.
        allowed = h**2 / 6 + 2 * softmax_tolerance(z)[:, 0] / h
        assert np.all(np.abs(derivative[:, column] - differences) <= allowed)
