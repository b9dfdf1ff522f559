"""The images that the benchmarks run on: MNIST where BPLS_DATA has it, random bytes otherwise.

Training runs on Fashion-MNIST, from the same folder alone.

BPLS_DATA is a folder in torchvision's layout; without it ../shared/data beside the repository is tried.
"""

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bpls_fast as bf

ROOT = Path(os.environ.get("BPLS_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
ROWS, PIXELS = 60_000, 784


@functools.cache
def _bytes_and_source() -> tuple[NDArray[np.uint8], str]:
    try:
        images = bf.datasets.load("mnist", root=ROOT).x_train
    except FileNotFoundError:
        images = np.random.default_rng(0).integers(0, 256, (ROWS, PIXELS), dtype=np.uint8)
        return images, f"random bytes ({ROOT} has no complete MNIST)"
    if len(images) != ROWS:
        raise ValueError(f"{ROOT} has {len(images)} images of MNIST; expected {ROWS}")
    return images, f"MNIST in {ROOT}"


def are_there(folder: str = "FashionMNIST") -> bool:
    """Tell whether images to train on can be loaded. Nothing random stands in for them: noise trains to chance."""
    return (ROOT / folder / "raw").is_dir()


@functools.cache
def load_fashion(dtype: str, rows: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Give the first `rows` training images of Fashion-MNIST, as `load` does, and their labels."""
    images, labels, *_ = bf.datasets.load("fashion-mnist", root=ROOT)
    return _as(dtype, images[:rows]), labels[:rows]


@functools.cache
def load(dtype: str, rows: int) -> NDArray[Any]:
    """Give the first `rows` images, one in each row: bytes as they are, floats between 0 and 1."""
    return _as(dtype, _bytes_and_source()[0][:rows])


def _as(dtype: str, images: NDArray[np.uint8]) -> NDArray[Any]:
    return images if dtype == "uint8" else np.divide(images, 255, dtype=dtype)


def source() -> str:
    """Say where the images come from."""
    return _bytes_and_source()[1]
