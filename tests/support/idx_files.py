"""Files in the IDX format, made in a few lines of their own."""

import gzip
import struct
from pathlib import Path

import numpy as np

FOLDERS = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}
FILES = [
    f"{part}-{content}-ubyte"
    for part in ("train", "t10k")
    for content in ("images-idx3", "labels-idx1")
]


def unzipped(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def idx(values: np.ndarray, kind: int = 0x08) -> bytes:
    return struct.pack(f">4B{values.ndim}I", 0, 0, kind, values.ndim, *values.shape) + bytes(values)


def header(*shape: int) -> bytes:
    return struct.pack(f">4B{len(shape)}I", 0, 0, 0x08, len(shape), *shape)


def made(train: int = 7, test: int = 3) -> dict[str, bytes]:
    """Make the four files of a small set."""
    rng = np.random.default_rng(0)
    values = [
        rng.integers(0, high, shape, dtype=np.uint8)
        for rows in (train, test)
        for high, shape in ((256, (rows, 28, 28)), (10, (rows,)))
    ]
    return dict(zip(FILES, map(idx, values), strict=True))


def write(root: Path, files: dict[str, bytes], name: str = "mnist", packed: bool = False) -> Path:
    raw = root / FOLDERS[name] / "raw"
    raw.mkdir(parents=True)
    for file, content in files.items():
        if packed:
            (raw / f"{file}.gz").write_bytes(gzip.compress(content))
        else:
            (raw / file).write_bytes(content)
    return raw


LITTLE = 8 << 20  # bytes: more than reading or refusing a small file takes
