"""The real data sets, which the environment variable BPLS_DATA names, and rows of the shape of MNIST for every test."""

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bpls_fast as bf

ROOT = Path(os.environ.get("BPLS_DATA") or "BPLS_DATA-is-not-set")
"""The folder that holds ``MNIST/raw`` and ``FashionMNIST/raw``, if it exists."""


@functools.cache
def load(dtype: str, rows: int) -> NDArray[Any]:
    """Return `rows` training images of MNIST, or random bytes without it; as floats between 0 and 1."""
    try:
        images = bf.datasets.load("mnist", root=ROOT).x_train[:rows]
    except FileNotFoundError:
        images = np.random.default_rng(0).integers(0, 256, (rows, 784), dtype=np.uint8)
    return images if dtype == "uint8" else np.divide(images, 255, dtype=dtype)
