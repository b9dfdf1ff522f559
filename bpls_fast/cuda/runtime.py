"""The only module that imports numba-cuda: compiler, launches, memory, streams and devices.

Under the simulator (NUMBA_ENABLE_CUDASIM=1) every thread of a kernel runs in Python: blocks and tiles are then small.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIP = 'pip install "bpls_fast[cuda]"'

try:
    version("numba-cuda")
    from numba import cuda
    from numba.cuda.core import config
except (PackageNotFoundError, ImportError) as error:
    raise ImportError(f"backend 'cuda' needs the package numba-cuda: {PIP}") from error

__all__ = ["cuda", "device_function", "dp4a", "kernel", "launch", "require_device"]

simulated = bool(config.ENABLE_CUDASIM)
"""Whether the simulator runs the kernels."""

Kernel = Any
_stream: contextvars.ContextVar[Any] = contextvars.ContextVar("stream", default=0)


def kernel(function: Callable[..., None]) -> Kernel:
    """Compile a function for the GPU when it is first launched, for the types it is launched with."""
    return cuda.jit(function)


def device_function(function: Callable[..., Any]) -> Any:
    """Make a function that kernels can call; the simulator calls it as it is."""
    return function if simulated else cuda.jit(device=True)(function)


def launch(compiled: Kernel, grid: int | tuple[int, ...], block: Any, *arguments: Any) -> None:
    """Run a kernel on the current stream, without numba's warnings about grids too small to fill a GPU."""
    setting = config.CUDA_LOW_OCCUPANCY_WARNINGS
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    try:
        configured = compiled[grid, block, _stream.get()]
    finally:
        config.CUDA_LOW_OCCUPANCY_WARNINGS = setting
    configured(*arguments)


def require_device() -> None:
    """Raise an error with the reason if no GPU is available."""
    if not cuda.is_available():
        raise RuntimeError(
            f"backend 'cuda' finds no NVIDIA GPU ({why_unavailable()}); on a machine with one: {PIP}"
        )


def why_unavailable() -> str:
    """Return the driver's error in one line."""
    reason = cuda.cuda_error()
    return " ".join(str(reason).split()).split(". ")[0] if reason else "the driver lists no device"


# ---- memory


class OutOfMemoryError(MemoryError):
    """The device has no room for an array."""


def empty(shape: Any, dtype: Any) -> Any:
    """Allocate an array on the device."""
    with _memory_errors():
        return cuda.device_array(shape, dtype, stream=_stream.get())


def upload(values: NDArray[Any]) -> Any:
    """Copy an array to the device."""
    with _memory_errors():
        return cuda.to_device(np.ascontiguousarray(values), stream=_stream.get())


def download(data: Any) -> NDArray[Any]:
    """Copy a contiguous array of the device to the host, after all work of the stream has ended."""
    stream = _stream.get()
    values: NDArray[Any] = data.copy_to_host(stream=stream)
    synchronize()
    return values


def free_bytes() -> float:
    """Return the number of free bytes of the device."""
    return np.inf if simulated else float(cuda.current_context().get_memory_info().free)


class InterfaceOwner:
    """An object with an array interface for device memory; `owner` keeps that memory alive."""

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__cuda_array_interface__ = self.__array_interface__ = interface
        self.owner = owner


def from_interface(interface: dict[str, Any], owner: Any) -> Any:
    """Return a device array of the memory that `__cuda_array_interface__` describes; `owner` keeps it alive."""
    described = InterfaceOwner(interface, owner)
    if simulated:
        view = empty(0, np.uint8)
        view._ary = np.asarray(described)
        return view
    return cuda.as_cuda_array(described)


def interface_of(data: Any) -> dict[str, Any]:
    """Return the array interface of a device array."""
    described = data._ary.__array_interface__ if simulated else data.__cuda_array_interface__
    # numba-cuda omits strides of 0, too.
    strides = None if is_contiguous(data) else tuple(data.strides)
    stream = _handle(data.stream) or None
    return {**described, "strides": strides, "version": 3, "stream": stream}


def is_contiguous(data: Any) -> bool:
    """Return whether the elements of a device array are in the order of rows, without gaps."""
    return bool(data.is_c_contiguous())


def reshaped(data: Any, shape: tuple[Any, ...]) -> Any:
    """Return a view of another shape; the array must be contiguous, which numba-cuda does not check."""
    return data.reshape(*shape).bind(data.stream)


def strided_view(
    data: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0
) -> Any:
    """Return a view of a device array with other strides and an offset, all in bytes."""
    interface = interface_of(data)
    address, read_only = interface["data"]
    place = {"shape": shape, "strides": strides, "data": (address + offset, read_only)}
    return from_interface({**interface, **place, "stream": None}, data).bind(data.stream)


def address_range(data: Any) -> tuple[int, int]:
    """Return the address of the first byte of an array, which is not empty, and that after its last."""
    address = interface_of(data)["data"][0]
    spans = [(n - 1) * s for n, s in zip(data.shape, data.strides, strict=True)]
    last = address + sum(max(0, span) for span in spans)
    return address + sum(min(0, span) for span in spans), last + data.dtype.itemsize


@contextlib.contextmanager
def _memory_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if "OUT_OF_MEMORY" not in f"{type(error).__name__} {error}".upper():
            raise
        reason = " ".join(str(error).split())
        raise OutOfMemoryError(
            f"the GPU has not enough memory for this call ({reason}); use fewer rows, or backend='cpu'"
        ) from error


# ---- streams


@contextlib.contextmanager
def stream(on: Any) -> Iterator[None]:
    """Run all launches of the block on a stream of numba-cuda, torch or CuPy, any `__cuda_stream__`, or a handle."""
    token = _stream.set(_as_stream(on))
    try:
        yield
    finally:
        _stream.reset(token)


def _as_stream(on: Any) -> Any:
    handle = on
    if hasattr(on, "__cuda_stream__"):
        handle = on.__cuda_stream__()[1]
    elif hasattr(on, "cuda_stream"):  # torch
        handle = on.cuda_stream
    elif hasattr(on, "ptr"):  # CuPy
        handle = on.ptr
    if not isinstance(handle, int):
        return on
    return cuda.external_stream(handle) if handle else 0


def stream_handle() -> int:
    """Return the handle of the current stream, 0 for the default one."""
    return _handle(_stream.get())


def _handle(of_stream: Any) -> int:
    handle = getattr(of_stream, "handle", 0)
    return int(getattr(handle, "value", handle) or 0)


def synchronize() -> None:
    """Wait for all work on the current stream."""
    current = _stream.get()
    if current == 0:
        cuda.synchronize()
    else:
        current.synchronize()


# ---- devices


def devices() -> list[dict[str, str]]:
    """Describe every device; an empty list without any."""
    if not cuda.is_available():
        return []
    return [_describe(device) for device in cuda.gpus]


def device_number() -> int:
    """Return the number of the device in use."""
    return 0 if simulated else int(cuda.get_current_device().id)


def _describe(device: Any) -> dict[str, str]:
    if simulated:
        return {"name": "simulator"}
    with device:
        memory = cuda.current_context().get_memory_info()
        name = device.name
        return {
            "name": name.decode() if isinstance(name, bytes) else str(name),
            "capability": f"compute capability {'.'.join(map(str, device.compute_capability))}",
            "memory": f"{memory.total / 2**30:.1f} GiB, {memory.free / 2**30:.1f} free",
            "size": f"{device.MULTIPROCESSOR_COUNT} multiprocessors",
        }


def driver() -> str:
    """Return the version of the CUDA driver, or why there is none."""
    if not cuda.is_available():
        return why_unavailable()
    if simulated:
        return "simulator"
    return ".".join(map(str, cuda.cudadrv.driver.driver.get_version()))


# ---- an instruction that numba-cuda does not offer


def _dp4a_in_python(a: Any, b: Any, c: Any) -> Any:
    """Return c plus the dot product of the four bytes of a and b, all unsigned."""
    a, b, total = int(a), int(b), int(c)
    for shift in (0, 8, 16, 24):
        total += (a >> shift & 255) * (b >> shift & 255)
    if total >> 32:
        raise OverflowError("dp4a: the sum does not fit 32 bits")
    return np.uint32(total)


def _dp4a_intrinsic() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core.typing import signature
    from numba.extending import intrinsic

    @intrinsic
    def dp4a(_typing: Any, a: Any, b: Any, c: Any) -> Any:
        """Return c plus the dot product of the four bytes of a and b, all unsigned."""

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            word = ir.IntType(32)
            assembly = ir.InlineAsm(
                ir.FunctionType(word, [word] * 3), "dp4a.u32.u32 $0, $1, $2, $3;", "=r,r,r,r"
            )
            return builder.call(assembly, arguments)

        return signature(types.uint32, types.uint32, types.uint32, types.uint32), generate

    return dp4a


dp4a = _dp4a_in_python if simulated else _dp4a_intrinsic()
