"""Arguments of the GPU's kernels, checked before anything is launched, and results where the arguments were."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.cuda import runtime
from bpls_fast.cuda.array import Array, HostRows, asarray, rows_to_device
from bpls_fast.kernels.backend import on_device

__all__ = [
    "arithmetic_of",
    "check_apart",
    "check_same",
    "checked_floats",
    "checked_out",
    "checked_rows",
    "checked_targets",
    "checked_weight",
    "like_arguments",
    "may_overlap",
    "scalar_type",
    "write_result",
]

FLOATS = ("float32", "float64")


def arithmetic_of(*arrays: Array | HostRows) -> np.dtype[Any]:
    """Return the dtype that a product of these arrays is computed in: float64 if one of them is, else float32."""
    wide = any(array.dtype == np.float64 for array in arrays)
    return np.dtype(np.float64 if wide else np.float32)


def scalar_type(dtype: np.dtype[Any]) -> Any:
    """Return NumPy's type of one number, for which kernels are compiled."""
    return dtype.type


def checked_rows(values: Any, name: str) -> Array | HostRows:
    """Return a matrix of uint8, float32 or float64 with at least one column."""
    array = rows_to_device(_as_array(values))
    if array.dtype not in (np.uint8, np.float32, np.float64):
        raise TypeError(f"{name} has dtype {array.dtype}; expected uint8, float32 or float64")
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimension(s), shape {array.shape}; expected 2")
    if array.shape[1] == 0:
        raise ValueError(f"{name} has no columns; expected at least one")
    return array


def checked_floats(values: Any, name: str, ndim: int | None = None) -> Array:
    """Return an array of float32 or float64, with `ndim` dimensions if that is given."""
    array = asarray(_as_array(values))
    if array.dtype.name not in FLOATS:
        raise TypeError(f"{name} has dtype {array.dtype}; expected float32 or float64")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(
            f"{name} has {array.ndim} dimension(s), shape {array.shape}; expected {ndim}"
        )
    return array


def _as_array(values: Any) -> Any:
    """Return an array of any library as it is, anything else as NumPy's."""
    is_array = isinstance(values, (Array, HostRows, np.ndarray))
    interfaces = ("__cuda_array_interface__", "__dlpack_device__")
    if is_array or any(hasattr(values, name) for name in interfaces):
        return values
    return np.asarray(values)


def checked_targets(values: Any, rows: Array | HostRows, name: str) -> Array:
    """Return a matrix of floats with as many rows as `rows` has."""
    array = checked_floats(values, name, 2)
    if len(array) != len(rows):
        raise ValueError(
            f"{name} has {len(array)} rows; expected {len(rows)}, one for each row of A"
        )
    return array


def checked_weight(values: Any, rows: Any) -> Array | None:
    """Return the weights of rows, one for each, or None."""
    if values is None:
        return None
    array = checked_floats(values, "sample_weight", 1)
    if len(array) != rows.shape[0]:
        raise ValueError(
            f"sample_weight has {len(array)} weights; expected {rows.shape[0]}, one for each row"
        )
    return array


def check_same(array: Array, like: Array, name: str) -> None:
    """Refuse an array whose shape or dtype is not that of another."""
    if (array.shape, array.dtype) != (like.shape, like.dtype):
        raise ValueError(
            f"{name} has shape {array.shape} and dtype {array.dtype}; expected {like.shape} and {like.dtype}"
        )


def checked_out(
    out: Any, shape: tuple[int, ...], dtype: Any, name: str = "out"
) -> Array | NDArray[Any] | None:
    """Return the array that a result is to be written to, on the device or on the host, or None."""
    if out is None:
        return None
    if not (on_device(out) or isinstance(out, np.ndarray)):
        raise TypeError(f"{name} is a {type(out).__name__}; expected None or an array to write to")
    given: Array | NDArray[Any] = asarray(out) if on_device(out) else out
    if given.dtype != dtype:
        raise TypeError(f"{name} has dtype {given.dtype}; expected {np.dtype(dtype)}")
    if given.shape != shape:
        raise ValueError(f"{name} has shape {given.shape}; expected {shape}")
    contiguous = given.is_contiguous if isinstance(given, Array) else given.flags.c_contiguous
    if not contiguous:
        raise ValueError(f"{name} is not C-contiguous; expected a C-contiguous array")
    if isinstance(given, np.ndarray) and not given.flags.writeable:
        raise ValueError(f"{name} is read-only; expected a writeable array")
    return given


def check_apart(given: Array | NDArray[Any] | None, name: str = "out", **arguments: Any) -> None:
    """Refuse an `out` that may share memory with one of these arguments."""
    for argument, values in arguments.items():
        if given is not None and may_overlap(given, values):
            raise ValueError(
                f"{name} may overlap {argument} in memory; expected an array of its own"
            )


def may_overlap(a: Any, b: Any) -> bool:
    """Return whether the address ranges of two arrays, both on the device or both on the host, overlap."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(np.may_share_memory(a, b))
    if not (on_device(a) and on_device(b)):
        return False
    first, second = asarray(a), asarray(b)
    if not first.size or not second.size:
        return False
    begin, end = runtime.address_range(first.data)
    other, other_end = runtime.address_range(second.data)
    return bool(begin < other_end and other < end)


def write_result(result: Any, out: Any, *arguments: Any) -> Any:
    """Write the result to `out`, unless it is there, and return `out`; None stands for an array like the arguments."""
    if out is None:
        return like_arguments(result, *arguments)
    if not on_device(out):
        out[...] = np.asarray(result)
    elif not may_overlap(out, result):
        asarray(out)[:] = result
    return out


def like_arguments(result: Any, *arguments: Any) -> Any:
    """Return a result on the device if an argument was there, else on the host."""
    return asarray(result) if any(map(on_device, arguments)) else np.asarray(result)
