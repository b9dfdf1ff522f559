"""Network files: a `.npz` archive of plain arrays and a header in JSON. Nothing in it is ever executed.

A file is believed only as far as it was checked: the archive's members, their sizes before they are read, the format
version, and a checksum over the shape, type and bytes of every array.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import tempfile
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["read", "write"]

FORMAT = "bpls_fast.network"
VERSION = 1
LARGEST_HEADER = 1 << 20  # bytes
PLAIN_KINDS = "biufSUMm"  # of NumPy types without objects: numbers, strings, dates

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
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "the folder of this file does not exist", path)
    handle, unfinished = tempfile.mkstemp(dir=folder, prefix=".bpls-", suffix=".tmp")
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
    path = os.fspath(path)
    with open(path, "rb") as file:
        try:
            return _read(file)
        except UnreadableError as error:
            raise ValueError(f"{path!r} cannot be read as a network: {error}") from error
        except (
            Exception
        ) as error:  # zipfile and JSON have many ways to fail on bytes that are not theirs
            raise ValueError(
                f"{path!r} cannot be read as a network; it is of another kind or damaged: {error}"
            ) from error


class UnreadableError(Exception):
    """A file is of another version, or what was found in it is not what its header says."""


def _read(file: BinaryIO) -> tuple[Header, list[NDArray[np.float64]], NDArray[Any] | None]:
    with zipfile.ZipFile(file) as archive:
        header = _read_header(archive)
        arrays = {
            name: _read_array(archive, name, described)
            for name, described in header["arrays"].items()
        }
    classes = arrays.pop("classes", None)
    names = [f"weights_{layer}" for layer in range(len(arrays))]
    if set(arrays) != set(names):
        raise UnreadableError(f"its arrays are {sorted(arrays)}; expected {names}")
    return header, [arrays[name] for name in names], classes


def _read_header(archive: zipfile.ZipFile) -> Header:
    if "header.npy" not in archive.namelist():
        raise UnreadableError("it has no header; expected a file that Network.save wrote")
    if archive.getinfo("header.npy").file_size > LARGEST_HEADER:
        raise UnreadableError(f"its header is longer than {LARGEST_HEADER} bytes")
    text = np.load(io.BytesIO(archive.read("header.npy")), allow_pickle=False)
    header = json.loads(text.astype(np.uint8, casting="no").tobytes())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise UnreadableError(f"its header does not name the format {FORMAT}")
    if header.get("version") != VERSION:
        raise UnreadableError(
            f"its format version is {header.get('version')!r}; this release reads version {VERSION}"
        )
    return header


def _read_array(archive: zipfile.ZipFile, name: str, described: dict[str, Any]) -> NDArray[Any]:
    """Read an array, after a look at how large it is said to be."""
    shape, dtype = tuple(described["shape"]), np.dtype(str(described["dtype"]))
    allowed = "f" if name.startswith("weights_") else PLAIN_KINDS
    if dtype.kind not in allowed or not all(type(n) is int and n >= 0 for n in shape):
        raise UnreadableError(f"{name} is said to be {dtype} of shape {shape}")
    size = math.prod(shape) * dtype.itemsize
    member = archive.getinfo(f"{name}.npy")
    if (
        member.compress_type != zipfile.ZIP_STORED
        or not 0 <= member.file_size - size <= LARGEST_HEADER
    ):
        raise UnreadableError(
            f"{name} has {member.file_size} bytes; expected {dtype} of shape {shape}, not compressed"
        )
    array = np.load(io.BytesIO(archive.read(member)), allow_pickle=False)
    if _description(array) != described:
        raise UnreadableError(
            f"{name} is not what the header says: its shape, type or checksum differs"
        )
    return np.asarray(array)


def _description(array: NDArray[Any]) -> dict[str, Any]:
    """Give what the header says of an array; the checksum covers shape and type as well as the bytes."""
    shape, dtype = list(array.shape), array.dtype.str
    start = zlib.crc32(f"{shape} {dtype}".encode())
    return {"shape": shape, "dtype": dtype, "crc32": zlib.crc32(array.tobytes(), start)}


def _plain(classes: NDArray[Any]) -> NDArray[Any]:
    """Give labels as an array that needs no pickle; objects of one plain type become an array of that type."""
    plain = classes
    if classes.dtype.kind == "O" and len({type(label) for label in classes}) == 1:
        plain = np.array(classes.tolist())
    if plain.dtype.kind not in PLAIN_KINDS or plain.tolist() != classes.tolist():
        raise TypeError(
            f"classes have dtype {classes.dtype}; a network file holds numbers, booleans or strings of one type"
        )
    return plain


def _give_usual_mode(path: str) -> None:
    """Let the file have the permissions of any new file; a temporary one is its owner's alone."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)
