"""Memory that a fit keeps from sweep to sweep."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels.backend import empty, to_device_of
from bpls_fast.training.data import Array

__all__ = ["Buffers"]


class Buffers:
    """Arrays by name, on one backend; an array grows when more is asked for, and is never freed."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._arrays: dict[str, Array] = {}
        self._numbers: NDArray[np.intp] = np.arange(0)

    def empty(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return the array of this name in a shape; its values are not set."""
        size = math.prod(shape)
        if not self._holds(name, size, dtype):
            self._arrays[name] = empty((size,), dtype, self._backend)
        return self._arrays[name][:size].reshape(shape)

    def ones(self, like: Array) -> Array:
        """Return ones in the shape and type of other values, where these are."""
        size = math.prod(like.shape)
        if not self._holds("ones", size, like.dtype):
            self._arrays["ones"] = to_device_of(like, np.ones(size, like.dtype))
        return self._arrays["ones"][:size].reshape(like.shape)

    def numbers(self, count: int) -> NDArray[np.intp]:
        """Return the numbers from 0 to count - 1, on the host."""
        if len(self._numbers) < count:
            self._numbers = np.arange(count)
        return self._numbers[:count]

    def _holds(self, name: str, size: int, dtype: Any) -> bool:
        kept = self._arrays.get(name)
        return kept is not None and kept.size >= size and kept.dtype == dtype
