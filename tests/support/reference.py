"""Plain NumPy answers for every kernel, the error a kernel may make, and arrays in every layout.

Rule of this file: nothing here calls bpls_fast, and every bound is derived where it is stated.
"""

import math
import warnings

import numpy as np
import scipy.linalg
import scipy.special
from hypothesis import strategies as st

THREADS = (1, 2, 3)
FLOATS = (np.float32, np.float64)
A_DTYPES = (np.uint8, *FLOATS)

U32 = 2.0**-24  # unit roundoff of float32
U64 = 2.0**-53  # unit roundoff of float64
BLOCK_ROWS = 256  # rows that a kernel may accumulate in float32 before it goes on in float64

# ---------------------------------------------------------------------------------------------
# Gram and cross products
#
# Higham, Accuracy and Stability of Numerical Algorithms, 3.1: a sum of products in which no term
# passes through more than k roundings of unit roundoff u is off by at most
# gamma(k, u) * sum |products|, whatever the order and with or without fused multiply-add.


def gamma(k, u):
    return k * u / (1 - k * u)


def float64_bound(rows):
    """Relative to sum |products|: d additions, the product, and the product by the weight."""
    return gamma(rows + 4, U64)


def float32_block_bound(rows):
    """Relative to sum |products|, for float32 blocks that are summed in float64.

    In its block a term meets the rounding of its weight to float32, the product by the weight, the
    product and at most 255 additions (the first one, to zero, is exact): 258 with one to spare.
    The spare one pays for the term of second order, gamma * gamma, that the sum of the two gammas
    leaves out. Then ceil(d / 256) blocks are added in float64, through at most 64 partial sums.
    """
    return gamma(BLOCK_ROWS + 2, U32) + gamma(math.ceil(rows / BLOCK_ROWS) + 64, U64)


def product_bound(magnitude, rows, dtype):
    """How far a kernel that runs in `dtype` may be from the float64 sums of this file.

    `magnitude` is sum |products|. The second term is the error of our own sums. float32 products
    that leave the range of normal numbers lose at most 2**-126 each.
    """
    if dtype == np.float64:
        return 2 * float64_bound(rows) * magnitude
    relative = float32_block_bound(rows) + float64_bound(rows)
    return relative * magnitude + rows * 2.0**-126


def with_ones(A, bias):
    return np.hstack([A, np.ones((len(A), 1), A.dtype)]) if bias else A


def weights_of(A, sample_weight):
    return np.ones(len(A)) if sample_weight is None else sample_weight.astype(np.float64)


def transformed(A, *, bias=False, sample_weight=None, scale=None, center=False):
    """Give (A - mean) * scale and a column of ones, in float64."""
    X, w = A.astype(np.float64), weights_of(A, sample_weight)
    if center and w.sum() > 0:
        X = X - w @ X / w.sum()
    return with_ones(X if scale is None else X * scale, bias)


def cross(A, D, *, sample_weight=None, **transform):
    X = transformed(A, sample_weight=sample_weight, **transform)
    return (X * weights_of(A, sample_weight)[:, None]).T @ D.astype(np.float64)


def cross_bound(A, D, *, bias=False, sample_weight=None, scale=None, center=False):
    """Bound what `product_bound` does, and what scaling and centring the sums do to that."""
    weighted = {"sample_weight": sample_weight}
    dtype = np.result_type(A, D)
    magnitude = cross(np.abs(A), np.abs(D), bias=bias, **weighted)
    bound = product_bound(magnitude, len(A), dtype)
    n = A.shape[1]
    if center:
        bound[:n] += centring_bound(magnitude[:n], A, A.dtype, D, dtype, **weighted)
    return scaled_bound(bound, magnitude, scale, A)


def gram(A, *, sample_weight=None, **transform):
    """Sum in integers where the kernel promises the integer answer."""
    if A.dtype == np.uint8 and sample_weight is None and set(transform) <= {"bias"}:
        X = with_ones(A.astype(np.int64), **transform)
        return (X.T @ X).astype(np.float64)
    X = transformed(A, sample_weight=sample_weight, **transform)
    return (X * weights_of(A, sample_weight)[:, None]).T @ X


def gram_bound(A, *, bias=False, sample_weight=None, scale=None, center=False):
    weighted = {"sample_weight": sample_weight}
    magnitude = gram(np.abs(A), bias=bias, **weighted)
    exact = A.dtype == np.uint8 and sample_weight is None
    dtype = np.float64 if exact or A.dtype == np.float64 else np.float32
    bound = np.zeros_like(magnitude) if exact else product_bound(magnitude, len(A), dtype)
    n = A.shape[1]
    if center:
        bound[:n, :n] += centring_bound(magnitude[:n, :n], A, dtype, A, dtype, **weighted)
        # The sums of centred columns are zero; our own are so up to the rounding of the mean and of the sum.
        bound[:n, n:] += 2 * float64_bound(len(A)) * magnitude[:n, n:]
        bound[n:, :n] = bound[:n, n:].T
    bound = scaled_bound(bound, magnitude, scale, A)
    return scaled_bound(bound.T, magnitude, scale, A).T


def centring_bound(magnitude, A, A_dtype, D, D_dtype, *, sample_weight=None):
    """How far centring may be off beyond the sums of products that it starts from.

    It takes s t / w from them, where s, t and w are sums with bounds of their own: to first order
    that is off by (ds t + s dt + s t dw / w) / w, doubled for the rest. Three roundings follow. Our
    own means, and the differences from them, are as good as sums in float64.
    """
    ones = np.ones((len(A), 1))
    s = cross(np.abs(A), ones, sample_weight=sample_weight)
    t = cross(np.abs(D), ones, sample_weight=sample_weight).T
    w = weights_of(A, sample_weight).sum()
    if w == 0:
        return np.zeros_like(magnitude)
    float32 = np.float32 in (A_dtype, D_dtype) and sample_weight is not None
    dw = product_bound(w, len(A), np.float32 if float32 else np.float64)
    ds, dt = product_bound(s, len(A), A_dtype), product_bound(t, len(A), D_dtype)
    return 2 * (ds * t + s * dt + s * t * dw / w) / w + gamma(3, U64) * magnitude


def scaled_bound(bound, magnitude, scale, A):
    """Multiply the rows of A's columns. The kernel rounds once for that; our own scaled sums are not the kernel's."""
    if scale is None:
        return bound
    factors = np.ones(len(bound))
    factors[: A.shape[1]] = np.abs(scale)
    return (bound + 2 * float64_bound(len(A)) * magnitude) * factors[:, None]


# ---------------------------------------------------------------------------------------------
# Solving
#
# Cholesky with M = R^T R (Higham, theorems 10.3 and 10.4): the computed x solves
# (M + E) x = b with |E| <= gamma(3 (n + 3)) |R^T| |R|: three passes (factor, forward, backward),
# each with at most n + 3 roundings per term, a multiplication by a rounded reciprocal included.
# || |R^T| |R| ||_2 <= ||R||_F^2 = trace(R^T R) <= trace(M) / (1 - gamma(n + 3)), and
# gamma(k) / (1 - gamma(j)) <= gamma(k + 2 j). Forming G + lam I moves a diagonal element by at most
# gamma(n + 2) of itself (mean of n values, times eps, plus G_ii). Together:
#     ||E||_2 <= gamma(3 (n + 3) + 2 (n + 3) + (n + 2)) trace(M) = gamma(6 n + 17) trace(M).
# The same holds for SciPy's answer. From (M + E) x = b + f and M y = b follows
#     ||x - y|| <= (||E|| ||x|| + ||f||) / lambda_min(M),
# where trace(M) / lambda_min(M) <= n cond(M) is the condition number that counts.


def regularised(G, eps=1e-6, relative=True):
    G = G.astype(np.float64)
    return G + (eps * np.mean(np.diag(G)) if relative else eps) * np.eye(len(G))


def solve(G, C, *, eps=1e-6, relative=True):
    M = regularised(G, eps, relative)
    C = C.astype(np.float64)  # a copy: SciPy 1.17 misreads arrays that are not aligned
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
        return scipy.linalg.solve(M, C, assume_a="pos")


def solve_batched(G, C, *, eps=1e-6, relative=True):
    return np.stack([solve(g, c, eps=eps, relative=relative) for g, c in zip(G, C, strict=True)])


def solve_layer(A, B, *, bias=False, eps=1e-6, relative=True, sample_weight=None):
    G = gram(A, bias=bias, sample_weight=sample_weight)
    C = cross(A, B, bias=bias, sample_weight=sample_weight)
    return solve(G, C, eps=eps, relative=relative)


def solve_backward_error(M):
    return gamma(6 * len(M) + 17, U64) * np.trace(M)


def smallest_eigenvalue(M):
    """Bound lambda_min(M) from below; LAPACK's own error is below the backward error of a solve."""
    return np.linalg.eigvalsh(M)[0] - solve_backward_error(M)


def solve_bound(M, *solutions, matrix_error=0.0, right_side_error=0.0):
    """Per column: how far apart any two of the answers for M may be, in the 2-norm.

    `matrix_error` and `right_side_error` (norms) are what each answer's own M and right-hand side
    may be off by. Infinite where M is singular to working precision: no forward bound holds there.
    """
    low = smallest_eigenvalue(M)
    if low <= 0:
        return np.inf
    norms = sum(np.linalg.norm(solution, axis=0) for solution in solutions)
    errors = (solve_backward_error(M) + matrix_error) * norms
    return (errors + len(solutions) * right_side_error) / low


def residual_bound(M, W, C):
    """Per column: the largest residual a backward stable solve leaves, however singular M is.

    The residual itself is computed with an error of gamma(n + 1) (||M||_F ||w|| + ||c||), and
    ||M||_F <= trace(M).
    """
    w, c = np.linalg.norm(W, axis=0), np.linalg.norm(C, axis=0)
    own = gamma(len(M) + 1, U64) * (np.trace(M) * w + c)
    return solve_backward_error(M) * w + own


# ---------------------------------------------------------------------------------------------
# Linear maps and activations

ACTIVATIONS = {
    "identity": lambda z: z,
    "sigmoid": scipy.special.expit,
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
    "leaky_relu": lambda z: np.where(z > 0, z, 0.01 * z),
    "elu": lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
    "softmax": lambda z: scipy.special.softmax(z, axis=-1),
    "softplus": lambda z: -scipy.special.log_expit(-z),
    "softminus": scipy.special.log_expit,
}
# Largest slope over the whole axis. For softmax: ds_i = s_i (dz_i - sum_j s_j dz_j), which is at
# most 2 s_i (1 - s_i) <= 1/2 times the largest |dz| of the row.
SLOPES = dict.fromkeys(ACTIVATIONS, 1.0) | {"sigmoid": 0.25, "softmax": 0.5}


def linear(A, W, *, bias=False, activation="identity"):
    z = with_ones(A.astype(np.float64), bias) @ W.astype(np.float64)
    return ACTIVATIONS[activation](z)


def linear_bound(A, W, *, bias=False, activation="identity"):
    """How far `linear` may be from the float64 answer of this file.

    The product has n terms and a bias: gamma(n + 2) of the kernel's dtype, and as much in float64
    for ours. It goes through the activation with its largest slope. The activation's own rounding
    is at most 4 ULP <= 8 u of its value in the kernel and as much in ours: 16 u. Softmax rounds
    z - max(z) first, which acts like another error of z, then adds m exponentials and divides.
    """
    u = U64 if np.result_type(A, W) == np.float64 else U32
    magnitude = linear(np.abs(A), np.abs(W), bias=bias)
    z_error = (gamma(A.shape[1] + 2, u) + gamma(A.shape[1] + 2, U64)) * magnitude
    value = np.abs(linear(A, W, bias=bias, activation=activation))
    roundings = 16
    if activation == "identity":
        roundings = 0
    elif activation == "softmax" and len(A):
        z = linear(A, W, bias=bias)
        z_error = z_error + 2 * u * (z.max(axis=1, keepdims=True) - z)
        z_error = np.broadcast_to(z_error.max(axis=1, keepdims=True), value.shape)
        roundings += W.shape[1] + 2
    smallest_normal = 2.0**-126 if u == U32 else 2.0**-1022
    return SLOPES[activation] * z_error + gamma(roundings, u) * value + smallest_normal


# ---------------------------------------------------------------------------------------------
# Arrays in every layout

LAYOUTS = (
    "C order",
    "Fortran order",
    "every second row",
    "every second column",
    "reversed",
    "packed field",
    "read-only",
)
REPEATING_LAYOUTS = ("repeated row", "repeated column")  # zero strides


def in_layout(values, layout):
    """`values` in memory of the named layout; a repeating layout repeats the first row or column.

    What lies between the elements of a strided view is NaN (170 for uint8): reading it shows.
    """
    gap = 170 if values.dtype == np.uint8 else np.nan
    if layout == "C order":
        return values.copy(order="C")
    if layout == "Fortran order":
        return values.copy(order="F")
    if layout == "every second row":
        view = np.full((2 * len(values), *values.shape[1:]), gap, values.dtype)[::2]
    elif layout == "every second column":
        shape = (*values.shape[:-1], 2 * values.shape[-1])
        view = np.full(shape, gap, values.dtype)[..., ::2]
    elif layout == "reversed":
        view = np.empty_like(values, order="C")[(slice(None, None, -1),) * values.ndim]
    elif layout == "packed field":
        # The stride is one byte more than the item: odd, and most elements are misaligned.
        packed = np.dtype([("before", np.uint8), ("value", values.dtype)])
        view = np.zeros(values.shape, packed)["value"]
    elif layout == "read-only":
        view = values.copy()
        view.flags.writeable = False
        return view
    elif layout == "repeated row":
        return np.broadcast_to(values[:1].copy(), values.shape)
    elif layout == "repeated column":
        return np.broadcast_to(values[..., :1].copy(), values.shape)
    else:
        raise ValueError(f"unknown layout {layout!r}")
    view[...] = values
    return view


def random_values(rng, shape, dtype, *, decades=2.0):
    """Whole range of uint8, or normal numbers of both signs, some zero, columns of unlike scale."""
    if dtype == np.uint8:
        return rng.integers(0, 256, shape, dtype=np.uint8)
    values = rng.standard_normal(shape) * 10.0 ** rng.uniform(-decades, decades, shape[-1])
    values[rng.random(shape) < 0.1] = 0.0
    return values.astype(dtype)


@st.composite
def arrays(draw, shape, dtypes, *, layouts=LAYOUTS + REPEATING_LAYOUTS, decades=2.0):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    values = random_values(rng, shape, draw(st.sampled_from(dtypes)), decades=decades)
    return in_layout(values, draw(st.sampled_from(layouts)))


@st.composite
def sample_weights(draw, rows):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    values = random_values(rng, (rows, 1), draw(st.sampled_from(FLOATS)))[:, 0]
    return in_layout(np.abs(values), draw(st.sampled_from(LAYOUTS)))


# ---------------------------------------------------------------------------------------------
# Assertions


def assert_within(actual, expected, bound):
    assert actual.shape == expected.shape
    error = np.abs(actual - expected)
    within = error <= bound
    if not within.all():
        place = tuple(int(i) for i in np.argwhere(~within)[0])
        allowed = np.broadcast_to(bound, error.shape)[place]
        raise AssertionError(
            f"{(~within).sum()} of {within.size} elements are out of bounds; first at {place}: "
            f"{actual[place]!r}, expected {expected[place]!r}, error {error[place]:.3e}, "
            f"allowed {allowed:.3e}"
        )


def same_bits(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def assert_same_bits_at_every_thread_count(call):
    """`call(n_threads)` gives one answer at every thread count and when it runs again."""
    first, *others = (call(n_threads) for n_threads in THREADS + THREADS)
    for other in others:
        assert same_bits(other, first)


def is_new_float64(result, shape):
    flags = result.flags
    return (
        result.dtype == np.float64
        and result.shape == shape
        and flags.c_contiguous
        and flags.writeable
        and flags.aligned
    )
