"""DLPack capsules for device memory. The structures are those of dlpack.h, version 0."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["CPU", "CUDA", "export_capsule", "import_capsule"]

CPU, CUDA = 1, 2
_KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("kind", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_python = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, _Destructor)
_python.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)

_exported: dict[int, Any] = {}
"""What must outlive the tensors that others hold: their structures and the arrays behind them."""


def _delete(managed: int) -> None:
    _exported.pop(managed, None)


def _destroy(capsule: int) -> None:
    # A consumer has renamed the capsule and calls the deleter; without one the tensor ends here.
    if _is_valid(capsule, b"dltensor"):
        _exported.pop(_pointer(capsule, b"dltensor"), None)


_deleter, _destructor = _Deleter(_delete), _Destructor(_destroy)


def export_capsule(interface: dict[str, Any], owner: Any, device: tuple[int, int]) -> Any:
    """Return a capsule for device memory that an array interface describes; it keeps `owner` alive."""
    dtype, shape = np.dtype(interface["typestr"]), interface["shape"]
    strides = interface.get("strides") or _strides(shape, dtype.itemsize)
    numbers = ctypes.c_int64 * max(1, len(shape))
    shape_, strides_ = numbers(*shape), numbers(*(s // dtype.itemsize for s in strides))
    tensor = _Tensor(
        interface["data"][0],
        *device,
        len(shape),
        _KINDS[dtype.kind],
        8 * dtype.itemsize,
        1,
        shape_,
        strides_,
        0,
    )
    managed = _Managed(tensor, None, ctypes.cast(_deleter, ctypes.c_void_p))
    address = ctypes.addressof(managed)
    _exported[address] = (managed, shape_, strides_, owner)
    return _python.PyCapsule_New(address, b"dltensor", _destructor)


def import_capsule(capsule: Any) -> tuple[dict[str, Any], Any]:
    """Take the tensor out of a capsule; return its array interface, and the object that keeps it alive."""
    address = _pointer(id(capsule), b"dltensor")
    managed = _Managed.from_address(address)
    _python.PyCapsule_SetName(capsule, b"used_dltensor")
    tensor = managed.tensor
    kind = {number: letter for letter, number in _KINDS.items()}.get(tensor.kind)
    delete = _Deleter(managed.deleter) if managed.deleter else None
    owner = _ForeignTensor(address, delete)
    if kind is None or tensor.lanes != 1:
        raise TypeError("the DLPack tensor does not hold plain numbers; expected uint8 or floats")
    dtype = np.dtype(f"{kind}{tensor.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = None
    if tensor.strides:
        strides = tuple(dtype.itemsize * s for s in tensor.strides[: tensor.ndim])
    return {
        "shape": shape,
        "typestr": dtype.str,
        "data": ((tensor.data or 0) + tensor.byte_offset, False),
        "strides": strides,
        "version": 3,
    }, owner


class _ForeignTensor:
    """A tensor of another library, whose deleter is called at the end."""

    def __init__(self, address: int, delete: Callable[[int], None] | None) -> None:
        self.address, self.delete = address, delete

    def __del__(self) -> None:
        if self.delete is not None:
            self.delete(self.address)


def _strides(shape: Any, itemsize: int) -> tuple[int, ...]:
    return tuple(int(itemsize * np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
