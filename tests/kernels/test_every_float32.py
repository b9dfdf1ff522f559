"""Forward over every float32 there is: 2^32 inputs for each activation, against the float64 formula.

Takes minutes: run it with `pytest -m thorough`. The bounds are those that activations.py states.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import bpls_fast as bf

pytestmark = pytest.mark.thorough

Array = np.ndarray[Any, np.dtype[Any]]
CHUNK = 2**18  # inputs at a time: what is made of them stays in cache
FORWARD_ULPS = 3


def exp_of_minus_magnitude(z: Array) -> Array:
    e = np.abs(z)
    np.negative(e, out=e)
    return np.exp(e, out=e)


def sigmoid(z: Array) -> Array:
    e = exp_of_minus_magnitude(z)
    return np.where(z < 0, e, 1) / (1 + e)


def softplus(z: Array) -> Array:
    return np.maximum(z, 0) + np.log1p(exp_of_minus_magnitude(z))


FORMULAS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda z: z,
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
    "leaky_relu": lambda z: np.where(z > 0, z, z / 100),
    "elu": lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
    "softplus": softplus,
    "softminus": lambda z: -softplus(-z),
}


def float32_spacing(x: Array) -> Array:
    """Give the distance of float32 numbers around the float64 x: a power of two, at least 2^-149."""
    power = (x.view(np.int64) & 0x7FF0_0000_0000_0000).view(np.float64)
    return np.maximum(power, 2.0**-126) * 2.0**-23


def worst_of_chunk(name: str, first: int) -> tuple[float, float]:
    """Give the largest error of a chunk in ULP, and the input where it is."""
    z = np.arange(first, first + CHUNK, dtype=np.uint32).view(np.float32)
    result = bf.activations[name].forward(z, n_threads=1)
    if np.isnan(z[-1]):  # infinity, if the chunk has it, is its first
        assert np.isnan(result[np.isnan(z)]).all()
        return 0.0, 0.0
    exact = FORMULAS[name](z.astype(np.float64))
    ulps = np.abs(result - exact) / float32_spacing(exact)
    place = int(np.argmax(ulps))  # a NaN counts as the largest
    return float(ulps[place]), float(z[place])


@pytest.mark.parametrize("name", FORMULAS)
def test_forward_of_every_float32_is_within_the_stated_ulps(
    name: str,
) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda first: worst_of_chunk(name, first), range(0, 2**32, CHUNK))
        ulps, z = max(found, key=lambda pair: (np.isnan(pair[0]), pair[0]))
    print(f"{name}: {ulps:.3f} ULP at z = {z!r}")  # pytest -rP shows it
    assert ulps <= FORWARD_ULPS, f"{ulps} ULP at z = {z!r}"
