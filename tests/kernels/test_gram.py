"""gram and cross against the NumPy reference: every dtype, layout, shape and thread count.

Integer input has the integer answer; everything else stays within the bounds of reference.py.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpls_fast as bf
from tests.support import reference
from tests.support.reference import A_DTYPES, FLOATS, assert_within, same_bits

# On both sides of the block of 256 rows, of panels of 8, 16 and 24 columns, and of a group of 128.
ROWS = st.integers(0, 12) | st.sampled_from([255, 256, 257, 511, 513, 700])
COLUMNS = st.integers(1, 12) | st.sampled_from([15, 16, 17, 47, 48, 49, 95, 97, 127, 129, 145])


@st.composite
def problems(draw):
    rows = draw(ROWS)
    A = draw(reference.arrays((rows, draw(COLUMNS)), A_DTYPES))
    B = draw(reference.arrays((rows, draw(COLUMNS)), FLOATS))
    sample_weight = draw(st.none() | reference.sample_weights(rows))
    return A, B, {"bias": draw(st.booleans()), "sample_weight": sample_weight}


@st.composite
def transforms(draw, columns):
    factors = np.random.default_rng(columns).standard_normal(columns)
    scale = draw(st.sampled_from([None, 1 / 255, -3, np.float32(0), np.array(2.5), factors]))
    if scale is factors:
        layout = draw(st.sampled_from(reference.LAYOUTS))
        scale = reference.in_layout(factors.astype(draw(st.sampled_from(FLOATS))), layout)
    return {"scale": scale}


def random_problem(rows, n, m, dtype):
    rng = np.random.default_rng([rows, n, m])
    b_dtype = np.float32 if dtype == np.uint8 else dtype
    A = reference.random_values(rng, (rows, n), dtype)
    return A, reference.random_values(rng, (rows, m), b_dtype)


def check_gram(G, A, **options):
    n = A.shape[1] + options.get("bias", False)
    assert reference.is_new_float64(G, (n, n))
    assert same_bits(G, G.T), "G is not symmetric to the bit"
    assert_within(G, reference.gram(A, **options), reference.gram_bound(A, **options))


def check_cross(C, A, D, **options):
    assert reference.is_new_float64(C, (A.shape[1] + options.get("bias", False), D.shape[1]))
    assert_within(C, reference.cross(A, D, **options), reference.cross_bound(A, D, **options))


@given(problem=problems())
def test_gram_without_b_is_within_the_bound_of_the_reference(problem, n_threads):
    A, _, options = problem
    check_gram(bf.gram(A, n_threads=n_threads, **options), A, **options)


@given(problem=problems())
def test_gram_with_b_is_within_the_bound_of_the_reference(problem, n_threads):
    A, B, options = problem
    G, C = bf.gram(A, B, n_threads=n_threads, **options)
    check_gram(G, A, **options)
    check_cross(C, A, B, **options)


@given(problem=problems())
def test_cross_is_within_the_bound_of_the_reference(problem, n_threads):
    A, D, options = problem
    check_cross(bf.cross(A, D, n_threads=n_threads, **options), A, D, **options)


@given(data=st.data(), problem=problems(), center=st.booleans())
def test_scaled_and_centred_products_are_within_the_bound_of_the_reference(
    data, problem, center, n_threads
):
    A, B, options = problem
    scaled = options | data.draw(transforms(A.shape[1]))
    check_cross(bf.cross(A, B, n_threads=n_threads, **scaled), A, B, **scaled)
    options = scaled | {"center": center}
    check_gram(bf.gram(A, n_threads=n_threads, **options), A, **options)
    G, C = bf.gram(A, B, n_threads=n_threads, **options)
    check_gram(G, A, **options)
    check_cross(C, A, B, **options)
    if center and options["bias"]:
        assert not G[-1, :-1].any(), "the sums of centred columns are not zero"


@given(data=st.data())
def test_a_centred_uint8_gram_is_the_integer_answer_rounded_once(data, n_threads):
    rows = data.draw(ROWS)
    A = data.draw(reference.arrays((rows, data.draw(COLUMNS)), [np.uint8]))
    X = A.astype(np.int64)
    expected = (rows * (X.T @ X) - np.outer(X.sum(0), X.sum(0))) / max(rows, 1)
    assert same_bits(bf.gram(A, center=True, n_threads=n_threads), expected)


@pytest.mark.parametrize("dtype", A_DTYPES)
def test_constant_columns_have_no_variance(dtype, n_threads):
    A = np.broadcast_to(np.array([7, 0, 200], dtype), (9001, 3))
    assert (np.diag(bf.gram(A, center=True, n_threads=n_threads)) >= 0).all()
    weights = np.random.default_rng(0).random(9001)
    G = bf.gram(A, center=True, sample_weight=weights, n_threads=n_threads)
    assert (np.diag(G) >= 0).all()
    uncentred = bf.gram(A, sample_weight=weights, n_threads=n_threads)
    assert (np.abs(G) <= 1e-6 * uncentred).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", A_DTYPES)
@pytest.mark.parametrize(
    ("rows", "n"),
    [
        (9000, 64),
        pytest.param(5000, 150, marks=pytest.mark.thorough),
        pytest.param(300, 1100, marks=pytest.mark.thorough),
    ],
)
def test_columns_of_zeros_change_nothing(rows, n, dtype, weighted, n_threads):
    """Some columns are zero all over, others for thousands of rows, others but for one value."""
    rng = np.random.default_rng(n)
    A, B = random_problem(rows, n, 3, dtype)
    A[:, rng.random(n) < 0.4] = 0
    A[: rows // 2, rng.random(n) < 0.5] = 0
    A[rows // 3 :, n // 2 : n // 2 + 20] = 0
    A[-1, rng.integers(0, n, n // 20)] = 1
    weights = rng.random(rows) if weighted else None
    options = {"bias": True, "sample_weight": weights, "scale": np.linspace(-1, 2, n)}
    for center in (False, True):
        G, C = bf.gram(A, B, center=center, n_threads=n_threads, **options)
        check_gram(G, A, center=center, **options)
        check_cross(C, A, B, center=center, **options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", A_DTYPES)
@pytest.mark.parametrize(
    ("rows", "n"),
    [
        (700, 37),
        pytest.param(2000, 200, marks=pytest.mark.thorough),
        pytest.param(1100, 1050, marks=pytest.mark.thorough),
    ],
)
def test_patches_of_zeros_change_nothing(rows, n, dtype, weighted, n_threads):
    """As in images: in any row most of some neighbouring columns are zero, but no column is zero all over."""
    rng = np.random.default_rng(rows)
    A, B = random_problem(rows, n, 70, dtype)
    A *= np.repeat(rng.random((rows, -(-n // 24))) < 0.3, 24, axis=1)[:, :n].astype(A.dtype)
    A[-1] = 1
    B[: rows // 2, :48] = 0
    weights = rng.random(rows) if weighted else None
    options = {"bias": True, "sample_weight": weights}
    G, C = bf.gram(A, B, n_threads=n_threads, **options)
    check_gram(G, A, **options)
    check_cross(C, A, B, **options)
    check_cross(bf.cross(A, B, n_threads=n_threads, **options), A, B, **options)
    check_cross(bf.cross(A, B[:, :20], n_threads=n_threads, **options), A, B[:, :20], **options)


def test_weights_of_zero_leave_nothing_to_centre():
    A, B = random_problem(30, 4, 2, np.float32)
    G, C = bf.gram(A, B, bias=True, center=True, sample_weight=np.zeros(30))
    assert not G.any()
    assert not C.any()


@pytest.mark.parametrize("dtype", A_DTYPES)
@pytest.mark.parametrize(
    ("rows", "n", "m"),
    [
        pytest.param(40, 1030, 30, id="more than 1024 columns"),
        pytest.param(40, 5, 1030, id="more than 1024 right-hand sides"),
        pytest.param(4500, 9, 3, id="more than 4096 rows"),
    ],
)
def test_large_shapes_are_within_the_bound_of_the_reference(rows, n, m, dtype, n_threads):
    A, B = random_problem(rows, n, m, dtype)
    options = {"bias": True, "scale": np.linspace(-1, 2, n), "center": True}
    G, C = bf.gram(A, B, n_threads=n_threads, **options)
    check_gram(G, A, **options)
    check_cross(C, A, B, **options)
    check_cross(bf.cross(A, B, bias=True, n_threads=n_threads), A, B, bias=True)


@pytest.mark.parametrize("dtype", A_DTYPES)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("rows", "n", "m"),
    [
        pytest.param(9000, 70, 11, id="many rows"),
        pytest.param(20_000, 13, 2, id="few columns"),
        pytest.param(300, 1100, 50, id="many columns"),
        pytest.param(1000, 200, 30, id="a row block for each thread"),
    ],
)
def test_bits_do_not_depend_on_the_threads_or_the_run(rows, n, m, dtype, weighted):
    A, B = random_problem(rows, n, m, dtype)
    weights = np.random.default_rng(rows).uniform(0, 2, rows) if weighted else None
    options = {"bias": True, "sample_weight": weights}
    for center in (False, True):
        reference.assert_same_bits_at_every_thread_count(
            lambda n_threads, center=center: np.hstack(
                bf.gram(A, B, center=center, n_threads=n_threads, **options)
            )
        )
    reference.assert_same_bits_at_every_thread_count(
        lambda n_threads: bf.cross(A, B, n_threads=n_threads, **options)
    )


# Where sums of the largest products leave an integer type: 255 * 255 leaves int32 after 33,025
# rows and uint32 after 66,051; 255 * 128 (uint8 by int8) leaves int32 after 65,793, and column sums
# of 255 leave the integers of float32 there.
@pytest.mark.parametrize("rows", [33_026, 65_793, 65_794, 66_052, 70_000, 70_001])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("columns", [3, 16, 20])
def test_uint8_gram_of_all_255s_is_the_integer_answer(rows, columns, order, n_threads):
    A = np.full((rows, columns), 255, np.uint8, order=order)
    expected = np.full((columns + 1, columns + 1), 255.0 * 255.0 * rows)
    expected[-1] = expected[:, -1] = 255.0 * rows
    expected[-1, -1] = rows
    assert same_bits(bf.gram(A, bias=True, n_threads=n_threads), expected)


def test_uint8_gram_of_many_random_rows_is_the_integer_answer(n_threads):
    A = np.random.default_rng(70_003).integers(0, 256, (70_003, 5), dtype=np.uint8)
    assert same_bits(bf.gram(A, bias=True, n_threads=n_threads), reference.gram(A, bias=True))


def test_long_float32_sums_do_not_drift(n_threads):
    """One float32 accumulator over all rows is far outside of the bound here; blocks are not."""
    A = np.broadcast_to(np.float32(0.1), (300_000, 2))
    drifting = np.add.accumulate(np.broadcast_to(np.float32(0.01), len(A)))[-1]
    assert abs(drifting - 0.01 * len(A)) > 10 * reference.gram_bound(A)[0, 0]
    G, C = bf.gram(A, A, n_threads=n_threads)
    check_gram(G, A)
    check_cross(C, A, A)


@given(data=st.data(), bias=st.booleans())
def test_uint8_weights_of_zero_and_one_drop_rows_exactly(data, bias, n_threads):
    # Exact in float32 too: 256 * 255**2 < 2**24.
    rows = data.draw(ROWS)
    A = data.draw(reference.arrays((rows, data.draw(COLUMNS)), [np.uint8]))
    keep = np.random.default_rng(rows).random(rows) < 0.5
    weighted = bf.gram(A, bias=bias, sample_weight=keep.astype(float), n_threads=n_threads)
    assert same_bits(weighted, bf.gram(A[keep], bias=bias, n_threads=n_threads))


@given(problem=problems())
def test_integer_weights_repeat_rows(problem, n_threads):
    A, B, options = problem
    times = np.random.default_rng(A.shape).integers(0, 5, len(A))
    repeated_A, repeated_B = np.repeat(A, times, axis=0), np.repeat(B, times, axis=0)
    once = {"bias": options["bias"], "sample_weight": times.astype(float)}
    again = {"bias": options["bias"]}
    G, C = bf.gram(A, B, n_threads=n_threads, **once)
    repeated_G, repeated_C = bf.gram(repeated_A, repeated_B, n_threads=n_threads, **again)
    G_bound = reference.gram_bound(A, **once) + reference.gram_bound(repeated_A, **again)
    C_bound = reference.cross_bound(A, B, **once)
    C_bound = C_bound + reference.cross_bound(repeated_A, repeated_B, **again)
    assert_within(G, repeated_G, G_bound)
    assert_within(C, repeated_C, C_bound)


@pytest.mark.parametrize("layout", reference.LAYOUTS)
@pytest.mark.parametrize("dtype", A_DTYPES)
def test_inputs_are_not_changed(dtype, layout):
    A, B = (reference.in_layout(values, layout) for values in random_problem(300, 7, 3, dtype))
    weights = reference.in_layout(np.linspace(0, 2, 300), layout)
    before = A.copy(), B.copy(), weights.copy()
    bf.gram(A, B, bias=True, sample_weight=weights)
    bf.cross(A, B, bias=True, sample_weight=weights)
    assert all(map(same_bits, (A, B, weights), before))


def test_results_do_not_share_memory_between_calls():
    A = np.ones((3, 2), np.float32)
    first, second = bf.gram(A), bf.gram(A)
    first[...] = -1.0
    assert same_bits(second, np.full((2, 2), 3.0))


def test_nested_lists_are_arrays():
    A, B = [[1.0, 2.0], [3.0, 4.0]], [[5.0], [6.0]]
    G, C = bf.gram(A, B, sample_weight=[1.0, 2.0])
    assert same_bits(G, np.array([[1 + 2 * 9, 2 + 2 * 12], [2 + 2 * 12, 4 + 2 * 16]], float))
    assert same_bits(C, np.array([[5 + 2 * 18], [10 + 2 * 24]], float))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("columns", [5, 67, 1025, 1029, 1031, 1036, 2045])
def test_rows_that_overlap_give_what_their_copy_gives(dtype, columns):
    memory = np.random.default_rng(columns).integers(0, 256, columns + 299).astype(dtype)
    windows = np.lib.stride_tricks.sliding_window_view(memory, columns)
    B = np.random.default_rng(0).random((300, 3)).astype(np.float32)
    results = bf.gram(windows, B, bias=True), bf.gram(windows.copy(), B, bias=True)
    for of_windows, of_copy in zip(*results, strict=True):
        np.testing.assert_array_equal(of_windows, of_copy)
    for weights in (None, np.linspace(0, 1, 300)):
        of_windows, of_copy = (
            bf.cross(A, B, bias=True, sample_weight=weights) for A in (windows, windows.copy())
        )
        np.testing.assert_array_equal(of_windows, of_copy)


@pytest.mark.parametrize("columns", [2048, 2049])
def test_a_cross_product_does_not_depend_on_how_far_apart_the_rows_lie(columns):
    """Rows at a multiple of 8192 bytes are packed, others are read where they lie."""
    memory = np.random.default_rng(columns).random((300, columns + 5)).astype(np.float32)
    A, D = memory[:, :columns], np.random.default_rng(0).random((300, 3)).astype(np.float32)
    together = bf.cross(np.ascontiguousarray(A), D)
    assert same_bits(together, bf.cross(A, D))
    check_cross(together, A, D)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("columns", [63, 64])
@pytest.mark.parametrize("rows", [128, 8192])
def test_what_is_not_finite_in_B_is_seen_beside_rows_of_zeros(rows, columns, value):
    A = np.random.default_rng(0).random((rows, columns)).astype(np.float32)
    A[:2048] = 0
    B = np.ones((rows, 2), np.float32)
    B[3, 1] = value
    for rows_of_A in (A, (255 * A).astype(np.uint8)):
        for call in (bf.gram, bf.cross, bf.solve_layer):
            with pytest.raises(ValueError, match=r"\b[BD] contains .* at \[3, 1\]"):
                call(rows_of_A, B)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("columns", [3, 100])
def test_what_is_not_finite_in_A_is_seen_beside_rows_of_zeros(columns, value):
    A = np.ones((600, 50), np.float32)
    A[3, 40] = value
    B = np.random.default_rng(0).random((600, columns)).astype(np.float32)
    B[:500] = 0
    for call in (bf.gram, bf.cross, bf.solve_layer):
        with pytest.raises(ValueError, match=r"\bA contains .* at \[3, 40\]"):
            call(A, B)
