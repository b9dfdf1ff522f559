"""Where arrays are and where calls run: on the CPU, or on an NVIDIA GPU, whose kernels load on first use.

`device_kernels` chooses; the other functions create arrays on a backend or move them between host and device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bpls_fast.kernels.protocol import Kernels

__all__ = [
    "arrays_to_numpy",
    "backend_of",
    "device_kernels",
    "empty",
    "on_device",
    "require_backend",
    "split_on_out_of_memory",
    "to_backend",
    "to_device_of",
    "to_numpy",
]

BACKENDS = ("auto", "cpu", "cuda")
DLPACK_CUDA = 2  # the number of CUDA devices in dlpack.h


def on_device(values: Any) -> bool:
    """Return whether an array is on the GPU: one of ours, or one that says so by its array interface or DLPack.

    A tuple is on the GPU if one of its arrays is.
    """
    if type(values) is np.ndarray or values is None:
        return False
    if type(values) is tuple:
        return any(map(on_device, values))
    if getattr(values, "on_device", False) is True or hasattr(values, "__cuda_array_interface__"):
        return True
    return hasattr(values, "__dlpack_device__") and values.__dlpack_device__()[0] == DLPACK_CUDA


def device_kernels(backend: str, *arrays: Any) -> Kernels | None:
    """Return the kernels of the GPU if a call should run there, else None; "auto" runs where the arrays are.

    Kernels ask `_core.on_host` first: it answers for NumPy's arrays in a fraction of this function's time.
    """
    if backend == "cpu" or (backend == "auto" and not on_device(arrays)):
        return None
    if backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}; expected one of {', '.join(BACKENDS)}")
    from bpls_fast.cuda import runtime  # raises ImportError, with the remedy, without numba-cuda

    runtime.require_device()
    from bpls_fast.cuda import kernels

    return kernels


def require_backend(backend: str) -> None:
    """Raise where a backend cannot run: its name is unknown, its package is missing, or there is no GPU."""
    device_kernels(backend)


def to_backend(backend: str, X: Any, *arrays: Any) -> Any:
    """Move the rows X, and arrays that belong to them or None, to where a fit on this backend needs them."""
    if device_kernels(backend, X) is None:
        return tuple(None if values is None else to_numpy(values) for values in (X, *arrays))
    from bpls_fast.cuda.array import asarray, rows_to_device

    return rows_to_device(X), *(None if values is None else asarray(values) for values in arrays)


def backend_of(values: Any) -> str:
    """Return the backend whose memory holds an array: "cpu" or "cuda"."""
    return "cuda" if on_device(values) else "cpu"


def to_device_of(X: Any, values: Any) -> Any:
    """Move values to where X is."""
    return to_backend(backend_of(X), values)[0]


def arrays_to_numpy(arrays: Iterable[Any]) -> tuple[NDArray[Any], ...]:
    """Convert arrays to NumPy's."""
    return tuple(map(to_numpy, arrays))


def to_numpy(values: Any) -> NDArray[Any]:
    """Convert an array to NumPy's."""
    if on_device(values):
        from bpls_fast.cuda.array import rows_to_device

        values = rows_to_device(values)
    return np.asarray(values)


def empty(shape: tuple[int, ...], dtype: Any, backend: str) -> Any:
    """Return an uninitialized array on a backend, "cpu" or "cuda"."""
    if backend == "cpu":
        return np.empty(shape, dtype)
    from bpls_fast.cuda.array import empty

    return empty(shape, dtype)


def split_on_out_of_memory(call: Callable[[Any], NDArray[Any]], rows: Any) -> NDArray[Any]:
    """Return call(rows), which treats every row on its own; if memory runs out, call it on halves of the rows."""
    try:
        return call(rows)
    except MemoryError:
        if len(rows) < 2:
            raise
    half = len(rows) // 2
    return np.concatenate(
        [split_on_out_of_memory(call, rows[:half]), split_on_out_of_memory(call, rows[half:])]
    )
