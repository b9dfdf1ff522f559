"""The images that the benchmarks run on: MNIST where BPLS_DATA has it, random bytes otherwise.

BPLS_DATA is a folder in torchvision's layout; without it ../shared/data beside the repository is tried.
"""

import functools
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS, PIXELS = 60_000, 784
HEADER_BYTES = 16  # of an IDX file of images


def _file() -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    root = Path(os.environ.get("BPLS_DATA", beside))
    return root / "MNIST" / "raw" / "train-images-idx3-ubyte.gz"


@functools.cache
def _bytes() -> NDArray[np.uint8]:
    if not _file().is_file():
        return np.random.default_rng(0).integers(0, 256, (ROWS, PIXELS), dtype=np.uint8)
    with gzip.open(_file()) as file:
        return np.frombuffer(bytearray(file.read()), np.uint8, offset=HEADER_BYTES).reshape(
            ROWS, PIXELS
        )


@functools.cache
def load(dtype: str, rows: int) -> NDArray[Any]:
    """Give the first `rows` images, one in each row: bytes as they are, floats between 0 and 1."""
    images = _bytes()[:rows]
    return images if dtype == "uint8" else np.divide(images, 255, dtype=dtype)


def source() -> str:
    """Say where the images come from."""
    return str(_file()) if _file().is_file() else f"random bytes ({_file()} is missing)"
