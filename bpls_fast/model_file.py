"""Network files: a `.npz` archive of plain arrays and a header in JSON. Nothing in it is ever executed.

A file is believed only as far as it was checked: the archive's members, their sizes before they are read, the format
version, and a checksum over the shape, type and bytes of every array.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["read", "write"]

FORMAT = "bpls_fast.network"
VERSION = 1
LARGEST_HEADER = 1 << 20  # bytes

Header = dict[str, Any]


def write(
    path: str | os.PathLike[str],
    header: Header,
    weights: list[NDArray[np.float64]],
    classes: NDArray[Any] | None,
) -> None:
    """Write a network; the file appears whole or not at all."""
    arrays = {f"weights_{layer}": W for layer, W in enumerate(weights)}
    if classes is not None:
        arrays["classes"] = _plain(classes)
    header = {"format": FORMAT, "version": VERSION, **header}
    header["arrays"] = {name: _description(array) for name, array in arrays.items()}
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    handle, unfinished = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path), suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, header=text, **arrays)
        _give_usual_mode(unfinished)
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def read(
    path: str | os.PathLike[str],
) -> tuple[Header, list[NDArray[np.float64]], NDArray[Any] | None]:
    """Read what `write` wrote: the header, the weights, the classes. Raises ValueError for any other file."""
    try:
        with zipfile.ZipFile(path) as archive:
            header = _read_header(archive)
            described = header["arrays"]
            arrays = {
                name: _read_array(archive, name, description)
                for name, description in described.items()
            }
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} is no network file, or it is damaged: {error}"
        ) from error
    except (DamagedError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{os.fspath(path)!r} is damaged: {error}") from error
    classes = arrays.pop("classes", None)
    names = [f"weights_{layer}" for layer in range(len(arrays))]
    if sorted(arrays) != sorted(names):
        raise ValueError(f"{os.fspath(path)!r} is damaged: its arrays are {sorted(arrays)}")
    return header, [arrays[name] for name in names], classes


class DamagedError(Exception):
    """What was found in a file is not what its header says."""


def _read_header(archive: zipfile.ZipFile) -> Header:
    if "header.npy" not in archive.namelist():
        raise DamagedError("it has no header; expected a file that Network.save wrote")
    if archive.getinfo("header.npy").file_size > LARGEST_HEADER:
        raise DamagedError("its header is too long")
    try:
        text = np.load(io.BytesIO(archive.read("header.npy")), allow_pickle=False)
        header = json.loads(text.astype(np.uint8, casting="no").tobytes())
    except (ValueError, TypeError, EOFError) as error:
        raise DamagedError(f"its header cannot be read: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DamagedError(f"its header does not name the format {FORMAT}")
    if header.get("version") != VERSION:
        raise DamagedError(
            f"its format version is {header.get('version')!r}; this release reads version {VERSION}"
        )
    return header


def _read_array(archive: zipfile.ZipFile, name: str, described: dict[str, Any]) -> NDArray[Any]:
    shape, dtype = tuple(described["shape"]), np.dtype(str(described["dtype"]))
    allowed = "f" if name.startswith("weights_") else "biufU"
    if dtype.kind not in allowed or not all(type(n) is int and n >= 0 for n in shape):
        raise DamagedError(f"{name} is said to be {dtype} of shape {shape}")
    size = dtype.itemsize
    for n in shape:
        size *= n
    member = archive.getinfo(f"{name}.npy")
    if member.compress_type != zipfile.ZIP_STORED or member.file_size - size > LARGEST_HEADER:
        raise DamagedError(
            f"{name} has {member.file_size} bytes; expected {dtype} of shape {shape}, not compressed"
        )
    data = archive.read(member)
    try:
        array: Any = np.load(io.BytesIO(data), allow_pickle=False) if len(data) >= size else None
    except (ValueError, EOFError) as error:
        raise DamagedError(f"{name} cannot be read: {error}") from error
    if array is None or _description(array) != described:
        raise DamagedError(
            f"{name} is not what the header says: its shape, type or checksum differs"
        )
    return np.asarray(array)


def _description(array: NDArray[Any]) -> dict[str, Any]:
    """Give what the header says of an array; the checksum covers shape and type as well as the bytes."""
    shape, dtype = list(array.shape), array.dtype.str
    start = zlib.crc32(f"{shape} {dtype}".encode())
    return {"shape": shape, "dtype": dtype, "crc32": zlib.crc32(array.tobytes(), start)}


def _plain(classes: NDArray[Any]) -> NDArray[Any]:
    """Give labels as an array that needs no pickle."""
    if classes.dtype.kind == "O" and all(isinstance(label, str) for label in classes):
        classes = classes.astype(str)
    if classes.dtype.kind not in "biufU":
        raise TypeError(
            f"classes have dtype {classes.dtype}; a network file holds numbers, booleans or strings"
        )
    return classes


def _give_usual_mode(path: str) -> None:
    """Let the file have the permissions of any new file; a temporary one is its owner's alone."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)
