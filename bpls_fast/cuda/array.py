"""Arrays on the device, with as much of NumPy's behaviour as the sweeps need: views, rows, sums and products.

`np.asarray` copies one to the host. Other libraries see its memory by `__cuda_array_interface__` and DLPack.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.cuda import dlpack, elements, runtime

__all__ = [
    "Array",
    "HostRows",
    "asarray",
    "blocks",
    "empty",
    "flat",
    "gather",
    "movable",
    "parts",
    "take",
]

PART_BYTES = 1 << 28
"""Rows that do not fit the device are moved there in parts of at most so many bytes."""

_UFUNCS = {np.add: "add", np.subtract: "subtract", np.multiply: "multiply"}


class Array:
    """An array on the device.

    Parameters
    ----------
    data : device array of numba-cuda
    """

    on_device = True

    def __init__(self, data: Any) -> None:
        self.data = data

    @property
    def shape(self) -> tuple[int, ...]:
        """As of NumPy's arrays, like what follows."""
        return tuple(self.data.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element."""
        dtype: np.dtype[Any] = np.dtype(self.data.dtype)
        return dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"cuda.Array(shape={self.shape}, dtype={self.dtype})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self if self.data.is_c_contiguous() else self.astype(self.dtype)
        values = runtime.download(whole.data) if self.size else np.empty(self.shape, self.dtype)
        return values if dtype is None else values.astype(dtype, copy=False)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface = runtime.interface_of(self.data)
        return {**interface, "stream": runtime.stream_handle() or interface.get("stream")}

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        """Export the memory; what was launched so far has ended, so that any stream may read it."""
        runtime.synchronize()
        return dlpack.export(self.__cuda_array_interface__, self, on_host=runtime.simulated)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (dlpack.CPU, 0) if runtime.simulated else (dlpack.CUDA, 0)

    def __getitem__(self, key: Any) -> Array:
        """Give a view by slices, or a copy of the rows that an array of integers names."""
        if isinstance(key, (np.ndarray, Array)):
            return take(self, key)
        if isinstance(key, tuple) and None in key:  # a vector as a column
            return self.reshape(len(self), 1)
        return Array(self.data[key])

    def __setitem__(self, key: Any, values: Array) -> None:
        _copy(values, self[key])

    def reshape(self, *shape: Any) -> Array:
        """Give a view of another shape; the array must lie in one piece."""
        return Array(self.data.reshape(*shape))

    def astype(self, dtype: Any, copy: bool = True) -> Array:
        """Give a copy of this dtype, which lies in one piece; without `copy` itself if it has the dtype."""
        if not copy and self.dtype == dtype:
            return self
        result = empty(self.shape, dtype)
        _copy(self, result)
        return result

    def copy(self) -> Array:
        """Give a copy, which lies in one piece."""
        return self.astype(self.dtype)

    def sum(self, dtype: Any = np.float64) -> Any:
        """Give the sum of all elements, on the host."""
        return np.asarray(self).sum(dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None) -> Any:
        if method != "__call__" or ufunc not in _UFUNCS or len(inputs) != 2:
            return NotImplemented
        return _arithmetic(_UFUNCS[ufunc], *inputs, out[0] if out else None)

    def __add__(self, other: Any) -> Array:
        return _arithmetic("add", self, other, None)

    def __sub__(self, other: Any) -> Array:
        return _arithmetic("subtract", self, other, None)

    def __mul__(self, other: Any) -> Array:
        return _arithmetic("multiply", self, other, None)

    def __rsub__(self, other: Any) -> Array:
        return _arithmetic("subtract", other, self, None)

    __radd__, __rmul__ = __add__, __mul__

    def __iadd__(self, other: Any) -> Array:
        return _arithmetic("add", self, other, self)

    def __isub__(self, other: Any) -> Array:
        return _arithmetic("subtract", self, other, self)

    def __imul__(self, other: Any) -> Array:
        return _arithmetic("multiply", self, other, self)


class HostRows:
    """Rows that do not fit the device: they stay on the host and are moved part by part, whenever they are used."""

    on_device = True

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.values, dtype)

    def __getitem__(self, key: Any) -> Array | HostRows:
        return movable(self.values[key])


def empty(shape: Any, dtype: Any) -> Array:
    """Give an array on the device whose values are not set."""
    return Array(runtime.empty(shape, np.dtype(dtype)))


def asarray(values: Any) -> Array:
    """Give what is on the device as it is, without a copy, and move what is not."""
    if isinstance(values, Array):
        return values
    interface = getattr(values, "__cuda_array_interface__", None)
    if interface is not None:
        return Array(runtime.from_interface(interface, values))
    if not isinstance(values, (np.ndarray, HostRows)) and hasattr(values, "__dlpack_device__"):
        kind = values.__dlpack_device__()[0]
        if kind == dlpack.CUDA or (runtime.simulated and kind == dlpack.CPU):
            capsule = values.__dlpack__()
            return Array(runtime.from_interface(*dlpack.imported(capsule)))
    return Array(runtime.upload(np.asarray(values)))


def movable(values: Any) -> Array | HostRows:
    """Give rows on the device, or, where it has no room for all of them, rows that go there part by part."""
    if isinstance(values, (Array, HostRows)):
        return values
    try:
        return asarray(values)
    except runtime.OutOfMemoryError:
        return HostRows(np.asarray(values))


def parts(rows: Array | HostRows) -> Iterator[tuple[slice, Array]]:
    """Give the rows in parts that are on the device, each with its place."""
    if isinstance(rows, Array):
        yield slice(0, len(rows)), rows
        return
    bytes_of_row = max(1, rows.values[:1].nbytes)
    size, first = max(1, PART_BYTES // bytes_of_row), 0
    while first < len(rows):
        place = slice(first, min(first + size, len(rows)))
        try:
            part = asarray(rows.values[place])
        except runtime.OutOfMemoryError:
            if size == 1:
                raise
            size //= 2
            continue
        yield place, part
        first = place.stop


def blocks(elements_: int) -> int:
    """Give how many blocks of threads go over so many elements."""
    return max(1, min(-(-elements_ // elements.THREADS), 4096))


def flat(array: Array) -> Any:
    """Give a matrix for kernels: the last axis, and all others as one."""
    if array.ndim == 2:
        return array.data
    width = array.shape[-1] if array.ndim else 1
    return array.data.reshape(array.size // max(width, 1), width)


def take(rows: Array, chosen: Any, out: Array | None = None) -> Array:
    """Gather rows by their numbers."""
    chosen = asarray(chosen if isinstance(chosen, Array) else np.asarray(chosen, np.int64))
    result = empty((len(chosen), *rows.shape[1:]), rows.dtype) if out is None else out
    if result.size:
        source = rows.data if rows.ndim == 2 else rows.data.reshape(len(rows), 1)
        target = result.data if rows.ndim == 2 else result.data.reshape(len(result), 1)
        grid = blocks(result.size)
        runtime.launch(elements.take_kernel(), grid, elements.THREADS, source, chosen.data, target)
    return result


def gather(rows: Array | HostRows, chosen: NDArray[np.intp], out: Array) -> Array:
    """Gather rows into `out`; those of the host are moved there."""
    if isinstance(rows, Array):
        return take(rows, chosen, out)
    for place, part in parts(HostRows(rows.values[chosen])):
        _copy(part, out[place])
    return out


def _copy(source: Array, target: Array) -> None:
    if target.size:
        grid = blocks(target.size)
        kernel = elements.copy_kernel()
        runtime.launch(kernel, grid, elements.THREADS, flat(source), flat(target))


def _arithmetic(what: str, a: Any, b: Any, out: Array | None) -> Array:
    """Compute on the device; numbers take the type of the array beside them, as in NumPy."""
    dtype = np.result_type(*(x.dtype if isinstance(x, (Array, np.ndarray)) else x for x in (a, b)))
    a, b = _operand(a, dtype), _operand(b, dtype)
    shape = np.broadcast_shapes(a.shape, b.shape)
    result = empty(shape, dtype) if out is None else out
    if result.size:
        grid = blocks(result.size)
        kernel = elements.arithmetic_kernel(what)
        runtime.launch(kernel, grid, elements.THREADS, _matrix(a), _matrix(b), flat(result))
    return result


def _operand(x: Any, dtype: Any) -> Array:
    return x if isinstance(x, Array) else asarray(np.asarray(x, dtype))


def _matrix(x: Array) -> Any:
    """Give an operand as a matrix: vectors are rows."""
    return x.data if x.ndim == 2 else x.data.reshape(1, x.size)
