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
    check_apart,
    check_same,
    checked_floats,
    checked_out,
    checked_weight,
    may_overlap,
    scalar_type,
    write_result,
)
from bpls_fast.kernels.activations import activations as cpu_activations

__all__ = ["activations", "clipped_margin", "softmax_rows"]


class DeviceActivation(NamedTuple):
    """The functions of one activation, as `bpls_fast.kernels.Activation` has them."""

    name: str

    def forward(self, z: Any, *, out: Any = None) -> Any:
        """Return act(z)."""
        return _elementwise("forward", self.name, {"z": z}, out)

    def inverse(self, n: Any, *, margin: float | None = None, out: Any = None) -> Any:
        """Return the z with act(z) = n, after clipping n to at least `margin` inside the range."""
        if margin is not None and not 0 < margin < 0.5:
            raise ValueError(f"margin is {margin!r}; expected a number above 0 and below 0.5")
        return _elementwise("inverse", self.name, {"n": n}, out, margin)

    def derivative(self, z: Any, *, out: Any = None) -> Any:
        """Return d act(z)_i / d z_i."""
        if self.name == "softmax":
            n = self.forward(rows_to_device(z))
            _checked_out_of(out, n, {"z": z})
            return write_result(n - n * n, out, z)
        return _elementwise("derivative", self.name, {"z": z}, out)

    def jacobian(self, v: Any, n: Any, *, out: Any = None) -> Any:
        """Return J v for the Jacobian J where the activation has the values n."""
        return _elementwise("jacobian", self.name, {"n": n, "v": v}, out)

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


def _elementwise(
    what: str, name: str, arguments: dict[str, Any], out: Any, margin: float | None = None
) -> Any:
    """Apply a function to one argument, or to two of the same shape and dtype."""
    arrays = {argument: checked_floats(given, argument) for argument, given in arguments.items()}
    values, other = next(iter(arrays.values())), list(arrays.values())[-1]
    check_same(other, values, list(arrays)[-1])
    given = _checked_out_of(out, values, arguments)
    # A kernel of softmax reads a row after it has begun to write it.
    apart = not any(may_overlap(given, array) for array in arrays.values())
    result = given if isinstance(given, Array) and apart else empty(values.shape, values.dtype)
    if not result.size:
        return write_result(result, out, *arguments.values())
    if name == "softmax":
        softmax_rows(what, values, other, margin, result)
    else:
        real = scalar_type(values.dtype)
        kernel = elements.activation_kernel(what, name, real)
        number = real(clipped_margin(margin, values.dtype))
        first, second, written = as_matrices(values, other, result)
        launch_elements(kernel, written, first, second, number)
    return write_result(result, out, *arguments.values())


def _checked_out_of(
    out: Any, values: Array, arguments: dict[str, Any]
) -> Array | NDArray[Any] | None:
    """Return the array to write to: one of the arguments, or one that overlaps none of them."""
    given = checked_out(out, values.shape, values.dtype)
    check_apart(given, **{name: array for name, array in arguments.items() if array is not out})
    return given


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
