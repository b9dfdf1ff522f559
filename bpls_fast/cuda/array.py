"""Arrays on the device, with as much of NumPy's interface as the fits need: views, rows, sums and products.

`np.asarray` copies an array to the host. Other libraries read it in place by `__cuda_array_interface__` and DLPack.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.cuda import dlpack, runtime
from bpls_fast.cuda.device import elements, products

__all__ = [
    "Array",
    "HostRows",
    "add_up",
    "as_matrices",
    "as_matrix",
    "asarray",
    "column_totals",
    "device_blocks",
    "empty",
    "launch_elements",
    "rows_to_device",
    "take",
    "zeros",
]

BLOCK_BYTES = 1 << 28
"""The most bytes of a block of rows, where the rows do not all fit the device."""

LARGEST_SHARE = 0.75
"""The share of the free memory that rows may take; the rest is for what is computed from them."""

_UFUNCS = {np.add: "add", np.subtract: "subtract", np.multiply: "multiply"}


class Array:
    """An array on the device.

    Parameters
    ----------
    data : device array
        As `runtime` creates it.
    """

    on_device = True

    def __init__(self, data: Any) -> None:
        self.data = data

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of every axis."""
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

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are in the order of rows, without gaps."""
        return runtime.is_contiguous(self.data)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"cuda.Array(shape={self.shape}, dtype={self.dtype})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        contiguous = self if self.is_contiguous else self.copy()
        values = (
            runtime.download(contiguous.data) if self.size else np.empty(self.shape, self.dtype)
        )
        return values if dtype is None else values.astype(dtype, copy=False)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface = runtime.interface_of(self.data)
        default = 1  # None would say that there is nothing to wait for
        return {**interface, "stream": runtime.stream_handle() or interface["stream"] or default}

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the memory, or a copy, once all launched work has ended, so that any stream may read it."""
        device = self.__dlpack_device__()
        if dl_device not in (None, device):
            raise BufferError(
                f"the array is on device {device}; expected no other, not {dl_device}"
            )
        exported = self.copy() if copy else self
        runtime.synchronize()
        return dlpack.export_capsule(exported.__cuda_array_interface__, exported, device)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (dlpack.CPU, 0) if runtime.simulated else (dlpack.CUDA, runtime.device_number())

    def __getitem__(self, key: Any) -> Array:
        """Return a view by slices, or a copy of the rows with the numbers in an array."""
        if isinstance(key, (np.ndarray, Array)):
            return take(self, key)
        if isinstance(key, tuple) and None in key:
            if self.ndim != 1 or key != (slice(None), None):
                raise IndexError("a new axis makes a vector a column, [:, None]; expected no other")
            return Array(_as_column(self))
        return _view(self, key)

    def __setitem__(self, key: Any, values: Any) -> None:
        """Copy values of the same shape to a view by slices."""
        if isinstance(key, (np.ndarray, Array)):
            raise TypeError("rows are set by an array of their numbers; expected slices")
        _copy(asarray(values), self[key])

    def reshape(self, *shape: Any) -> Array:
        """Return a view of another shape, or a copy if the array is not contiguous."""
        contiguous = self if self.is_contiguous else self.copy()
        return Array(runtime.reshaped(contiguous.data, shape))

    def astype(self, dtype: Any, copy: bool = True) -> Array:
        """Return a contiguous copy of this dtype; without `copy`, the array itself if it has the dtype."""
        if not copy and self.dtype == dtype:
            return self
        result = empty(self.shape, dtype)
        _copy(self, result)
        return result

    def copy(self) -> Array:
        """Return a contiguous copy."""
        return self.astype(self.dtype)

    def sum(self, dtype: Any = np.float64) -> Any:
        """Return the sum of all elements, computed on the device in float64."""
        total = column_totals("values", self.reshape(self.size, 1), None, None)
        return np.asarray(total)[0, 0].astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None) -> Any:
        given = out[0] if out else None
        if method != "__call__" or ufunc not in _UFUNCS or len(inputs) != 2:
            return NotImplemented
        if not (given is None or isinstance(given, Array)):
            return NotImplemented
        return _arithmetic(_UFUNCS[ufunc], *inputs, given)

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
    """Rows that do not fit the device: they stay on the host and are moved block by block whenever they are used."""

    on_device = True

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.values, dtype)

    def __getitem__(self, key: Any) -> Array | HostRows:
        return rows_to_device(self.values[np.asarray(key) if isinstance(key, Array) else key])


def empty(shape: Any, dtype: Any) -> Array:
    """Return an uninitialized array on the device."""
    return Array(runtime.empty(shape, np.dtype(dtype)))


def zeros(shape: Any, dtype: Any = np.float64) -> Array:
    """Return an array of zeros on the device."""
    result = empty(shape, dtype)
    if result.size:
        (out,) = as_matrices(result)
        launch_elements(elements.fill_kernel(), out, result.dtype.type(0))
    return result


def asarray(values: Any) -> Array:
    """Return an array on the device: without a copy if it is there, else moved."""
    if isinstance(values, Array):
        return values
    kind = None
    if not isinstance(values, (np.ndarray, HostRows)) and hasattr(values, "__dlpack_device__"):
        kind, number = values.__dlpack_device__()
        if kind == dlpack.CUDA and number != runtime.device_number():
            raise ValueError(
                f"an array is on CUDA device {number}; expected device {runtime.device_number()}, which is in use"
            )
    interface = getattr(values, "__cuda_array_interface__", None)
    # An interface without a stream, like torch's, does not say what to wait for; DLPack does.
    if interface is not None and ("stream" in interface or kind != dlpack.CUDA):
        return Array(runtime.from_interface(interface, values))
    if kind == dlpack.CUDA:
        # The producer makes this stream, 1 for the default one, wait for its work.
        capsule = values.__dlpack__(stream=runtime.stream_handle() or 1)
        return Array(runtime.from_interface(*dlpack.import_capsule(capsule)))
    if runtime.simulated and kind == dlpack.CPU:
        return Array(runtime.from_interface(*dlpack.import_capsule(values.__dlpack__())))
    return Array(runtime.upload(np.asarray(values)))


def rows_to_device(values: Any) -> Array | HostRows:
    """Move rows to the device; where it has no room for all of them, return rows that move block by block."""
    if isinstance(values, (Array, HostRows)):
        return values
    large = isinstance(values, np.ndarray) and values.nbytes > BLOCK_BYTES
    if large and values.nbytes > LARGEST_SHARE * runtime.free_bytes():
        return HostRows(values)
    try:
        return asarray(values)
    except runtime.OutOfMemoryError:
        return HostRows(np.asarray(values))


def device_blocks(rows: Array | HostRows) -> Iterator[tuple[slice, Array]]:
    """Yield the rows in blocks on the device, each with its place among the rows."""
    if isinstance(rows, Array):
        yield slice(0, len(rows)), rows
        return
    bytes_of_row = max(1, rows.values[:1].nbytes)
    size, first = max(1, BLOCK_BYTES // bytes_of_row), 0
    while first < len(rows):
        place = slice(first, min(first + size, len(rows)))
        try:
            block = asarray(rows.values[place])
        except runtime.OutOfMemoryError:
            if size == 1:
                raise
            size //= 2
            continue
        yield place, block
        first = place.stop


def launch_elements(kernel: Any, out: Any, *arguments: Any) -> None:
    """Launch a kernel for every element of the matrix `out`, its last argument."""
    runtime.launch(kernel, *elements.element_grid(*out.shape), *arguments, out)


def as_matrices(*arrays: Array) -> tuple[Any, ...]:
    """Return arrays of one shape, or of one element, as matrices for `launch_elements`.

    Vectors become one column, and so do arrays that are all contiguous; others are as of `as_matrix`.
    """
    if all(array.ndim == 1 or array.is_contiguous for array in arrays):
        return tuple(map(_as_column, arrays))
    return tuple(map(as_matrix, arrays))


def as_matrix(array: Array) -> Any:
    """Return a matrix for kernels: its columns are the last axis, its rows all others.

    It is a view, except for arrays of more than two axes that are not contiguous: do not write to those.
    """
    if array.ndim == 2:
        return array.data
    if array.ndim == 1 and not array.is_contiguous:
        strides = (array.dtype.itemsize, *array.data.strides)
        return runtime.strided_view(array.data, (1, len(array)), strides)
    width = array.shape[-1] if array.ndim else 1
    return array.reshape(array.size // max(width, 1), width).data


def _as_column(array: Array) -> Any:
    """Return a view of a vector, or of a contiguous array, as one column."""
    if array.is_contiguous:
        return array.reshape(array.size, 1).data
    strides = (*array.data.strides, array.dtype.itemsize)
    return runtime.strided_view(array.data, (len(array), 1), strides)


def _view(array: Array, key: Any) -> Array:
    """Return a view by integers and slices, for the first axes or all."""
    # numba-cuda's views are empty for negative strides, and wrong for Fortran-contiguous arrays with an axis of one.
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) > array.ndim:
        raise IndexError(f"{len(keys)} indices are given; expected {array.ndim}, one for each axis")
    keys = (*keys, *[slice(None)] * (array.ndim - len(keys)))
    shape, strides, offset = [], [], 0
    for length, stride, at in zip(array.shape, array.data.strides, keys, strict=True):
        places: Any = range(length)[at]
        if isinstance(places, range):
            shape.append(len(places))
            strides.append(places.step * stride)
            offset += places.start * stride if places else 0
        else:
            offset += places * stride
    return Array(runtime.strided_view(array.data, tuple(shape), tuple(strides), offset))


def take(rows: Array, chosen: Any, out: Array | None = None) -> Array:
    """Copy rows by their numbers, which are checked on the host."""
    numbers = np.asarray(chosen)
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise TypeError(
            f"rows are chosen by an array of shape {numbers.shape} and dtype {numbers.dtype}; expected a vector of "
            "integers"
        )
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(rows):
        raise IndexError(
            f"rows {numbers.min()} to {numbers.max()} are chosen of {len(rows)}; expected 0 to {len(rows) - 1}"
        )
    shape = (len(numbers), *rows.shape[1:])
    if out is not None and out.shape != shape:
        raise ValueError(f"out has shape {out.shape}; expected {shape}")
    result = empty(shape, rows.dtype) if out is None or not _has_matrix_view(out) else out
    if result.size:
        on_gpu = chosen if isinstance(chosen, Array) else asarray(numbers.astype(np.int64))
        launch_elements(elements.take_kernel(), _as_rows(result), _as_rows(rows), on_gpu.data)
    if out is not None and out is not result:
        _copy(result, out)
    return result if out is None else out


def _as_rows(array: Array) -> Any:
    """Return a matrix whose rows are those of an array, which is not empty; a view if `_has_matrix_view`."""
    if array.ndim == 2:
        return array.data
    if array.ndim == 1:
        return _as_column(array)
    return array.reshape(len(array), array.size // len(array)).data


def _has_matrix_view(array: Array) -> bool:
    """Return whether `as_matrix`, `as_matrices` and `_as_rows` return a view, to which kernels may write."""
    return array.ndim <= 2 or array.is_contiguous


def column_totals(
    what: str, p: Array, q: Array | None, weight: Array | None, name: str = "identity"
) -> Array:
    """Sum the terms that `elements.column_sums_kernel` names over rows, on the device: one row of float64."""
    total = zeros((1, p.shape[1]))
    count = -(-len(p) // elements.SUM_ROWS)
    if count:
        partial = empty((count, 1, p.shape[1]), float)
        block = elements.row_block(p.shape[1])
        real = p.dtype.type if what == "slopes" else np.float64
        kernel = elements.column_sums_kernel(what, weight is not None, block, name, real)
        grid = (count, -(-p.shape[1] // block[0]))
        vector = empty(1, p.dtype) if weight is None else weight
        arrays = (p.data, (p if q is None else q).data, vector.data, partial.data)
        runtime.launch(kernel, grid, block, *arrays)
        add_up(partial, total, symmetric=False)
    return total


def add_up(partial: Array, total: Array, *, symmetric: bool) -> None:
    """Add the sums of blocks of rows to their total."""
    x, y = products.ADD_UP_THREADS
    grid = (-(-total.shape[1] // x), -(-total.shape[0] // y))
    kernel = products.add_up_kernel()
    runtime.launch(kernel, grid, (x, y), partial.data, total.data, int(symmetric))


def _copy(source: Array, target: Array) -> None:
    if source.shape != target.shape:
        raise ValueError(f"values have shape {source.shape}; expected {target.shape}")
    if not target.size:
        return
    if _has_matrix_view(source) and _has_matrix_view(target):
        values, out = as_matrices(source, target)
        launch_elements(elements.copy_kernel(), out, values)
        return
    for k in range(len(target)):
        _copy(source[k], target[k])


def _arithmetic(what: str, a: Any, b: Any, out: Array | None) -> Array:
    """Compute on the device; a number takes the type of the other operand, as in NumPy."""
    dtype = np.result_type(*(x.dtype if isinstance(x, (Array, np.ndarray)) else x for x in (a, b)))
    a, b = _operand(a, dtype), _operand(b, dtype)
    shape = np.broadcast_shapes(a.shape, b.shape)
    if out is not None and out.shape != shape:
        raise ValueError(f"the result has shape {shape}; expected {out.shape}, to write it there")
    alike = all(x.size == 1 or x.shape == shape for x in (a, b))
    if len(shape) > 2 and not alike:
        raise ValueError(
            f"arrays have shapes {a.shape} and {b.shape}; expected at most two axes, one shape, or a number"
        )
    result = empty(shape, dtype) if out is None or not _has_matrix_view(out) else out
    if result.size:
        operands = (a, b, result)
        left, right, target = as_matrices(*operands) if alike else tuple(map(as_matrix, operands))
        launch_elements(elements.arithmetic_kernel(what), target, left, right)
    if out is not None and out is not result:
        _copy(result, out)
    return result if out is None else out


def _operand(x: Any, dtype: Any) -> Array:
    return x if isinstance(x, Array) else asarray(np.asarray(x, dtype))
