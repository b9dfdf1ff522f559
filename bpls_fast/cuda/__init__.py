"""The GPU backend: the kernels of this package, by the same names, on NVIDIA GPUs. It needs numba-cuda.

Importing this package does not load numba-cuda; the first use of one of its names does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bpls_fast.cuda.array import Array as Array
    from bpls_fast.cuda.array import asarray as asarray
    from bpls_fast.cuda.runtime import stream as stream

__all__ = ["Array", "asarray", "stream"]

_HOMES = {"Array": "array", "asarray": "array", "stream": "runtime"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"bpls_fast.cuda.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'bpls_fast.cuda' has no attribute {name!r}")
