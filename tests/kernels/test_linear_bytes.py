"""linear_bytes and the gathering of rows, against NumPy, to the bit."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpls_fast import _core
from bpls_fast.kernels import linear_bytes, take_rows
from bpls_fast.training.refined.components import MOST_COLUMNS


def random_product(rows, n, m, seed):
    random = np.random.default_rng(seed)
    A = random.integers(0, 256, (rows, n), dtype=np.uint8)
    W = random.integers(-128, 128, (n, m)).astype(np.int8)
    return A, W, random.normal(size=m).astype(np.float32)


def expected_of(A, W, scale):
    return (A.astype(np.int64) @ W.astype(np.int64)).astype(np.float32) * scale


@given(
    rows=st.integers(0, 20) | st.sampled_from([47, 48, 49, 300]),
    n=st.integers(1, 20) | st.sampled_from([63, 64, 65, 784]),
    m=st.integers(0, 20) | st.sampled_from([31, 32, 33, 47, 48, 49, 97]),
    seed=st.integers(0, 2**32 - 1),
)
def test_products_are_those_of_integers_to_the_bit(rows, n, m, seed, n_threads):
    A, W, scale = random_product(rows, n, m, seed)
    found = linear_bytes(A, W, scale, n_threads=n_threads)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected_of(A, W, scale))


@given(
    rows=st.integers(1, 20) | st.sampled_from([47, 48, 49, 300]),
    n=st.sampled_from([63, 64, 66, 784]),
    m=st.sampled_from([16, 32, 33, 48, 97]),
    offset=st.integers(0, 3),
    black=st.sampled_from([0.05, 0.2, 0.9, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_zeros_are_left_out_and_change_nothing(rows, n, m, offset, black, seed, n_threads):
    A, W, scale = random_product(rows, n, m, seed)
    random = np.random.default_rng(seed)
    A[:, random.random(n) < black] = 0
    A[rows // 2 :, : n // 2] = 0
    wide = np.full((rows, n + 7), 255, np.uint8)
    wide[:, offset : offset + n] = A
    for rows_of_A in (A, wide[:, offset : offset + n]):
        found = linear_bytes(rows_of_A, W, scale, n_threads=n_threads)
        np.testing.assert_array_equal(found, expected_of(A, W, scale))


def test_the_largest_sums_do_not_overflow():
    A = np.full((3, MOST_COLUMNS), 255, np.uint8)
    W = np.array([[-128, 127]], np.int8).repeat(MOST_COLUMNS, axis=0)
    np.testing.assert_array_equal(
        linear_bytes(A, W, np.ones(2, np.float32)), expected_of(A, W, np.float32(1))
    )


def test_rows_may_lie_apart_and_backwards_and_weights_in_any_order():
    A, W, scale = random_product(100, 30, 20, 0)
    expected = expected_of(A, W, scale)
    wide = np.zeros((100, 50), np.uint8)
    wide[:, 7:37] = A
    np.testing.assert_array_equal(linear_bytes(wide[:, 7:37], W, scale), expected)
    np.testing.assert_array_equal(linear_bytes(A[::-2], W, scale), expected[::-2])
    np.testing.assert_array_equal(linear_bytes(A, np.asfortranarray(W), scale), expected)
    np.testing.assert_array_equal(linear_bytes(A, W, scale.repeat(2)[::2]), expected)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"A": np.ones((4, 3), np.float32)}, TypeError, "A has dtype float32; expected uint8"),
        ({"A": np.ones((4, 3), np.uint8, order="F")}, ValueError, "rows that are not contiguous"),
        ({"A": np.ones((1, MOST_COLUMNS + 1), np.uint8)}, ValueError, "65537 columns; expected at"),
        ({"A": np.ones((4, 0), np.uint8)}, ValueError, "A has no columns"),
        ({"A": np.ones(3, np.uint8)}, ValueError, "A has 1 dimension"),
        ({"W": np.ones((3, 2), np.uint8)}, TypeError, "W has dtype uint8; expected int8"),
        ({"W": np.ones((4, 2), np.int8)}, ValueError, "W has 4 rows; expected 3, one per column"),
        ({"W": np.ones(3, np.int8)}, ValueError, r"W has shape \(3,\); expected 2 axes"),
        ({"scale": np.ones(2)}, TypeError, "scale has dtype float64; expected float32"),
        ({"scale": np.ones(3, np.float32)}, ValueError, "scale has 3 factors; expected 2, one"),
        ({"scale": np.ones((2, 1), np.float32)}, ValueError, "scale has shape"),
        ({"n_threads": 0}, ValueError, "n_threads is 0"),
    ],
)
def test_what_does_not_fit_is_named(change, error, message):
    given = {
        "A": np.ones((4, 3), np.uint8),
        "W": np.ones((3, 2), np.int8),
        "scale": np.ones(2, np.float32),
        "n_threads": None,
        **change,
    }
    threads = given.pop("n_threads")
    with pytest.raises(error, match=message):
        linear_bytes(*given.values(), n_threads=threads)


# take


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 3, 784])
@pytest.mark.parametrize("layout", ["rows", "apart", "backwards", "columns"])
def test_rows_are_gathered(dtype, columns, layout):
    random = np.random.default_rng(0)
    X = random.integers(0, 256, (2000, columns)).astype(dtype)
    rows = {
        "rows": X,
        "apart": np.concatenate([X, X], axis=1)[:, :columns],
        "backwards": X[::-1],
        "columns": np.asfortranarray(X),
    }[layout]
    chosen = random.integers(0, 2000, 1500)
    out = np.empty((1500, columns), dtype)
    assert take_rows(rows, chosen, out) is out
    np.testing.assert_array_equal(out, rows[chosen])


@pytest.mark.parametrize("row", [-1, 5, 2**40])
def test_a_row_that_is_not_there_is_not_gathered(row):
    out = np.zeros((2, 3))
    with pytest.raises(ValueError, match=f"rows names row {row} of 5"):
        _core.take_rows(np.ones((5, 3)), np.array([0, row]), out, None)
    assert not out.any()


def test_a_dtype_of_no_kernel_is_not_gathered():
    with pytest.raises(TypeError, match="X has dtype float16"):
        _core.take_rows(np.ones((5, 1), np.float16), np.array([0]), np.zeros((1, 1)), None)


def test_arrays_from_a_pickle_are_gathered():
    X = pickle.loads(pickle.dumps(np.arange(15.0).reshape(5, 3)))
    np.testing.assert_array_equal(take_rows(X, np.array([4, 0]), np.zeros((2, 3))), X[[4, 0]])


@pytest.mark.parametrize(
    "out", [np.zeros((3, 3)), np.zeros((2, 3), np.float32), np.zeros((3, 2)).T, np.zeros(6)]
)
def test_rows_go_to_an_array_that_fits(out):
    with pytest.raises(ValueError, match=r"out has shape .* expected \(2, 3\), C-contiguous"):
        _core.take_rows(np.ones((5, 3)), np.array([0, 1]), out, None)
