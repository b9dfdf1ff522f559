"""linear against the NumPy reference: every dtype pair, layout, activation, width and thread count.

A row's result is its own: it does not change with the rows around it.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpls_fast as bf
from tests.support import reference
from tests.support.reference import A_DTYPES, ACTIVATIONS, FLOATS, assert_within, same_bits

DTYPE_PAIRS = list(itertools.product(A_DTYPES, FLOATS))


def result_dtype(A, W):
    return np.float64 if np.float64 in (A.dtype, W.dtype) else np.float32


def random_layer(rng, rows, n, m, dtypes, *, bias=False):
    """Make A and W whose product is of the order of 1, where activations bend."""
    A = reference.random_values(rng, (rows, n), dtypes[0], decades=0.0)
    scale = 1 / (np.sqrt(n) * (255 if dtypes[0] == np.uint8 else 1))
    W = reference.random_values(rng, (n + bias, m), np.float64, decades=0.5)
    W[:n] *= scale
    return A, W.astype(dtypes[1])


def check_linear(result, A, W, **options):
    assert result.dtype == result_dtype(A, W)
    assert result.flags.c_contiguous
    expected = reference.linear(A, W, **options)
    assert_within(result, expected, reference.linear_bound(A, W, **options))


def test_every_activation_of_the_package_has_a_reference():
    assert set(bf.activations) == set(ACTIVATIONS)


@given(
    rows=st.integers(0, 20) | st.sampled_from([65, 200]),
    n=st.integers(1, 20) | st.sampled_from([63, 64, 65, 300]),
    m=st.integers(1, 26) | st.sampled_from([48, 49, 50]),
    seed=st.integers(0, 2**32 - 1),
    dtypes=st.sampled_from(DTYPE_PAIRS),
    layouts=st.tuples(*[st.sampled_from(reference.LAYOUTS + reference.REPEATING_LAYOUTS)] * 2),
    bias=st.booleans(),
)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_linear_is_within_the_bound_of_the_reference(
    rows, n, m, seed, dtypes, layouts, bias, activation, n_threads
):
    values = random_layer(np.random.default_rng(seed), rows, n, m, dtypes, bias=bias)
    A, W = map(reference.in_layout, values, layouts)
    options = {"bias": bias, "activation": activation}
    check_linear(bf.linear(A, W, n_threads=n_threads, **options), A, W, **options)


@pytest.mark.parametrize(
    "dtypes", [(np.uint8, np.float32), (np.float32, np.float32), FLOATS[1:] * 2]
)
@pytest.mark.parametrize("rows", [0, 1, 3, 8, 65, 200])
@pytest.mark.parametrize("m", [1, 2, 7, 24, 25, 49, 1100])
def test_narrow_and_wide_weights_are_within_the_bound_of_the_reference(m, rows, dtypes):
    A, W = random_layer(np.random.default_rng([m, rows]), rows, 600, m, dtypes, bias=True)
    check_linear(bf.linear(A, W, bias=True), A, W, bias=True)


@pytest.mark.parametrize("dtypes", DTYPE_PAIRS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_out_is_filled_with_the_result_and_returned(activation, dtypes):
    A, W = random_layer(np.random.default_rng(3), 65, 30, 25, dtypes)
    out = np.full((65, 25), np.nan, result_dtype(A, W))
    assert bf.linear(A, W, activation=activation, out=out) is out
    assert same_bits(out, bf.linear(A, W, activation=activation))


@pytest.mark.parametrize("dtypes", DTYPE_PAIRS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_row_does_not_depend_on_the_rows_around_it(activation, dtypes, n_threads):
    A, W = random_layer(np.random.default_rng(4), 65, 70, 51, dtypes, bias=True)
    options = {"bias": True, "activation": activation}
    together = bf.linear(A, W, n_threads=n_threads, **options)
    alone = np.vstack([bf.linear(A[i : i + 1], W, **options) for i in range(len(A))])
    assert same_bits(together, alone)


@pytest.mark.parametrize("dtypes", DTYPE_PAIRS)
@pytest.mark.parametrize(
    ("n", "m"), [(70, 51), (600, 10), (1100, 3), (5, 1), (62, 2), (7, 3), (48, 8), (100, 5)]
)
def test_few_rows_and_many_give_the_same_bits(n, m, dtypes, n_threads):
    """Few rows read W where it lies, many pack it, and few outputs are dot products."""
    A, W = random_layer(np.random.default_rng(n), 200, n, m, dtypes, bias=True)
    together = bf.linear(A, W, bias=True, n_threads=n_threads)
    for rows in (1, 2, 7, 9, 48, 95, 96, 97):
        assert same_bits(together[:rows], bf.linear(A[:rows], W, bias=True))


@pytest.mark.parametrize("dtypes", DTYPE_PAIRS)
@pytest.mark.parametrize("n", [70, 600])
def test_columns_of_zeros_change_no_bit_and_hide_no_nan(n, dtypes, n_threads):
    rng = np.random.default_rng(11)
    A, W = random_layer(rng, 300, n, 40, dtypes)
    A[:250, rng.random(n) < 0.5] = 0  # the last rows have no such columns
    result = bf.linear(A, W, n_threads=n_threads)
    check_linear(result, A, W)
    for row in (0, 60, 299):
        assert same_bits(bf.linear(A[row : row + 1], W), result[row : row + 1])
    if dtypes[0] != np.uint8:
        A[60, 3] = np.nan
        with pytest.raises(ValueError, match=r"NaN at \[60, 3\]"):
            bf.linear(A, W, n_threads=n_threads)


@pytest.mark.parametrize("dtypes", DTYPE_PAIRS)
@pytest.mark.parametrize("activation", ["identity", "tanh", "softmax"])
@pytest.mark.parametrize(
    ("rows", "n", "m"),
    [
        pytest.param(3001, 90, 25, id="many rows"),
        pytest.param(70, 90, 1100, id="many columns"),
        pytest.param(20001, 19, 2, id="few outputs"),
    ],
)
def test_bits_do_not_depend_on_the_threads_or_the_run(rows, n, m, activation, dtypes):
    A, W = random_layer(np.random.default_rng(rows), rows, n, m, dtypes)
    reference.assert_same_bits_at_every_thread_count(
        lambda n_threads: bf.linear(A, W, activation=activation, n_threads=n_threads)
    )


@pytest.mark.parametrize("layout", reference.LAYOUTS)
@pytest.mark.parametrize("dtypes", DTYPE_PAIRS)
def test_inputs_are_not_changed(dtypes, layout):
    values = random_layer(np.random.default_rng(5), 65, 30, 25, dtypes, bias=True)
    A, W = (reference.in_layout(x, layout) for x in values)
    before = A.copy(), W.copy()
    bf.linear(A, W, bias=True, activation="softmax")
    assert all(map(same_bits, (A, W), before))


def test_nested_lists_are_arrays():
    result = bf.linear([[1.0, 2.0]], [[3.0], [4.0], [5.0]], bias=True)
    assert same_bits(result, np.array([[1 * 3 + 2 * 4 + 5.0]]))
