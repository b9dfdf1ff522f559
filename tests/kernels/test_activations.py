"""Activations against formulas in a wider type, and at the ends of the line.

Accuracy is counted in ULP of the result, against the formula evaluated in the next wider type: float64
for float32 (test_every_float32.py goes on to every input there is), long double for float64. Where long
double is no wider than double, the formula itself may be a few ULP off.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import scipy.special

import bpls_fast as bf
from tests.support.activation_formulas import (
    FORMULAS,
    INF,
    LINE,
    NAMES,
    Array,
    clipped,
    each_dtype,
    each_elementwise,
    each_method,
    each_name,
    exact,
    exact_softmax,
    floats_of_every_size,
    floats_of_the_range,
    logit,
    sech2,
    sigmoid,
    softplus,
    softplus_inverse,
    ulps,
    ulps_apart,
)

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
