"""Data sets for trying out the package, and the reader of their IDX files.

Headers are not trusted: memory is allocated for data that was read, never for what a header claims. A truncated,
damaged or wrong file raises an error that names it.
"""

import gzip
import math
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["DataSet", "load", "read_idx"]


class DataSet(NamedTuple):
    """Images as rows of uint8, and their labels, split into a training and a test part."""

    x_train: NDArray[np.uint8]
    y_train: NDArray[np.int64]
    x_test: NDArray[np.uint8]
    y_test: NDArray[np.int64]


def load(name: str, root: str | os.PathLike[str] | None = None, download: bool = False) -> DataSet:
    """Load a data set by name.

    Parameters
    ----------
    name : {"digits", "mnist", "fashion-mnist"}
        "digits": scikit-learn's 1797 digits of 8 x 8 pixels with values from 0 to 16. A fifth of them, drawn with a
        fixed seed, is the test part. scikit-learn contains the data; `root` and `download` are ignored.

        "mnist", "fashion-mnist": images of 28 x 28 pixels in ten classes, 60,000 for training and 10,000 for tests.
    root : path, optional
        The folder that holds ``MNIST/raw`` and ``FashionMNIST/raw``, as torchvision lays them out. The four IDX
        files in each may be plain or gzipped. The default is the environment variable BPLS_DATA; if it is not set,
        ``bpls_fast`` in the user's cache folder (``$XDG_CACHE_HOME`` or ``~/.cache``).
    download : bool, default False
        If files are missing, let torchvision download the set into `root`. Existing files are not replaced; delete
        a damaged one first.

    Returns
    -------
    DataSet
        A named tuple (x_train, y_train, x_test, y_test) of uint8 images, one per row, and int64 labels.

    Raises
    ------
    ValueError
        If there is no set of that name, or if a file is truncated, damaged or not what its name says.
    FileNotFoundError
        If files are missing and `download` is False.
    ImportError
        If scikit-learn (for the digits) or torchvision (for a download) is not installed.
    RuntimeError
        If torchvision cannot download the files.

    Examples
    --------
    >>> import bpls_fast as bf
    >>> bf.datasets.load("digits").x_train.shape
    (1437, 64)
    """
    if name == "digits":
        return _digits()
    if name not in _FOLDERS:
        expected = ", ".join(map(repr, ["digits", *_FOLDERS]))
        raise ValueError(f"name is {name!r}; expected one of {expected}")
    root = _default_root() if root is None else Path(root).expanduser()
    raw = root / _FOLDERS[name] / "raw"
    missing = [file for part in _PARTS for file in _files(part) if not _path(raw, file).exists()]
    if missing and download:
        _download(_FOLDERS[name], root)
    elif missing:
        raise FileNotFoundError(
            f"{name} is not complete in {raw}: no {', '.join(missing)}, plain or with .gz; put the files "
            "there, name another folder by root or the environment variable BPLS_DATA, or download them by "
            "torchvision with download=True"
        )
    train, test = (_labelled_images(raw, part) for part in _PARTS)
    return DataSet(*train, *test)


def read_idx(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes, the format of MNIST. Gzipped files are recognised by their content.

    Parameters
    ----------
    path : path
        The file. Its values must be bytes, in 1 to 32 dimensions of at least one element.

    Returns
    -------
    ndarray of uint8
        A new array of the shape given in the header.

    Raises
    ------
    ValueError
        If the file is not IDX, holds other values than bytes, is truncated or damaged, or is longer than its header
        says.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import bpls_fast as bf
    >>> header = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3])  # bytes, 2 dimensions: 2 and 3
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "six-idx2-ubyte")
    ...     _ = path.write_bytes(header + bytes([1, 2, 3, 4, 5, 6]))
    ...     bf.datasets.read_idx(path)
    array([[1, 2, 3],
           [4, 5, 6]], dtype=uint8)
    """
    with _unzipped(path) as file:
        return _read_values(file, path, _read_shape(file, path))


_FOLDERS = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}  # as torchvision names its classes
_PARTS = ["train", "t10k"]
_PIXELS = (28, 28)
_CLASSES = 10
_ROWS = 60_000  # the maximum; refuses a small file that unzips to far more

_IDX_TYPES = {
    0x08: "uint8",
    0x09: "int8",
    0x0B: "int16",
    0x0C: "int32",
    0x0D: "float32",
    0x0E: "float64",
}
_IDX_DIMENSIONS = 32  # the maximum of the oldest supported NumPy
_CHUNK = 1 << 20


def _digits() -> DataSet:
    try:
        import sklearn.datasets
    except ImportError as error:
        raise ImportError(
            "the digits need scikit-learn: pip install 'bpls_fast[sklearn]'"
        ) from error
    bunch: Any = sklearn.datasets.load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.data))
    x = bunch.data.astype(np.uint8)[order]
    y = bunch.target.astype(np.int64)[order]
    train = len(x) * 4 // 5
    return DataSet(x[:train], y[:train], x[train:], y[train:])


def _default_root() -> Path:
    if named := os.environ.get("BPLS_DATA"):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "bpls_fast")


def _files(part: str) -> tuple[str, str]:
    return f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"


def _path(raw: Path, file: str) -> Path:
    plain = raw / file
    return plain if plain.exists() else raw / f"{file}.gz"


def _download(folder: str, root: Path) -> None:
    try:
        import torchvision.datasets
    except (ImportError, RuntimeError) as error:  # RuntimeError: built for another torch
        raise ImportError(
            f"download=True needs torchvision, which does not load ({error}): "
            "pip install 'bpls_fast[torchvision]'"
        ) from error
    getattr(torchvision.datasets, folder)(root, download=True)


def _labelled_images(raw: Path, part: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    images_path, labels_path = (_path(raw, file) for file in _files(part))
    images = _read_rows(images_path, "images", _PIXELS)
    labels = _read_rows(labels_path, "labels", ())
    if len(images) != len(labels):
        raise ValueError(
            f"{images_path} has {len(images)} images and {labels_path} has {len(labels)} labels; "
            "expected as many labels as images"
        )
    if labels.max() >= _CLASSES:
        row = int(np.argmax(labels >= _CLASSES))
        raise ValueError(
            f"{labels_path} has label {labels[row]} in row {row}; expected 0 to {_CLASSES - 1}"
        )
    return images.reshape(len(images), -1), labels.astype(np.int64)


def _read_rows(path: Path, content: str, row_shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Read images or labels; check the shape before reading the values."""
    with _unzipped(path) as file:
        shape = _read_shape(file, path)
        if len(shape) != 1 + len(row_shape):
            looks_like = {1: ", like labels", 3: ", like images"}.get(len(shape), "")
            raise ValueError(
                f"{path} has {len(shape)} dimension(s){looks_like}; "
                f"expected {content} with {1 + len(row_shape)}"
            )
        if shape[0] > _ROWS or shape[1:] != row_shape:
            each = "".join(f" x {size}" for size in row_shape)
            raise ValueError(f"{path} has shape {shape}; expected {content}: at most {_ROWS}{each}")
        return _read_values(file, path, shape)


@contextmanager
def _unzipped(path: str | os.PathLike[str]) -> Iterator[BufferedIOBase]:
    with open(path, "rb") as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as unzipped:
                yield unzipped
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is truncated or damaged: gzip says: {error}") from error


def _read_shape(file: BufferedIOBase, path: str | os.PathLike[str]) -> tuple[int, ...]:
    magic = file.read(4)
    if len(magic) < 4:
        raise ValueError(
            f"{path} ends after {len(magic)} bytes; expected the header of an IDX file"
        )
    kind, dimensions = magic[2:]
    if magic[:2] != b"\0\0" or kind not in _IDX_TYPES:
        raise ValueError(
            f"{path} is not an IDX file: it begins with {magic.hex(' ')}; expected 00 00 08 .."
        )
    if _IDX_TYPES[kind] != "uint8":
        raise ValueError(
            f"{path} holds {_IDX_TYPES[kind]} (type 0x{kind:02x}); expected uint8 (type 0x08)"
        )
    if not 1 <= dimensions <= _IDX_DIMENSIONS:
        raise ValueError(f"{path} has {dimensions} dimensions; expected 1 to {_IDX_DIMENSIONS}")
    sizes = file.read(4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise ValueError(
            f"{path} is truncated: it ends after {4 + len(sizes)} bytes; "
            f"expected a header of {4 + 4 * dimensions}"
        )
    shape = struct.unpack(f">{dimensions}I", sizes)
    if 0 in shape:
        raise ValueError(f"{path} is empty: its shape is {shape}; expected sizes of at least 1")
    return shape


def _read_values(
    file: BufferedIOBase, path: str | os.PathLike[str], shape: tuple[int, ...]
) -> NDArray[np.uint8]:
    # Ask for one byte more than expected: that finds trailing bytes, and makes gzip verify its checksum at the end.
    expected = math.prod(shape)
    values = bytearray()
    while chunk := file.read(min(_CHUNK, expected + 1 - len(values))):
        values += chunk
    if len(values) < expected:
        raise ValueError(
            f"{path} is truncated: {len(values)} bytes follow its header; "
            f"expected {expected} for the shape {shape}"
        )
    if len(values) > expected:
        raise ValueError(
            f"{path} is too long: bytes follow the {expected} that its shape {shape} has; expected none"
        )
    return np.frombuffer(values, np.uint8).reshape(shape)
