"""The activations as functions of one number, for kernels to call: forward, inverse, derivative, slope at a value.

Constants have the type of the arithmetic: a Python float would turn a float32 kernel into a float64 one. NaN
propagates, and no finite result overflows on the way. Softmax needs whole rows and has kernels of its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bpls_fast.cuda.runtime import device_function

__all__ = ["Functions", "functions"]


class Functions(NamedTuple):
    """An activation: forward(z), inverse(n, margin), derivative(z), slope(n)."""

    forward: Callable[..., Any]
    inverse: Callable[..., Any]
    derivative: Callable[..., Any]
    slope: Callable[..., Any]


@functools.cache
def functions(name: str, real: Any) -> Functions:
    """Return an activation in the arithmetic `real`, np.float32 or np.float64."""
    if name not in _MAKERS:
        raise ValueError(
            f"activation is {name!r}, which the GPU cannot compute; expected one of {', '.join(_MAKERS)}"
        )
    return Functions(*map(device_function, _MAKERS[name](real)))


def _identity(real: Any) -> tuple[Any, ...]:
    one = real(1)

    def same(z: Any) -> Any:
        return z

    def inverse(n: Any, margin: Any) -> Any:
        return n

    def derivative(z: Any) -> Any:
        return one if z == z else z

    def slope(n: Any) -> Any:
        return one

    return same, inverse, derivative, slope


def _sigmoid(real: Any) -> tuple[Any, ...]:
    one = real(1)

    def forward(z: Any) -> Any:
        e = real(math.exp(-abs(z)))
        return e / (one + e) if z < 0 else one / (one + e)

    def inverse(n: Any, margin: Any) -> Any:
        if n < margin:
            n = margin
        elif n > one - margin:
            n = one - margin
        return real(math.log(n)) - real(math.log1p(-n))

    def derivative(z: Any) -> Any:
        e = real(math.exp(-abs(z)))
        return e / ((one + e) * (one + e))

    def slope(n: Any) -> Any:
        return n * (one - n)

    return forward, inverse, derivative, slope


def _tanh(real: Any) -> tuple[Any, ...]:
    one, two, four = real(1), real(2), real(4)

    def forward(z: Any) -> Any:
        return real(math.tanh(z))

    def inverse(n: Any, margin: Any) -> Any:
        if n < margin - one:
            n = margin - one
        elif n > one - margin:
            n = one - margin
        return real(math.atanh(n))

    def derivative(z: Any) -> Any:
        e = real(math.exp(-two * abs(z)))
        return four * e / ((one + e) * (one + e))

    def slope(n: Any) -> Any:
        return (one - n) * (one + n)

    return forward, inverse, derivative, slope


def _relu(real: Any) -> tuple[Any, ...]:
    zero, one = real(0), real(1)

    def forward(z: Any) -> Any:
        return zero if z < 0 else z

    def inverse(n: Any, margin: Any) -> Any:
        return zero if n < 0 else n

    def slope(n: Any) -> Any:
        if n > 0:
            return one
        return zero if n <= 0 else n

    return forward, inverse, slope, slope


def _leaky_relu(real: Any) -> tuple[Any, ...]:
    below, one = real(0.01), real(1)

    def forward(z: Any) -> Any:
        return below * z if z < 0 else z

    def inverse(n: Any, margin: Any) -> Any:
        return n / below if n < 0 else n

    def slope(n: Any) -> Any:
        if n > 0:
            return one
        return below if n <= 0 else n

    return forward, inverse, slope, slope


def _elu(real: Any) -> tuple[Any, ...]:
    one = real(1)

    def forward(z: Any) -> Any:
        return real(math.expm1(z)) if z < 0 else z

    def inverse(n: Any, margin: Any) -> Any:
        if n < margin - one:
            n = margin - one
        return real(math.log1p(n)) if n < 0 else n

    def derivative(z: Any) -> Any:
        if z > 0:
            return one
        return real(math.exp(z))

    def slope(n: Any) -> Any:
        if n > 0:
            return one
        return one + n

    return forward, inverse, derivative, slope


def _softplus(real: Any) -> tuple[Any, ...]:
    one = real(1)

    def forward(z: Any) -> Any:
        positive = real(math.log1p(real(math.exp(-abs(z)))))
        return positive if z < 0 else z + positive

    def inverse(n: Any, margin: Any) -> Any:
        if n < margin:
            n = margin
        return n + real(math.log(-real(math.expm1(-n))))

    def derivative(z: Any) -> Any:
        e = real(math.exp(-abs(z)))
        return e / (one + e) if z < 0 else one / (one + e)

    def slope(n: Any) -> Any:
        return -real(math.expm1(-n))

    return forward, inverse, derivative, slope


def _softminus(real: Any) -> tuple[Any, ...]:
    one = real(1)

    def forward(z: Any) -> Any:
        negative = -real(math.log1p(real(math.exp(-abs(z)))))
        return z + negative if z < 0 else negative

    def inverse(n: Any, margin: Any) -> Any:
        if n > -margin:
            n = -margin
        return n - real(math.log(-real(math.expm1(n))))

    def derivative(z: Any) -> Any:
        e = real(math.exp(-abs(z)))
        return one / (one + e) if z < 0 else e / (one + e)

    def slope(n: Any) -> Any:
        return -real(math.expm1(n))

    return forward, inverse, derivative, slope


_MAKERS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "identity": _identity,
    "sigmoid": _sigmoid,
    "tanh": _tanh,
    "relu": _relu,
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "softplus": _softplus,
    "softminus": _softminus,
}
