"""Activations against formulas in a wider type, round trips, the ends of the line, clipping.

Accuracy is counted in ULP of the result, against the formula evaluated in the next wider type: float64
for float32 (test_every_float32.py goes on to every input there is), long double for float64. Where long
double is no wider than double, the formula itself may be a few ULP off.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bpls_fast as bf

Array = np.ndarray[Any, np.dtype[Any]]
INF = np.inf

DTYPES = [np.float32, np.float64]
WIDER = {np.dtype(np.float32): np.float64, np.dtype(np.float64): np.longdouble}
# What activations.py states.
STATED_ULPS = {"forward": 3, "derivative": 3, "inverse": 4}
LONG_DOUBLE_IS_WIDER = np.finfo(np.longdouble).nmant > np.finfo(np.float64).nmant


class Formula(NamedTuple):
    """An activation in plain NumPy, free of cancellation; `inverse` expects clipped values."""

    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    domain: tuple[float, float]
    range: tuple[float, float]


def sigmoid(z: Array) -> Array:
    e = np.exp(-np.abs(z))
    return np.where(z < 0, e, 1) / (1 + e)


def logit(n: Array) -> Array:
    # 2n - 1 is exact around 1/2, where the difference of the logarithms cancels.
    middle = np.abs(n - 0.5) < 0.25
    return np.where(
        middle,
        2 * np.arctanh(np.where(middle, 2 * n - 1, 0)),
        np.log(n) - np.log1p(-n),
    )


def softplus(z: Array) -> Array:
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


def softplus_inverse(n: Array) -> Array:
    # log(exp(n) - 1) without overflow; the second form keeps the sum exact at infinity.
    return np.where(n == INF, n, n + np.log(-np.expm1(-n)))


def sech2(z: Array) -> Array:
    e = np.exp(-2 * np.abs(z))
    return 4 * e / (1 + e) ** 2


LINE = (-INF, INF)
FORMULAS = {
    "identity": Formula(lambda z: z, lambda n: n, np.ones_like, LINE, LINE),
    "sigmoid": Formula(sigmoid, logit, lambda z: sigmoid(z) * sigmoid(-z), LINE, (0, 1)),
    "tanh": Formula(np.tanh, np.arctanh, sech2, LINE, (-1, 1)),
    "relu": Formula(
        lambda z: np.maximum(z, 0),
        lambda n: np.maximum(n, 0),
        lambda z: (z > 0).astype(z.dtype),
        (0, INF),
        (0, INF),
    ),
    "leaky_relu": Formula(
        lambda z: np.where(z > 0, z, z / 100),
        lambda n: np.where(n > 0, n, n * 100),
        lambda z: np.where(z > 0, z.dtype.type(1), z.dtype.type(1) / 100),
        LINE,
        LINE,
    ),
    "elu": Formula(
        lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
        lambda n: np.where(n > 0, n, np.log1p(np.minimum(n, 0))),
        lambda z: np.exp(np.minimum(z, 0)),
        LINE,
        (-1, INF),
    ),
    "softplus": Formula(softplus, softplus_inverse, sigmoid, LINE, (0, INF)),
    "softminus": Formula(
        lambda z: -softplus(-z),
        lambda n: -softplus_inverse(-n),
        lambda z: sigmoid(-z),
        LINE,
        (-INF, 0),
    ),
}
ELEMENTWISE = list(FORMULAS)
NAMES = [*ELEMENTWISE, "softmax"]

each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
each_elementwise = pytest.mark.parametrize("name", ELEMENTWISE)
each_name = pytest.mark.parametrize("name", NAMES)
each_method = pytest.mark.parametrize("method", ["forward", "inverse", "derivative"])


def ulps(method: str, dtype: np.dtype[Any]) -> int:
    """Give what a result may be off by, in ULP of the formula's own result in the wider type."""
    formula = 0 if dtype == np.float32 or LONG_DOUBLE_IS_WIDER else 4
    return STATED_ULPS[method] + formula


def exact(name: str, method: str, x: Array) -> Array:
    """Evaluate the formula in the type wider than x's own, at the clipped values for an inverse."""
    x = clipped(name, x) if method == "inverse" else x
    with np.errstate(all="ignore"):
        result: Array = getattr(FORMULAS[name], method)(x.astype(WIDER[x.dtype]))
    return result


def clipped(name: str, n: Array, margin: float | None = None) -> Array:
    """Move n at least `margin` inside every finite open end of the range (relu's is closed)."""
    if name == "relu":
        margin = 0
    elif margin is None:
        margin = float(np.finfo(n.dtype).eps)
    low, high = FORMULAS[name].range
    return np.clip(n, n.dtype.type(low + margin), n.dtype.type(high - margin))


def ulps_apart(result: Array, wide: Array, scale: Array | None = None) -> Array:
    """Count |result - wide| in units of the last place of `scale`, or else of `wide` itself.

    NaN where only one of the two is NaN or infinite: that is below no bound.
    """
    with np.errstate(all="ignore"):
        rounded = wide.astype(result.dtype)
        unit = np.spacing(np.abs(rounded if scale is None else scale.astype(result.dtype)))
        apart = np.abs(result.astype(wide.dtype) - wide) / unit.astype(wide.dtype)
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    return np.where(same, 0, apart)


def floats_of_every_size(dtype: type) -> Array:
    """Dense where the functions bend, random bit patterns for all the rest, and the extremes."""
    info = np.finfo(dtype)
    bits = np.random.default_rng(0).integers(
        0, 2**info.bits, 20_000, dtype=f"uint{info.bits}", endpoint=False
    )
    extremes = [0, 1, info.smallest_subnormal, info.tiny, info.eps, info.max]
    x = np.concatenate(
        [
            np.linspace(-2, 2, 10_001),
            np.linspace(-120, 120, 10_001),
            np.linspace(-800, 800, 4_001),
            np.array(extremes),
            -np.array(extremes),
        ]
    ).astype(dtype)
    x = np.concatenate([x, bits.view(dtype)])
    return x[np.isfinite(x)]


def floats_of_the_range(name: str, dtype: type) -> Array:
    """Values inside and outside of the range, crowding towards its finite ends."""
    steps = np.ldexp(1.0, -np.arange(1, np.finfo(dtype).nmant + 2))
    ends = [end for end in FORMULAS[name].range if np.isfinite(end)]
    crowd = [end + sign * steps for end in ends for sign in (-1, 1)]
    return np.concatenate([floats_of_every_size(dtype), *(c.astype(dtype) for c in crowd)])


# The formulas above, once against SciPy.


def test_the_formulas_of_these_tests_agree_with_scipy() -> None:
    z = np.linspace(-30, 30, 1001)
    n = np.linspace(1e-6, 1 - 1e-6, 1001)
    np.testing.assert_allclose(sigmoid(z), scipy.special.expit(z), rtol=1e-14)
    np.testing.assert_allclose(logit(n), scipy.special.logit(n), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(softplus(z), -scipy.special.log_expit(-z), rtol=1e-14)
    np.testing.assert_allclose(softplus(softplus_inverse(n)), n, rtol=1e-13)
    np.testing.assert_allclose(sech2(z), 1 / np.cosh(z) ** 2, rtol=1e-13)
    np.testing.assert_allclose(
        exact_softmax(z.reshape(-1, 7)), scipy.special.softmax(z.reshape(-1, 7), axis=1), rtol=1e-13
    )


# The mapping and the attributes.


def test_activations_are_exactly_these_nine() -> None:
    assert isinstance(bf.activations, Mapping)
    assert set(bf.activations) == set(NAMES)
    assert len(bf.activations) == 9


def test_activations_cannot_be_changed() -> None:
    mapping: Any = bf.activations
    with pytest.raises(TypeError):
        mapping["identity"] = mapping["relu"]
    with pytest.raises(TypeError):
        del mapping["identity"]
    assert mapping["identity"].name == "identity"


def test_a_missing_activation_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="swish"):
        bf.activations["swish"]


@each_name
def test_an_activation_states_its_name_domain_range_and_whether_it_is_injective(name: str) -> None:
    activation = bf.activations[name]
    assert activation.name == name
    domain, values = (LINE, (0, 1)) if name == "softmax" else FORMULAS[name][3:]
    assert tuple(activation.domain) == domain
    assert tuple(activation.range) == values
    assert activation.injective is (name not in {"relu", "softmax"})


# Accuracy.


def assert_within_its_ulps(name: str, method: str, x: Array) -> None:
    expected = exact(name, method, x)
    scale = None
    if method == "inverse":
        # Where z crosses zero and n does not (sigmoid, softplus, softminus) the last place of n
        # decides: units are those of the larger of z and n.
        scale = np.maximum(np.abs(expected), np.abs(clipped(name, x)))
    apart = ulps_apart(getattr(bf.activations[name], method)(x), expected, scale)
    worst = np.argmax(apart)
    assert apart[worst] <= ulps(method, x.dtype), f"{apart[worst]} ULP at {x[worst]!r}"


@each_dtype
@each_elementwise
def test_forward_is_within_its_ulps_of_the_formula(name: str, dtype: type) -> None:
    z = floats_of_every_size(dtype)
    assert_within_its_ulps(name, "forward", z)


@each_dtype
@each_elementwise
def test_derivative_is_within_its_ulps_of_the_formula(name: str, dtype: type) -> None:
    z = floats_of_every_size(dtype)
    assert_within_its_ulps(name, "derivative", z)


@each_dtype
@each_elementwise
def test_inverse_is_within_its_ulps_of_the_formula(name: str, dtype: type) -> None:
    assert_within_its_ulps(name, "inverse", floats_of_the_range(name, dtype))


@each_elementwise
@each_method
def test_dense_samples_of_float64_are_within_their_ulps(name: str, method: str) -> None:
    rng = np.random.default_rng(4)
    sizes = np.exp(rng.uniform(-745, 7, 50_000)) * rng.choice([-1, 1], 50_000)
    crowd = 1 - np.exp(rng.uniform(-36, 0, 50_000))  # towards the ends at 1 and -1
    spread = [rng.uniform(-width, width, 50_000) for width in (1, 3, 40, 750)]
    assert_within_its_ulps(name, method, np.concatenate([sizes, crowd, -crowd, *spread]))


@each_elementwise
def test_derivative_agrees_with_central_differences(name: str) -> None:
    activation = bf.activations[name]
    h = 2.0**-17
    z = np.linspace(-30, 30, 4001) + 1e-3
    z = z[np.abs(z) > 2 * h]  # relu, leaky_relu and elu bend at 0
    up, down = activation.forward(z + h), activation.forward(z - h)
    differences = (up - down) / ((z + h) - (z - h))
    # h^2/6 times the largest third derivative (2, of tanh), and the rounding of up and down.
    allowed = h**2 / 3 + 2 * 8 * np.finfo(float).eps * (np.abs(up) + np.abs(down)) / (2 * h)
    assert np.all(np.abs(activation.derivative(z) - differences) <= allowed)


@each_dtype
def test_derivative_at_the_bend_is_the_stated_one(dtype: type) -> None:
    zeros = np.array([0.0, -0.0], dtype)
    for name, slope in {"relu": 0, "leaky_relu": 0.01, "elu": 1}.items():
        np.testing.assert_array_equal(
            bf.activations[name].derivative(zeros), np.full(2, slope, dtype), err_msg=name
        )


# Round trips. With at most u ULP of error in forward and in inverse, an error of u eps |n| in n moves z by
# u eps |n| / |n'(z)|, and the inverse adds u eps max(|z|, |n|). Twice that leaves room for
# second-order terms, as long as the first-order one is small.


def assert_z_comes_back(name: str, z: Array) -> int:
    """Check inverse(forward(z)) where the range has not run out of digits; count these places."""
    activation = bf.activations[name]
    n = activation.forward(z)
    back = activation.inverse(n)
    info = np.finfo(z.dtype)
    wide_n, slope = exact(name, "forward", z), exact(name, "derivative", z)
    with np.errstate(all="ignore"):
        unit = 2 * ulps("inverse", z.dtype)
        by_n = unit * (info.eps * np.abs(wide_n) + info.smallest_subnormal) / slope
        by_z = unit * info.eps * np.maximum(np.abs(z), np.abs(wide_n))
        resolved = (clipped(name, n) == n) & (by_n <= np.maximum(1, np.abs(z)) / 8)
        resolved &= np.abs(z) <= info.max / 2  # an ULP above the largest number is infinity
        error = np.abs(back.astype(by_n.dtype) - z)
    wrong = resolved & ~(error <= by_n + by_z)
    assert not wrong.any(), f"z = {z[wrong][:5]} came back as {back[wrong][:5]}"
    return int(np.count_nonzero(resolved))


def assert_n_comes_back(name: str, n: Array) -> int:
    """Check forward(inverse(n)) for values that the margin leaves alone; count these places."""
    activation = bf.activations[name]
    z = activation.inverse(n)
    back = activation.forward(z)
    info = np.finfo(n.dtype)
    wide_z = exact(name, "inverse", n)
    with np.errstate(all="ignore"):
        slope = FORMULAS[name].derivative(wide_z)
        scale = np.maximum(np.abs(wide_z), np.abs(n))
        carried = np.where(slope > 0, slope * scale, 0)
        unit = 2 * ulps("inverse", n.dtype)
        allowed = unit * (info.eps * (np.abs(n) + carried) + info.smallest_subnormal)
        error = np.abs(back.astype(allowed.dtype) - n)
    inside = (clipped(name, n) == n) & np.isfinite(z)
    wrong = inside & ~(error <= allowed)
    assert not wrong.any(), f"n = {n[wrong][:5]} came back as {back[wrong][:5]}"
    return int(np.count_nonzero(inside))


@each_dtype
@each_elementwise
def test_inverse_undoes_forward_over_the_domain(name: str, dtype: type) -> None:
    z = floats_of_every_size(dtype)
    z = z[z >= FORMULAS[name].domain[0]]
    assert assert_z_comes_back(name, z) > 1000


@each_dtype
@each_elementwise
def test_forward_undoes_inverse_over_the_range(name: str, dtype: type) -> None:
    n = floats_of_the_range(name, dtype)
    assert assert_n_comes_back(name, n) > 1000


@each_dtype
@each_elementwise
@given(data=st.data())
def test_inverse_undoes_forward_for_any_array(name: str, dtype: type, data: st.DataObject) -> None:
    low, high = FORMULAS[name].domain
    assert_z_comes_back(name, data.draw(arrays_between(dtype, low, high)))


@each_dtype
@each_elementwise
@given(data=st.data())
def test_forward_undoes_inverse_for_any_array(name: str, dtype: type, data: st.DataObject) -> None:
    low, high = FORMULAS[name].range
    assert_n_comes_back(name, data.draw(arrays_between(dtype, low, high)))


def arrays_between(dtype: type, low: float, high: float) -> st.SearchStrategy[Array]:
    finite = hnp.from_dtype(
        np.dtype(dtype),
        min_value=None if low == -INF else low,
        max_value=None if high == INF else high,
        allow_nan=False,
        allow_infinity=False,
    )
    return hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=9), elements=finite)


@each_dtype
@each_elementwise
def test_forward_and_inverse_never_fall_by_more_than_one_ulp(name: str, dtype: type) -> None:
    # Stronger than the accuracy, which would allow two neighbours to be 6 ULP out of order.
    activation = bf.activations[name]
    z = np.linspace(-40, 40, 20_001).astype(dtype)
    for rising in (activation.forward(z), activation.inverse(z / 20)):
        falls = rising[:-1] - rising[1:]
        assert np.all(falls <= np.spacing(np.abs(rising[1:])))
        assert rising[-1] > rising[0]


# The ends of the line.

AT_MINUS_AND_PLUS_INFINITY = {
    # name: forward, derivative
    "identity": ((-INF, INF), (1, 1)),
    "sigmoid": ((0, 1), (0, 0)),
    "tanh": ((-1, 1), (0, 0)),
    "relu": ((0, INF), (0, 1)),
    "leaky_relu": ((-INF, INF), (0.01, 1)),
    "elu": ((-1, INF), (0, 1)),
    "softplus": ((0, INF), (0, 1)),
    "softminus": ((-INF, 0), (1, 0)),
}


@each_dtype
@each_elementwise
def test_infinities_give_the_limits(name: str, dtype: type) -> None:
    forward, derivative = AT_MINUS_AND_PLUS_INFINITY[name]
    ends = np.array([-INF, INF], dtype)
    activation = bf.activations[name]
    np.testing.assert_array_equal(activation.forward(ends), np.array(forward, dtype))
    np.testing.assert_array_equal(activation.derivative(ends), np.array(derivative, dtype))


@each_dtype
@each_elementwise
def test_inverse_passes_infinity_through_an_infinite_end_and_clips_it_at_a_finite_one(
    name: str, dtype: type
) -> None:
    ends = np.array([-INF, INF], dtype)
    inverse = bf.activations[name].inverse(ends)
    np.testing.assert_array_equal(np.isinf(inverse), np.isinf(FORMULAS[name].range))
    np.testing.assert_array_equal(inverse, bf.activations[name].inverse(clipped(name, ends)))


@each_dtype
@each_elementwise
@each_method
def test_nan_gives_nan_and_leaves_its_neighbours_alone(name: str, dtype: type, method: str) -> None:
    x = np.linspace(0.1, 0.9, 37).astype(dtype)
    expected = exact(name, method, x)
    x[[0, 17, 36]] = np.nan
    result = getattr(bf.activations[name], method)(x)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(result)), [0, 17, 36])
    clean = ~np.isnan(x)
    scale = np.maximum(np.abs(expected), np.abs(x))[clean]
    assert np.all(ulps_apart(result[clean], expected[clean], scale) <= ulps(method, x.dtype))


@each_dtype
@pytest.mark.parametrize("name", ["identity", "tanh", "elu", "relu"])
def test_subnormals_are_not_flushed_to_zero(name: str, dtype: type) -> None:
    z = np.finfo(dtype).smallest_subnormal * np.arange(1, 50).astype(dtype)
    np.testing.assert_array_equal(bf.activations[name].forward(z), z)


# Clipping.


@each_dtype
@each_elementwise
@pytest.mark.parametrize("margin", [None, 2.0**-6, 0.25])
def test_inverse_clips_to_the_margin_inside_the_finite_ends(
    name: str, dtype: type, margin: float | None
) -> None:
    n = np.concatenate([floats_of_the_range(name, dtype), np.array([-INF, INF], dtype)])
    inverse = bf.activations[name].inverse
    np.testing.assert_array_equal(
        inverse(n, margin=margin), inverse(clipped(name, n, margin), margin=margin)
    )
    inside = clipped(name, n, margin) == n
    np.testing.assert_array_equal(inverse(n, margin=margin)[inside], inverse(n)[inside])


@each_dtype
@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_the_default_margin_is_the_machine_epsilon(name: str, dtype: type) -> None:
    n = floats_of_the_range(name, dtype)
    inverse = bf.activations[name].inverse
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_array_equal(inverse(n), inverse(n, margin=eps))
    assert np.all(np.isfinite(inverse(n)))
    assert inverse(n).max() > inverse(n, margin=2 * eps).max()


@each_name
@pytest.mark.parametrize("margin", [0.0, -1e-3, 0.5, 1.0, INF, -INF, np.nan])
def test_a_margin_outside_0_and_a_half_is_a_value_error(name: str, margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        bf.activations[name].inverse(np.full(3, 0.5), margin=margin)


# Layouts, shapes, types, threads.


def packed(x: Array) -> Array:
    """Make x a field of a packed record: its strides are no multiple of its item size."""
    records = np.zeros(x.shape, np.dtype([("pad", np.uint8), ("x", x.dtype)]))
    records["x"] = x
    return records["x"]


def read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "fortran": np.asfortranarray,
    "transposed": lambda x: x.transpose(2, 0, 1),
    "every second": lambda x: x[:, ::2, ::3],
    "reversed": lambda x: x[::-1, :, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[:, :1, :], x.shape),
    "broadcast along the last axis": lambda x: np.broadcast_to(x[:, :, :1], x.shape),
    "packed records": packed,
    "read-only": read_only,
}


@each_dtype
@each_name
@each_method
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_strides_give_the_answer_of_the_contiguous_array(
    name: str, dtype: type, method: str, layout: str
) -> None:
    base = np.random.default_rng(1).uniform(0.05, 0.9, (5, 7, 11)).astype(dtype)
    x = LAYOUTS[layout](base)
    before = x.copy()
    function = getattr(bf.activations[name], method)
    result = function(x)
    assert result.shape == x.shape
    assert result.dtype == x.dtype
    assert result.flags.c_contiguous
    assert not np.shares_memory(result, x)
    np.testing.assert_array_equal(x, before)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(
        result, function(np.ascontiguousarray(x)), rtol=32 * eps, atol=32 * eps
    )


@each_dtype
@each_elementwise
@each_method
def test_a_zero_dimensional_array_gives_a_zero_dimensional_array(
    name: str, dtype: type, method: str
) -> None:
    x = np.array(0.25, dtype)
    for argument in (x, dtype(0.25)):
        result = getattr(bf.activations[name], method)(argument)
        assert isinstance(result, np.ndarray)
        assert result.shape == ()
        assert result.dtype == dtype
        assert ulps_apart(result, exact(name, method, x)) <= ulps(method, x.dtype)


@each_method
def test_softmax_of_a_zero_dimensional_array_is_a_value_error(method: str) -> None:
    with pytest.raises(ValueError, match="n" if method == "inverse" else "z"):
        getattr(bf.activations["softmax"], method)(np.array(0.25))


@each_dtype
@each_name
@each_method
@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (2, 0, 5)])
def test_an_empty_array_gives_an_empty_array(
    name: str, dtype: type, method: str, shape: tuple[int, ...]
) -> None:
    result = getattr(bf.activations[name], method)(np.empty(shape, dtype))
    assert result.shape == shape
    assert result.dtype == dtype


@each_name
@each_method
@pytest.mark.parametrize("dtype", ["float16", "int64", "uint8", "bool", "complex128", "O", "U3"])
def test_another_dtype_is_a_type_error_naming_the_argument(
    name: str, method: str, dtype: str
) -> None:
    argument = "n" if method == "inverse" else "z"
    with pytest.raises(TypeError, match=rf"\b{argument}\b"):
        getattr(bf.activations[name], method)(np.ones((2, 3)).astype(dtype))


@each_name
@each_method
@pytest.mark.parametrize(
    ("n_threads", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError)]
)
def test_a_wrong_n_threads_is_an_error_naming_it(
    name: str, method: str, n_threads: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="n_threads"):
        getattr(bf.activations[name], method)(np.full(3, 0.5), n_threads=n_threads)


@each_dtype
@each_name
@each_method
def test_the_number_of_threads_changes_no_bit(name: str, dtype: type, method: str) -> None:
    x = np.random.default_rng(2).normal(size=(30_011, 10)).astype(dtype)
    function = getattr(bf.activations[name], method)
    one = function(x, n_threads=1)
    for n_threads in (None, 2, 3, 7):
        assert function(x, n_threads=n_threads).tobytes() == one.tobytes()


# Softmax, in units of eps. The rounding of z - max changes exp by |z - max| / 2 at most, and so the
# sum. Further there are 1 for exp, again for the sum of these, 3/2 for the sum, and 1 for its inverse
# and the product: 6 with what the second order may add, as activations.py states it. An inverse has
# the errors of the logarithm (1) and of the mean (3) and one of the difference (1).


def exact_softmax(z: Array) -> Array:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    result: Array = e / e.sum(axis=-1, keepdims=True)
    return result


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
