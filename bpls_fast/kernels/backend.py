"""Where arrays are and where calls run: on the CPU, or on an NVIDIA GPU, whose kernels load when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast import _core

__all__ = [
    "arrays_to_numpy",
    "backend_of",
    "device_kernels",
    "empty",
    "on_device",
    "split_on_out_of_memory",
    "take",
    "to_backend",
    "to_device_of",
    "to_numpy",
]

BACKENDS = ("auto", "cpu", "cuda")
DLPACK_CUDA = 2  # the number of CUDA devices in dlpack.h


def on_device(values: Any) -> bool:
    """Say whether an array is on the GPU: one of ours, or anybody's that says so by its array interface or DLPack."""
    if type(values) is np.ndarray or values is None:
        return False
    if getattr(values, "on_device", False) is True or hasattr(values, "__cuda_array_interface__"):
        return True
    return hasattr(values, "__dlpack_device__") and values.__dlpack_device__()[0] == DLPACK_CUDA


def device_kernels(backend: str, *arrays: Any) -> Any:
    """Give the kernels of the GPU if a call should run there, else None; "auto" runs where the arrays are."""
    if backend == "auto":
        for values in arrays:  # on_device() in line: small products take no longer than its call
            if type(values) is not np.ndarray and values is not None and on_device(values):
                break
        else:
            return None
    elif backend == "cpu":
        return None
    if backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}; expected one of {', '.join(BACKENDS)}")
    from bpls_fast.cuda import runtime  # says what is missing

    runtime.require_device()
    from bpls_fast.cuda import kernels

    return kernels


def to_backend(backend: str, X: Any, *arrays: Any) -> Any:
    """Give the rows X, and arrays that belong to them or None, where a fit on this backend needs them."""
    if device_kernels(backend, X) is None:
        return tuple(None if values is None else to_numpy(values) for values in (X, *arrays))
    from bpls_fast.cuda.array import asarray, movable

    return movable(X), *(None if values is None else asarray(values) for values in arrays)


def backend_of(values: Any) -> str:
    """Return the backend whose memory holds an array: "cpu" or "cuda"."""
    return "cuda" if on_device(values) else "cpu"


def to_device_of(X: Any, values: Any) -> Any:
    """Return values where X is."""
    return to_backend(backend_of(X), values)[0]


def arrays_to_numpy(arrays: Iterable[Any]) -> tuple[NDArray[Any], ...]:
    """Give arrays as NumPy's."""
    return tuple(map(to_numpy, arrays))


def to_numpy(values: Any) -> NDArray[Any]:
    """Give an array as NumPy's."""
    if on_device(values):
        from bpls_fast.cuda.array import movable

        values = movable(values)
    return np.asarray(values)


def empty(shape: tuple[int, ...], dtype: Any, backend: str) -> Any:
    """Give an array whose values are not set, for kernels of this backend, "cpu" or "cuda"."""
    if backend == "cpu":
        return np.empty(shape, dtype)
    from bpls_fast.cuda.array import empty

    return empty(shape, dtype)


def take(X: Any, chosen: NDArray[np.intp], out: Any) -> Any:
    """Gather rows into `out`."""
    if not on_device(out):
        if X.strides[1] != X.itemsize and X.shape[1] > 1:
            return np.take(X, chosen, axis=0, out=out, mode="clip")
        _core.take_rows(X, chosen, out, None)
        return out
    from bpls_fast.cuda.array import gather

    return gather(X, chosen, out)


def split_on_out_of_memory(call: Callable[[Any], NDArray[Any]], rows: Any) -> NDArray[Any]:
    """Give what a call makes of rows, each on its own; where memory does not suffice, of one half after the other."""
    try:
        return call(rows)
    except MemoryError:
        if len(rows) < 2:
            raise
    half = len(rows) // 2
    return np.concatenate(
        [split_on_out_of_memory(call, rows[:half]), split_on_out_of_memory(call, rows[half:])]
    )
