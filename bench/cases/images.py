"""The rows that the benchmarks run on: MNIST and Fashion-MNIST, from the folder BPLS_DATA, and random values.

Kernels run on random bytes where MNIST is missing; training does not, since noise trains to chance.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bpls_fast as bf

ROWS, PIXELS = 60_000, 784


@functools.cache
def why_missing(name: str = "fashion-mnist") -> str | None:
    """Return why a data set cannot be loaded, or None if it can."""
    try:
        bf.datasets.load(name)
    except FileNotFoundError as error:
        return str(error)
    return None


@functools.cache
def _bytes() -> NDArray[np.uint8]:
    if why_missing("mnist"):
        return np.random.default_rng(0).integers(0, 256, (ROWS, PIXELS), dtype=np.uint8)
    images = bf.datasets.load("mnist").x_train
    if len(images) != ROWS:
        raise ValueError(f"MNIST has {len(images)} training images; expected {ROWS}")
    return images


def source() -> str:
    """Return what `load` returns: MNIST or random bytes."""
    missing = why_missing("mnist")
    return f"random bytes ({missing})" if missing else "MNIST"


@functools.cache
def load(dtype: str, rows: int) -> NDArray[Any]:
    """Return the first `rows` images, one in each row: bytes as they are, floats between 0 and 1."""
    return _as(dtype, _bytes()[:rows])


@functools.cache
def load_fashion(dtype: str, rows: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the first `rows` training images of Fashion-MNIST, as `load` does, and their labels."""
    images, labels, *_ = bf.datasets.load("fashion-mnist")
    return _as(dtype, images[:rows]), labels[:rows]


def _as(dtype: str, images: NDArray[np.uint8]) -> NDArray[Any]:
    return images if dtype == "uint8" else np.divide(images, 255, dtype=dtype)


def dense(dtype: str, rows: int, cols: int = PIXELS) -> NDArray[Any]:
    """Return values without zeros that a kernel could skip: bytes, or floats between 0 and 1."""
    random = np.random.default_rng(0)
    if dtype == "uint8":
        return random.integers(0, 256, (rows, cols), dtype=np.uint8)
    return random.random((rows, cols), np.float32).astype(dtype)


def rows_of(dtype: str, rows: int, cols: int = PIXELS, *, of_images: bool) -> NDArray[Any]:
    """Return images, or dense values of the same shape."""
    return load(dtype, rows) if of_images else dense(dtype, rows, cols)


def shape_text(rows: int, cols: int = PIXELS, *, of_images: bool) -> str:
    """Return the shape as it stands in the name of a case."""
    return f"{rows} x {cols}{' images' if of_images else ''}"
