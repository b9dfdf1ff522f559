"""The images that tests run on: MNIST where BPLS_DATA is set, random bytes otherwise."""

import functools
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.required import real_images

ROWS, PIXELS = 60_000, 784


@functools.cache
def load(dtype: str, rows: int) -> NDArray[Any]:
    """Return the first `rows` images, one in each row: bytes as they are, floats between 0 and 1."""
    if os.environ.get("BPLS_DATA"):
        images = real_images("mnist").x_train[:rows]
    else:
        images = np.random.default_rng(0).integers(0, 256, (rows, PIXELS), dtype=np.uint8)
    return images if dtype == "uint8" else np.divide(images, 255, dtype=dtype)
