"""Arrays on the device, with as much of NumPy's behaviour as the sweeps need: views, rows, sums and products.

`np.asarray` copies one to the host. Other libraries see its memory by `__cuda_array_interface__` and DLPack.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.cuda import dlpack, elements, products, runtime

__all__ = [
    "Array",
    "HostRows",
    "asarray",
    "column_totals",
    "each",
    "empty",
    "flat",
    "gather",
    "matrices",
    "movable",
    "parts",
    "take",
    "zeros",
]

PART_BYTES = 1 << 28
"""Rows that do not fit the device are moved there in parts of at most so many bytes."""

LARGEST_SHARE = 0.75
"""Of the free memory, that rows may take: the rest is for what is computed of them."""

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
        """Export the memory, or a copy; what was launched so far has ended, so that any stream may read it."""
        device = self.__dlpack_device__()
        if dl_device not in (None, device):
            raise BufferError(
                f"the array is on device {device}; expected no other, not {dl_device}"
            )
        exported = self.copy() if copy else self
        runtime.synchronize()
        return dlpack.export(exported.__cuda_array_interface__, exported, device)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (dlpack.CPU, 0) if runtime.simulated else (dlpack.CUDA, runtime.device_number())

    def __getitem__(self, key: Any) -> Array:
        """Give a view by slices, or a copy of the rows that an array of integers names."""
        if isinstance(key, (np.ndarray, Array)):
            return take(self, key)
        if isinstance(key, tuple) and None in key:
            if self.ndim != 1 or key != (slice(None), None):
                raise IndexError("a new axis makes a vector a column, [:, None]; expected no other")
            return Array(_column(self))
        return _view(self, key)

    def __setitem__(self, key: Any, values: Any) -> None:
        """Copy values of the same shape to a view by slices."""
        if isinstance(key, (np.ndarray, Array)):
            raise TypeError("rows are set by an array of their numbers; expected slices")
        _copy(asarray(values), self[key])

    def reshape(self, *shape: Any) -> Array:
        """Give a view of another shape, or a copy where the array does not lie in one piece."""
        # numba-cuda would give columns in one piece the strides of rows, without a copy.
        data = self.data if self.data.is_c_contiguous() else self.copy().data
        return Array(data.reshape(*shape).bind(data.stream))

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
        """Give the sum of all elements, which is made on the device, in float64."""
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
        return movable(self.values[np.asarray(key) if isinstance(key, Array) else key])


def empty(shape: Any, dtype: Any) -> Array:
    """Give an array on the device whose values are not set."""
    return Array(runtime.empty(shape, np.dtype(dtype)))


def zeros(shape: Any, dtype: Any = np.float64) -> Array:
    """Give an array of zeros on the device."""
    result = empty(shape, dtype)
    if result.size:
        (out,) = matrices(result)
        each(elements.fill_kernel(), out, result.dtype.type(0))
    return result


def asarray(values: Any) -> Array:
    """Give what is on the device as it is, without a copy, and move what is not."""
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
    # An interface without a stream, as torch's, does not say what is to be waited for: DLPack does.
    if interface is not None and ("stream" in interface or kind != dlpack.CUDA):
        return Array(runtime.from_interface(interface, values))
    if kind == dlpack.CUDA:
        # Work of the producer is done before what this stream, 1 for the default one, is given from now on.
        capsule = values.__dlpack__(stream=runtime.stream_handle() or 1)
        return Array(runtime.from_interface(*dlpack.imported(capsule)))
    if runtime.simulated and kind == dlpack.CPU:
        return Array(runtime.from_interface(*dlpack.imported(values.__dlpack__())))
    return Array(runtime.upload(np.asarray(values)))


def movable(values: Any) -> Array | HostRows:
    """Give rows on the device, or, where it has no room for all of them, rows that go there part by part."""
    if isinstance(values, (Array, HostRows)):
        return values
    large = isinstance(values, np.ndarray) and values.nbytes > PART_BYTES
    if large and values.nbytes > LARGEST_SHARE * runtime.free_bytes():
        return HostRows(values)
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


def each(kernel: Any, out: Any, *arguments: Any) -> None:
    """Launch a kernel of elements for every element of the matrix `out`, its last argument."""
    runtime.launch(kernel, *elements.spread(*out.shape), *arguments, out)


def matrices(*arrays: Array) -> tuple[Any, ...]:
    """Give arrays of one shape, or of one element, for kernels of elements, as `flat` does.

    Vectors, and arrays that all lie in one piece, are one column.
    """
    if all(array.ndim == 1 or array.data.is_c_contiguous() for array in arrays):
        return tuple(map(_column, arrays))
    return tuple(map(flat, arrays))


def flat(array: Array) -> Any:
    """Give a matrix for kernels: the last axis, and all others as one.

    It is a view, but for arrays of more than two axes that do not lie in one piece: those must not be written.
    """
    if array.ndim == 2:
        return array.data
    if array.ndim == 1 and not array.data.is_c_contiguous():
        strides = (array.dtype.itemsize, *array.data.strides)
        return runtime.strided(array.data, (1, len(array)), strides)
    width = array.shape[-1] if array.ndim else 1
    return array.reshape(array.size // max(width, 1), width).data


def _column(array: Array) -> Any:
    """Give a vector, or an array in one piece, as a column; a view."""
    if array.data.is_c_contiguous():
        return array.reshape(array.size, 1).data
    strides = (*array.data.strides, array.dtype.itemsize)
    return runtime.strided(array.data, (len(array), 1), strides)


def _view(array: Array, key: Any) -> Array:
    """Give a view by numbers and slices, for the first axes or all."""
    # Those of numba-cuda are empty for negative strides, and wrong for columns in one piece with an axis of one.
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
    return Array(runtime.strided(array.data, tuple(shape), tuple(strides), offset))


def take(rows: Array, chosen: Any, out: Array | None = None) -> Array:
    """Gather rows by their numbers, which are checked on the host."""
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
    result = empty(shape, rows.dtype) if out is None or not _writable(out) else out
    if result.size:
        on_gpu = chosen if isinstance(chosen, Array) else asarray(numbers.astype(np.int64))
        each(elements.take_kernel(), _rows(result), _rows(rows), on_gpu.data)
    if out is not None and out is not result:
        _copy(result, out)
    return result if out is None else out


def _rows(array: Array) -> Any:
    """Give a matrix whose rows are those of an array that has some; a view of what is `_writable`."""
    if array.ndim == 2:
        return array.data
    if array.ndim == 1:
        return _column(array)
    return array.reshape(len(array), array.size // len(array)).data


def _writable(array: Array) -> bool:
    """Say whether `flat`, `matrices` and `_rows` give a view, for kernels to write."""
    return array.ndim <= 2 or bool(array.data.is_c_contiguous())


def gather(rows: Array | HostRows, chosen: NDArray[np.intp], out: Array) -> Array:
    """Gather rows into `out`; those of the host are moved there."""
    if isinstance(rows, Array):
        return take(rows, chosen, out)
    for place, part in parts(HostRows(rows.values[chosen])):
        _copy(part, out[place])
    return out


def column_totals(
    what: str, p: Array, q: Array | None, weight: Array | None, name: str = "identity"
) -> Array:
    """Sum what `elements.column_sums_kernel` says over rows, on the device: one row of float64."""
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
    if _writable(source) and _writable(target):
        values, out = matrices(source, target)
        each(elements.copy_kernel(), out, values)
        return
    for k in range(len(target)):
        _copy(source[k], target[k])


def _arithmetic(what: str, a: Any, b: Any, out: Array | None) -> Array:
    """Compute on the device; numbers take the type of the array beside them, as in NumPy."""
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
    result = empty(shape, dtype) if out is None or not _writable(out) else out
    if result.size:
        operands = (a, b, result)
        left, right, target = matrices(*operands) if alike else tuple(map(flat, operands))
        each(elements.arithmetic_kernel(what), target, left, right)
    if out is not None and out is not result:
        _copy(result, out)
    return result if out is None else out


def _operand(x: Any, dtype: Any) -> Array:
    return x if isinstance(x, Array) else asarray(np.asarray(x, dtype))
