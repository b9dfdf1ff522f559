"""Activations in plain NumPy, free of cancellation, and errors in units of the last place.

Rule of this file: nothing here calls bpls_fast.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

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


# Softmax, in units of eps. The rounding of z - max changes exp by |z - max| / 2 at most, and so the
# sum. Further there are 1 for exp, again for the sum of these, 3/2 for the sum, and 1 for its inverse
# and the product: 6 with what the second order may add, as activations.py states it. An inverse has
# the errors of the logarithm (1) and of the mean (3) and one of the difference (1).


def exact_softmax(z: Array) -> Array:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    result: Array = e / e.sum(axis=-1, keepdims=True)
    return result
