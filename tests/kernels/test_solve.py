"""solve, solve_layer and solve_batched against scipy.linalg.solve(assume_a="pos").

Every system, however ill-conditioned, is solved to the bounds derived in reference.py or refused
with a LinAlgError that names the pivot and the remedy.
"""

import itertools
import re

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import bpls_fast as bf
from tests.support import reference
from tests.support.reference import A_DTYPES, FLOATS, assert_within, same_bits

SMALL_SIZES = [1, 2, 3, 7, 63, 64, 65, 127, 128, 129]
SIZES = [*itertools.product(SMALL_SIZES, [1, 2, 9, 70]), (300, 33), (785, 10)]


def random_system(rng, n, m, *, batch=()):
    A = rng.standard_normal((*batch, 2 * n + 1, n))
    return np.swapaxes(A, -1, -2) @ A, rng.standard_normal((*batch, n, m))


def exactly_symmetric(G):
    return np.triu(G) + np.triu(G, 1).T


def check_solution(W, G, C, *, eps=1e-6, relative=True):
    """Check that W solves the regularised system: a small residual always, SciPy's answer where one exists."""
    M = reference.regularised(G, eps, relative)
    C = C.astype(np.float64)
    assert reference.is_new_float64(W, C.shape)
    residual = np.linalg.norm(M @ W - C, axis=0)
    assert_within(residual, np.zeros(C.shape[1]), reference.residual_bound(M, W, C))
    try:
        expected = reference.solve(G, C, eps=eps, relative=relative)
    except np.linalg.LinAlgError:
        return  # SciPy has no answer: M is singular to working precision
    difference = np.linalg.norm(W - expected, axis=0)
    assert_within(difference, np.zeros(C.shape[1]), reference.solve_bound(M, W, expected))


def solved_or_refused(call):
    """Return what `call` returns, or the text of its LinAlgError."""
    try:
        return call()
    except np.linalg.LinAlgError as error:
        return str(error)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_solve_agrees_with_scipy_at_every_size(n, m, n_threads):
    G, C = random_system(np.random.default_rng([n, m]), n, m)
    check_solution(bf.solve(G, C, n_threads=n_threads), G, C)


@given(
    n=st.integers(1, 40),
    m=st.integers(1, 20),
    seed=st.integers(0, 2**32 - 1),
    dtypes=st.tuples(st.sampled_from(FLOATS), st.sampled_from(FLOATS)),
    layouts=st.tuples(*[st.sampled_from(reference.LAYOUTS)] * 2),
    eps=st.sampled_from([0.0, 1e-9, 1e-6, 1e-2, 3.0]),
    relative=st.booleans(),
)
def test_solve_takes_every_dtype_layout_and_eps(
    n, m, seed, dtypes, layouts, eps, relative, n_threads
):
    G, C = random_system(np.random.default_rng(seed), n, m)
    G = reference.in_layout(exactly_symmetric(G).astype(dtypes[0]), layouts[0])
    C = reference.in_layout(C.astype(dtypes[1]), layouts[1])
    W = bf.solve(G, C, eps=eps, relative=relative, n_threads=n_threads)
    check_solution(W, G, C, eps=eps, relative=relative)


def vandermonde_gram(n):
    V = np.vander(np.linspace(-1, 1, 3 * n), n)
    return V.T @ V


def gram_of(rows, n, *, dead=(), copies=()):
    """Compute the Gram of random data with zero columns and with (copy, original) pairs of columns."""
    A = np.random.default_rng([rows, n]).standard_normal((rows, n))
    A[:, list(dead)] = 0.0
    for copy, original in copies:
        A[:, copy] = A[:, original]
    return A.T @ A


ILL_CONDITIONED = {
    **{f"Hilbert {n}": scipy.linalg.hilbert(n) for n in (3, 8, 12, 20, 70)},
    **{f"Vandermonde {n}": vandermonde_gram(n) for n in (5, 15, 30, 66)},
    "dead columns": gram_of(50, 12, dead=(0, 5, 11)),
    "duplicated columns": gram_of(50, 12, copies=((1, 0), (11, 4))),
    "one row": gram_of(1, 9),
    "more columns than rows": gram_of(20, 90),
}


@pytest.mark.parametrize("eps", [0.0, 1e-15, 1e-12, 1e-6])
@pytest.mark.parametrize("name", ILL_CONDITIONED)
def test_ill_conditioned_systems_are_solved_or_refused_for_cause(name, eps, n_threads):
    G = exactly_symmetric(ILL_CONDITIONED[name])
    n = len(G)
    C = np.random.default_rng(n).standard_normal((n, 4))
    W = solved_or_refused(lambda: bf.solve(G, C, eps=eps, n_threads=n_threads))
    if isinstance(W, str):
        pivot = re.search(rf"pivot (\d+) of {n}\b", W)
        assert pivot, W
        assert 1 <= int(pivot[1]) <= n
        assert re.search(r"\beps\b", W)
        # A pivot of M is at least lambda_min(M), up to the backward error of the factorisation, and
        # one above n * 2**-52 * M_ii is accepted. So only a nearly singular M may be refused.
        M = reference.regularised(G, eps)
        low = reference.smallest_eigenvalue(M)
        assert low <= n * 2.0**-52 * np.diag(M).max() + reference.solve_backward_error(M)
    else:
        check_solution(W, G, C, eps=eps)


@pytest.mark.parametrize("name", ILL_CONDITIONED)
def test_default_eps_solves_every_ill_conditioned_system(name):
    G = exactly_symmetric(ILL_CONDITIONED[name])
    C = np.ones((len(G), 1))
    check_solution(bf.solve(G, C), G, C)


def copied_columns(n, copy, original):
    A = np.eye(n)
    A[:, copy] = A[:, original]
    return A


# Small integers, so that the pivot is zero exactly in every order of operations.
@pytest.mark.parametrize(
    ("A", "pivot"),
    [
        pytest.param(np.diag([1.0, 1.0, 0.0, 1.0]), 3, id="dead column"),
        pytest.param(np.diag([1.0] * 129 + [0.0]), 130, id="dead column beyond a block"),
        pytest.param(copied_columns(7, 6, 2), 7, id="duplicated column"),
        pytest.param(copied_columns(100, 70, 3), 71, id="duplicated column beyond a block"),
        pytest.param(np.ones((1, 4)), 2, id="one row"),
        pytest.param(np.array([[1.0, 0, 1, 1], [0, 1, 1, -1]]), 3, id="more columns than rows"),
    ],
)
def test_singular_system_without_eps_names_the_pivot_and_the_remedy(A, pivot, n_threads):
    n = A.shape[1]
    C = np.ones((n, 2))
    match = rf"pivot {pivot} of {n}\b(?s:.*)\beps\b"
    for relative in (True, False):
        with pytest.raises(np.linalg.LinAlgError, match=match):
            bf.solve(A.T @ A, C, eps=0.0, relative=relative, n_threads=n_threads)
    with pytest.raises(np.linalg.LinAlgError, match=match):
        bf.solve_layer(A, np.ones((len(A), 2)), eps=0.0, n_threads=n_threads)
    check_solution(bf.solve(A.T @ A, C, n_threads=n_threads), A.T @ A, C)


def test_indefinite_matrix_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match=r"pivot 2 of 2\b"):
        bf.solve(np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones((2, 1)))


def test_all_zero_matrix_names_a_remedy_that_helps():
    G, C = np.zeros((3, 3)), np.ones((3, 1))
    # A relative eps is a multiple of zero here, however large: only an absolute one helps.
    with pytest.raises(np.linalg.LinAlgError, match=r"pivot 1 of 3\b(?s:.*)\brelative=False\b"):
        bf.solve(G, C)
    assert same_bits(bf.solve(G, C, eps=0.25, relative=False), np.full((3, 1), 4.0))


def test_relative_eps_is_a_multiple_of_the_mean_diagonal_and_absolute_eps_is_added():
    G, C = np.diag([1.0, 3.0]), np.eye(2)
    # The mean of the diagonal is 2, so both add lam = 1; (1 + 1) and (3 + 1) have exact roots only
    # in part, hence the few ULP.
    for options in ({"eps": 0.5, "relative": True}, {"eps": 1.0, "relative": False}):
        assert_within(bf.solve(G, C, **options), np.diag([1 / 2, 1 / 4]), 4 * reference.U64)


def test_defaults_are_a_relative_eps_of_one_in_a_million():
    G, C = random_system(np.random.default_rng(5), 6, 2)
    assert same_bits(bf.solve(G, C), bf.solve(G, C, eps=1e-6, relative=True))
    assert same_bits(
        bf.solve_batched(G[None], C[None]),
        bf.solve_batched(G[None], C[None], eps=1e-6, relative=True),
    )
    assert same_bits(bf.solve_layer(G, C), bf.solve_layer(G, C, eps=1e-6, relative=True))


@pytest.mark.parametrize("n", [5, 130])
@pytest.mark.parametrize("exponent", [-664, 498], ids=["1e-200", "1e+150"])
def test_relative_eps_makes_the_scale_of_the_system_irrelevant(n, exponent):
    G, C = random_system(np.random.default_rng(n), n, 3)
    scale = 2.0**exponent  # a power of two scales exactly
    W, scaled = bf.solve(G, C), bf.solve(G * scale, C * scale)
    difference = np.linalg.norm(W - scaled, axis=0)
    bound = reference.solve_bound(reference.regularised(G), W, scaled)
    assert_within(difference, np.zeros(3), bound)


@pytest.mark.parametrize("n", [9, 130])
def test_solve_reads_the_upper_triangle_only(n):
    G, C = random_system(np.random.default_rng(n), n, 3)
    G = exactly_symmetric(G)
    other = G + np.tril(np.full((n, n), 5e-7 * np.abs(G).max()), -1)
    assert same_bits(bf.solve(other, C), bf.solve(G, C))


@pytest.mark.parametrize(("n", "m"), [(300, 70), (785, 10)])
def test_solve_bits_do_not_depend_on_the_threads_or_the_run(n, m):
    G, C = random_system(np.random.default_rng(n), n, m)
    reference.assert_same_bits_at_every_thread_count(
        lambda n_threads: bf.solve(G, C, n_threads=n_threads)
    )


@pytest.mark.parametrize("layout", reference.LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_solve_does_not_change_its_inputs(dtype, layout):
    systems = random_system(np.random.default_rng(7), 70, 5, batch=(2,))
    G, C = (reference.in_layout(x.astype(dtype), layout) for x in systems)
    before = G.copy(), C.copy()
    bf.solve(G[0], C[0])
    bf.solve_batched(G, C)
    assert all(map(same_bits, (G, C), before))


@st.composite
def layers(draw):
    rows, n, m = draw(st.integers(1, 600)), draw(st.integers(1, 60)), draw(st.integers(1, 12))
    A = draw(reference.arrays((rows, n), A_DTYPES, decades=0.5))
    B = draw(reference.arrays((rows, m), FLOATS, decades=0.5))
    options = {
        "bias": draw(st.booleans()),
        "sample_weight": draw(st.none() | reference.sample_weights(rows)),
        "eps": draw(st.sampled_from([1e-6, 1e-3, 1.0])),
    }
    return A, B, options


def split(options):
    solving = {key: options[key] for key in options if key in ("eps", "relative")}
    return {key: options[key] for key in options if key not in solving}, solving


@given(layer=layers(), relative=st.booleans())
def test_solve_layer_equals_solve_of_gram(layer, relative, n_threads):
    A, B, options = layer
    summing, solving = split(options | {"relative": relative})
    G, C = bf.gram(A, B, n_threads=n_threads, **summing)
    apart = solved_or_refused(lambda: bf.solve(G, C, n_threads=n_threads, **solving))
    fused = solved_or_refused(
        lambda: bf.solve_layer(A, B, n_threads=n_threads, **summing, **solving)
    )
    if isinstance(apart, str):
        assert fused == apart
    else:
        assert same_bits(fused, apart)


@given(layer=layers())
def test_solve_layer_is_within_the_bound_of_the_reference(layer):
    A, B, options = layer
    summing, solving = split(options)
    M = reference.regularised(reference.gram(A, **summing), **solving)
    # The Gram matrix may be off by its bound, and lam by eps times the mean of that.
    matrix_error = (1 + options["eps"]) * np.linalg.norm(reference.gram_bound(A, **summing))
    right_side_error = np.linalg.norm(reference.cross_bound(A, B, **summing), axis=0)
    if reference.smallest_eigenvalue(M) <= matrix_error:
        return  # the rounding of a float32 Gram matrix may make the system singular
    W, expected = bf.solve_layer(A, B, **options), reference.solve_layer(A, B, **options)
    errors = {"matrix_error": matrix_error, "right_side_error": right_side_error}
    bound = reference.solve_bound(M, W, expected, **errors)
    assert_within(np.linalg.norm(W - expected, axis=0), np.zeros(B.shape[1]), bound)


@pytest.mark.parametrize("dtype", A_DTYPES)
def test_solve_layer_bits_do_not_depend_on_the_threads_or_the_run(dtype):
    rng = np.random.default_rng(9)
    A = reference.random_values(rng, (9000, 70), dtype)
    B = rng.standard_normal((9000, 12)).astype(np.float32)
    reference.assert_same_bits_at_every_thread_count(
        lambda n_threads: bf.solve_layer(A, B, bias=True, n_threads=n_threads)
    )


@given(
    k=st.integers(1, 5),
    n=st.integers(1, 20) | st.sampled_from([63, 64, 65]),
    m=st.integers(1, 12),
    seed=st.integers(0, 2**32 - 1),
    dtypes=st.tuples(st.sampled_from(FLOATS), st.sampled_from(FLOATS)),
    layouts=st.tuples(*[st.sampled_from(reference.LAYOUTS)] * 2),
    options=st.fixed_dictionaries(
        {"eps": st.sampled_from([0.0, 1e-6, 1.0]), "relative": st.booleans()}
    ),
)
def test_solve_batched_equals_solve_system_by_system(
    k, n, m, seed, dtypes, layouts, options, n_threads
):
    systems = random_system(np.random.default_rng(seed), n, m, batch=(k,))
    G = np.stack([exactly_symmetric(g) for g in systems[0]])
    # Every system has a scale of its own, so that a lam shared between systems would show.
    G = G * 4.0 ** np.arange(k)[:, None, None]
    G = reference.in_layout(G.astype(dtypes[0]), layouts[0])
    C = reference.in_layout(systems[1].astype(dtypes[1]), layouts[1])
    W = bf.solve_batched(G, C, n_threads=n_threads, **options)
    assert reference.is_new_float64(W, (k, n, m))
    both = zip(W, reference.solve_batched(G, C, **options), strict=True)
    for i, (batched, expected) in enumerate(both):
        alone = bf.solve(G[i], C[i], n_threads=n_threads, **options)
        M = reference.regularised(G[i], **options)
        bound = reference.solve_bound(M, batched, alone, expected)
        for other in (alone, expected):
            assert_within(np.linalg.norm(batched - other, axis=0), np.zeros(m), bound)


def test_solve_batched_names_the_system_that_fails(n_threads):
    G = np.stack([np.eye(4)] * 8)
    G[5] = np.diag([1.0, 1.0, 0.0, 1.0])
    message = r"(?s)(?=.*\bsystem 5\b)(?=.*\bpivot 3 of 4\b)(?=.*\beps\b)"
    with pytest.raises(np.linalg.LinAlgError, match=message):
        bf.solve_batched(G, np.ones((8, 4, 2)), eps=0.0, n_threads=n_threads)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("n", range(1, 66))
def test_solve_batched_agrees_with_scipy_at_every_small_size(n, m, n_threads):
    # 11 systems fill no whole number of vectors, whatever their width.
    G, C = random_system(np.random.default_rng([n, m]), n, m, batch=(11,))
    W = bf.solve_batched(G, C, n_threads=n_threads)
    for system in zip(W, G, C, strict=True):
        check_solution(*system)


@pytest.mark.parametrize("m", [15, 16, 17, 40])
def test_solve_batched_takes_many_right_sides(m, n_threads):
    G, C = random_system(np.random.default_rng(m), 10, m, batch=(5,))
    W = bf.solve_batched(G, C, n_threads=n_threads)
    for system in zip(W, G, C, strict=True):
        check_solution(*system)
    # A column has the same bits whatever the other columns hold.
    for j in (0, m // 2, m - 1):
        assert same_bits(bf.solve_batched(G, C[:, :, [j]]), W[:, :, [j]])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 33, 64, 65])
def test_solve_batched_bits_do_not_depend_on_a_systems_place(n, n_threads):
    G, C = random_system(np.random.default_rng(n), n, 2, batch=(19,))
    G[3] = -np.eye(n)  # neighbours that fail change nothing
    bad = {3}
    W = np.empty_like(C)
    for i in set(range(19)) - bad:
        W[i] = bf.solve_batched(G[i : i + 1], C[i : i + 1])[0]
    for part in (slice(0, 3), slice(4, None), slice(5, 18), slice(None, 3, -1)):
        assert same_bits(bf.solve_batched(G[part], C[part], n_threads=n_threads), W[part].copy())


@pytest.mark.parametrize("n", [3, 8, 20, 64])
def test_solve_batched_bits_do_not_depend_on_the_layout(n):
    G, C = random_system(np.random.default_rng(n), n, 3, batch=(6,))
    G = np.stack([exactly_symmetric(g) for g in G])
    W = bf.solve_batched(G, C)
    for layout in reference.LAYOUTS:
        batch = reference.in_layout(G, layout), reference.in_layout(C, layout)
        assert same_bits(bf.solve_batched(*batch), W)
    innermost = (np.ascontiguousarray(x.transpose(1, 2, 0)).transpose(2, 0, 1) for x in (G, C))
    assert same_bits(bf.solve_batched(*innermost), W)


@pytest.mark.parametrize("n", [1, 4, 13, 64, 65])
def test_solve_batched_names_the_first_of_several_systems_that_fail(n, n_threads):
    G, C = random_system(np.random.default_rng(n), n, 1, batch=(90,))
    for system, pivot in ((77, 0), (34, 0), (33, n - 1), (35, n // 2)):
        G[system, pivot, pivot] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match=rf"system 33\b.*pivot {n} of {n}\b"):
        bf.solve_batched(G, C, n_threads=n_threads)


@pytest.mark.parametrize("n", [1, 3, 4, 6, 8, 11, 64, 65])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_solve_batched_finds_what_is_not_finite_wherever_it_is(n, dtype, value, name):
    rng = np.random.default_rng(n)
    G, C = (x.astype(dtype) for x in random_system(rng, n, 2, batch=(13,)))
    G[0] = -np.eye(n)  # a failure does not hide it
    for _ in range(10):
        for argument, x in (("G", G), ("C", C)):
            place = tuple(int(rng.integers(size)) for size in x.shape)
            bad = {"G": G.copy(), "C": C.copy()}
            bad[argument][place] = value
            match = re.escape(f"{argument} contains {name} at {list(place)}")
            with pytest.raises(ValueError, match=match):
                bf.solve_batched(**bad)


@pytest.mark.parametrize("n", [2, 3, 4, 6, 8, 11, 64, 65])
def test_solve_batched_finds_the_one_asymmetric_entry(n):
    rng = np.random.default_rng(n)
    G, C = random_system(rng, n, 1, batch=(13,))
    G = np.stack([exactly_symmetric(g) for g in G])
    for _ in range(20):
        s, i, j = int(rng.integers(13)), *map(int, rng.permutation(n)[:2])
        for share, refused in ((0.9e-6, False), (1.1e-6, True)):
            other = G.copy()
            other[s, i, j] += share * np.abs(G[s]).max()
            if refused:
                match = re.escape(f"G is not symmetric: {[s, min(i, j), max(i, j)]}")
                with pytest.raises(ValueError, match=match):
                    bf.solve_batched(other, C)
            else:
                bf.solve_batched(other, C)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("n", [2, 31, 32, 33, 65, 600])
def test_solve_finds_the_one_bad_entry_of_g(n, layout, dtype, n_threads):
    rng = np.random.default_rng(n)
    G, C = random_system(rng, n, 1)
    G = np.asarray(exactly_symmetric(G).astype(dtype), order=layout)
    for _ in range(4):
        i, j = map(int, rng.permutation(n)[:2])
        for share, refused in ((0.9e-6, False), (1.1e-6, True)):
            other = G.copy(order="K")
            other[i, j] += dtype(share * np.abs(G).max())
            if refused:
                match = re.escape(f"G is not symmetric: {[min(i, j), max(i, j)]}")
                with pytest.raises(ValueError, match=match):
                    bf.solve(other, C, n_threads=n_threads)
            else:
                bf.solve(other, C, n_threads=n_threads)
        for bad, name in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
            for places in ([(i, j)], [(i, j), (j, i)], [(i, i)]):
                other = G.copy(order="K")
                for place in places:
                    other[place] = bad
                first = re.escape(str(list(min(places))))
                with pytest.raises(ValueError, match=f"G contains .*{name}.* at {first}"):
                    bf.solve(other, C, n_threads=n_threads)


def test_solve_batched_takes_values_whose_sums_overflow():
    G, C = np.diag([1e307] * 5)[None], np.full((1, 5, 1), 1e308)
    assert_within(bf.solve_batched(G, C, eps=0.0), np.full((1, 5, 1), 10.0), 1e-13)


def test_solve_batched_measures_symmetry_by_both_triangles():
    # The largest magnitude is below the diagonal, and larger than the difference by 1e6 only there.
    G = np.array([[[1e-3, 1.0], [1.0 + 1e-6, 1.0]]])
    with pytest.raises(np.linalg.LinAlgError):
        bf.solve_batched(G, np.ones((1, 2, 1)))


def test_solve_batched_of_no_systems_is_empty(n_threads):
    W = bf.solve_batched(np.zeros((0, 4, 4)), np.zeros((0, 4, 2)), n_threads=n_threads)
    assert reference.is_new_float64(W, (0, 4, 2))


def test_solve_batched_bits_do_not_depend_on_the_threads_or_the_run():
    G, C = random_system(np.random.default_rng(11), 40, 7, batch=(50,))
    reference.assert_same_bits_at_every_thread_count(
        lambda n_threads: bf.solve_batched(G, C, n_threads=n_threads)
    )
