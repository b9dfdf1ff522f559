"""The activations on the GPU, by name: forward, inverse and derivatives."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.cuda import runtime
from bpls_fast.cuda.array import (
    Array,
    as_matrices,
    as_matrix,
    column_totals,
    empty,
    launch_elements,
    rows_to_device,
)
from bpls_fast.cuda.device import elements
from bpls_fast.cuda.kernels.arguments import (
    check_same,
    checked_floats,
    checked_weight,
    like_arguments,
    scalar_type,
)
from bpls_fast.kernels.activations import activations as cpu_activations

__all__ = ["activations", "clipped_margin", "softmax_rows"]


class DeviceActivation(NamedTuple):
    """The functions of one activation, as `bpls_fast.kernels.Activation` has them."""

    name: str

    def forward(self, z: Any) -> Any:
        """Return act(z)."""
        return _elementwise("forward", self.name, z, z)

    def inverse(self, n: Any, *, margin: float | None = None) -> Any:
        """Return the z with act(z) = n, after clipping n to at least `margin` inside the range."""
        if margin is not None and not 0 < margin < 0.5:
            raise ValueError(f"margin is {margin!r}; expected a number above 0 and below 0.5")
        return _elementwise("inverse", self.name, n, n, margin)

    def derivative(self, z: Any) -> Any:
        """Return d act(z)_i / d z_i."""
        if self.name == "softmax":
            n = self.forward(rows_to_device(z))
            return like_arguments(n - n * n, z)
        return _elementwise("derivative", self.name, z, z)

    def jacobian(self, v: Any, n: Any) -> Any:
        """Return J v for the Jacobian J where the activation has the values n."""
        return _elementwise("jacobian", self.name, n, v)

    def squared_slopes(self, n: Any, *, sample_weight: Any = None) -> NDArray[np.float64]:
        """Return, for each column, the sum over rows of the squared slope at the values n, in host memory."""
        values = checked_floats(n, "n", 2)
        # The diagonal of softmax's Jacobian is that of sigmoid's: n (1 - n).
        name = "sigmoid" if self.name == "softmax" else self.name
        weight = checked_weight(sample_weight, values)
        totals = column_totals("slopes", values, None, weight, name)
        sums: NDArray[np.float64] = np.asarray(totals)[0]
        return sums


activations = MappingProxyType({name: DeviceActivation(name) for name in cpu_activations})
"""The activations by name, in a mapping that cannot be changed."""


def _elementwise(what: str, name: str, z: Any, v: Any, margin: float | None = None) -> Any:
    values, other = checked_floats(z, "z"), checked_floats(v, "v")
    check_same(other, values, "v")
    result = empty(values.shape, values.dtype)
    if not result.size:
        return like_arguments(result, z, v)
    if name == "softmax":
        softmax_rows(what, values, other, margin, result)
    else:
        real = scalar_type(values.dtype)
        kernel = elements.activation_kernel(what, name, real)
        number = real(clipped_margin(margin, values.dtype))
        first, second, out = as_matrices(values, other, result)
        launch_elements(kernel, out, first, second, number)
    return like_arguments(result, z, v)


def softmax_rows(what: str, z: Array, v: Array, margin: float | None, out: Array) -> None:
    """Write softmax's "forward", "inverse" or "jacobian" along the last axis of z to `out`."""
    if not z.size:
        return
    real = scalar_type(z.dtype)
    block = elements.row_block(z.shape[-1])
    kernel = elements.softmax_kernel(what, real, block)
    rows = z.size // z.shape[-1]
    number = real(np.finfo(real).eps if margin is None else margin)
    arguments = (as_matrix(z), as_matrix(v), number, as_matrix(out))
    runtime.launch(kernel, -(-rows // block[1]), block, *arguments)


def clipped_margin(margin: float | None, dtype: np.dtype[Any]) -> float:
    """Return the margin, at least the spacing of the floats next to 1."""
    eps = float(np.finfo(dtype).eps)
    return eps if margin is None else max(margin, eps)
