"""Inverses of activations: round trips with a derived bound, monotony, clipping to the range."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bpls_fast as bf
from tests.support.activation_formulas import (
    FORMULAS,
    INF,
    Array,
    clipped,
    each_dtype,
    each_elementwise,
    each_name,
    exact,
    floats_of_every_size,
    floats_of_the_range,
    ulps,
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


@each_dtype
@each_elementwise
def test_inverse_passes_infinity_through_an_infinite_end_and_clips_it_at_a_finite_one(
    name: str, dtype: type
) -> None:
    ends = np.array([-INF, INF], dtype)
    inverse = bf.activations[name].inverse(ends)
    np.testing.assert_array_equal(np.isinf(inverse), np.isinf(FORMULAS[name].range))
    np.testing.assert_array_equal(inverse, bf.activations[name].inverse(clipped(name, ends)))


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
